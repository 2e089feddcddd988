"""The critical path of each step: from its end back to its start along what each piece of work waited for.

A device event leads to the event that it waited for, or to its launch (`critical_device.reasons`); the host leads back
through its own work to the last call that waited for the device, and from there to what that call waited for. Calls
that wait are thus never on the path themselves. Segments are cut to the step's window and tile it exactly.
"""

from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.frames import ops_at
from traceanalyze.analyses.idle.idle import LAUNCH_LATENCY_NS
from traceanalyze.analyses.steps.critical_waits import (
    Reasons,
    Waits,
    awaited_events,
    lane_key,
    lanes,
    reasons,
    sync_records,
    timeline,
    waits,
)
from traceanalyze.analyses.steps.window import Steps, amounts, window_of
from traceanalyze.model import intervals
from traceanalyze.model.columns import Strings, distinct
from traceanalyze.model.patterns import dataclass
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, declare
from traceanalyze.model.vocabulary import Cause, DeviceClass


class PathKind(IntEnum):
    """What a segment of the critical path is spent on; the order is the order of reports."""

    COMPUTE = 0
    COMM = 1
    MEM = 2
    """Copies and fills."""
    DEVICE_GAP = 3
    """Between the event that was waited for and the next, at most τ."""
    DEVICE_DEPENDENCY = 4
    """The same, longer: the device waited for something that the trace does not show."""
    LAUNCH_LATENCY = 5
    """From the return of a launch call to the start of its event, at most τ."""
    DATA_LOADING = 6
    PEER_WAIT = 7
    RUNTIME_CALL = 8
    """Launches and other runtime calls, and the return from a call that waited for the device; never the wait."""
    HOST_OP = 9
    UNTRACED = 10

    @property
    def term(self) -> str:
        """Key of its word."""
        return _TERMS.get(self, self.name.lower())


_TERMS = {
    PathKind.COMM: "communication",
    PathKind.MEM: "memory_ops",
    PathKind.LAUNCH_LATENCY: "dispatch_latency",
    PathKind.RUNTIME_CALL: "host_api",
}


@dataclass(frozen=True, eq=False)
class PathSegments:
    """Segments of the path in order of time; those of a step tile its window exactly."""

    step: NDArray[np.int64]
    """Row of `Steps`."""
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    kind: NDArray[np.uint8]
    """`PathKind`"""
    name: NDArray[np.int32]
    """String code of the device event, runtime call or innermost operator; -1 for the other kinds."""

    def __len__(self) -> int:
        return len(self.start)

    def by_step(self, steps: int) -> NDArray[np.int64]:
        """(steps, len(PathKind)) ns; rows sum to the step times."""
        out = np.zeros((steps, len(PathKind)), np.int64)
        np.add.at(out, (self.step, self.kind), self.end - self.start)
        return out


_PART = Column("part", Kind.TERM, "what the time was spent on")
_CRITICAL_PATH = declare(
    "critical_path",
    "Critical path of the step (mean of {steps} complete steps)",
    _PART,
    Column(
        "mean_ns",
        Kind.DURATION,
        "time on the path, mean over the complete steps; the rows sum to the step",
        heading="time",
    ),
    Column("share", Kind.SHARE, "part of the step"),
    Column("sum_ns", Kind.DURATION, "sum over the complete steps", machine=True),
    title_one="Critical path",
    bar="share",
    skip_zero="sum_ns",
)
_WORK = declare(
    "critical_path_work",
    "What is on the critical path (sum over the analysed steps)",
    _PART,
    Column("name", Kind.PLACE, "kernel, copy, runtime call or innermost operator"),
    Column("time_ns", Kind.DURATION, "time on the path"),
    Column("share", Kind.SHARE, "part of the whole path"),
    Column("count", Kind.COUNT, "separate segments of the path"),
    Column("max_ns", Kind.DURATION, "longest of these segments", heading="longest", scale="event"),
    ranked=True,
    detail=True,
)

_OF_CLASS = np.zeros(len(DeviceClass), np.uint8)
_OF_CLASS[DeviceClass.COMPUTE] = PathKind.COMPUTE
_OF_CLASS[DeviceClass.COMM] = PathKind.COMM
_OF_CLASS[DeviceClass.MEM] = PathKind.MEM
_OF_CAUSE = np.full(len(Cause), PathKind.RUNTIME_CALL, np.uint8)
_OF_CAUSE[Cause.DATA_LOADING] = PathKind.DATA_LOADING
_OF_CAUSE[Cause.PEER_WAIT] = PathKind.PEER_WAIT
_OF_CAUSE[Cause.HOST_OP] = PathKind.HOST_OP


_Part: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int32]]
"""Columns of `PathSegments`."""
_Event: TypeAlias = tuple[int, int, int]
"""A device event on the path, until when the path has it, and the step."""
_Stretch: TypeAlias = tuple[int, int, int, int]
"""Start, end and thread of host time on the path, and the step."""


