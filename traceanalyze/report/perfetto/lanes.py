"""Slices that overlap, put on as few tracks as there is need for."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def lanes(start: NDArray[np.int64], end: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Positions of intervals, any order, by lane: those of a lane are in time order and do not overlap."""
    order = np.argsort(start, kind="stable")
    if len(order) == 0:
        return []
    if (start[order][1:] >= np.maximum.accumulate(end[order])[:-1]).all():
        return [order]
    free: list[tuple[int, int]] = []
    members: list[list[int]] = []
    for position, begin, until in zip(order.tolist(), start[order].tolist(), end[order].tolist(), strict=True):
        if free and free[0][0] <= begin:
            lane = heapq.heappop(free)[1]
        else:
            lane = len(members)
            members.append([])
        members[lane].append(position)
        heapq.heappush(free, (until, lane))
    return [np.array(lane, np.int64) for lane in members]
