"""How far the clocks of the ranks are apart, by the ends of collectives that they share (definitions §12)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.steps.window import median
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, declare
from traceanalyze.ranks.results import Cluster, MatchedGroup
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
    offsets = {0: 0}
    found = {0: (0, 0)}
    while True:
        reached = [(one, rank) for one in useful for rank in one.members if rank not in offsets]
        step = next(((one, rank) for one, rank in reached if any(m in offsets for m in one.members)), None)
        if step is None:
            break
        anchor = next(member for member in step[0].members if member in offsets)
        difference = np.concatenate([_ends(one, step[1], anchor) for one in useful])
        middle = median(difference)
        offsets[step[1]] = offsets[anchor] + middle
        found[step[1]] = (median(np.abs(difference - middle)), len(difference))
    ranks = sorted(offsets)
    return _CLOCK_OFFSETS.fill(
        rank=[cluster.ranks[rank].label for rank in ranks],
        offset_ns=[offsets[rank] for rank in ranks],
        residual_ns=[found[rank][0] for rank in ranks],
        skew_ns=[_skew(rank, useful, offsets, found[rank][0]) for rank in ranks],
        matched=[found[rank][1] for rank in ranks],
        reference=[cluster.ranks[0].label] * len(ranks),
    )


def _ends(one: MatchedGroup, rank: int, anchor: int) -> NDArray[np.int64]:
    """By how much later one rank's clock says that the collectives of a group ended."""
    if rank not in one.members or anchor not in one.members:
        return np.empty(0, np.int64)
    end = one.end[one.synchronising]
    return end[:, one.members.index(rank)] - end[:, one.members.index(anchor)]


def _skew(rank: int, groups: Sequence[MatchedGroup], offsets: dict[int, int], residual: int) -> int | NotMeasured:
    """Median arrival of a rank after the first one of its groups; only where the clocks are known well enough for it.

    What the residual is measured by is the usual spread between the first and the last arrival.
    """
    late, spread = [], []
    for one in groups:
        if rank in one.members and all(member in offsets for member in one.members):
            start = one.start[one.synchronising] - np.array([offsets[member] for member in one.members])
            late.append(start[:, one.members.index(rank)] - start.min(axis=1))
            spread.append(start.max(axis=1) - start.min(axis=1))
    if not late or residual > TOLERATED * median(np.concatenate(spread)):
        return NotMeasured("clocks_too_uneven")
    return median(np.concatenate(late))
