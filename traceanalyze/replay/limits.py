"""What a replayed step waits for: the path through the graph of waits that decides how long it takes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.idle.host_state import host_states
from traceanalyze.model import intervals
from traceanalyze.model.intervals import EMPTY, Intervals
from traceanalyze.model.vocabulary import BUSY_PARTS, Cause, DeviceClass
from traceanalyze.replay.graph import Graph, graph
from traceanalyze.replay.longest import NEVER
from traceanalyze.replay.replay import Again, counted_windows

LIMITS = {
    "host": ("host",),
    "device": ("compute", "memory_ops", "between"),
    "communication": ("communication",),
    "ranks": ("waiting",),
    "loader": ("data_loading",),
}
"""Who limits a step, by the kinds of time on its path. `between` is what stays between two device events."""
KINDS = tuple(kind for kinds in LIMITS.values() for kind in kinds)


class _Path(NamedTuple):
    """Stretches of time that follow each other, the last one first; ns of the new run."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    kind: NDArray[np.int64]
    """Position in `KINDS`."""


def path_time(context: Context, again: Again, gone: Intervals = EMPTY) -> dict[str, int]:
    """Time of the windows that count by what the path through them does, ns in all; keys are `KINDS`.

    `gone`: host time that was taken out of the thread of the steps.
    """
    path = _path(context, context.once(graph), again, gone)
    counted = context.once(counted_windows)
    windows = intervals.merge(again.start[counted], again.end[counted])
    inside = intervals.coverage(windows, path.start, np.maximum(path.end, path.start))
    time = np.bincount(path.kind, weights=inside, minlength=len(KINDS))
    return {kind: int(time[at]) for at, kind in enumerate(KINDS)}


def split_then(context: Context, again: Again) -> dict[str, int]:
    """The parts of `BUSY_PARTS` and `idle` of the headline device in the windows that count, ns in all."""
    counted, device = context.once(counted_windows), context.device
    start, end = again.start[counted], again.end[counted]
    begin = again.time[context.once(graph).event]
    found, busy, before = {}, EMPTY, 0
    for name, klass in zip(BUSY_PARTS, DeviceClass, strict=True):
        own = (device.klass == klass) & np.isin(device.device, context.devices[:1])
        busy = intervals.union(busy, Intervals(begin[own], (begin + again.lasted)[own]))
        covered = int(intervals.coverage(busy, start, end).sum())
        found[name], before = covered - before, covered
    return {**found, "idle": int((end - start).sum()) - before}


def _path(context: Context, program: Graph, again: Again, gone: Intervals) -> _Path:
    point, edge = _walk(program, again, _last(context, program, again))
    source = program.edges.source[np.maximum(edge, 0)]
    arrived = np.where(edge >= 0, again.time[source] + again.weight[edge], NEVER)
    begin = np.where(edge >= 0, again.time[source], again.time[point])
    event = np.full(len(program.time), -1, np.int64)
    event[program.event] = np.arange(len(program.event))
    # The part of an edge that its source, a device event, works.
    of = np.where(edge >= 0, event[source], -1)
    worked = np.where(of >= 0, np.minimum(begin + again.lasted[of], arrived), begin) if len(again.lasted) else begin
    worked = np.maximum(worked, begin)
    klass = context.device.klass.astype(np.int64)
    names = np.array([KINDS.index(name) for name in BUSY_PARTS])
    busy = names[klass[of]] if len(klass) else np.zeros(len(of), np.int64)
    meets = begin if again.waited is None else np.where(of >= 0, np.minimum(begin + again.waited[of], worked), begin)
    left = np.where((of >= 0) & (event[point] >= 0), KINDS.index("between"), KINDS.index("host"))
    loading = _loading(context, program, gone, edge)
    loaded = np.minimum(loading, np.maximum(arrived - worked, 0))
    # What came only when it was there, whatever its thread did: batches of the loader.
    waited = np.where(edge >= 0, again.time[point] - arrived, 0)
    parts = (
        _last_event(context, program, again, event[point[:1]]),
        (begin, meets, np.full(len(edge), KINDS.index("waiting"))),
        (meets, worked, busy),
        (worked, worked + loaded, np.full(len(edge), KINDS.index("data_loading"))),
        (worked + loaded, np.maximum(arrived, worked), left),
        (again.time[point] - waited, again.time[point], np.full(len(edge), KINDS.index("data_loading"))),
    )
    return _Path(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _last_event(
    context: Context, program: Graph, again: Again, event: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """What the event does that a path ends with, if it does with one."""
    event = event[event >= 0]
    begin = again.time[program.event[event]]
    klass = context.device.klass[event].tolist()
    return begin, begin + again.lasted[event], np.array([KINDS.index(BUSY_PARTS[each]) for each in klass], np.int64)


def _walk(program: Graph, again: Again, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Points from the last one back, each with the edge that it waited for longest (-1: none)."""
    bounds, source = program.edges
    arrived = again.time[source] + again.weight
    target = np.repeat(np.arange(len(program.time)), np.diff(bounds))
    latest = np.full(len(program.time), NEVER)
    np.maximum.at(latest, target, arrived)
    binding = np.flatnonzero((arrived == latest[target]) & (again.weight > NEVER // 2))
    edge = np.full(len(program.time), -1, np.int64)
    edge[target[binding]] = binding
    # Of the points of a path one after the other is known only when the one before is.
    before = np.where(edge >= 0, source[np.maximum(edge, 0)], -1).tolist() if len(source) else [-1] * len(edge)
    points = []
    while last >= 0:
        points.append(last)
        last = before[last]
    found = np.array(points, np.int64)
    return found, edge[found]


def _last(context: Context, program: Graph, again: Again) -> int:
    """The point with which the last window that counts ends: the event that is over last, or its mark on the host."""
    row = int(np.flatnonzero(context.once(counted_windows))[-1])
    end = int(again.end[row])
    if len(program.event):
        over = again.time[program.event] + again.lasted
        event = int(np.argmax(np.where(over <= end, over, NEVER)))
        if over[event] == end or not program.marks.shape[1]:
            return int(program.event[event])
    return int(program.marks[1, row]) if program.marks.shape[1] else -1


def _loading(context: Context, program: Graph, gone: Intervals, edge: NDArray[np.int64]) -> NDArray[np.int64]:
    """How long the thread of the steps loads data in what is left of some edges, ns."""
    states = context.once(host_states, context.step_track, True)
    left = intervals.subtract(states.of((Cause.DATA_LOADING,)), gone)
    row = np.full(len(program.weight), -1, np.int64)
    row[program.host.edge] = np.arange(len(program.host.edge))
    at = np.where(edge >= 0, row[edge], -1)
    found = np.zeros(len(edge), np.int64)
    known = (at >= 0) & (program.host.line[at] == 0) if len(program.host.edge) else np.zeros(len(edge), np.bool_)
    found[known] = intervals.coverage(left, program.host.start[at[known]], program.host.end[at[known]])
    return found
