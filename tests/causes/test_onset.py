"""Since when: answers read off the costs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.causes.make import MS, STEP
from traceanalyze.causes.causes import Spell, onset


def spell(*costs_ms, recording=0, first=0, known=True):
    steps = tuple(str(first + at) for at in range(len(costs_ms)))
    cost = np.array(costs_ms, float) * MS
    return Spell(recording, steps, np.full(len(steps), STEP, np.int64), cost.astype(np.int64) if known else None)


@pytest.mark.parametrize(
    ("costs", "kind", "step", "affected"),
    [
        ((30, 31, 29, 30), "every", "", 4),
        ((0, 0, 30, 30), "from", "2", 2),
        ((0.5, 0.4, 30, 30), "from", "2", 2),
        ((2, 2, 30, 30), "from", "2", 2),
        ((30, 30, 0, 0), "until", "1", 2),
        ((0, 30, 30, 30), "some", "", 3),
        ((0, 30, 0, 30), "some", "", 2),
        ((30, 0, 0, 30), "some", "", 2),
    ],
)
def test_the_steps_in_which_it_is_there(costs, kind, step, affected):
    found = onset([spell(*costs)])
    assert (found.kind, found.step, found.affected, found.steps) == (kind, step, affected, len(costs))


def test_a_later_recording_may_be_where_it_begins():
    found = onset([spell(0, 0, 0), spell(30, 30, 30, recording=1, first=500)])
    assert (found.kind, found.step, found.recording, found.affected, found.steps) == ("from", "500", 1, 3, 6)


def test_what_is_not_tied_to_points_in_time_is_not_told():
    assert onset([spell(30, 30, known=False)]).kind == "unknown"


def test_but_a_recording_without_it_tells():
    found = onset([spell(0, 0), spell(30, 30, recording=1, first=10, known=False)])
    assert (found.kind, found.step, found.recording) == ("from", "10", 1)


@pytest.mark.parametrize("spells", [[], [spell(30)], [spell(0, 0, 0)]])
def test_one_step_or_none_tells_nothing(spells):
    assert onset(spells).kind == "unknown"
