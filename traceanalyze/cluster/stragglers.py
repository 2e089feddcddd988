"""The rank that makes a group wait, if it is the same again and again, and what makes it late (definitions §12)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.cluster.exposed_wait import by_durations, of_group
from traceanalyze.cluster.passed_on import sources
from traceanalyze.cluster.results import PHASES, Straggler

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from traceanalyze.cluster.results import MatchedGroup, RankSummary

LAST_IN_COLLECTIVES, LAST_IN_STEPS, LEAST_STEPS = 0.5, 0.6, 3
"""Shares in which a straggler is the last, over at least so many steps."""
_HOST = frozenset({"dispatch", "untraced", "device_gap"})
"""Parts of the step in which pauses of the garbage collector lie."""


class _Last(NamedTuple):
    """A rank that comes last to the collectives of one group again and again."""

    group: int
    place: int
    last: float
    steps_last: int
    steps: int


def stragglers(
    ranks: Sequence[RankSummary], groups: Sequence[MatchedGroup], rows: NDArray[np.int64]
) -> tuple[Straggler, ...] | NotMeasured:
    """Ranks that make others wait, most waiting first. NotMeasured where no group is complete, or steps are too few.

    Each is the last of a group, and did not come late to it because it was kept waiting in another group: then the
    waiting counts for the last rank of that one.
    """
    if not any(one.synchronising.any() for one in groups):
        return NotMeasured("no_matched_collectives")
    whole = [one for one in groups if one.complete and one.synchronising.any()]
    if not whole:
        return NotMeasured("ranks_missing")
    if rows.shape[1] < LEAST_STEPS:
        return NotMeasured("few_steps_for_stragglers")
    found = [one for at in range(len(whole)) if (one := _last_of(whole, at, rows.shape[1])) is not None]
    source = sources(whole, {one.group: one.place for one in found})
    named: dict[int, list[_Last]] = {}
    for one in found:
        if source[one.group] == one.group:
            named.setdefault(whole[one.group].members[one.place], []).append(one)
    told = [_straggler(ranks, whole, rows, position, own) for position, own in named.items()]
    return tuple(sorted(_together(told, whole, rows), key=lambda one: -one.wait))


def _last_of(groups: Sequence[MatchedGroup], at: int, steps: int) -> _Last | None:
    one = groups[at]
    chosen = np.flatnonzero(one.synchronising)
    wait = one.wait[chosen]
    least = int(wait.sum(axis=0).argmin())
    by_step = np.zeros((steps, len(one.members)), np.int64)
    np.add.at(by_step, one.step[chosen], wait)
    used = np.unique(one.step[chosen])
    last = float((wait[:, least] == 0).mean())
    steps_last = int((by_step[used, least] == by_step[used].min(axis=1)).sum())
    recurs = last >= LAST_IN_COLLECTIVES and steps_last >= LAST_IN_STEPS * len(used) and len(used) >= LEAST_STEPS
    waited = int(wait.sum()) > int(wait[:, least].sum())
    return _Last(at, least, last, steps_last, len(used)) if recurs and waited else None


def _straggler(
    ranks: Sequence[RankSummary],
    groups: Sequence[MatchedGroup],
    rows: NDArray[np.int64],
    position: int,
    own: Sequence[_Last],
) -> Straggler:
    """One rank, with numbers of the group that waits most for it of those it is the last of."""
    steps = rows.shape[1]
    main = max(own, key=lambda each: int(groups[each.group].wait[groups[each.group].synchronising].sum()))
    one = groups[main.group]
    others = [member for member in one.members if member != position]
    wait = one.wait[one.synchronising].sum(axis=0)
    exposed = of_group(one, steps).sum(axis=0)
    time = sum(int(ranks[member].step_time[rows[member]].sum()) for member in others)
    waited = int(wait.sum() - wait[main.place])
    phase, excess = late_because(ranks, position, others, rows)
    return Straggler(
        group=one.group,
        position=position,
        label=ranks[position].label,
        wait=waited // (len(others) * steps),
        exposed=int(exposed.sum() - exposed[main.place]) // (len(others) * steps),
        share=waited / time if time else 0.0,
        last=main.last,
        steps_last=main.steps_last,
        steps=main.steps,
        phase=phase,
        excess=excess,
    )


def _together(
    told: Sequence[Straggler], groups: Sequence[MatchedGroup], rows: NDArray[np.int64]
) -> Iterator[Straggler]:
    """Where several ranks of groups that depend on each other are late, what they cost is the waiting of the others.

    Beside another late rank, one that is mended is waited for no less: together they cost what the mean of the ranks
    that are not late waits, and each has its part of that.
    """
    waits = by_durations(groups, rows).sum(axis=1)
    for one in told:
        near = _connected(groups, one.position)
        late = [each for each in told if each.position in near]
        others = sorted(near - {each.position for each in late})
        total = sum(each.exposed for each in late)
        most = int(waits[others].sum()) // (len(others) * rows.shape[1]) if others else total
        few = len(late) < 2 or total <= most
        yield one if few else replace(one, exposed=one.exposed * most // total)


def _connected(groups: Sequence[MatchedGroup], position: int) -> set[int]:
    """A rank with those that share a group with it, or with one of these, and so on."""
    found, before = {position}, 0
    while len(found) > before:
        before = len(found)
        found |= {member for one in groups if found.intersection(one.members) for member in one.members}
    return found


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
