"""The recorded ladders: at each rung the tool names first what the next rung removes, and how much it gains."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.documents import text
from tests.ladder.rungs import HOST, SPEED
from tests.ladder.walk import Recorded, removed_by, rungs, table

ROOT = Path(__file__).resolve().parents[2]
LADDERS = {path: HOST if "cpu" in path.parent.name else SPEED for path in ROOT.glob("sample_traces/ladder_*/speed")}
OFF = 0.10
"""Of the step: how far a prediction from one recording under the profiler may lie from what was gained without it."""


@pytest.fixture(scope="module", params=LADDERS, ids=lambda path: path.parent.name)
def ladder(request: pytest.FixtureRequest) -> tuple[Path, list[Recorded]]:
    return request.param, rungs(request.param)


def test_every_rung_is_recorded(ladder: tuple[Path, list[Recorded]]) -> None:
    path, climbed = ladder
    assert [one.name for one in climbed] == [rung.name for rung in LADDERS[path]]


def test_the_cause_named_first_is_the_one_that_the_next_rung_removes(ladder: tuple[Path, list[Recorded]]) -> None:
    path, climbed = ladder
    for below, above in pairwise(climbed):
        assert below.first_rule in removed_by(above, LADDERS[path]), f"{below.name} → {above.name}"


def test_the_cause_is_gone_at_the_next_rung(ladder: tuple[Path, list[Recorded]]) -> None:
    path, climbed = ladder
    for below, above in pairwise(climbed):
        removes = removed_by(above, LADDERS[path])
        assert above.predicted(removes) < 0.5 * below.predicted(removes), f"{below.name} → {above.name}"


def test_the_saving_is_what_the_next_rung_gained(ladder: tuple[Path, list[Recorded]]) -> None:
    path, climbed = ladder
    for below, above in pairwise(climbed):
        predicted = below.predicted(removed_by(above, LADDERS[path]))
        assert predicted == pytest.approx(below.measured(above), abs=OFF), f"{below.name} → {above.name}"


def test_the_readme_shows_the_table(ladder: tuple[Path, list[Recorded]]) -> None:
    path, climbed = ladder
    shown = table(climbed, LADDERS[path])
    for language in ("en", "zh"):
        assert shown in text(language)
