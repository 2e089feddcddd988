"""What a rank would gain by a change, as rules ask for it: the replay's answer a step (`traceanalyze.replay`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.intervals import Intervals
from traceanalyze.replay.replay import Change, replay
from traceanalyze.rules.rule import Facts, intervals_of


class Gain(NamedTuple):
    """What would be saved."""

    saving: int
    """ns a step."""
    idle: NDArray[np.int64]
    """(n, 2) the idle time that would be gone, in the windows."""


def gained(facts: Facts, change: Change) -> Gain:
    """What the windows would gain by a change."""
    again = replay(facts.context, change)
    return Gain(facts.mean(again.saving), intervals_of(*facts.clip(intervals_of(*again.idle))))


def replay_without(
    facts: Facts, removed: Intervals, shorter: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
) -> Gain:
    """What the steps would gain without some host time, and with some device events shorter.

    Args:
        facts: of the rank.
        removed: the host time, a set; sync calls inside it go too, all others stay.
        shorter: positions in `Context.device`, and by how many ns each of these events is shorter.
    """
    change = Change(removed)
    return gained(facts, change if shorter is None else change._replace(events=shorter[0], shorter=shorter[1]))
