"""Who waits for whom, and how long the transfers themselves take; needs no common clock (definitions §12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.cluster.bubbles import point_to_point
from traceanalyze.cluster.results import CollectiveWait, RankWait
from traceanalyze.model.collectives import TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.cluster.results import MatchedGroup, RankSummary


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
