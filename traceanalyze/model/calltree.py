"""Call trees: who contains whom among the events of each thread (README, "What the words mean").

Events are sorted by (track, start, longer first, rank, row) and nested by containment. One that ends within a clock
tick after its parent is cut to it. Where it ends later, the parent is closed at its start and the two are siblings.
So in the tree children lie inside their parents, siblings do not overlap, and all lengths add up.
"""

import ctypes
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model import native
from traceanalyze.model.columns import Rows, distinct, taken
from traceanalyze.model.patterns import dataclass


@dataclass(frozen=True, eq=False)
class Tree:
    """Events in tree order, one thread after another, parents before children; the subtree of i is [i, stop[i])."""

    row: NDArray[np.int32]
    """Which of the given events is at each place."""
    parent: NDArray[np.int32]
    """Place of the parent, -1 for none."""
    stop: NDArray[np.int32]
    """Place after the last descendant."""
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    """As cut for the tree."""
    own: NDArray[np.int64]
    """Time in none of its children."""
    bounds: NDArray[np.int64]
    """The places of thread t are [bounds[t], bounds[t + 1])."""
    broken: int
    """Events closed early because a later one outlasts them by more than a tick."""

    def __len__(self) -> int:
        return len(self.row)


class Spans(NamedTuple):
    """Events to nest: times int64 ns, `track` int32 from 0; of equal intervals the lower `rank` is the outer one."""

    start: NDArray[np.int64]
    length: NDArray[np.int64]
    track: NDArray[np.int32]
    rank: NDArray[np.uint8]
    tick: int = 1
    rows: Rows | None = None
    """Those to nest, where it is not all of them."""


def build(spans: Spans) -> Tree:
    """Call trees of all threads, natively where the library is there."""
    library = _library()
    return _build_twin(spans) if library is None else _build(spans, library)


class _Events(ctypes.Structure):
    _fields_ = [
        *native.pointers("start", "length", "track", "rank", "rows"),
        ("size", ctypes.c_uint64),
        ("tracks", ctypes.c_uint64),
        ("tick", ctypes.c_int64),
    ]


class _Tree(ctypes.Structure):
    _fields_ = [
        *native.pointers("order", "parent", "stop", "start", "end", "own", "bounds"),
        ("broken", ctypes.c_uint64),
    ]


@cache
def _library() -> ctypes.CDLL | None:
    library = native.library()
    if library is None:
        return None
    pointer, size = ctypes.c_void_p, ctypes.c_uint64
    library.trace_tree_build.argtypes = (ctypes.POINTER(_Events), ctypes.POINTER(_Tree))
    library.trace_tree_own.argtypes = (ctypes.POINTER(_Events), pointer)
    library.trace_tree_outermost.argtypes = (pointer, pointer, size, size, pointer)
    library.trace_tree_inside.restype = library.trace_tree_innermost.restype = None
    library.trace_tree_innermost.argtypes = (pointer, size, pointer, pointer, size, size, pointer)
    library.trace_tree_inside.argtypes = (pointer, size, pointer, size, pointer, pointer)
    return library


def _check(status: int) -> None:
    if status:
        raise MemoryError(f"no memory left for call trees (status {status})")


def _build(spans: Spans, library: ctypes.CDLL) -> Tree:
    given = _events(spans)
    order, parent, stop = (np.empty(given.size, np.int32) for _ in range(3))
    first, last, own = (np.empty(given.size, np.int64) for _ in range(3))
    columns = order, parent, stop, first, last, own, np.empty(given.tracks + 1, np.int64)
    tree = _Tree(*map(native.address, columns))
    _check(library.trace_tree_build(ctypes.byref(given), ctypes.byref(tree)))
    return Tree(*columns, tree.broken)


def _events(spans: Spans) -> _Events:
    """What the library reads."""
    types = {"start": np.int64, "length": np.int64, "track": np.int32, "rank": np.uint8, "rows": np.int32}
    columns = {
        name: np.asarray(getattr(spans, name), types[name]) for name in types if getattr(spans, name) is not None
    }
    track = spans.track if spans.rows is None else taken(spans.track, spans.rows)
    size, tracks = len(track), int(track.max(initial=-1)) + 1
    return native.given(_Events, columns, size=size, tracks=tracks, tick=spans.tick)


def _build_twin(spans: Spans) -> Tree:
    """The same in Python: slow, and the specification of the native function."""
    rows = np.arange(len(spans.start)) if spans.rows is None else spans.rows
    start, length, track, rank = (column[rows] for column in spans[:4])
    by_tree = np.lexsort((rank, -length, start, track))
    order, bounds = rows[by_tree], np.searchsorted(track[by_tree], np.arange(track.max(initial=-1) + 2))
    start, end, track = (column[by_tree].tolist() for column in (start, start + length, track))
    size, broken = len(order), 0
    parent, stop = [-1] * size, [size] * size
    stack: list[int] = []
    for at in range(size):
        while stack:
            top = stack[-1]
            if track[top] == track[at] and end[top] > start[at]:
                if end[at] <= end[top] + spans.tick:
                    end[at] = min(end[at], end[top])
                    break
                end[top] = start[at]
                broken += 1
            stop[stack.pop()] = at
        parent[at] = stack[-1] if stack else -1
        stack.append(at)
    own = [last - first for first, last in zip(start, end, strict=True)]
    for at, above in enumerate(parent):
        if above >= 0:
            own[above] -= end[at] - start[at]
    places, times = np.array([order, parent, stop], np.int32), np.array([start, end, own], np.int64)
    return Tree(places[0], places[1], places[2], times[0], times[1], times[2], bounds, broken)


