"""Host and device time by call path: calls of modules, where recorded, and operators, by all that is around them.

The threads of the step thread's process are nested each by itself; equal paths of all threads are one.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.computes import for_recording
from traceanalyze.analyses.host.frames import user_frames
from traceanalyze.analyses.host.modules import module_calls, unidentified
from traceanalyze.analyses.host.nesting import DEEPER, RANK, Nest, Paths, innermost, innermost_at, nest_rows, paths
from traceanalyze.analyses.host.operators import OUTSIDE_OPS, UNLINKED, added, counted_events
from traceanalyze.analyses.idle import idle
from traceanalyze.analyses.idle.idle import analysed_time, idle_pieces
from traceanalyze.analyses.steps.phases import launch_places
from traceanalyze.model import calltree, intervals
from traceanalyze.model.columns import Rows, distinct, taken
from traceanalyze.model.phases import module_name
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, declare
from traceanalyze.model.vocabulary import Cause, EventKind

OTHER_PROCESSES = "<other processes>"
"""In place of a call path: device events that another process of the recording launched."""
_SEPARATOR = ";"

_PATHS = declare(
    "call_paths",
    "Call paths by {by} (sum over the analysed steps)",
    Column(
        "call_path", Kind.NAME, "operators, and modules where recorded, from the outermost inwards; a semicolon between"
    ),
    Column(
        "device_self_ns",
        Kind.DURATION,
        "device time of what was launched in it and in no listed call inside",
        heading="device",
    ),
    Column("device_share", Kind.SHARE, "part of the time of all device events", heading="share"),
    Column("host_self_ns", Kind.DURATION, "host time in none of the listed calls inside", heading="host"),
    Column("calls", Kind.COUNT, "calls that begin in the analysed steps"),
    Column("device_total_ns", Kind.DURATION, "with calls inside", heading="device with inner", minor=True),
    Column("host_total_ns", Kind.DURATION, "with calls inside", heading="host with inner", minor=True),
    Column("launched", Kind.COUNT, "device events launched in it and in no listed call inside", minor=True),
    ranked=True,
    detail=True,
)


def call_paths(context: Context) -> Table:
    """Call paths, most device time first, then host time; device time of no path has rows as well.

    The device times of their own thus add up to all device time.
    """
    measured = len(context.device) > 0
    nested = _nest(context) if context.step_track >= 0 else None
    if nested is None or len(nested) == 0:
        return for_recording(_PATHS.missing("no_host_ops"), device=measured)
    chains = paths(nested, context.trace.events.name[nested.row])
    size = len(chains.name)
    counted = nested.begun_in(context.host_windows)
    event, time = counted_events(context)
    place = _places(context, nested)[event]
    inside = place >= 0
    launcher = chains.of[place[inside]]
    calls = added(chains.of, counted, size)
    host, device = added(chains.of, nested.own * counted, size), added(launcher, time[inside], size)
    launched = np.bincount(launcher, minlength=size)
    host_total, device_total, alive = (chains.with_inner(each) for each in (host, device, calls + launched))
    kept = np.flatnonzero(alive)
    texts = _texts(context, chains)
    names, spent, count = _elsewhere(context, event[~inside], time[~inside])
    # What stands in for a path was never called.
    none = [None] * len(names)
    device = np.concatenate((device[kept], spent))
    table = _PATHS.fill(
        call_path=[*(texts[at] for at in kept.tolist()), *names],
        device_self_ns=device,
        device_share=device / max(int(device.sum()), 1),
        host_self_ns=[*host[kept].tolist(), *none],
        calls=[*calls[kept].tolist(), *none],
        device_total_ns=np.concatenate((device_total[kept], spent)),
        host_total_ns=[*host_total[kept].tolist(), *none],
        launched=np.concatenate((launched[kept], count)) if measured else NotMeasured("no_device_events"),
    )
    return for_recording(table.sort("-device_self_ns", "-host_self_ns", "call_path"), device=measured)


def _nest(context: Context) -> Nest:
    """Call trees of the modules and operators of the process."""
    trace, modules, track = context.trace, module_calls(context), context.trace.events.track
    if unidentified(trace, modules) is not None:
        # They can only belong to the step thread.
        track = track.copy()
        track[modules] = context.step_track
    rows = np.sort(np.concatenate((modules, np.flatnonzero(context.kind == EventKind.HOST_OP))))
    rows = rows[_in_process(context, track[rows])]
    return nest_rows(replace(trace, events=replace(trace.events, track=track)), rows, context.kind)


def _in_process(context: Context, track: NDArray[np.int32]) -> NDArray[np.bool_]:
    process = context.trace.tracks[:, 0]
    inside: NDArray[np.bool_] = process[track] == process[context.step_track]
    return inside


def _texts(context: Context, chains: Paths) -> list[str]:
    text = context.trace.strings.text
    short = {code: DEEPER if code < 0 else _short(text(code)) for code in distinct(chains.name).tolist()}
    found: list[str] = []
    for code, parent in zip(chains.name.tolist(), chains.parent.tolist(), strict=True):
        found.append(short[code] if parent < 0 else found[parent] + _SEPARATOR + short[code])
    return found


def _short(name: str) -> str:
    return (module_name(name) or name).replace(_SEPARATOR, ",")


def _places(context: Context, nested: Nest) -> NDArray[np.int64]:
    """Place in the nest of what launched each device event, -1 for none.

    That is its operator (definitions §8), or what else is around the launch if no operator is, or inside it.
    """
    if len(context.device) == 0:
        return np.empty(0, np.int64)
    of_row = np.full(len(context.trace.events), -1, np.int64)
    of_row[nested.row] = np.arange(len(nested))
    row = context.op_nest.rows(context.event_op)
    place = np.where(row >= 0, of_row[row], -1)
    track, t = launch_places(context)
    around = innermost(nested, np.where(context.link >= 0, track, -1), t)
    deeper = (around > place) & ((place < 0) | (around < nested.stop[place]))
    return np.where(deeper, around, place)


def _elsewhere(
    context: Context, event: NDArray[np.int64], time: NDArray[np.int64]
) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Device time that no path launched, and number of events, by what is known of it."""
    if len(event) == 0:
        return [], event, time
    link = context.link[event]
    linked, named = link >= 0, context.event_op[event] >= 0
    own = np.zeros(len(event), np.bool_)
    own[linked] = _in_process(context, context.calls.track[context.issued_by[event[linked]]])
    parts = ((OUTSIDE_OPS, own), (OTHER_PROCESSES, ~own & (linked | named)), (UNLINKED, ~linked & ~named))
    some = [(name, member) for name, member in parts if member.any()]
    return (
        [name for name, _ in some],
        np.array([time[member].sum() for _, member in some], np.int64),
        np.array([member.sum() for _, member in some], np.int64),
    )


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


def _self_time(context: Context, row: Rows) -> NDArray[np.int64]:
    """Time of some event rows in no other host event."""
    events, rank = context.trace.events, taken(_RANK, context.kind)
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
    if len(waiting.start) == 0:
        return np.zeros(size, np.int64)
    # Between two edges of frames the innermost one does not change; those outside of what is looked at cut nothing.
    edges = [edge[intervals.contains(waiting, edge)] for edge in (nested.start[here], nested.end[here])]
    begin = np.sort(np.concatenate((waiting.start, *edges)))
    inner = innermost_at(nested, begin, track)
    known = inner >= 0
    lasts = intervals.coverage(waiting, begin, np.append(begin[1:], waiting.end[-1]))
    return added(of[inner[known]], lasts[known], size)
