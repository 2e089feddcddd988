"""Who held the memory over time: block bytes by category and source line at the points that draw the curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.allocator.composition import CATEGORIES, first_of_line
from traceanalyze.analyses.allocator.results import Group, Groups
from traceanalyze.analyses.allocator.sites import call_stack
from traceanalyze.analyses.results import NotMeasured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.analyses.allocator.curves import Curve
    from traceanalyze.analyses.allocator.layout import Layout
    from traceanalyze.analyses.allocator.lifetimes import Lifetimes
    from traceanalyze.analyses.allocator.sites import Site
    from traceanalyze.model.snapshot import Stacks

POINTS = 1000
"""Points of a curve, among them the lowest and highest value of each part of the history."""
MOST = 20
"""Groups told apart; more cannot be told apart by colour."""


def groups(
    lives: Lifetimes,
    layout: Layout,
    category: NDArray[np.uint8],
    sites: Sequence[Site],
    stacks: Stacks,
    curves: tuple[Curve, Curve, Curve],
) -> Groups | NotMeasured:
    """Block bytes and number of live blocks of the largest groups, and of all others together.

    Args:
        lives: Every block of the history.
        layout: Their sizes.
        category: Of each block, index into `composition.CATEGORIES`.
        sites: What the call stacks say.
        stacks: The call stacks themselves.
        curves: Requested, block and reserved bytes.
    """
    if len(curves[0].after) <= 1:
        return NotMeasured("no_memory_history")
    event = _points(*(curve.after for curve in curves))
    count = len(event)
    first, last = np.searchsorted(event, lives.begin), np.searchsorted(event, lives.end)
    key = first_of_line(sites)[lives.stack] * len(CATEGORIES) + category
    seen = np.flatnonzero(first < last)
    distinct, of = np.unique(key[seen], return_inverse=True)
    of, first, last, size = of.reshape(-1), first[seen], last[seen], layout.size[seen]
    largest = _largest(of, first, last, size, count)
    area = np.zeros(len(distinct), np.int64)
    np.add.at(area, of, size * (last - first))
    largest = largest[np.argsort(-area[largest], kind="stable")]

    row_of = np.full(len(distinct), len(largest))
    row_of[largest] = np.arange(len(largest))
    row = row_of[of]
    shape = (len(largest) + 1, count + 1)
    amount, blocks = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for table, each in ((amount, size), (blocks, np.ones_like(size))):
        np.add.at(table, (row, first), each)
        np.subtract.at(table, (row, last), each)
    top = _top_blocks(row, size, len(largest))
    return Groups(
        event=event,
        group=tuple(
            Group(CATEGORIES[code % len(CATEGORIES)], sites[code // len(CATEGORIES)].line, call_stack(stacks, stack))
            for code, stack in zip(distinct[largest].tolist(), lives.stack[seen[top]].tolist(), strict=True)
        ),
        bytes=amount.cumsum(axis=1)[:, :count],
        blocks=blocks.cumsum(axis=1)[:, :count],
    )


def _points(
    requested: NDArray[np.int64], allocated: NDArray[np.int64], reserved: NDArray[np.int64]
) -> NDArray[np.int64]:
    """First event, last event, and of each part of the history the lowest and highest value of the curves."""
    count = len(allocated)
    if count <= POINTS:
        return np.arange(count)
    edges = np.linspace(0, count, POINTS // 4 + 1).astype(np.int64)
    kept = {0, count - 1, int(requested.argmax())}
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        for values in (allocated[first:last], reserved[first:last]):
            kept.update((first + int(values.argmin()), first + int(values.argmax())))
    return np.array(sorted(kept), np.int64)


def _largest(
    of: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64], size: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """The groups with most bytes at any point.

    Every block enters at its first point and leaves at its last: with the changes in order of group and point, leaving
    ones first, the running sum of a group starts at zero and is highest after a point, never between.
    """
    if len(of) == 0:
        return np.zeros(0, np.int64)
    span = 2 * (count + 1)
    order = np.argsort(np.concatenate((of * span + 2 * first + 1, of * span + 2 * last)), kind="stable")
    running = np.concatenate((size, -size))[order].cumsum()
    group = np.concatenate((of, of))[order]
    highest = np.maximum.reduceat(running, np.flatnonzero(np.diff(group, prepend=-1)))
    return np.argsort(-highest, kind="stable")[:MOST]


def _top_blocks(row: NDArray[np.int64], size: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The first of the largest blocks of each row."""
    order = np.lexsort((-size, row))
    return order[np.searchsorted(row[order], np.arange(count))]
