"""The rank that makes a group wait, if it is the same again and again, and what makes it late (definitions §12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.cluster.exposed_wait import exposed_wait
from traceanalyze.cluster.results import PHASES, Straggler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.cluster.results import MatchedGroup, RankSummary

LAST_IN_COLLECTIVES, LAST_IN_STEPS, LEAST_STEPS = 0.5, 0.6, 3
"""Shares in which a straggler is the last, over at least so many steps."""
_HOST = frozenset({"dispatch", "untraced", "device_gap"})
"""Parts of the step in which pauses of the garbage collector lie."""


def stragglers(
    ranks: Sequence[RankSummary], groups: Sequence[MatchedGroup], rows: NDArray[np.int64]
) -> tuple[Straggler, ...] | NotMeasured:
    """At most one a group; most waiting first. NotMeasured where no group has all its ranks, or steps are too few."""
    if not any(one.synchronising.any() for one in groups):
        return NotMeasured("no_matched_collectives")
    whole = [one for one in groups if one.complete and one.synchronising.any()]
    if not whole:
        return NotMeasured("ranks_missing")
    if rows.shape[1] < LEAST_STEPS:
        return NotMeasured("few_steps_for_stragglers")
    found = [straggler for one in whole if (straggler := _of_group(ranks, one, rows)) is not None]
    return tuple(sorted(found, key=lambda one: -one.wait))


def _of_group(ranks: Sequence[RankSummary], one: MatchedGroup, rows: NDArray[np.int64]) -> Straggler | None:
    chosen = np.flatnonzero(one.synchronising)
    wait = one.wait[chosen]
    total = wait.sum(axis=0)
    least = int(total.argmin())
    by_step = np.zeros((rows.shape[1], len(one.members)), np.int64)
    np.add.at(by_step, one.step[chosen], wait)
    used = np.unique(one.step[chosen])
    last = float((wait[:, least] == 0).mean())
    steps_last = int((by_step[used, least] == by_step[used].min(axis=1)).sum())
    recurs = last >= LAST_IN_COLLECTIVES and steps_last >= LAST_IN_STEPS * len(used) and len(used) >= LEAST_STEPS
    others = [member for place, member in enumerate(one.members) if place != least]
    waited = int(total.sum() - total[least])
    if not recurs or waited == 0:
        return None
    steps = rows.shape[1]
    bare = exposed_wait(one, chosen, least)
    position = one.members[least]
    time = sum(int(ranks[member].step_time[rows[member]].sum()) for member in others)
    phase, excess = late_because(ranks, position, others, rows)
    return Straggler(
        group=one.group,
        position=position,
        label=ranks[position].label,
        wait=waited // (len(others) * steps),
        exposed=int(bare.sum()) // (len(others) * steps),
        exposed_of=tuple((one.members[place], int(bare[place]) // steps) for place in range(len(one.members))),
        share=waited / time if time else 0.0,
        last=last,
        steps_last=steps_last,
        steps=len(used),
        phase=phase,
        excess=excess,
    )


def late_because(
    ranks: Sequence[RankSummary], late: int, others: Sequence[int], rows: NDArray[np.int64]
) -> tuple[str | None, int]:
    """The part of the step by which one rank exceeds the mean of the others most, and by how much, ns a step.

    Where pauses of the garbage collector make up at least half of an excess of host time, they are named.
    """
    count = max(rows.shape[1], 1)
    excess = {}
    for phase in PHASES:
        if all(phase in ranks[rank].parts for rank in (late, *others)):
            mine, *theirs = (int(ranks[rank].parts[phase][rows[rank]].sum()) for rank in (late, *others))
            excess[phase] = (mine - sum(theirs) // len(theirs)) // count
    pauses = excess.pop("gc", 0)
    most = max(excess, key=lambda phase: excess[phase], default=None)
    if most is None or excess[most] <= 0:
        return None, 0
    if most in _HOST and 2 * pauses >= excess[most]:
        return "gc", pauses
    return most, excess[most]
