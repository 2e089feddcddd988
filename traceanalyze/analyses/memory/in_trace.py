"""Where in the program an allocator's moments lie: the snapshot's events looked up in a trace of the same run."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.nesting import innermost_at
from traceanalyze.analyses.idle.idle import idle_pieces
from traceanalyze.analyses.memory.calls import Places
from traceanalyze.analyses.memory.results_trace import InTrace, Placed, Spot
from traceanalyze.model import intervals
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Cause, Mode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context
    from traceanalyze.analyses.memory.results import AllocatorAnalysis

MICROSECOND = 1000
"""ns; snapshots cut their times down to whole µs."""
AGREE = 1_000_000
"""ns within which the steps' marks must tell the same difference of the clocks; own."""
_ALLOCATES = re.compile(r"aten::(?:new_)?(?:empty|zeros|ones|full)(?:_like|_strided|_permuted)?|aten::resize_")
"""Operators that only allocate and fill: whoever called them is who needs the memory."""


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
    calls, idle = allocator.calls, _idle(context, allocator, time)
    moments = [one for one in allocator.moments if one.kind != "dump" and one.event >= 0]
    events = np.array([one.event for one in moments], np.int64)
    requests = [_request(allocator, event) for event in events.tolist()]
    known, names = Places(context), context.all_steps.name
    spots = _spots(context, known, time[events], spans)
    places = _spots(context, known, time[calls.last], spans)
    return InTrace(
        clock=clock,
        shift=shift,
        moments=tuple(
            Placed(one.kind, spot, names[at : at + 1] if at >= 0 else (), 1, request, one.requested, 0, 0, None)
            for one, spot, at, request in zip(moments, spots, _steps(context, time[events]), requests, strict=True)
        ),
        calls=_grouped(allocator, places, [(at, names[at]) for at in _steps(context, time[calls.last])], idle),
        outside=sum(spot is None for spot in places),
        all_calls=len(calls),
    )


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
    return int(np.median(differences)) if agree else None


def _request(allocator: AllocatorAnalysis, event: int) -> int | None:
    """Bytes asked for at an event."""
    failed = next((one.request for one in allocator.ooms if one.event == event), None)
    if failed is not None:
        return failed
    at = int(np.searchsorted(allocator.calls.first, event, "right")) - 1
    if at >= 0 and event <= allocator.calls.last[at]:
        return int(allocator.calls.request[at]) or None
    before = allocator.base[0] if event == 0 else int(allocator.requested[event - 1])
    change = int(allocator.requested[event]) - before
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
    allocator: AllocatorAnalysis,
    spots: list[Spot | None],
    steps: list[tuple[int, str]],
    idle: NDArray[np.int64] | None,
) -> tuple[Placed, ...]:
    """Calls of one kind at one place are one row: most idle time first, then most bytes."""
    calls = allocator.calls
    if not any(spots):
        return ()
    keys: dict[tuple[str, Spot], int] = {}
    inside = np.array([spot is not None for spot in spots], np.bool_)
    of = np.array(
        [keys.setdefault((kind, spot), len(keys)) for kind, spot in zip(calls.kind, spots, strict=True) if spot],
        np.int64,
    )
    rows = group(of)

    def sums(values: NDArray[np.int64]) -> list[int]:
        return [int(value) for value in rows.sum(values[inside])]

    costs = [None] * len(keys) if idle is None else sums(idle)
    largest = np.zeros(len(keys), np.int64)
    np.maximum.at(largest, of, calls.request[inside])
    during: list[dict[int, str]] = [{} for _ in keys]
    for row, (at, name) in zip(of.tolist(), itertools.compress(steps, inside.tolist()), strict=True):
        if at >= 0:
            during[row][at] = name
    found = [
        Placed(kind, spot, tuple(names.values()), count, request or None, None, grown, released, cost)
        for (kind, spot), names, count, request, grown, released, cost in zip(
            keys,
            during,
            np.bincount(of, minlength=len(keys)).tolist(),
            largest.tolist(),
            sums(calls.grown),
            sums(calls.released),
            costs,
            strict=True,
        )
    ]
    return tuple(sorted(found, key=lambda one: (-(one.idle or 0), -one.grown - one.released)))


def _spots(context: Context, known: Places, t: NDArray[np.int64], spans: tuple[int, int]) -> list[Spot | None]:
    """Place in the program at each instant; None where it lies outside of what was recorded."""
    track, op = _operators(context, t)
    nest, events, text = context.op_nest, context.trace.events, context.trace.strings.text
    return [
        Spot(
            phase,
            text(int(events.name[nest.row[place]])) if place >= 0 else None,
            module,
        )
        if spans[0] <= instant <= spans[1]
        else None
        for instant, place, (phase, module) in zip(t.tolist(), op.tolist(), known.at(track, t), strict=True)
    ]


def _steps(context: Context, t: NDArray[np.int64]) -> list[int]:
    """Index of the step that the host is in at each instant; -1 between steps, and without steps."""
    if context.markers is None:
        return [-1] * len(t)
    steps = context.all_steps
    step = np.searchsorted(steps.host_start, t, "right") - 1
    step[(step >= 0) & (t > steps.host_end[step])] = -1
    return [int(at) for at in step]


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
    place = place.copy()
    while True:
        climbing = np.flatnonzero(place >= 0)
        climbing = climbing[(only[place[climbing]] > 0) & (nest.parent[place[climbing]] >= 0)]
        if len(climbing) == 0:
            return place
        place[climbing] = nest.parent[place[climbing]]
