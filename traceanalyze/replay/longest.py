"""Longest paths: when each of many points happens, if it waits for all that lead to it; and work taken out of them."""

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


def by_target(source: NDArray[np.int32], target: NDArray[np.int32], points: int) -> tuple[Edges, NDArray[np.int32]]:
    """Edges in the order of the points that they lead to, and the number that each has there."""
    library = _library()
    if library is None:
        return _by_target_twin(source, target, points)
    bounds, number = np.empty(points + 1, np.int64), np.empty(len(target), np.int32)
    given = np.ascontiguousarray(target, np.int32)
    library.trace_by_target(given.ctypes.data, len(given), bounds.ctypes.data, points, number.ctypes.data)
    ordered = np.empty(len(source), np.int32)
    ordered[number] = source
    return Edges(bounds, ordered), number


def _by_target_twin(
    source: NDArray[np.int32], target: NDArray[np.int32], points: int
) -> tuple[Edges, NDArray[np.int32]]:
    """The same in NumPy: the specification of the native function."""
    order = np.argsort(target, kind="stable")
    number = np.empty(len(order), np.int32)
    number[order] = np.arange(len(order))
    bounds = np.concatenate(([0], np.cumsum(np.bincount(target, minlength=points)))).astype(np.int64)
    return Edges(bounds, source[order]), number


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
    library.trace_by_target.argtypes = (*(ctypes.c_void_p, ctypes.c_uint64) * 2, ctypes.c_void_p)
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
