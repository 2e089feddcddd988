"""Longest paths: when each of many points happens, if it waits for all that lead to it; what is taken out."""

import ctypes
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model import intervals, native
from traceanalyze.model.intervals import Intervals

NEVER = -(1 << 62)
"""Earlier than any time: of an edge that holds nothing back, and of a point that only its edges hold back."""


class Edges(NamedTuple):
    """Points are numbered in order of time; the edges that lead to point i are `[bounds[i], bounds[i + 1])`."""

    bounds: NDArray[np.int64]
    source: NDArray[np.int32]
    """The earlier point that each edge starts from."""


class HostTime(NamedTuple):
    """Edges that host work takes time on."""

    edge: NDArray[np.int32]
    """Their numbers, each once."""
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    """In between the host works."""
    least: NDArray[np.int64]
    """What is left of the weight without this work."""
    line: NDArray[np.int32]
    """Row of `Graph.tracks`."""


class Busy(NamedTuple):
    """Edges with the duration of a device event in their weight."""

    edge: NDArray[np.int64]
    event: NDArray[np.int64]
    follows: int
    """So many, the first, lead to other device events: these close up where more is gone than the event lasts."""


class Ended(NamedTuple):
    """The headline device, and its idle gaps that one of its events ends, in their order."""

    event: NDArray[np.int64]
    """Its events, by start."""
    point: NDArray[np.int64]
    """At which each of these begins."""
    at: NDArray[np.int64]
    """Of each gap, the first of these events that begins when it ends."""
    end: NDArray[np.int64]
    length: NDArray[np.int64]


class ByTarget(NamedTuple):
    """Edges in the order of the points that they lead to."""

    edges: Edges
    number: NDArray[np.int32]
    """Of each edge as given: its place there."""
    weight: NDArray[np.int64]


def by_target(source: NDArray[np.int32], target: NDArray[np.int32], weight: NDArray[np.int64], points: int) -> ByTarget:
    """Put edges in the order of the points that they lead to; those of one point stay in the order given."""
    library = _library()
    if library is None:
        return _by_target_twin(source, target, weight, points)
    given = native.given(_Given, {"source": source, "target": target, "weight": weight}, size=len(target))
    found = ByTarget(
        Edges(np.empty(points + 1, np.int64), np.empty_like(source)), np.empty_like(target), np.empty_like(weight)
    )
    places = (each.ctypes.data for each in (*found.edges, *found[1:]))
    library.trace_by_target(ctypes.byref(given), points, *places)
    return found


def _by_target_twin(
    source: NDArray[np.int32], target: NDArray[np.int32], weight: NDArray[np.int64], points: int
) -> ByTarget:
    """The same in NumPy: the specification of the native function."""
    order = np.argsort(target, kind="stable")
    number = np.empty(len(order), np.int32)
    number[order] = np.arange(len(order))
    bounds = np.concatenate(([0], np.cumsum(np.bincount(target, minlength=points)))).astype(np.int64)
    return ByTarget(Edges(bounds, source[order]), number, weight[order])


def longest(edges: Edges, weight: NDArray[np.int64], earliest: NDArray[np.int64]) -> NDArray[np.int64]:
    """When each point happens, ns: at its earliest time, or the weight of an edge after that edge's source, if later.

    Natively where the library is there: a step of 130,000 edges takes half a millisecond.
    """
    library = _library()
    return _longest_twin(edges, weight, earliest) if library is None else _longest(edges, weight, earliest, library)


def take_out(host: HostTime, line: int, removed: Intervals, weight: NDArray[np.int64]) -> None:
    """Take the work that a line of threads does in a set of time off the weights of its edges."""
    library = _library()
    if library is not None:
        kinds = (np.int32, np.int64, np.int64, np.int64, np.int32)
        columns = [np.ascontiguousarray(each, kind) for each, kind in zip(host, kinds, strict=True)]
        work = _Work(*(each.ctypes.data for each in columns), len(host.edge))
        stretches, before = native.stretches(*removed), np.empty(len(removed.start) + 1, np.int64)
        given = ctypes.byref(work), ctypes.byref(stretches), line, before.ctypes.data, weight.ctypes.data
        library.trace_take_out(*given)
        return
    own = np.flatnonzero(host.line == line)
    gone = intervals.coverage(removed, host.start[own], host.end[own])
    edge, was = host.edge[own], weight[host.edge[own]]
    weight[edge] = np.where(gone > 0, np.maximum(was - gone, np.minimum(host.least[own], was)), was)


