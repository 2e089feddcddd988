"""The critical path of each step: from its end back to its start along what each piece of work waited for.

A device event leads to the event that it waited for, or to its launch (`critical_device.reasons`); the host leads back
through its own work to the last call that waited for the device, and from there to what that call waited for. Calls
that wait are thus never on the path themselves. Segments are cut to the step's window and tile it exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.nesting import innermost_at
from traceanalyze.analyses.idle.idle import LAUNCH_LATENCY_NS
from traceanalyze.analyses.idle.launches import clocks_agree
from traceanalyze.analyses.steps.critical_device import Lanes, Reasons, lanes, reasons, sync_records
from traceanalyze.analyses.steps.critical_host import Timeline, Waits, awaited_events, timeline, waits
from traceanalyze.analyses.steps.window import Steps, window_of
from traceanalyze.model import intervals
from traceanalyze.model.columns import Strings, distinct, distinct_codes
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
    Column("name", Kind.NAME, "kernel, copy, runtime call or innermost operator"),
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


class Walk(NamedTuple):
    """What the path passed, latest first within each step."""

    event: list[int]
    until: list[int]
    """The path has the event from its start to here."""
    event_step: list[int]
    host_start: list[int]
    host_end: list[int]
    host_track: list[int]
    host_step: list[int]


class _Part(NamedTuple):
    step: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    kind: NDArray[np.uint8]
    name: NDArray[np.int32]


def segments(context: Context, why: Reasons, walk: Walk, lines: Mapping[int, Timeline]) -> PathSegments:
    """Segments of the path in order of time, cut to the steps."""
    parts = [*_device_parts(context, why, walk), *_host_parts(context, walk, lines)]
    step, start, end, kind, name = (np.concatenate(column) for column in zip(*parts, strict=True))
    start = np.maximum(start, context.steps.start[step])
    kept = np.flatnonzero(end > start)
    kept = kept[np.lexsort((start[kept], step[kept]))]
    return PathSegments(step[kept], start[kept], end[kept], kind[kept], name[kept])


def _device_parts(context: Context, why: Reasons, walk: Walk) -> list[_Part]:
    """Events, and the time between what they waited for and their start."""
    device = context.device
    event, step = np.array(walk.event, np.int64), np.array(walk.event_step, np.int64)
    until = np.array(walk.until, np.int64)
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
        _Part(step, start, until, _OF_CLASS[device.klass[event]], device.name[event]),
        _Part(step, ready, turn, first, none),
        _Part(step, turn, start, rest, none),
    ]


def _host_parts(context: Context, walk: Walk, lines: Mapping[int, Timeline]) -> list[_Part]:
    """What the host does in its stretches of the path."""
    track, step = np.array(walk.host_track, np.int64), np.array(walk.host_step, np.int64)
    start, end = np.array(walk.host_start, np.int64), np.array(walk.host_end, np.int64)
    parts: list[_Part] = []
    for one in distinct(track).tolist():
        mine = np.flatnonzero((track == one) & (end > start))
        mine = mine[np.argsort(start[mine], kind="stable")]
        stretch, line = intervals.Intervals(start[mine], end[mine]), lines[one]
        known = intervals.overlaps(stretch, intervals.Intervals(line.start, line.end))
        owner, cause, thread = step[mine][known.first], line.cause[known.second], line.track[known.second]
        for worker in distinct(thread).tolist():
            here = np.flatnonzero(thread == worker)
            cut, of, name = _named(context, worker, known.start[here], known.end[here], cause[here])
            parts.append(_Part(owner[here][of], cut.start, cut.end, _OF_CAUSE[cause[here][of]], name))
        free = intervals.gaps(intervals.Intervals(known.start, known.end), *_span(stretch))
        untraced = intervals.overlaps(stretch, free)
        kind = np.full(len(untraced.start), PathKind.UNTRACED, np.uint8)
        nameless = np.full(len(untraced.start), -1, np.int32)
        parts.append(_Part(step[mine][untraced.first], untraced.start, untraced.end, kind, nameless))
    return parts


def _span(one: intervals.Intervals) -> tuple[int, int]:
    return (int(one.start[0]), int(one.end[-1])) if len(one.start) else (0, 0)


def _named(
    context: Context, track: int, start: NDArray[np.int64], end: NDArray[np.int64], cause: NDArray[np.uint8]
) -> tuple[intervals.Intervals, NDArray[np.int64], NDArray[np.int32]]:
    """Pieces of one thread cut where another call or operator begins: the cuts, the piece of each, and its name."""
    calls, nest = context.calls, context.op_nest
    call = np.flatnonzero((calls.track == track) & calls.outermost)
    ops = nest.of(track)
    in_op = (cause == Cause.HOST_OP) | (cause == Cause.PEER_WAIT)
    op_edges = np.concatenate((nest.start[ops], nest.end[ops]))
    parts = []
    for member, edges in (
        (np.flatnonzero(in_op), op_edges),
        (np.flatnonzero(~in_op & (cause != Cause.DATA_LOADING)), calls.start[call]),
        (np.flatnonzero(cause == Cause.DATA_LOADING), op_edges[:0]),
    ):
        cut, of = _cut(start[member], end[member], edges)
        parts.append((cut.start, cut.end, member[of]))
    begin, stop, of = (np.concatenate(column) for column in zip(*parts, strict=True))
    name = np.full(len(of), -1, np.int32)
    op = np.flatnonzero(in_op[of])
    place = innermost_at(nest, begin[op], track)
    known = op[place >= 0]
    name[known] = context.trace.events.name[nest.row[place[place >= 0]]]
    runtime = np.flatnonzero(~in_op[of] & (cause[of] != Cause.DATA_LOADING))
    name[runtime] = calls.name[call[np.searchsorted(calls.start[call], begin[runtime], "right") - 1]]
    return intervals.Intervals(begin, stop), of, name


def _cut(
    start: NDArray[np.int64], end: NDArray[np.int64], edges: NDArray[np.int64]
) -> tuple[intervals.Intervals, NDArray[np.int64]]:
    """Disjoint sorted pieces cut at the edges inside them, and the piece of each cut."""
    edges = distinct(edges)
    low, high = np.searchsorted(edges, start, "right"), np.searchsorted(edges, end, "left")
    count = high - low
    inside = np.repeat(low, count) + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    begin = np.concatenate((start, edges[inside]))
    of = np.concatenate((np.arange(len(start)), np.repeat(np.arange(len(start)), count)))
    order = np.argsort(begin, kind="stable")
    begin, of = begin[order], of[order]
    following = np.concatenate((begin[1:], end[-1:]))
    return intervals.Intervals(begin, np.minimum(following, end[of])), of


def critical_path_tables(context: Context) -> tuple[Table, Table]:
    """The path by kind of work, and by name; that it is refused, and why, is for every view."""
    path = context.once(critical_path)
    if isinstance(path, NotMeasured):
        return _CRITICAL_PATH.missing(path.reason), _WORK.missing(path.reason)
    return path_tables(path, context.steps, context.trace.strings)


def path_tables(path: PathSegments, steps: Steps, strings: Strings) -> tuple[Table, Table]:
    """Mean of the parts over the complete steps; names summed over the analysed steps, most time first.

    What has no name (latency, gaps, data loading, untraced time) is one row of its kind.
    """
    window, by_step = window_of(steps), path.by_step(len(steps))
    sums = [window.sum(by_step[:, kind]) for kind in PathKind]
    whole = sum(sums)
    parts = _CRITICAL_PATH.fill(
        part=[kind.term for kind in PathKind],
        mean_ns=[window.mean(amount) for amount in sums],
        share=[window.share(amount) for amount in sums],
        sum_ns=sums,
    )
    parts = replace(
        parts,
        totals={"part": "step", "mean_ns": window.mean(whole), "share": window.share(whole), "sum_ns": whole},
        detail=True,
        title_values=(("steps", Kind.COUNT, window.count),),
    )
    # Codes are dense, so counting by code is linear where grouping would sort.
    kinds, length = len(PathKind), path.end - path.start
    known, group = distinct_codes((path.name.astype(np.int64) + 1) * kinds + path.kind, (len(strings) + 1) * kinds)
    time, longest = np.zeros(len(known), np.int64), np.zeros(len(known), np.int64)
    np.add.at(time, group, length)
    np.maximum.at(longest, group, length)
    names = [strings.text(one // kinds - 1) if one >= kinds else None for one in known.tolist()]
    order = sorted(range(len(known)), key=lambda at: (-time[at], known[at] % kinds, names[at] or ""))
    work = _WORK.fill(
        part=[PathKind(one).term for one in (known % kinds).tolist()],
        name=names,
        time_ns=time,
        share=time / max(int(length.sum()), 1),
        count=np.bincount(group, minlength=len(known)),
        max_ns=longest,
    )
    return parts, work.take(order)


LINKED_SHARE = 0.95
"""Of the device time so much must be linked to launches."""


def critical_path(context: Context) -> PathSegments | NotMeasured:
    """The chain of work, on host and device, that the end of each step waited for, over all streams and devices.

    Returns:
        `NotMeasured` when the trace lacks the evidence: device events in the steps, runtime calls, launches of 95 % of
        the device time, clocks that agree (check Q04), and records of waits between streams (`cuda_sync`) where
        several streams have work.
    """
    streams, records = lanes(context), sync_records(context)
    reason = _missing(context, streams, recorded=len(records.kind) > 0)
    if reason is not None:
        return reason
    why = reasons(context, streams, records)
    awaited = awaited_events(context, streams, records)
    lines: dict[int, Timeline] = {}
    waiting: dict[int, Waits] = {}

    def waits_of(track: int) -> Waits:
        if track not in waiting:
            lines[track] = timeline(context, track)
            waiting[track] = waits(context, lines[track], awaited)
        return waiting[track]

    return segments(context, why, _walk(context, why, waits_of), lines)


def _missing(context: Context, streams: Lanes, *, recorded: bool) -> NotMeasured | None:
    """What the trace lacks, None when it has all that is needed."""
    device, steps, link = context.device, context.steps, context.link
    if len(context.calls) == 0:
        return NotMeasured("no_api")
    inside = (device.end > steps.start.min()) & (device.start < steps.end.max()) & (device.end > device.start)
    if not inside.any():
        return NotMeasured("no_device_events")
    time = device.end - device.start
    if time[inside & (link >= 0)].sum() < LINKED_SHARE * time[inside].sum():
        return NotMeasured("few_linked_launches")
    linked = link >= 0
    if not clocks_agree(linked & (device.start < context.launch_start), linked):
        return NotMeasured("clocks_disagree")
    if len(distinct(streams.key[inside[streams.event]])) > 1 and not recorded:
        return NotMeasured("no_stream_waits")
    return None


class _Columns(NamedTuple):
    """`Reasons` as lists, which are faster one value at a time."""

    event: list[int]
    ready: list[int]
    track: list[int]


def _walk(context: Context, why: Reasons, waits_of: Callable[[int], Waits]) -> Walk:
    """Every device event and stretch of host time on the path, each step from its end to its start.

    Events on the path are passed in the order of their starts and the host never goes forward, so the walk ends.
    """
    device, steps = context.device, context.steps
    columns = _Columns(*(column.tolist() for column in why))
    last_of = _last_events(context)
    walk = Walk([], [], [], [], [], [], [])
    for step, (begin, end) in enumerate(zip(steps.start.tolist(), steps.end.tolist(), strict=True)):
        at, track, event, bound = end, context.step_track, last_of[step], len(device)
        while at > begin:
            if event >= 0:
                walk.event.append(event)
                walk.until.append(at)
                walk.event_step.append(step)
                # Clocks may disagree by less than an event; the path never goes forward.
                at = min(at, columns.ready[event])
                track, bound, event = columns.track[event], event, columns.event[event]
                continue
            event, until = _back_on_host(waits_of(track), at, bound, begin)
            walk.host_start.append(until)
            walk.host_end.append(at)
            walk.host_track.append(track)
            walk.host_step.append(step)
            at = until
    return walk


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
