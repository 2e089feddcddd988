"""Where in the program an allocator's moments lie: the snapshot's events looked up in a trace of the same run."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.nesting import innermost_at
from traceanalyze.analyses.idle.idle import idle_pieces
from traceanalyze.analyses.kernels.work import texts_or_none
from traceanalyze.analyses.memory import MOMENT, STEP
from traceanalyze.analyses.memory.allocator import AllocatorAnalysis
from traceanalyze.analyses.memory.device_calls import DeviceCalls
from traceanalyze.analyses.memory.recorded import Places
from traceanalyze.analyses.memory.steps import step_label
from traceanalyze.analyses.steps.window import median
from traceanalyze.errors import some
from traceanalyze.model import intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, Value, declare, sentences
from traceanalyze.model.vocabulary import Cause, Mode

_SAY = sentences(
    placed_by_marks="The clocks of the two files differ; the marks of the steps align them.",
    placed_moment_outside="Moments without a place lie outside the trace.",
    placed_calls_outside="{count} of {all} calls of the device's allocator lie outside of what the trace recorded.",
)

MICROSECOND = 1000
"""ns; snapshots cut their times down to whole µs."""
AGREE = 1_000_000
"""ns within which the steps' marks must tell the same difference of the clocks; own."""
_ALLOCATES = regex(r"aten::(?:new_)?(?:empty|zeros|ones|full)(?:_like|_strided|_permuted)?|aten::resize_")
"""Operators that only allocate and fill: whoever called them is who needs the memory."""
_Cells = dict[str, Value]
PLACES = declare(
    "memory_in_trace",
    "Where in the program, by the trace of the same run",
    replace(MOMENT, meaning="a decisive moment, or why the allocator called the device"),
    replace(STEP, meaning="steps of the trace; empty: between steps, or outside of what was recorded"),
    Column("phase", Kind.TERM, "part of the training step"),
    Column("op", Kind.NAME, "operator at work that is more than an allocation", heading="operator"),
    Column("module", Kind.NAME, "place in the model"),
    Column("count", Kind.COUNT, "calls of this kind at this place; 1 for a moment"),
    Column("idle_ns", Kind.DURATION, "idle time of the device that these calls caused"),
    Column(
        "request_bytes",
        Kind.MEMORY,
        "bytes the program asked for at that moment; of several calls the most",
        heading="asked for",
    ),
    Column("grown_bytes", Kind.MEMORY, "bytes taken from the device by these calls", heading="taken"),
    Column("released_bytes", Kind.MEMORY, "bytes given back to the device by these calls", minor=True),
    Column("requested_bytes", Kind.MEMORY, "bytes in use just after the moment", minor=True),
    ranked=True,
)


Spot = tuple[str | None, str | None, str | None]
"""Phase, operator and module: a place in the program."""


class InTrace(NamedTuple):
    """Moments and calls of one device's allocator, placed in the trace of its rank."""

    clock: str
    """absolute (the times of both files) or marks (the steps that both have marked)"""
    shift: int
    """ns added to the snapshot's times to get those of the trace."""
    places: Table
    """The moments, without the dump and what was before the history; then calls inside the trace, most idle first."""
    inside: tuple[bool, ...]
    """Whether each of these moments lies inside of what the trace recorded."""
    outside: int
    """Calls before or after that; together with the counts of the others they are `all_calls`."""
    all_calls: int


def in_trace(context: Context, allocator: AllocatorAnalysis) -> InTrace | NotMeasured:
    """Step, phase, operator and module of the peaks, of failed requests, and of all calls to the device's allocator.

    By the absolute times of both files; where these do not overlap, or contradict the steps that both have marked, by
    these.

    Args:
        context: A trace of the rank that the snapshot is of.
        allocator: What the snapshot tells about the device.
    """
    if allocator.events <= 1:
        return NotMeasured("no_memory_history")
    if allocator.time is None:
        return NotMeasured("snapshot_without_times")
    spans = _host_span(context)
    if spans is None:
        return NotMeasured("no_host_events")
    found = _clock(context, allocator, spans)
    if isinstance(found, NotMeasured):
        return found
    clock, shift = found
    # In the middle of the microsecond that the file tells.
    time = allocator.time + shift + MICROSECOND // 2
    calls, names, places = allocator.calls, context.all_steps.name, Places(context)
    moments = [one for one in allocator.moments.records() if one.moment != "moment_dump" and one.event is not None]
    events = np.array([one.event for one in moments], np.int64)
    spots = _spots(context, places, time[events], spans)
    inside = tuple(spot is not None for spot in spots)
    rows = [
        _cells(
            one.moment,
            names[at : at + 1] if at >= 0 else (),
            spot,
            request_bytes=_request(allocator, one.event),
            requested_bytes=one.requested_bytes,
        )
        for one, spot, at in zip(moments, spots, _steps(context, time[events]).tolist(), strict=True)
    ]
    called = _spots(context, places, time[calls.last], spans)
    steps, idle = _steps(context, time[calls.last]), _idle(context, allocator, time)
    table = PLACES.fill_records(rows + _grouped(calls, called, steps, names, idle))
    outside = called.count(None)
    notes = _notes(clock, outside, len(calls), inside)
    return InTrace(clock, shift, replace(table, notes=tuple(notes)), inside, outside, len(calls))


