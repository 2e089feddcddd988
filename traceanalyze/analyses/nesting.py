"""Nesting of host events: who contains whom on each thread, and who is innermost at an instant (definitions §9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import calltree
from traceanalyze.model.vocabulary import EventKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.intervals import Intervals
    from traceanalyze.model.trace import Trace

_RANK = np.full(len(EventKind), 3, np.uint8)
_RANK[[EventKind.ANNOTATION, EventKind.PYTHON]] = 0
_RANK[EventKind.HOST_OP] = 1
_RANK[EventKind.API] = 2


@dataclass(frozen=True, slots=True)
class Nest:
    """Events in tree order: by thread, then parents before children. See `calltree.Tree` for what is cut when."""

    row: NDArray[np.int64]
    """Row in `Trace.events`, or whatever numbers were given."""
    parent: NDArray[np.int32]
    stop: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    own: NDArray[np.int64]
    """Time in none of its children."""
    broken: int
    bounds: NDArray[np.int64]
    """The events of thread t are [bounds[t], bounds[t + 1])."""

    def __len__(self) -> int:
        return len(self.row)

    def of(self, track: int) -> slice:
        """Places of the events of a thread."""
        if not 0 <= track < len(self.bounds) - 1:
            return slice(0, 0)
        return slice(int(self.bounds[track]), int(self.bounds[track + 1]))

    def begun_in(self, windows: Intervals) -> NDArray[np.bool_]:
        """Events that start inside a set of windows."""
        change = np.zeros(len(self) + 1, np.int8)
        for track in np.flatnonzero(np.diff(self.bounds)).tolist():
            mine = self.of(track)
            for edges, step in ((windows.start, 1), (windows.end, -1)):
                np.add.at(change, mine.start + np.searchsorted(self.start[mine], edges), step)
        inside: NDArray[np.bool_] = np.cumsum(change[:-1], dtype=np.int8).astype(np.bool_)
        return inside


def nest_rows(trace: Trace, rows: NDArray[np.int64], kind: NDArray[np.uint8] | None = None) -> Nest:
    """Nest events of a trace, each thread on its own; `kind` (of every event) decides which of equal ones is outer."""
    start = trace.events.ts[rows]
    rank = np.zeros(len(rows), np.uint8) if kind is None else _RANK[kind[rows]]
    track = trace.events.track[rows]
    return _nest(rows, calltree.Spans(start, start + trace.events.dur[rows], track, rank, trace.resolution_ns))


def nest(row: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]) -> Nest:
    """Nest events of one thread, which goes by the number 0."""
    nothing = np.zeros(len(row), np.int32)
    return _nest(row, calltree.Spans(start, end, nothing, nothing.astype(np.uint8)))


def _nest(row: NDArray[np.int64], spans: calltree.Spans) -> Nest:
    tree = calltree.build(spans)
    bounds = np.concatenate(([0], np.cumsum(np.bincount(spans.track)))).astype(np.int64)
    return Nest(row[tree.order], tree.parent, tree.stop, tree.start, tree.end, tree.own, tree.broken, bounds)


def innermost_at(nested: Nest, t: NDArray[np.int64], track: int = 0) -> NDArray[np.int64]:
    """Place of the innermost event of a thread with start <= t < end, -1 where there is none."""
    mine = nested.of(track)
    found: NDArray[np.int64] = mine.start + np.searchsorted(nested.start[mine], t, "right") - 1
    found[found < mine.start] = -1
    active = np.flatnonzero(found >= 0)
    while True:
        active = active[nested.end[found[active]] <= t[active]]
        if len(active) == 0:
            return found
        found[active] = nested.parent[found[active]]
        active = active[found[active] >= 0]


def innermost(nested: Nest, track: NDArray[np.int32], t: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same for an instant of any thread each."""
    out = np.full(len(t), -1, np.int64)
    for thread in np.flatnonzero(np.bincount(track)).tolist():
        mine = np.flatnonzero(track == thread)
        out[mine] = innermost_at(nested, t[mine], thread)
    return out
