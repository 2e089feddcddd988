"""The algebra of half-open intervals `[start, end)` on int64 nanosecond arrays: everything else is built on it.

A *set* is an `Intervals` that is sorted, disjoint and has no empty member (what `merge` returns); every other function
takes and returns sets. All are O(n log n) at most and never loop over intervals.
"""

import ctypes
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model import native

Int64 = NDArray[np.int64]


class Intervals(NamedTuple):
    """Starts and ends of intervals, ns; two arrays of one length."""

    start: Int64
    end: Int64


class Overlaps(NamedTuple):
    """Pieces common to two sets: their bounds, and which member of the first and of the second each lies in."""

    start: Int64
    end: Int64
    first: Int64
    second: Int64


_MANY = 16
"""So many times as many of one kind as of another are looked at all at once."""
_SOME = 256
"""Fewer instants are not worth a call of the library."""
CHUNK = 1 << 16
"""Rows of a table that are worked on together, so that what is made of them on the way stays in the cache."""
EMPTY = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


def merge(start: Int64, end: Int64) -> Intervals:
    """Union of any intervals as a set: sorted, disjoint, touching ones joined, empty and reversed ones dropped."""
    if not len(start):
        return EMPTY  # as of most threads of a program that has thousands
    joined = _joined(start, end)
    if joined is None:
        order = np.argsort(start, kind="stable")
        joined = _joined(start[order], end[order])
        assert joined is not None
    return joined


def _joined(start: Int64, end: Int64) -> Intervals | None:
    """The same of intervals in order of their starts; None where they are not."""
    library = _library()
    if library is None:
        return _joined_twin(start, end)
    room, given = np.empty((2, len(start)), np.int64), native.stretches(start, end)
    found = library.trace_join(ctypes.byref(given), *map(native.address, room))
    if found == len(start):
        return Intervals(start, end)
    if found < 0:
        return None
    return _trimmed(room, found)


def _joined_twin(start: Int64, end: Int64) -> Intervals | None:
    """The same in NumPy: the specification of the native function."""
    positive = end > start
    if not positive.all():
        start, end = start[positive], end[positive]
    if len(start) == 0:
        return EMPTY
    if (start[1:] < start[:-1]).any():
        return None
    reach = np.maximum.accumulate(end)
    opens = np.concatenate(([True], start[1:] > reach[:-1]))
    first = np.flatnonzero(opens)
    last = np.concatenate((first[1:], [len(start)])) - 1
    return Intervals(start[first], reach[last])


def active(start: Int64, length: Int64, rows: NDArray[np.integer[Any]]) -> Intervals:
    """When any of some events runs, whose rows these are."""
    library = _library()
    if library is not None:
        columns = [np.ascontiguousarray(each, np.int64) for each in (start, length)]
        given, room = [*columns, np.ascontiguousarray(rows, np.int32)], np.empty((2, len(rows)), np.int64)
        found = library.trace_active(*map(native.address, given), len(rows), *map(native.address, room))
        if found >= 0:
            return _trimmed(room, found)
    start = start[rows]
    return merge(start, start + length[rows])


def union(*sets: Intervals) -> Intervals:
    """Time inside any of the sets."""
    some = [each for each in sets if len(each.start)]
    if len(some) <= 1:
        return some[0] if some else EMPTY
    library, half = _library(), len(some) // 2
    if library is not None:
        return _combined(library.trace_union, union(*some[:half]), union(*some[half:]))
    return merge(np.concatenate([each.start for each in some]), np.concatenate([each.end for each in some]))


def _combined(combine: Callable[..., int], a: Intervals, b: Intervals) -> Intervals:
    """What a function of the library makes of two sets."""
    one, two, room = native.stretches(*a), native.stretches(*b), np.empty((2, len(a.start) + len(b.start)), np.int64)
    found = combine(ctypes.byref(one), ctypes.byref(two), *map(native.address, room))
    return _trimmed(room, found)


def _trimmed(room: Int64, found: int) -> Intervals:
    """The part of the room that was used; much more than that is not kept."""
    return Intervals(*(room[:, :found].copy() if 2 * found < room.shape[1] else room[:, :found]))