def shorten(busy: Busy, shorter: NDArray[np.int64], length: NDArray[np.int64], weight: NDArray[np.int64]) -> None:
    """Take off the weights by how much sooner device events are over; no edge leads backwards."""
    library = _library()
    if library is not None:
        given = native.given(_Busy, {"edge": busy.edge, "event": busy.event}, size=len(busy.edge), follows=busy.follows)
        library.trace_shorten(ctypes.byref(given), shorter.ctypes.data, length.ctypes.data, weight.ctypes.data)
        return
    gone = shorter[busy.event]
    gone[busy.follows :] = np.minimum(gone[busy.follows :], length[busy.event[busy.follows :]])
    weight[busy.edge] = np.maximum(weight[busy.edge] - gone, 0)


def gone(gaps: Ended, time: NDArray[np.int64], lasted: NDArray[np.int64], began: int) -> Intervals:
    """What is gone of the gaps since the device began, their ends, with other times and lengths of its events."""
    library = _library()
    if library is not None:
        given, room = native.given(_Gaps, gaps._asdict(), size=len(gaps.at)), np.empty((2, len(gaps.at)), np.int64)
        places = room[0].ctypes.data, room[1].ctypes.data
        found = library.trace_gone(ctypes.byref(given), time.ctypes.data, lasted.ctypes.data, began, *places)
        return Intervals(*room[:, :found])
    start = time[gaps.point]
    reach = np.maximum.accumulate(np.concatenate(([began], start + lasted[gaps.event])))
    shut = np.minimum(gaps.length - (start[gaps.at] - reach[gaps.at]), gaps.length)
    some = np.flatnonzero(shut > 0)
    return Intervals(gaps.end[some] - shut[some], gaps.end[some])


class _Given(ctypes.Structure):
    _fields_ = [*native.pointers("source", "target", "weight"), ("size", ctypes.c_uint64)]


class _Busy(ctypes.Structure):
    _fields_ = [*native.pointers("edge", "event"), ("size", ctypes.c_uint64), ("follows", ctypes.c_uint64)]


class _Gaps(ctypes.Structure):
    _fields_ = [*native.pointers(*Ended._fields), ("size", ctypes.c_uint64)]


class _Graph(ctypes.Structure):
    _fields_ = [
        *((column, ctypes.c_void_p) for column in ("bounds", "source", "earliest")),
        ("points", ctypes.c_uint64),
    ]


class _Work(ctypes.Structure):
    _fields_ = [*((column, ctypes.c_void_p) for column in HostTime._fields), ("size", ctypes.c_uint64)]


@cache
def _library() -> ctypes.CDLL | None:
    library = native.library()
    if library is None:
        return None
    library.trace_longest_path.argtypes = (ctypes.POINTER(_Graph), ctypes.c_void_p, ctypes.c_void_p)
    library.trace_by_target.restype = None
    pointer, number = ctypes.c_void_p, ctypes.c_uint64
    library.trace_by_target.argtypes = (pointer, number, *(pointer,) * 4)
    library.trace_shorten.restype, library.trace_shorten.argtypes = None, (ctypes.c_void_p,) * 4
    library.trace_gone.restype = ctypes.c_int64
    library.trace_gone.argtypes = (*(ctypes.c_void_p,) * 3, ctypes.c_int64, *(ctypes.c_void_p,) * 2)
    library.trace_take_out.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, *(ctypes.c_void_p,) * 2)
    return library


def _longest(
    edges: Edges, weight: NDArray[np.int64], earliest: NDArray[np.int64], library: ctypes.CDLL
) -> NDArray[np.int64]:
    bounds, weight, earliest = (np.ascontiguousarray(each, np.int64) for each in (edges.bounds, weight, earliest))
    source, time = np.ascontiguousarray(edges.source, np.int32), np.empty(len(earliest), np.int64)
    graph = _Graph(bounds.ctypes.data, source.ctypes.data, earliest.ctypes.data, len(earliest))
    library.trace_longest_path(ctypes.byref(graph), weight.ctypes.data, time.ctypes.data)
    return time


def _longest_twin(edges: Edges, weight: NDArray[np.int64], earliest: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same in Python: slow, and the specification of the native function."""
    bounds, source, lag = edges.bounds.tolist(), edges.source.tolist(), weight.tolist()
    time: list[int] = earliest.tolist()
    for point, earliest_time in enumerate(time):
        leading = (time[source[edge]] + lag[edge] for edge in range(bounds[point], bounds[point + 1]))
        time[point] = max(earliest_time, max(leading, default=earliest_time))
    return np.array(time, np.int64)
