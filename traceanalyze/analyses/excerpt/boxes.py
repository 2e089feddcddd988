"""Events of one lane as a bounded number of boxes: what is too short to be seen alone stands in a box with others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from sys import intern
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model import intervals

MAX_BOXES = 60
"""Boxes of a lane."""
_SEEN = 600
"""Part of a window that can just be seen, of a lane of so many boxes."""


@dataclass(frozen=True)
class Box:
    """One event, or several that cannot be told apart. Times int64 ns since the start of the window."""

    start: int
    end: int
    name: str
    """Of several the longest one's; empty where events of a lane have no name."""
    kind: str
    """Key of a term; of several what most of their time is."""
    count: int = 1
    busy: int = 0
    """Time in which any of them runs."""


class Spans(NamedTuple):
    """Events of a lane, in any order: times ns, codes of names (-1 for none), and index of each kind."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    name: NDArray[np.signedinteger[Any]]
    kind: NDArray[np.uint8]

    def taken(self, chosen: NDArray[Any]) -> Spans:
        """Some of the events (a mask or an order)."""
        return Spans(*(column[chosen] for column in self))


def boxes(
    spans: Spans, window: tuple[int, int], kinds: Sequence[str], text: Callable[[int], str], most: int = MAX_BOXES
) -> tuple[Box, ...]:
    """What a lane shows of its events in a window, at most `most` boxes, in time order.

    Args:
        spans: Events of one thread level or stream.
        window: Start and end, ns; what lies outside is cut off.
        kinds: Term of each kind.
        text: Name of a code.
        most: How many boxes there may be.
    """
    first, last = window
    inside = spans.taken((spans.start < last) & (spans.end > first))
    inside = inside.taken(np.argsort(inside.start, kind="stable"))
    start, end = np.maximum(inside.start, first), np.minimum(inside.end, last)
    opens = _opens(start, end, last - first, most, first if most > MAX_BOXES else None)
    if not len(opens):
        return ()
    begins, ends = start[opens], np.maximum.reduceat(end, opens)
    busy = intervals.coverage(intervals.merge(start, end), begins, ends)
    count = np.diff(opens, append=len(start))
    box, length = np.repeat(np.arange(len(opens)), count), end - start
    # The first of the longest ones names a box, the kind with most time colours it.
    code = inside.name[np.lexsort((np.arange(len(box)), -length, box))[opens]]
    time = np.bincount(box * len(kinds) + inside.kind, weights=length, minlength=len(opens) * len(kinds))
    kind = time.reshape(len(opens), -1).argmax(axis=1)
    # Few names are in many boxes, and boxes are kept for all ranks of a run.
    names = {each: intern(text(each)) if each >= 0 else "" for each in set(code.tolist())}
    columns = (begins - first, ends - first, code, kind, count, busy)
    return tuple(
        Box(low, high, names[code], kinds[kind], number, amount)
        for low, high, code, kind, number, amount in zip(*(column.tolist() for column in columns), strict=True)
    )


def _opens(
    start: NDArray[np.int64], end: NDArray[np.int64], length: int, most: int, first: int | None
) -> NDArray[np.int64]:
    """Where a new box begins: events shorter than what can be seen join those before them that are as near.

    What can be seen is made coarser until the boxes are few enough. What is to be zoomed, from `first` on, is cut into
    parts of equal length at least, so that one sees where in a long row of short events what happens.
    """
    if len(start) == 0:
        return np.empty(0, np.int64)
    gap = start[1:] - np.maximum.accumulate(end)[:-1]
    part = np.zeros(len(start), np.int64) if first is None else (start - first) * (most // 2) // max(length, 1)
    seen = max(length * MAX_BOXES // (_SEEN * most), 1)
    while True:
        short = end - start < seen
        joins = short[1:] & short[:-1] & (gap < seen) & (part[1:] == part[:-1])
        opens = np.flatnonzero(np.concatenate(([True], ~joins)))
        # Once the whole window is too short to be seen, all is one box.
        if len(opens) <= most:
            return opens
        seen *= 2


class LaneKind(StrEnum):
    """What the boxes of a lane are."""

    STEPS = "steps"
    OPS = "ops"
    """Operators and annotations of a thread that lie equally deep."""
    CALLS = "calls"
    """Runtime calls of a thread."""
    STREAM = "stream"
    IDLE = "idle"
    """When the headline device runs nothing, by cause."""


class Lane(NamedTuple):
    """Boxes in time order; they overlap only where events of one stream do."""

    kind: LaneKind
    name: str
    """Name of the thread, else its number; number of the stream."""
    boxes: tuple[Box, ...]
    track: int = -1
    """Thread, as in the trace."""
    depth: int = 0
    """Operators around those of this lane."""
    hidden: int = 0
    """Events below the last lane of a thread, which are not drawn."""