def _device_parts(context: Context, why: Reasons, passed: list[_Event]) -> list[_Part]:
    """Events, and the time between what they waited for and their start."""
    device = context.device
    event, until, step = np.array(passed, np.int64).reshape(-1, 3).T
    start = np.minimum(device.start[event], until)
    ready = np.minimum(why.ready[event], until)
    by_launch = why.event[event] < 0
    none = np.full(len(event), -1, np.int32)
    # A wait within τ is latency; of a longer one the rest (after a launch) or all (after an event) is something else.
    long = start - ready > LAUNCH_LATENCY_NS
    turn = np.where(by_launch, np.minimum(ready + LAUNCH_LATENCY_NS, start), np.where(long, ready, start))
    first = np.where(by_launch, PathKind.LAUNCH_LATENCY, PathKind.DEVICE_GAP).astype(np.uint8)
    rest = np.full(len(event), PathKind.DEVICE_DEPENDENCY, np.uint8)
    return [
        (step, start, until, _OF_CLASS[device.klass[event]], device.name[event]),
        (step, ready, turn, first, none),
        (step, turn, start, rest, none),
    ]


def _host_parts(context: Context, passed: list[_Stretch]) -> list[_Part]:
    """What the host does in its stretches of the path."""
    start, end, track, step = np.array(passed, np.int64).reshape(-1, 4).T
    parts: list[_Part] = []
    for one in distinct(track).tolist():
        here = np.flatnonzero((track == one) & (end > start))
        here = here[np.argsort(start[here], kind="stable")]
        if len(here) == 0:
            continue
        stretch, line = intervals.Intervals(start[here], end[here]), context.once(timeline, one)
        known = intervals.overlaps(stretch, intervals.Intervals(line.start, line.end))
        owner, cause, thread = step[here][known.first], line.cause[known.second], line.track[known.second]
        for worker in distinct(thread).tolist():
            on = np.flatnonzero(thread == worker)
            begin, stop, of, name = _named(context, worker, known.start[on], known.end[on], cause[on])
            parts.append((owner[on][of], begin, stop, _OF_CAUSE[cause[on][of]], name))
        busy = intervals.Intervals(known.start, known.end)
        free = intervals.gaps(busy, int(stretch.start[0]), int(stretch.end[-1]))
        untraced = intervals.overlaps(stretch, free)
        kind = np.full(len(untraced.start), PathKind.UNTRACED, np.uint8)
        nameless = np.full(len(untraced.start), -1, np.int32)
        parts.append((step[here][untraced.first], untraced.start, untraced.end, kind, nameless))
    return parts


