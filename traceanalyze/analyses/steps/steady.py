"""Which steps are the start of a run: much longer than those after them, and in no mean (definitions §18)."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.steps.window import Steps, median

STARTING = 2
"""A first step longer than so many medians of those after it belongs to the start of the run (definitions §18)."""
_FEWEST = 2
"""Where fewer would be left, all count (definitions §18)."""
_LONGEST_CYCLE, _OWN, _APART = 16, 0.05, 0.02
"""Steps alternate where their place in a cycle of at most so many explains all but such a part of their variance, and
the means of the places differ by such a part of the step."""
_AS_LONG = 0.8
"""Part of a step's length from which another is as long: what returns is the program's rhythm, not its start."""

StepKey: TypeAlias = "tuple[str, int]"
"""Name of a step, and its place among those of the same name."""


def step_keys(names: Sequence[str]) -> tuple[StepKey, ...]:
    """What tells the steps of one recording apart, and finds them again in that of another rank."""
    count: Counter[str] = Counter()
    found = []
    for name in names:
        found.append((name, count[name]))
        count[name] += 1
    return tuple(found)


def settled(steps: Steps, agreed: Collection[StepKey] | None = None) -> Steps:
    """The steps, with those of the start marked: by their times, or all but what the ranks `agreed` to count."""
    starting = np.zeros(len(steps), np.bool_)
    if agreed is not None:
        starting |= [key not in agreed for key in step_keys(steps.name)]
        return replace(steps, starting=starting)
    complete = np.flatnonzero(steps.complete)
    early = np.zeros(len(steps), np.bool_) if steps.early is None else steps.early
    starting[complete[: _first_steady(steps.time[complete], early[complete])]] = True
    return replace(steps, starting=starting)


def counted_steps(steps: Steps) -> NDArray[np.bool_]:
    """The steps that count where the user chose none."""
    return settled(steps).counted


def whole_cycles(steps: Steps) -> NDArray[np.bool_]:
    """Of the steps that count the last ones that are whole cycles, where long and short steps alternate."""
    counted = counted_steps(steps)
    rows = np.flatnonzero(counted)
    counted[rows[: len(rows) % cycle_of(steps.time[rows])]] = False
    return counted


def cycle_of(times: NDArray[np.int64]) -> int:
    """In how many steps their times (n,), ns, come back: 1 where long and short steps do not alternate."""
    mean = float(times.mean()) if len(times) else 0.0
    spread = float(((times - mean) ** 2).sum())
    for cycle in range(2, min(len(times) // 2, _LONGEST_CYCLE) + 1):
        places = [times[place::cycle].astype(float) for place in range(cycle)]
        own = sum(float(((each - each.mean()) ** 2).sum()) for each in places)
        if own <= _OWN * spread and np.ptp([each.mean() for each in places]) >= _APART * mean:
            return cycle
    return 1


def _first_steady(times: NDArray[np.int64], early: NDArray[np.bool_]) -> int:
    """How many leading steps each take more than twice the median of those after them, or lie in the window of one.

    A window that lasts until work of its step on another stream ends takes the time of the next steps, which say
    nothing by their own then.
    """
    first = 0
    while len(times) - first > _FEWEST:
        after = times[first + 1 :][~early[first + 1 :]]
        if times[first] <= median(STARTING * after) or _returns(times[first:]):
            break
        following = first + 1 + int((~np.append(early[first + 1 :], False)).argmax())
        if len(times) - following < _FEWEST:
            break
        first = following
    return first


def _returns(times: NDArray[np.int64]) -> bool:
    """Whether steps as long as the first follow at one distance, for two whole cycles at least."""
    alike = np.flatnonzero(times >= _AS_LONG * times[0]).tolist()
    apart = {after - before for before, after in pairwise([*alike, len(times)])}
    cycle = max(apart)
    return len(alike) > 1 and 2 * cycle <= len(times) and apart - {len(times) - alike[-1]} <= {cycle}