def _cells(moment: str, steps: Sequence[str], spot: Spot | None, count: int = 1, **known: int | None) -> _Cells:
    """A moment, or calls of one kind at one place."""
    phase, op, module = spot or (None, None, None)
    place = {"moment": moment, "step": _labels(steps), "phase": phase, "op": op, "module": module, "count": count}
    return dict.fromkeys(PLACES.keys) | place | known


def _labels(names: Sequence[str]) -> str | None:
    """Labels of the steps; numbers that follow each other as a range."""
    labels = [step_label(name) or "" for name in names]
    if not all(label.isdecimal() for label in labels):
        return some(labels)
    parts: list[list[int]] = []
    for number in map(int, labels):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts) or None


def _notes(clock: str, outside: int, calls: int, inside: Sequence[bool]) -> Iterator[Message]:
    if clock == "marks":
        yield Message(_SAY["placed_by_marks"])
    if not all(inside):
        yield Message(_SAY["placed_moment_outside"])
    if outside:
        yield Message(_SAY["placed_calls_outside"], (("count", Kind.COUNT, outside), ("all", Kind.COUNT, calls)))


def _host_span(context: Context) -> tuple[int, int] | None:
    """Begin and end of what was recorded of the host."""
    rows = np.concatenate((context.host_rows, context.calls.row))
    if len(rows) == 0:
        return None
    start = context.trace.events.ts[rows]
    return int(start.min()), int((start + context.trace.events.dur[rows]).max())


def _clock(context: Context, allocator: AllocatorAnalysis, spans: tuple[int, int]) -> tuple[str, int] | NotMeasured:
    """What the events are placed by, and what to add to the snapshot's times to get those of the trace."""
    assert allocator.time is not None
    shift, by_marks = -context.trace.base_ns, _shift_of_marks(context, allocator)
    meet = int(allocator.time[0]) + shift <= spans[1] and int(allocator.time[-1]) + shift >= spans[0]
    if meet and (by_marks is None or abs(by_marks - shift) <= AGREE):
        return "absolute", shift
    return ("marks", by_marks) if by_marks is not None else NotMeasured("clocks_do_not_meet")


def _shift_of_marks(context: Context, allocator: AllocatorAnalysis) -> int | None:
    """Difference of the clocks by the begins of the steps that both have marked; None where they do not agree."""
    marked, markers = dict(allocator.marks), context.markers
    pairs = [] if markers is None else zip(markers.name, markers.start.tolist(), strict=True)
    differences = np.array([start - marked[name] for name, start in pairs if name in marked], np.int64)
    agree = len(differences) >= 2 and int(differences.max() - differences.min()) <= AGREE
    return median(differences) if agree else None


def _request(allocator: AllocatorAnalysis, event: int) -> int | None:
    """Bytes asked for at an event."""
    failed = next((one.request for one in allocator.ooms if one.event == event), None)
    if failed is not None:
        return failed
    at = int(np.searchsorted(allocator.calls.first, event, "right")) - 1
    if at >= 0 and event <= allocator.calls.last[at]:
        return int(allocator.calls.request[at]) or None
    change = allocator.active.at(event) - allocator.active.at(event - 1)
    return change if change > 0 else None


