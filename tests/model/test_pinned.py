"""Nothing that this room makes of names, numbers and random arrays moves unseen; see `tests.pinned`."""

from __future__ import annotations

import pytest

from tests.pinned import ROOMS, moved


@pytest.mark.parametrize("name", ROOMS["model"][1])
def test_nothing_has_moved(name: str) -> None:
    assert moved("model", name) == []
