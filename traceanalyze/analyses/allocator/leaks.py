"""Blocks that every step leaves behind (detector D6)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.allocator.lifetimes import BEFORE
from traceanalyze.analyses.allocator.results import Leak
from traceanalyze.analyses.results import NotMeasured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.analyses.allocator.curves import Curve
    from traceanalyze.analyses.allocator.lifetimes import Lifetimes
    from traceanalyze.analyses.allocator.sites import Site
    from traceanalyze.analyses.allocator.steps import StepStarts

AGREEMENT = 0.2
"""How far the survivors' growth may be from the rise of the floor (memory-snapshot specification, D6)."""
LIKELY_STEPS = 5
LEAST_STEPS = 3
TRIMMED_FROM = 4
"""With at least this many steps the first and the last are left out: they are often cut, or warm up."""


def step_floors(starts: StepStarts, active: Curve, count: int) -> NDArray[np.int64]:
    """Least requested bytes of each step."""
    bounds = [*starts.first.tolist(), count]
    return np.array(
        [int(active.after[a:b].min()) if b > a else active.at(a - 1) for a, b in itertools.pairwise(bounds)],
        np.int64,
    )


def leaks(
    lives: Lifetimes, starts: StepStarts, sites: Sequence[Site], active: Curve, count: int
) -> tuple[Leak, ...] | NotMeasured:
    """Lines whose blocks survive from every step, most bytes first; together they must explain the rise of the floor.

    Args:
        lives: Blocks of the history.
        starts: Begin of each step.
        sites: What the stacks say.
        active: Requested bytes after each event.
        count: Number of events.
    """
    steps = len(starts.first)
    if steps < LEAST_STEPS:
        return NotMeasured("no_memory_steps")
    trimmed = steps >= TRIMMED_FROM
    kept = range(1, steps - 1) if trimmed else range(steps)
    alive = np.flatnonzero((lives.end == count) & (lives.begin != BEFORE))
    step = np.searchsorted(starts.first, lives.begin[alive], "right") - 1
    alive, step = alive[step >= 0], step[step >= 0]
    found = []
    for stack in np.unique(lives.stack[alive]).tolist():
        mine = lives.stack[alive] == stack
        left = np.bincount(step[mine], lives.requested[alive[mine]], minlength=steps)[list(kept)]
        if stack >= 0 and (left > 0).all():
            found.append((stack, left.astype(np.int64), int(lives.requested[alive[mine]].sum())))
    floors = step_floors(starts, active, count)
    # The first step also makes what stays for good, such as the optimizer's state.
    rises = np.diff(floors[1:])
    rise = float(np.median(rises)) if len(rises) else 0.0
    growth = sum(float(np.median(left)) for _, left, _ in found)
    if rise <= 0 or abs(growth - rise) > AGREEMENT * rise:
        return ()
    confidence = "likely" if steps >= LIKELY_STEPS else "suspected"
    rows = [
        Leak(sites[stack].line, sites[stack].library, int(np.median(left)), len(left), total, confidence)
        for stack, left, total in found
    ]
    return tuple(sorted(rows, key=lambda leak: -leak.per_step))