def _named(
    context: Context, track: int, start: NDArray[np.int64], end: NDArray[np.int64], cause: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Pieces of one thread cut where another call or operator begins: start, end, the piece of each cut, its name."""
    calls, nest = context.calls, context.op_nest
    call = np.flatnonzero((calls.track == track) & calls.outermost)
    ops = nest.of(track)
    loading, in_op = cause == Cause.DATA_LOADING, (cause == Cause.HOST_OP) | (cause == Cause.PEER_WAIT)
    edges = distinct(np.concatenate((nest.start[ops], nest.end[ops])))
    parts = []
    for chosen, cuts in ((in_op, edges), (~in_op & ~loading, distinct(calls.start[call])), (loading, edges[:0])):
        member = np.flatnonzero(chosen)
        begin, stop, of = _cut(start[member], end[member], cuts)
        parts.append((begin, stop, member[of]))
    begin, stop, of = (np.concatenate(column) for column in zip(*parts, strict=True))
    name = np.full(len(of), -1, np.int32)
    op = np.flatnonzero(in_op[of])
    row = ops_at(context, track, begin[op])
    name[op[row >= 0]] = context.trace.events.name[row[row >= 0]]
    runtime = np.flatnonzero(~in_op[of] & ~loading[of])
    name[runtime] = calls.name[call[np.searchsorted(calls.start[call], begin[runtime], "right") - 1]]
    return begin, stop, of, name


def _cut(
    start: NDArray[np.int64], end: NDArray[np.int64], edges: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Disjoint sorted pieces cut at the edges inside them: start, end, and the piece of each cut."""
    low, high = np.searchsorted(edges, start, "right"), np.searchsorted(edges, end, "left")
    count = high - low
    inside = np.repeat(low, count) + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    begin = np.concatenate((start, edges[inside]))
    of = np.concatenate((np.arange(len(start)), np.repeat(np.arange(len(start)), count)))
    order = np.argsort(begin, kind="stable")
    begin, of = begin[order], of[order]
    return begin, np.minimum(np.concatenate((begin[1:], end[-1:])), end[of]), of


def critical_path_tables(context: Context) -> tuple[Table, Table]:
    """The path by kind of work, and by name; that it is refused, and why, is for every view."""
    path = context.once(critical_path)
    if isinstance(path, NotMeasured):
        return _CRITICAL_PATH.missing(path.reason), _WORK.missing(path.reason)
    return path_tables(path, context.steps, context.trace.strings)


def path_tables(path: PathSegments, steps: Steps, strings: Strings) -> tuple[Table, Table]:
    """Mean of the parts over the steps that count; names summed over them, most time first.

    What has no name (latency, gaps, data loading, untraced time) is one row of its kind.
    """
    window, by_step = window_of(steps), path.by_step(len(steps))
    sums = {kind.term: window.sum(by_step[:, kind]) for kind in PathKind}
    parts = replace(amounts(_CRITICAL_PATH, sums, ("step", sum(sums.values())), window), detail=True)
    counted = steps.counted[path.step]
    kind, name, time = path.kind[counted], path.name[counted], (path.end - path.start)[counted]
    groups = group(kind, name)
    spread, kinds = groups.spread(time), kind[groups.first].tolist()
    names = [strings.text(code) if code >= 0 else None for code in name[groups.first].tolist()]
    work = _WORK.fill(
        part=[PathKind(kind).term for kind in kinds],
        name=names,
        time_ns=spread.total,
        share=spread.shares,
        count=spread.number,
        max_ns=spread.longest,
    )
    return parts, work.take(sorted(range(len(groups)), key=lambda at: (-spread.total[at], kinds[at], names[at] or "")))


LINKED_SHARE = 0.95
"""Of the device time so much must be linked to launches."""


def critical_path(context: Context) -> PathSegments | NotMeasured:
    """The chain of work, on host and device, that the end of each step waited for, over all streams and devices.

    Returns:
        `NotMeasured` when the trace lacks the evidence: device events in the steps, runtime calls, launches of 95 % of
        the device time, clocks that agree (check Q04), and records of waits between streams (`cuda_sync`) where
        several streams have work.
    """
    reason = context.once(path_lacks)
    if reason is not None:
        return reason
    streams, records = lanes(context), sync_records(context)
    why, awaited = reasons(context, streams, records), awaited_events(context, streams, records)

    @cache
    def waits_of(track: int) -> Waits:
        return waits(context, context.once(timeline, track), awaited)

    events, stretches = _walk(context, why, waits_of)
    parts = [*_device_parts(context, why, events), *_host_parts(context, stretches)]
    step, start, end, kind, name = (np.concatenate(column) for column in zip(*parts, strict=True))
    start = np.maximum(start, context.steps.start[step])
    kept = np.flatnonzero(end > start)
    kept = kept[np.lexsort((start[kept], step[kept]))]
    return PathSegments(step[kept], start[kept], end[kept], kind[kept], name[kept])


def path_lacks(context: Context) -> NotMeasured | None:
    """What the trace lacks for its critical path, None when it has all that is needed."""
    device, steps, link = context.device, context.steps, context.link
    if len(context.calls) == 0:
        return NotMeasured("no_api")
    inside = (device.end > steps.start.min()) & (device.start < steps.end.max()) & (device.end > device.start)
    if not inside.any():
        return NotMeasured("no_device_events")
    time = device.end - device.start
    if time[inside & (link >= 0)].sum() < LINKED_SHARE * time[inside].sum():
        return NotMeasured("few_linked_launches")
    if context.doubt is not None:
        return NotMeasured(context.doubt)
    streams = distinct(lane_key(device.device[inside], device.stream[inside]))
    if len(streams) > 1 and len(sync_records(context).kind) == 0:
        return NotMeasured("no_stream_waits")
    return None


def _walk(context: Context, why: Reasons, waits_of: Callable[[int], Waits]) -> tuple[list[_Event], list[_Stretch]]:
    """Every device event and stretch of host time on the path, each step from its end to its start.

    Events on the path are passed in the order of their starts and the host never goes forward, so the walk ends.
    """
    device, steps = context.device, context.steps
    # Lists are faster one value at a time.
    event_before, ready, thread = (column.tolist() for column in why)
    last_of = _last_events(context)
    events: list[_Event] = []
    stretches: list[_Stretch] = []
    for step, (begin, end) in enumerate(zip(steps.start.tolist(), steps.end.tolist(), strict=True)):
        at, track, event, bound = end, context.step_track, last_of[step], len(device)
        while at > begin:
            if event >= 0:
                events.append((event, at, step))
                # Clocks may disagree by less than an event; the path never goes forward.
                at = min(at, ready[event])
                track, bound, event = thread[event], event, event_before[event]
                continue
            event, until = _back_on_host(waits_of(track), at, bound, begin)
            stretches.append((until, at, track, step))
            at = until
    return events, stretches


def _last_events(context: Context) -> list[int]:
    """Device event that the end of each step is the end of, -1 where the host works on after it."""
    device, end = context.device, context.steps.end
    order = np.argsort(device.end, kind="stable")
    at = np.searchsorted(device.end[order], end, "right") - 1
    event = order[np.maximum(at, 0)]
    return [int(one) for one in np.where((at >= 0) & (device.end[event] == end), event, -1)]


def _back_on_host(waiting: Waits, at: int, bound: int, begin: int) -> tuple[int, int]:
    """The device event of the last wait that returned before an instant, and its end; else -1 and the step's begin.

    `bound`: the event that the path came from; what a wait leads to must have begun before it.
    """
    row = int(np.searchsorted(waiting.returned, at, "right")) - 1
    while row >= 0 and int(waiting.returned[row]) > begin:
        event, done = int(waiting.event[row]), int(waiting.done[row])
        if event < bound:
            return (event, done) if done > begin else (-1, begin)
        row -= 1
    return -1, begin