NO_RANK = 255
"""Of events that are not to be nested."""


def own_times(events: Spans) -> NDArray[np.int64]:
    """Of each event the time in none of its children; what has `NO_RANK` is left out.

    Takes less memory than trees do.
    """
    library = _library()
    if library is None:
        return _own_times_twin(events)
    own, given = np.zeros(len(events.start), np.int64), _events(events)
    _check(library.trace_tree_own(ctypes.byref(given), own.ctypes.data))
    return own


def _own_times_twin(events: Spans) -> NDArray[np.int64]:
    own = np.zeros(len(events.start), np.int64)
    tree = _build_twin(events._replace(rows=np.flatnonzero(events.rank != NO_RANK)))
    own[tree.row] = tree.own
    return own


DEEP = -2
"""What runs is further around than was looked."""


def innermost(tree: Tree, track: NDArray[np.int32], t: NDArray[np.int64], around: int) -> NDArray[np.int64]:
    """Place of the innermost event of a thread each that runs at an instant, -1: none, as of threads that are none.

    `DEEP` where it is not among so many `around` the last event that began.
    """
    library = _library()
    if library is None:
        return _innermost_twin(tree, track, t, around)
    columns = {name: getattr(tree, name) for name in ("parent", "start", "end", "bounds")}
    given, track, t = (
        native.given(_Tree, columns),
        np.ascontiguousarray(track, np.int32),
        np.ascontiguousarray(t, np.int64),
    )
    found = np.empty(len(t), np.int64)
    asked = native.address(track), native.address(t), len(t), around, native.address(found)
    library.trace_tree_innermost(ctypes.byref(given), len(tree.bounds) - 1, *asked)
    return found


def _innermost_twin(tree: Tree, track: NDArray[np.int32], t: NDArray[np.int64], around: int) -> NDArray[np.int64]:
    found = np.full(len(t), -1, np.int64)
    for thread in distinct(track[(track >= 0) & (track < len(tree.bounds) - 1)]).tolist():
        (first, last), own = tree.bounds[thread : thread + 2].tolist(), track == thread
        begun = np.searchsorted(tree.start[first:last], t[own], "right")
        found[own] = np.where(begun > 0, first + begun - 1, -1)
    active = np.flatnonzero(found >= 0)
    for left in reversed(range(around + 1)):
        active = active[tree.end[found[active]] <= t[active]]
        found[active] = tree.parent[found[active]] if left else DEEP
        active = active[found[active] >= 0]
    return found


def outermost(stop: NDArray[np.int32], key: NDArray[np.int32], keys: int) -> NDArray[np.bool_]:
    """Which events of a tree are not inside an event of the same key; keys are numbers from 0 to below `keys`."""
    library = _library()
    return _outermost_twin(stop, key) if library is None else _outermost(stop, key, keys, library)


def _outermost(stop: NDArray[np.int32], key: NDArray[np.int32], keys: int, library: ctypes.CDLL) -> NDArray[np.bool_]:
    stop, key = np.ascontiguousarray(stop, np.int32), np.ascontiguousarray(key, np.int32)
    outer = np.empty(len(stop), np.bool_)
    _check(library.trace_tree_outermost(stop.ctypes.data, key.ctypes.data, len(stop), keys, outer.ctypes.data))
    return outer


def _outermost_twin(stop: NDArray[np.int32], key: NDArray[np.int32]) -> NDArray[np.bool_]:
    reach: dict[int, int] = {}
    outer = np.empty(len(stop), np.bool_)
    for at, (end, own) in enumerate(zip(stop.tolist(), key.tolist(), strict=True)):
        outer[at] = at >= reach.get(own, 0)
        if outer[at]:
            reach[own] = end
    return outer


def inside(stop: NDArray[np.int32], some: NDArray[np.signedinteger[Any]]) -> NDArray[np.int32]:
    """Of each event of a tree, how many of some of them (places, -1 for none) it is or contains."""
    library = _library()
    if library is None:
        return _inside_twin(stop, some)
    stop, some = (np.ascontiguousarray(each, np.int32) for each in (stop, some))
    before, found = np.empty(len(stop) + 1, np.int32), np.empty(len(stop), np.int32)
    given = stop.ctypes.data, len(stop), some.ctypes.data, len(some), before.ctypes.data
    library.trace_tree_inside(*given, found.ctypes.data)
    return found


def _inside_twin(stop: NDArray[np.int32], some: NDArray[np.signedinteger[Any]]) -> NDArray[np.int32]:
    # Those that are none count before the first event, and so in no difference.
    before = np.cumsum(np.bincount(some + 1, minlength=len(stop) + 1), dtype=np.int32)
    found: NDArray[np.int32] = before[stop] - before[:-1]
    return found
