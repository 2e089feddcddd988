"""Nesting of host events: who contains whom on each thread, and who is innermost at an instant (definitions §9)."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.grouping import group
from traceanalyze.model import calltree
from traceanalyze.model.columns import Rows, distinct, short, taken
from traceanalyze.model.intervals import Intervals, contains
from traceanalyze.model.trace import Trace
from traceanalyze.model.vocabulary import EventKind

MOST_LEVELS = 256
"""Levels of a tree that reports tell apart: the text of a path holds all that is around, so n levels take n² of it."""
DEEPER = "…"
"""Stands for everything below them."""
_CLIMBS = 64
"""How far up a tree to look event by event; beyond, all its starts and ends are sorted."""
_A_THREAD = 16
"""Of threads with fewer events for each window, each event is looked for in the windows, not the windows in them."""
RANK = np.full(len(EventKind), 3, np.uint8)
RANK[[EventKind.ANNOTATION, EventKind.PYTHON]] = 0
RANK[EventKind.HOST_OP] = 1
RANK[EventKind.API] = 2


class Nest(calltree.Tree):
    """Call trees of events, by their rows in `Trace.events` or whatever numbers were given."""

    @property
    def depth(self) -> NDArray[np.int64]:
        """Events around each: those before it, without those that have ended."""
        ended = np.cumsum(np.bincount(self.stop, minlength=len(self) + 1))[:-1]
        return np.arange(len(self)) - ended

    def of(self, track: int) -> slice:
        """Places of the events of a thread."""
        if not 0 <= track < len(self.bounds) - 1:
            return slice(0, 0)
        return slice(int(self.bounds[track]), int(self.bounds[track + 1]))

    def rows(self, place: Rows) -> NDArray[np.int32]:
        """Rows of the events at some places, -1 for -1."""
        found, known = np.full(len(place), -1, np.int32), place >= 0
        found[known] = taken(self.row, place[known])
        return found

    def beyond(self, through: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Each place itself, or where it is looked through the innermost around it that is not, else the outermost."""
        return followed(np.where(through & (self.parent >= 0), self.parent, np.arange(len(self))))

    def begun_in(self, windows: Intervals) -> NDArray[np.bool_]:
        """Events that start inside a set of windows."""
        busy = np.flatnonzero(np.diff(self.bounds)).tolist()
        if _A_THREAD * len(busy) * len(windows.start) > len(self):
            return contains(windows, self.start)
        change = np.zeros(len(self) + 1, np.int8)
        for track in busy:
            own = self.of(track)
            for edges, step in ((windows.start, 1), (windows.end, -1)):
                np.add.at(change, own.start + np.searchsorted(self.start[own], edges), step)
        return np.cumsum(change[:-1], dtype=np.int8).astype(np.bool_)


def followed(way: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each place ends up if each leads to another or to itself; twice as far each time, as ways may be long."""
    while not np.array_equal(way, further := way[way]):
        way = further
    return way


class Levels(NamedTuple):
    """Places of a nest by the number of events around them, none first."""

    places: tuple[NDArray[np.int64], ...]
    """As many levels as there are, up to level `MOST_LEVELS`."""
    deeper: NDArray[np.int64]
    """Places below level `MOST_LEVELS`."""
    around: NDArray[np.int64]
    """Of each of `deeper`, the event of level `MOST_LEVELS` around it."""


def levels(nested: Nest) -> Levels:
    """The levels of a nest, in the order of the nest each."""
    index, depth = np.arange(len(nested)), nested.depth
    order = np.argsort(depth, kind="stable")
    ends = np.cumsum(np.bincount(depth)[: MOST_LEVELS + 1]).tolist()
    deeper = np.flatnonzero(depth > MOST_LEVELS)
    around = np.maximum.accumulate(np.where(depth == MOST_LEVELS, index, -1))[deeper]
    return Levels(tuple(order[first:last] for first, last in pairwise([0, *ends])), deeper, around)


class Paths(NamedTuple):
    """Distinct chains of names in a nest, outer ones before inner ones."""

    name: NDArray[np.int32]
    """Innermost name of each chain; -1 for all that is below level `MOST_LEVELS`."""
    parent: NDArray[np.int64]
    of: NDArray[np.int64]
    """Chain of each event of the nest."""
    bounds: tuple[int, ...]
    """The chains of level n are [bounds[n], bounds[n + 1])."""

    def with_inner(self, own: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sums over each chain and all that go on from it."""
        total = own.copy()
        for first, last in reversed(list(pairwise(self.bounds[1:]))):
            np.add.at(total, self.parent[first:last], total[first:last])
        return total


def paths(nested: Nest, name: NDArray[np.int32]) -> Paths:
    """The chains level by level: what has equal names below equal chains is one."""
    found = levels(nested)
    of = np.full(len(nested), -1, np.int64)
    names, parents, bounds = [name[:0]], [of[:0]], [0]
    for level, here in enumerate(found.places):
        own = name[here] if level < MOST_LEVELS else np.full(len(here), -1, np.int32)
        above = np.where(nested.parent[here] < 0, -1, of[nested.parent[here]])
        groups = group(above, own)
        of[here] = bounds[-1] + groups.of
        names.append(own[groups.first])
        parents.append(above[groups.first])
        bounds.append(bounds[-1] + len(groups))
    of[found.deeper] = of[found.around]
    return Paths(np.concatenate(names), np.concatenate(parents), of, tuple(bounds))


def nest_rows(trace: Trace, rows: Rows, kind: NDArray[np.uint8] | None = None) -> Nest:
    """Nest events of a trace, each thread on its own; `kind` (of every event) decides which of equal ones is outer."""
    events = trace.events
    rank = np.zeros(len(events), np.uint8) if kind is None else taken(RANK, kind)
    spans = calltree.Spans(events.ts, events.dur, events.track, rank, trace.resolution_ns, rows)
    return Nest(**vars(calltree.build(spans)))


def nest(row: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]) -> Nest:
    """Nest events of one thread, which goes by the number 0."""
    nothing = np.zeros(len(row), np.int32)
    tree = calltree.build(calltree.Spans(start, end - start, nothing, nothing.astype(np.uint8)))
    return Nest(**{**vars(tree), "row": taken(short(row), tree.row)})


def innermost_at(nested: Nest, t: NDArray[np.int64], track: int = 0) -> NDArray[np.int64]:
    """Place of the innermost event of a thread with start <= t < end, -1 where there is none."""
    return innermost(nested, np.full(len(t), track, np.int32), t)


def _last_change(nested: Nest, own: slice, t: NDArray[np.int64]) -> NDArray[np.int64]:
    """The innermost event by the last start or end before each instant: what started, or what is around what ended."""
    place = np.arange(own.start, own.stop)
    place = place[nested.end[own] > nested.start[own]]
    at = np.concatenate((nested.end[place], nested.start[place]))
    inner = np.concatenate((nested.parent[place], place))
    # At one instant: ends before starts, inner ends before outer ones, outer starts before inner ones.
    turn = np.concatenate((-place - 1, place))
    order = np.lexsort((turn, at))
    return np.concatenate(([-1], inner[order]))[np.searchsorted(at[order], t, "right")]


def innermost(nested: Nest, track: NDArray[np.signedinteger[Any]], t: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same for an instant of any thread each; -1 stands for no thread."""
    found = calltree.innermost(nested, track, t, _CLIMBS)
    deep = np.flatnonzero(found == calltree.DEEP)
    for thread in distinct(track[deep]).tolist():
        own = deep[track[deep] == thread]
        found[own] = _last_change(nested, nested.of(thread), t[own])
    return found
