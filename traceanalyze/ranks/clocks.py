"""How far the clocks of the ranks are apart, by the ends of collectives that they share (definitions §12)."""

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.steps.window import median
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, declare
from traceanalyze.ranks.results import Cluster, MatchedGroup, columns_of
from traceanalyze.ranks.waits import MATCHED

TOLERATED = 0.2
"""Residual over skew up to which arrival times can be trusted."""
_CLOCK_OFFSETS = declare(
    "clock_offsets",
    "Clocks of the ranks",
    Column("rank", Kind.TEXT, "rank of the process; ?n where the profile does not tell"),
    Column(
        "offset_ns",
        Kind.CHANGE,
        "by how much its clock is ahead of the reference's: median difference of the ends of collectives",
        heading="ahead",
        scale="offset",
    ),
    Column(
        "residual_ns",
        Kind.DURATION,
        "median absolute deviation of these differences",
        heading="uncertainty",
        scale="residual",
    ),
    Column(
        "skew_ns",
        Kind.DURATION,
        "median arrival after the first rank, with clocks aligned",
        heading="arrives later",
        scale="skew",
    ),
    MATCHED,
    Column("reference", Kind.TEXT, "rank whose clock the others are compared with", minor=True),
    detail=True,
)


def clock_offsets(cluster: Cluster) -> Table:
    """Of every rank that shares a group with the reference, the first rank; directly or by way of others."""
    useful = [one for one in cluster.groups if one.synchronising.any()]
    if not useful:
        return _CLOCK_OFFSETS.missing("no_matched_collectives")
    of, offsets, found = columns_of(useful), {0: 0}, {0: (0, 0)}
    # The first group with ranks that are reached and others is next; of each group the members so far.
    waiting, done = [at for at, _ in of.get(0, ())], [0] * len(useful)
    while waiting:
        at = waiting[0]
        members = useful[at].members
        while done[at] < len(members) and members[done[at]] in offsets:
            done[at] += 1
        if done[at] == len(members):
            heappop(waiting)
            continue
        rank, anchor = members[done[at]], next(member for member in members if member in offsets)
        other = dict(of[anchor])
        difference = np.concatenate(
            [_ends(useful[one], column, other[one]) for one, column in of[rank] if one in other]
        )
        middle = median(difference)
        offsets[rank] = offsets[anchor] + middle
        found[rank] = (median(np.abs(difference - middle)), len(difference))
        for one, _ in of[rank]:
            heappush(waiting, one)
    late = [_late(one, offsets) for one in useful]
    ranks = sorted(offsets)
    return _CLOCK_OFFSETS.fill(
        rank=[cluster.ranks[rank].label for rank in ranks],
        offset_ns=[offsets[rank] for rank in ranks],
        residual_ns=[found[rank][0] for rank in ranks],
        skew_ns=[_skew([(late[at], column) for at, column in of.get(rank, ())], found[rank][0]) for rank in ranks],
        matched=[found[rank][1] for rank in ranks],
        reference=[cluster.ranks[0].label] * len(ranks),
    )


def _ends(one: MatchedGroup, column: int, anchor: int) -> NDArray[np.int64]:
    """By how much later one rank's clock says that the collectives of a group ended."""
    end = one.end[one.synchronising]
    found: NDArray[np.int64] = end[:, column] - end[:, anchor]
    return found


class _Late(NamedTuple):
    after: NDArray[np.int64]
    """(n, members) ns that each comes after the first."""
    spread: NDArray[np.int64]
    """(n,) that the last one does."""


def _late(one: MatchedGroup, offsets: dict[int, int]) -> _Late | None:
    """How late each comes to the collectives of a group; None where the clock of some is not known."""
    if any(member not in offsets for member in one.members):
        return None
    start = one.start[one.synchronising] - np.array([offsets[member] for member in one.members])
    after = start - start.min(axis=1)[:, None]
    return _Late(after, after.max(axis=1))


def _skew(groups: Sequence[tuple[_Late | None, int]], residual: int) -> int | NotMeasured:
    """Median arrival of a rank after the first one of its groups; only where the clocks are known well enough for it.

    `groups` are its own, with its column. What the residual is measured by is the usual spread between the first and
    the last arrival.
    """
    known = [(late, column) for late, column in groups if late is not None]
    if not known or residual > TOLERATED * median(np.concatenate([late.spread for late, _ in known])):
        return NotMeasured("clocks_too_uneven")
    return median(np.concatenate([late.after[:, column] for late, column in known]))