def total(a: Intervals) -> int:
    """Length of a set, ns."""
    return int(a.end.sum() - a.start.sum())  # What the sums overflow by, their difference does not.


def overlaps(a: Intervals, b: Intervals) -> Overlaps:
    """Every non-empty intersection of a member of `a` with a member of `b`, in time order."""
    library = _library()
    if library is None:
        return _overlaps_twin(a, b)
    few, many, size = native.stretches(*a), native.stretches(*b), len(a.start) + len(b.start)
    while True:
        # Apart: who keeps the times lets the numbers go.
        times, numbers = np.empty((2, size), np.int64), np.empty((2, size), np.int64)
        pieces = _Pieces(*map(native.address, (*times, *numbers)))
        found = library.trace_overlaps(ctypes.byref(few), ctypes.byref(many), ctypes.byref(pieces), size)
        if found <= size:
            return Overlaps(*_trimmed(times, found), *_trimmed(numbers, found))
        size = found  # as there may be where members of `a` overlap


class _Pieces(ctypes.Structure):
    _fields_ = [(column, ctypes.c_void_p) for column in Overlaps._fields]


@cache
def _library() -> ctypes.CDLL | None:
    library = native.library()
    if library is not None:
        library.trace_overlaps.restype = library.trace_join.restype = library.trace_active.restype = ctypes.c_int64
        library.trace_overlaps.argtypes = (*(ctypes.c_void_p,) * 3, ctypes.c_int64)
        library.trace_join.argtypes = (ctypes.c_void_p,) * 3
        library.trace_active.argtypes = (*(ctypes.c_void_p,) * 3, ctypes.c_uint64, *(ctypes.c_void_p,) * 2)
        library.trace_beside.restype, library.trace_beside.argtypes = ctypes.c_int64, (ctypes.c_void_p,) * 7
        for combine in (library.trace_union, library.trace_intersect, library.trace_subtract):
            combine.restype, combine.argtypes = ctypes.c_int64, (ctypes.c_void_p,) * 4
        library.trace_coverage.restype = library.trace_passed.restype = None
        library.trace_coverage.argtypes = (ctypes.c_void_p,) * 4
        library.trace_passed.argtypes = (*(ctypes.c_void_p, ctypes.c_uint64) * 2, ctypes.c_void_p)
    return library


def _overlaps_twin(a: Intervals, b: Intervals) -> Overlaps:
    """The same in NumPy: the specification of the native function."""
    low = np.searchsorted(b.end, a.start, "right")
    high = np.searchsorted(b.start, a.end, "left")
    count = np.maximum(high - low, 0)
    first = np.repeat(np.arange(len(a.start)), count)
    second = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + np.repeat(low, count)
    start = np.maximum(a.start[first], b.start[second])
    end = np.minimum(a.end[first], b.end[second])
    return Overlaps(start, end, first, second)


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """Time inside both sets."""
    if len(a.start) == 0 or len(b.start) == 0:
        return EMPTY
    if len(b.start) == 1 and b.start[0] <= a.start[0] and a.end[-1] <= b.end[0]:
        return a  # as most is that is asked for in steps which follow each other
    library = _library()
    return Intervals(*_overlaps_twin(a, b)[:2]) if library is None else _combined(library.trace_intersect, a, b)


def gaps(a: Intervals, start: int, end: int) -> Intervals:
    """Time of the window `[start, end)` outside the set."""
    if end <= start:
        return EMPTY
    inside = slice(np.searchsorted(a.end, start, "right"), np.searchsorted(a.start, end, "left"))
    begins = np.concatenate(([start], a.end[inside]))
    ends = np.concatenate((a.start[inside], [end]))
    free = ends > begins
    return Intervals(begins, ends) if free.all() else Intervals(begins[free], ends[free])


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """Time inside `a` and not inside `b`."""
    if len(a.start) == 0 or len(b.start) == 0:
        return a
    library = _library()
    if library is None:
        return intersect(a, gaps(b, int(a.start[0]), int(a.end[-1])))
    return _combined(library.trace_subtract, a, b)