def _idle(context: Context, allocator: AllocatorAnalysis, time: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Idle time of the headline device in each call that the idle analysis lays to calls of the allocator.

    A call lasts from the event before it to its last event; None where no device work was recorded.
    """
    if context.mode in {Mode.HOST_ONLY, Mode.EMPTY}:
        return None
    calls, pieces = allocator.calls, context.once(idle_pieces)
    end = time[calls.last] + MICROSECOND
    start = time[np.maximum(calls.first - 1, 0)]
    start[1:] = np.maximum(start[1:], end[:-1])
    blamed = pieces.cause == Cause.DISPATCH_ALLOC
    idle = intervals.merge(pieces.start[blamed], pieces.end[blamed])
    return intervals.coverage(idle, start, np.maximum(end, start))


def _grouped(
    calls: DeviceCalls,
    spots: list[Spot | None],
    steps: NDArray[np.int64],
    names: Sequence[str],
    idle: NDArray[np.int64] | None,
) -> list[_Cells]:
    """Calls of one kind at one place are one row: most idle time first, then most bytes."""
    inside = np.flatnonzero([spot is not None for spot in spots])
    keys: dict[tuple[str, Spot | None], int] = {}
    of = np.array([keys.setdefault((calls.kind[at], spots[at]), len(keys)) for at in inside.tolist()], np.int64)
    rows, largest = group(of), np.zeros(len(keys), np.int64)
    np.maximum.at(largest, of, calls.request[inside])
    during: list[dict[int, str]] = [{} for _ in keys]
    for row, step in zip(of.tolist(), steps[inside].tolist(), strict=True):
        if step >= 0:
            during[row][step] = names[step]
    grown, released = rows.sum(calls.grown[inside]).tolist(), rows.sum(calls.released[inside]).tolist()
    costs = [None] * len(keys) if idle is None else rows.sum(idle[inside]).tolist()
    count = rows.count().tolist()
    found = [
        _cells(
            kind,
            tuple(during[row].values()),
            spot,
            count[row],
            idle_ns=costs[row],
            request_bytes=int(largest[row]) or None,
            grown_bytes=grown[row],
            released_bytes=released[row],
        )
        for (kind, spot), row in keys.items()
    ]
    order = sorted(keys.values(), key=lambda row: (-(costs[row] or 0), -grown[row] - released[row]))
    return [found[row] for row in order]


def _spots(context: Context, places: Places, t: NDArray[np.int64], spans: tuple[int, int]) -> list[Spot | None]:
    """Place in the program at each instant; None where it lies outside of what was recorded."""
    track, op = _operators(context, t)
    name = np.full(len(op), -1, np.int64)
    name[op >= 0] = context.trace.events.name[context.op_nest.row[op[op >= 0]]]
    return [
        (phase, text, module) if spans[0] <= instant <= spans[1] else None
        for instant, text, (phase, module) in zip(
            t.tolist(), texts_or_none(context, name), places.at(track, t), strict=True
        )
    ]


def _steps(context: Context, t: NDArray[np.int64]) -> NDArray[np.int64]:
    """Index of the step that the host is in at each instant; -1 between steps, and without steps."""
    if context.markers is None:
        return np.full(len(t), -1)
    steps = context.all_steps
    step = np.searchsorted(steps.host_start, t, "right") - 1
    step[(step >= 0) & (t > steps.host_end[step])] = -1
    return step


def _operators(context: Context, t: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Thread and operator (place in `op_nest`, -1 for none) at work at each instant.

    A snapshot does not tell the thread. Of all threads of the process that are inside an operator it is the one whose
    operator began last: the thread that waits for the backward pass began waiting before.
    """
    nest, tracks = context.op_nest, context.trace.tracks
    lead = context.step_track
    track, best = np.full(len(t), lead, np.int32), np.full(len(t), -1, np.int64)
    latest = np.full(len(t), np.iinfo(np.int64).min)
    for each in np.flatnonzero(np.diff(nest.bounds)).tolist():
        if lead >= 0 and tracks[each, 0] != tracks[lead, 0]:
            continue
        place = innermost_at(nest, t, each)
        began = np.where(place >= 0, nest.start[place], np.iinfo(np.int64).min)
        later = (place >= 0) & (began > latest)
        track[later], best[later], latest[later] = each, place[later], began[later]
    return track, _callers(context, best)


def _callers(context: Context, place: NDArray[np.int64]) -> NDArray[np.int64]:
    """Operators that need the memory: those that only allocate give way to their callers."""
    nest, names = context.op_nest, context.trace.events.name
    only = context.trace.strings.lookup(names[nest.row], lambda text: _ALLOCATES.fullmatch(text) is not None)
    known = place >= 0
    place[known] = nest.beyond(only > 0)[place[known]]
    return place
