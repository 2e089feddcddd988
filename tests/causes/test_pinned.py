"""Nothing that this room makes of samples and simulated programs moves unseen; see `tests.pinned`."""

from __future__ import annotations

import pytest

from tests.pinned import looked_at, moved


@pytest.mark.parametrize("name", looked_at("causes"))
def test_nothing_has_moved(name: str) -> None:
    assert moved("causes", name) == []
