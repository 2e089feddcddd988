"""The critical path of each step: from its end back to its start along what each piece of work waited for.

A device event leads to the event that it waited for, or to its launch (`critical_device.reasons`); the host leads back
through its own work to the last call that waited for the device, and from there to what that call waited for. Calls
that wait are thus never on the path themselves. Segments are cut to the step's window and tile it exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from traceanalyze.analyses.critical_device import Lanes, Reasons, lanes, reasons, sync_records
from traceanalyze.analyses.critical_host import awaited_events, timeline, waits
from traceanalyze.analyses.critical_segments import Walk, by_step, places, segments
from traceanalyze.analyses.launches import clocks_agree
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.analyses.results_path import CriticalPath
from traceanalyze.model.columns import distinct

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceanalyze.analyses.context import Context
    from traceanalyze.analyses.critical_host import Timeline, Waits

LINKED_SHARE = 0.95
"""Of the device time so much must be linked to launches."""


def critical_path(context: Context) -> CriticalPath | NotMeasured:
    """The critical path of the analysed steps, over all streams and devices of the rank.

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

    path = segments(context, why, _walk(context, why, waits_of), lines)
    return CriticalPath(by_step(path, len(context.steps)), path, places(context, path))


def _missing(context: Context, streams: Lanes, *, recorded: bool) -> NotMeasured | None:
    """What the trace lacks, None when it has all that is needed."""
    device, steps, link = context.device, context.steps, context.link
    if len(context.calls) == 0:
        return NotMeasured("no_api")
    seen = (device.end > steps.start.min()) & (device.start < steps.end.max()) & (device.end > device.start)
    if not seen.any():
        return NotMeasured("no_device_events")
    time = device.end - device.start
    if time[seen & (link >= 0)].sum() < LINKED_SHARE * time[seen].sum():
        return NotMeasured("few_linked_launches")
    linked = link >= 0
    if not clocks_agree(linked & (device.start < context.launch_start), linked):
        return NotMeasured("clocks_disagree")
    if len(distinct(streams.key[seen[streams.event]])) > 1 and not recorded:
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
