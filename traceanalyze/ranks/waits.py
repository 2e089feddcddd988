"""Who waits for whom, and how long the transfers themselves take; needs no common clock (definitions §12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.model.collectives import TYPES
from traceanalyze.model.table import NotMeasured
from traceanalyze.ranks.match import POINT_TO_POINT
from traceanalyze.ranks.results import CollectiveWait, ExposedWaits, RankWait

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.ranks.results import MatchedGroup, RankSummary


def point_to_point(rank: RankSummary, rows: NDArray[np.int64]) -> int:
    """Exposed time of sends and receives in some steps, ns.

    How much of it is waiting cannot be told: a receive begins when the rank is ready, and ends when the data is there.
    """
    own = rank.collectives
    chosen = POINT_TO_POINT[own.kind] & np.isin(own.step, rows)
    return int(own.exposed[chosen].sum())


def collective_waits(
    ranks: Sequence[RankSummary], groups: Sequence[MatchedGroup]
) -> tuple[CollectiveWait, ...] | NotMeasured:
    """Synchronising collectives by group, type and size, most waiting first."""
    found = []
    for one in groups:
        chosen = np.flatnonzero(one.synchronising)
        rows = group(one.kind[chosen], one.bytes[chosen])
        transfer = rows.sum(one.transfer[chosen]).tolist()
        wait = [rows.sum(one.wait[chosen, member]).tolist() for member in range(len(one.members))]
        for index, (first, count) in enumerate(zip(chosen[rows.first].tolist(), rows.count().tolist(), strict=True)):
            found.append(
                CollectiveWait(
                    group=one.group,
                    role=one.role,
                    kind=TYPES[int(one.kind[first])],
                    bytes=int(one.bytes[first]) if one.bytes[first] >= 0 else None,
                    count=count,
                    transfer=transfer[index],
                    wait=tuple((ranks[rank].label, wait[member][index]) for member, rank in enumerate(one.members)),
                    bound=not one.complete,
                    missing=one.missing,
                )
            )
    if not found:
        return NotMeasured("no_matched_collectives")
    return tuple(sorted(found, key=lambda row: -sum(amount for _, amount in row.wait if isinstance(amount, int))))


def rank_waits(
    ranks: Sequence[RankSummary], groups: Sequence[MatchedGroup], rows: NDArray[np.int64]
) -> tuple[RankWait, ...]:
    """One row a rank: its waiting over all groups, and how often nobody waited less."""
    found = []
    for position, rank in enumerate(ranks):
        wait = collectives = last = 0
        bound = False
        for one in groups:
            chosen = np.flatnonzero(one.synchronising)
            if position not in one.members or len(chosen) == 0:
                continue
            mine = one.wait[chosen, one.members.index(position)]
            wait += int(mine.sum())
            last += int((mine == 0).sum())
            collectives += len(chosen)
            bound |= not one.complete
        found.append(
            RankWait(
                label=rank.label,
                steps=len(rows[position]),
                step_time=int(rank.step_time[rows[position]].sum()),
                wait=wait if collectives else NotMeasured("no_matched_collectives"),
                bound=bound,
                collectives=collectives,
                last=last,
                recorded_wait=_recorded(rank, rows[position]),
                waited_for=_waited_for(rank, rows[position]),
                point_to_point=point_to_point(rank, rows[position]),
            )
        )
    return tuple(found)


def _recorded(rank: RankSummary, rows: NDArray[np.int64]) -> int | NotMeasured:
    """Waiting by the tasks of the rank's own collectives; needs no other rank."""
    own = rank.collectives
    mine = np.isin(own.step, rows)
    if not mine.any() or (own.moved[mine] < 0).any():
        return NotMeasured("no_collective_tasks")
    return int((own.end - own.start - own.moved)[mine].sum())


def _waited_for(rank: RankSummary, rows: NDArray[np.int64]) -> int | NotMeasured:
    """The rank that most of the waiting in collectives was for."""
    own = rank.collectives
    mine = np.flatnonzero(np.isin(own.step, rows) & (own.waited_for >= 0) & (own.moved >= 0))
    if len(mine) == 0:
        return NotMeasured("no_collective_tasks")
    peers = group(own.group[mine], own.waited_for[mine])
    first = mine[peers.first[peers.sum((own.end - own.start - own.moved)[mine]).argmax()]]
    ranks, peer = rank.groups[int(own.group[first])].ranks, int(own.waited_for[first])
    return ranks[peer] if peer < len(ranks) else peer


def exposed_waits(
    ranks: Sequence[RankSummary],
    groups: Sequence[MatchedGroup],
    rows: NDArray[np.int64],
    missing: Sequence[int] = (),
) -> ExposedWaits | NotMeasured:
    """Waiting of each rank in each common step with nothing beside it.

    From the durations on all ranks; where ranks are missing rather from the tasks of each rank's own collectives, where
    these were recorded (Ascend): they tell its waiting without the others.

    Args:
        ranks: The ranks side by side.
        groups: What they share.
        rows: (ranks, steps) row of each common step in the rank's own steps.
        missing: Ranks that were not recorded.
    """
    if rows.shape[1] == 0:
        return NotMeasured("no_common_steps")
    known = [one for one in groups if one.synchronising.any()]
    bound = bool(missing) or not all(one.complete for one in known)
    if bound or not known:
        own = [_by_tasks(rank, mine) for rank, mine in zip(ranks, rows, strict=True)]
        told = [one for one in own if one is not None]
        if len(told) == len(ranks):
            return ExposedWaits(np.stack(told), bound=True)
    if not known:
        return NotMeasured("no_matched_collectives")
    return ExposedWaits(by_durations(known, rows), bound=bound)


def by_durations(groups: Sequence[MatchedGroup], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """(ranks, steps) ns over groups that have collectives for which waiting is defined."""
    found = np.zeros(rows.shape, np.int64)
    for one in groups:
        found[list(one.members)] += of_group(one, rows.shape[1]).T
    return found


def of_group(one: MatchedGroup, steps: int) -> NDArray[np.int64]:
    """(steps, members) ns of a group's collectives that synchronise."""
    rows = np.flatnonzero(one.synchronising)
    bare = np.clip(one.exposed - one.transfer[:, None], 0, one.wait)
    sums = np.zeros((3, steps, len(one.members)), np.int64)
    for total, values in zip(sums, (one.wait, one.exposed, bare), strict=True):
        np.add.at(total, one.step[rows], values[rows])
    wait, shown, least = sums
    if not one.complete:
        return np.asarray(least)
    last = wait.argmin(axis=1)[:, None]
    transfer = np.take_along_axis(shown - least, last, 1)
    return np.asarray(np.clip(shown - transfer, least, wait))


def _by_tasks(rank: RankSummary, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """(steps,) exposed ns in which no plane moved data, at least; None where the tasks are not all recorded."""
    own = rank.collectives
    common = np.full(len(rank.steps) + 1, -1, np.int64)
    common[rows] = np.arange(len(rows))
    step = common[own.step]
    inside = step >= 0
    if not inside.any() or (own.moved[inside] < 0).any():
        return None
    found = np.zeros(len(rows), np.int64)
    np.add.at(found, step[inside], np.clip(own.exposed - own.moved, 0, None)[inside])
    return found