def beside(
    a: Intervals, of_a: NDArray[np.uint8], b: Intervals, of_b: NDArray[np.uint8]
) -> tuple[Int64, Int64, NDArray[np.uint8]]:
    """Members of `a` and, in the time between them, those of `b`, each with its label; some may touch."""
    library = _library()
    if library is None:
        return _beside_twin(a, of_a, b, of_b)
    of_a, of_b = (np.ascontiguousarray(each, np.uint8) for each in (of_a, of_b))
    size = 2 * len(a.start) + len(b.start)
    room, of, one, two = (
        np.empty((2, size), np.int64),
        np.empty(size, np.uint8),
        native.stretches(*a),
        native.stretches(*b),
    )
    given = ctypes.byref(one), native.address(of_a), ctypes.byref(two), native.address(of_b)
    found = library.trace_beside(*given, *map(native.address, (*room, of)))
    return *_trimmed(room, found), of[:found].copy()


def _beside_twin(
    a: Intervals, of_a: NDArray[np.uint8], b: Intervals, of_b: NDArray[np.uint8]
) -> tuple[Int64, Int64, NDArray[np.uint8]]:
    free = (
        _overlaps_twin(b, gaps(merge(*a), int(b.start[0]), int(b.end[-1]))) if len(b.start) else Overlaps(*(EMPTY * 2))
    )
    start, end = (np.concatenate(each) for each in zip(a, free[:2], strict=True))
    order = np.argsort(start, kind="stable")
    return start[order], end[order], np.concatenate((of_a, of_b[free.first]))[order]


def chunks(size: int) -> Iterator[slice]:
    """The rows of a large table in stretches."""
    return (slice(at, at + CHUNK) for at in range(0, size, CHUNK))


def contains(a: Intervals, t: Int64) -> NDArray[np.bool_]:
    """Whether each instant lies inside the set."""
    if len(a.start) == 0 or len(t) == 0:
        return np.zeros(len(t), np.bool_)
    if _MANY * len(a.start) < len(t) and (t[1:] >= t[:-1]).all():
        # Of a few members and many instants in order only the edges of the members are searched for.
        at = np.searchsorted(t, np.stack(a, axis=1).ravel())
        edges = np.concatenate(([0], at, [len(t)]))
        return np.repeat(np.arange(len(at) + 1) % 2 == 1, edges[1:] - edges[:-1])
    if len(t) > CHUNK:
        return np.concatenate([contains(a, t[part]) for part in chunks(len(t))])
    at = passed(a.start, t) - 1
    inside: NDArray[np.bool_] = (at >= 0) & (t < a.end[at])
    return inside


def passed(moments: Int64, t: Int64) -> Int64:
    """How many of some moments (ascending) are not after each instant; faster where these are nearly in order."""
    library = _library()
    if library is None or len(t) < _SOME:
        return np.searchsorted(moments, t, "right")
    moments, t = (np.ascontiguousarray(each, np.int64) for each in (moments, t))
    found = np.empty(len(t), np.int64)
    library.trace_passed(native.address(moments), len(moments), native.address(t), len(t), native.address(found))
    return found


def coverage(a: Intervals, start: Int64, end: Int64) -> Int64:
    """For each window `[start[i], end[i])` (any order, may overlap) the time of it inside the set."""
    if len(a.start) == 0:
        return np.zeros(len(start), np.int64)
    library = _library()
    if library is not None:
        return _covered(library, native.stretches(*a), native.stretches(start, end))
    before = np.concatenate(([0], np.cumsum(a.end - a.start)))
    inside: Int64 = np.maximum(_until(a, before, end) - _until(a, before, np.minimum(start, end)), 0)
    return inside


def _covered(library: ctypes.CDLL, a: native.Stretches, windows: native.Stretches) -> Int64:
    before, found = np.empty(a.size + 1, np.int64), np.empty(windows.size, np.int64)
    library.trace_coverage(ctypes.byref(a), ctypes.byref(windows), *map(native.address, (before, found)))
    return found


def _until(a: Intervals, before: Int64, t: Int64) -> Int64:
    """Length of the set before each instant; `before` is that before each member, and of all."""
    index = np.searchsorted(a.start, t, "right")
    left = np.maximum(a.end.take(np.maximum(index - 1, 0)) - t, 0)
    left[index == 0] = 0
    found: Int64 = before.take(index) - left
    return found
