"""Where the user's own Python spends the host's time, when Python functions were recorded."""

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.frames import user_frames
from traceanalyze.analyses.host.nesting import RANK, Nest, innermost_at
from traceanalyze.analyses.host.operators import added
from traceanalyze.analyses.idle import idle
from traceanalyze.analyses.idle.idle import analysed_time, idle_pieces
from traceanalyze.model import calltree, intervals
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, declare
from traceanalyze.model.vocabulary import Cause, EventKind

_LINES = declare(
    "source_lines",
    "Python functions by host time (sum over the analysed steps)",
    Column("line", Kind.NAME, "the user's function, by the line it begins at", heading="function"),
    Column("calls", Kind.COUNT, "calls that begin in the analysed steps"),
    Column("host_self_ns", Kind.DURATION, "host time in no other function, operator or runtime call", heading="host"),
    Column(
        "with_library_ns", Kind.DURATION, "host time in no other function of the user: with the library code it calls"
    ),
    Column("host_total_ns", Kind.DURATION, "host time with all that is inside", heading="host with inner"),
    Column(
        "device_idle_ns",
        Kind.DURATION,
        "device idle, for reasons on the host, while this was the user's innermost function",
    ),
    ranked=True,
    detail=True,
)

_DEVICE_SIDE = (Cause.DEVICE_GAP, Cause.DEVICE_DEPENDENCY, Cause.DISPATCH_LATENCY)
_HOST = (EventKind.ANNOTATION, EventKind.PYTHON, EventKind.HOST_OP, EventKind.API)
_RANK = np.where(np.isin(np.arange(len(EventKind)), _HOST), RANK, np.uint8(calltree.NO_RANK))


def source_lines(context: Context) -> Table:
    """The user's functions by the line they begin at, most time of their own first."""
    nested = context.once(user_frames).nest
    if not context.once(user_frames).recorded:
        return _LINES.missing("no_python")
    events = context.trace.events
    lines = group(events.name[nested.row])
    counted = nested.begun_in(context.host_windows)
    outside = np.flatnonzero(counted & calltree.outermost(nested.stop, lines.of.astype(np.int32), len(lines)))
    begun, of, size = np.flatnonzero(counted), lines.of, len(lines)
    calls = np.bincount(of[begun], minlength=size)
    return (
        _LINES.fill(
            line=list(context.trace.strings.texts(events.name[nested.row[lines.first]])),
            calls=calls,
            host_self_ns=added(of[begun], _self_time(context, nested.row)[begun], size),
            with_library_ns=added(of[begun], nested.own[begun], size),
            host_total_ns=added(of[outside], events.dur[nested.row[outside]], size),
            device_idle_ns=_idle(context, nested, lines.of, size),
        )
        .take(calls > 0)
        .sort("-host_self_ns", "-with_library_ns", "line")
    )


def _self_time(context: Context, row: NDArray[np.int64]) -> NDArray[np.int64]:
    """Time of some event rows in no other host event."""
    events, rank = context.trace.events, _RANK.take(context.kind)
    return calltree.own_times(calltree.Spans(events.ts, events.dur, events.track, rank, context.trace.resolution_ns))[
        row
    ]


def _idle(context: Context, nested: Nest, of: NDArray[np.int64], size: int) -> NDArray[np.int64] | NotMeasured:
    """Time the device was idle for reasons on the host while a line was the innermost of the step thread."""
    track = context.once(user_frames).track(context.step_track)
    here = nested.of(track)
    if len(context.device) == 0:
        return NotMeasured("no_device_events")
    if here.start == here.stop:
        return np.zeros(size, np.int64)
    pieces, _ = idle.clipped(context.once(idle_pieces), *context.once(analysed_time))
    hosts = ~np.isin(pieces.cause, _DEVICE_SIDE)
    waiting = intervals.merge(pieces.start[hosts], pieces.end[hosts])
    # Between two edges of frames the innermost one does not change.
    edges = np.sort(np.concatenate((nested.start[here], nested.end[here])))
    inner = innermost_at(nested, edges[:-1], track)
    known = inner >= 0
    return added(of[inner[known]], intervals.coverage(waiting, edges[:-1], edges[1:])[known], size)
