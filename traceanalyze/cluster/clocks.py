"""Offsets between the clocks of ranks, from collectives that end at one time for all (definitions §12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.cluster.results import ClockOffset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.cluster.results import MatchedGroup, RankSummary

TOLERATED = 0.2
"""Residual over skew up to which arrival times can be trusted."""


def clock_offsets(
    ranks: Sequence[RankSummary], groups: Sequence[MatchedGroup]
) -> tuple[ClockOffset, ...] | NotMeasured:
    """Of every rank that shares a group with the reference, the first rank; directly or by way of others."""
    useful = [one for one in groups if one.synchronising.any()]
    if not useful:
        return NotMeasured("no_matched_collectives")
    offsets = {0: 0}
    found = {0: (0, 0)}
    while True:
        reached = [(one, rank) for one in useful for rank in one.members if rank not in offsets]
        step = next(((one, rank) for one, rank in reached if any(m in offsets for m in one.members)), None)
        if step is None:
            break
        anchor = next(member for member in step[0].members if member in offsets)
        difference = np.concatenate([_ends(one, step[1], anchor) for one in useful])
        middle = _median(difference)
        offsets[step[1]] = offsets[anchor] + middle
        found[step[1]] = (_median(np.abs(difference - middle)), len(difference))
    return tuple(
        ClockOffset(
            ranks[rank].label, ranks[0].label, offsets[rank], *found[rank], _skew(rank, useful, offsets, found[rank][0])
        )
        for rank in sorted(offsets)
    )


def _ends(one: MatchedGroup, rank: int, anchor: int) -> NDArray[np.int64]:
    """By how much later one rank's clock says that the collectives of a group ended."""
    if rank not in one.members or anchor not in one.members:
        return np.empty(0, np.int64)
    end = one.end[one.synchronising]
    return end[:, one.members.index(rank)] - end[:, one.members.index(anchor)]


def _median(values: NDArray[np.int64]) -> int:
    """Middle value, exact: times since 1970 do not fit into floating point."""
    ordered = np.sort(values)
    return (int(ordered[(len(ordered) - 1) // 2]) + int(ordered[len(ordered) // 2])) // 2


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
    if not late or residual > TOLERATED * _median(np.concatenate(spread)):
        return NotMeasured("clocks_too_uneven")
    return _median(np.concatenate(late))
