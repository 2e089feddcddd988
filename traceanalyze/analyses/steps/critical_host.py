"""The host side of the critical path: which thread it is on at each instant, and which calls waited for the device."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.idle.host_state import host_states, is_sync_call
from traceanalyze.analyses.steps.critical_device import Lanes, SyncRecords, last_launched
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct
from traceanalyze.model.vocabulary import Cause, SyncKind


class Timeline(NamedTuple):
    """What the host is doing, as seen from one thread; disjoint pieces in order of time."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    cause: NDArray[np.uint8]
    """`Cause`"""
    track: NDArray[np.int64]
    """Thread that does it."""


class Waits(NamedTuple):
    """Calls of a timeline that waited for the device, in order of their ends."""

    returned: NDArray[np.int64]
    event: NDArray[np.int64]
    """Device event waited for."""
    done: NDArray[np.int64]
    """When that had ended."""


def timeline(context: Context, track: int) -> Timeline:
    """What the host does at each instant, as seen from one thread.

    The thread itself if it does anything, else the step thread, else another launching thread: the order of
    definitions §5.
    """
    taken = intervals.EMPTY
    parts: list[Timeline] = []
    for one in dict.fromkeys(each for each in (track, context.step_track, *context.threads) if each >= 0):
        states = context.once(host_states, one, one in {track, context.step_track})
        if len(states.start) == 0:
            continue
        free = intervals.gaps(taken, int(states.start[0]), int(states.end.max()))
        new = intervals.overlaps(states.spans, free)
        parts.append(Timeline(new.start, new.end, states.cause[new.first], np.full(len(new.start), one, np.int64)))
        taken = intervals.union(taken, intervals.merge(*states.spans))
    if not parts:
        return Timeline(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8), np.empty(0, np.int64))
    start, end, cause, tracks = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(start, kind="stable")
    return Timeline(start[order], end[order], cause[order], tracks[order])


def waits(context: Context, line: Timeline, awaited: NDArray[np.int64]) -> Waits:
    """Calls that a timeline shows, and that returned because the device was done; `awaited` as the function gives."""
    calls, device = context.calls, context.device
    call = np.flatnonzero(awaited >= 0)
    if len(line.start) == 0 or len(call) == 0:
        return Waits(*(np.empty(0, np.int64),) * 3)
    at = np.maximum(np.searchsorted(line.start, calls.end[call]) - 1, 0)
    shown = (
        (line.start[at] < calls.end[call])
        & (calls.end[call] <= line.end[at])
        & (line.track[at] == calls.track[call])
        & (line.cause[at] == Cause.SYNC)
    )
    call = call[shown]
    call = call[np.argsort(calls.end[call], kind="stable")]
    event = awaited[call]
    return Waits(calls.end[call], event, np.minimum(device.end[event], calls.end[call]))


def awaited_events(context: Context, streams: Lanes, records: SyncRecords) -> NDArray[np.int64]:
    """Device event whose end each runtime call waited for; -1 for calls that found the device done or do not wait.

    A copy waits for itself. Other calls wait for what had been launched when they began, on the stream or up to the
    event that the trace names, else on all streams: of this the event that ended last before they returned.
    """
    calls, device, link = context.calls, context.device, context.link
    own = np.full(len(calls), -1, np.int64)
    linked = np.flatnonzero(link >= 0)
    np.maximum.at(own, link[linked], linked)
    sync = np.flatnonzero(context.once(is_sync_call))
    copies = (calls.sync[sync] != SyncKind.EXPLICIT) & (own[sync] >= 0)
    best = np.where(copies, own[sync], -1)
    others = np.flatnonzero(~copies)
    for place, event in launched_before(context, streams, records, sync[others]):
        waiting = others[place]
        later = (best[waiting] < 0) | (device.end[event] > device.end[best[waiting]])
        best[waiting[later]] = event[later]
    waited = (best >= 0) & (device.end[best] > calls.start[sync]) if len(device) else best >= 0
    found = np.full(len(calls), -1, np.int64)
    found[sync[waited]] = best[waited]
    return found


def launched_before(
    context: Context, streams: Lanes, records: SyncRecords, sync: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Stream by stream what calls wait for: places in `sync`, and the last event of each that had ended by its return.

    `sync`: positions in `ApiCalls` of calls that wait for what was launched before.
    """
    before, waits_for = _scope(context, records, sync)
    for key in distinct(streams.key).tolist():
        low, high = streams.bounds(key)
        waiting = np.flatnonzero(waits_for(key))
        row = last_launched(streams, np.full(len(waiting), key), before[waiting])
        # Streams run in order, so what had ended is a prefix of the stream.
        ended = low + np.searchsorted(streams.done[low:high], context.calls.end[sync[waiting]], "right") - 1
        row = np.minimum(row, ended)
        valid = row >= low
        yield waiting[valid], streams.event[row[valid]]


def _scope(
    context: Context, records: SyncRecords, sync: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Callable[[int], NDArray[np.bool_]]]:
    """What sync calls wait for: only what was launched before an instant each, and which of them wait for a stream.

    By the profiler's records of these calls, where there are any; else for all streams.
    """
    before = context.calls.start[sync].copy()
    if len(records.kind) == 0:
        return before, lambda _: np.ones(len(sync), np.bool_)
    of_call = np.full(len(context.calls), -1, np.int64)
    known = np.flatnonzero(records.call >= 0)
    of_call[records.call[known]] = known
    record = of_call[sync]
    words = ("", "Stream Sync", "Event Sync", "Context Sync")
    word = context.trace.strings.lookup(records.kind, lambda text: words.index(text) if text in words else 0)
    kind = np.where(record >= 0, word[record], 0)
    source_call = records.source_call[record]
    of_event = (kind == words.index("Event Sync")) & (source_call >= 0)
    before[of_event] = context.calls.start[source_call[of_event]]
    stream = np.where(of_event, records.source[record], records.key[record])
    one, whole = of_event | (kind == words.index("Stream Sync")), kind == words.index("Context Sync")

    def waits_for(key: int) -> NDArray[np.bool_]:
        wanted: NDArray[np.bool_] = np.where(one, stream == key, ~whole | (records.device[record] == key >> 32))
        return wanted

    return before, waits_for
