"""What device events and calls of the host waited for, and which thread the host is on at each instant."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.events import runs
from traceanalyze.analyses.idle.host_state import host_states, is_sync_call
from traceanalyze.model import intervals
from traceanalyze.model.columns import Rows, distinct, find, short
from traceanalyze.model.vocabulary import Cause, SyncKind

NEVER = int(np.iinfo(np.int64).min)
_MISSING = -(2**31)


class Lanes(NamedTuple):
    """Device events by stream, each stream in its order of execution; a stream is known by `lane_key`."""

    key: NDArray[np.int64]
    """Ascending."""
    event: NDArray[np.int32]
    """Position in `DeviceEvents`."""
    launched: NDArray[np.int64]
    """Start of the launch, or of the latest one before it on the stream: streams run in the order of launches."""
    done: NDArray[np.int64]
    """When this event and all before it on the stream had ended."""

    def bounds(self, key: int) -> tuple[int, int]:
        """The rows of one stream."""
        low, high = np.searchsorted(self.key, (key, key + 1))
        return int(low), int(high)


class SyncRecords(NamedTuple):
    """The profiler's records of waits (`cuda_sync`): who waits, and for what."""

    kind: NDArray[np.int32]
    """String code: "Stream Wait Event", "Stream Sync", "Event Sync", "Context Sync"."""
    key: NDArray[np.int64]
    """Stream that is made to wait, or that the host waits for."""
    device: NDArray[np.int64]
    call: NDArray[np.int64]
    """Position in `ApiCalls` of the call that waits, -1 where the trace has none."""
    source: NDArray[np.int64]
    """Stream on which the awaited event was recorded."""
    source_call: NDArray[np.int64]
    """Position in `ApiCalls` of the call that recorded it, -1 where the trace has none."""


class Reasons(NamedTuple):
    """Why each device event began when it did; arrays over `DeviceEvents`."""

    event: NDArray[np.int64]
    """The event it waited for, -1 when it began because it was launched."""
    ready: NDArray[np.int64]
    """When that event had ended, or when the launch call had returned; never later than the start."""
    track: NDArray[np.int64]
    """Host thread that launched it; the step thread when that is unknown."""


def lane_key(device: NDArray[np.int64], stream: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number for a stream of a device."""
    return (device << 32) | (stream & 0xFFFFFFFF)


def lanes(context: Context) -> Lanes:
    """The streams of a trace."""
    device = context.device
    key = lane_key(device.device, device.stream)
    order = np.argsort(key, kind="stable")
    key = key[order]
    launched = np.where(context.link >= 0, context.launch_start, NEVER)[order]
    done = device.end[order]
    for low, high in runs(key):
        launched[low:high] = np.maximum.accumulate(launched[low:high])
        done[low:high] = np.maximum.accumulate(done[low:high])
    return Lanes(key, short(order), launched, done)


def sync_records(context: Context) -> SyncRecords:
    """The records of waits; none when they were not recorded."""
    events, calls = context.trace.events, context.calls
    kinds = events.fields.get("sync_kind")
    row = np.empty(0, np.int64) if kinds is None else kinds.row.astype(np.int64)
    offered = events.numbers("correlation", calls.row if len(row) else row)

    wanted = np.concatenate([events.numbers(field, row) for field in ("correlation", "wait_record")])
    call, source_call = np.where(wanted > 0, find(wanted, offered), -1).reshape(2, -1)
    device, stream, source = (events.numbers(field, row, _MISSING) for field in ("device", "stream", "wait_stream"))
    return SyncRecords(
        kind=np.empty(0, np.int32) if kinds is None else kinds.value.astype(np.int32),
        key=lane_key(device, stream),
        device=device,
        call=call,
        source=lane_key(device, source),
        source_call=source_call,
    )


def reasons(context: Context, streams: Lanes, records: SyncRecords) -> Reasons:
    """Why each device event began when it did.

    It waited for an event when its launch call had returned before that event ended: the event before it on its
    stream or, where stream waits were recorded, one of another stream, whichever ended last. Else it began because it
    was launched: the rule by which idle time is explained (definitions §5). A call that blocks until its own copy is
    done counts from its start.
    """
    device, link = context.device, context.link
    event = _waited_for(context, streams, records)
    ready = np.where(event >= 0, np.minimum(device.end[event], device.start), NEVER)
    launched = (link >= 0) & (context.launch_start <= device.start)
    blocking = (link >= 0) & (context.once(is_sync_call)[link] if len(context.calls) else False)
    submitted = np.where(blocking, context.launch_start, context.launch_end)
    # All kernels of a graph are launched by one call, which may last longer than the first of them.
    together = (event >= 0) & (link >= 0) & (link[event] == link)
    by_launch = (event < 0) | (launched & ~together & (submitted > ready))
    returned = np.where(launched, np.minimum(context.launch_end, device.start), device.start)
    track = np.full(len(device), context.step_track, np.int64)
    track[launched] = context.calls.track[link[launched]]
    return Reasons(np.where(by_launch, -1, event), np.where(by_launch, returned, ready), track)


def _waited_for(context: Context, streams: Lanes, records: SyncRecords) -> NDArray[np.int64]:
    """The event before each one on its stream, or a recorded wait for another stream that ended later; -1 for none."""
    device = context.device
    waited = np.full(len(device), -1, np.int64)
    same = streams.key[1:] == streams.key[:-1]
    waited[streams.event[1:][same]] = streams.event[:-1][same]
    event, source = stream_waits(context, streams, records)
    before, done = waited[event], device.end[source]
    # An event that had not ended by then was not waited for, whatever the record says.
    possible = (source < event) & (done <= device.start[event])
    later = (before < 0) | (done > np.minimum(device.end[before], device.start[event]))
    order = np.argsort(done, kind="stable")
    order = order[(possible & later)[order]]
    # Of several waits of one event the last in this order counts.
    waited[event[order]] = source[order]
    return waited


def stream_waits(context: Context, streams: Lanes, records: SyncRecords) -> tuple[Rows, Rows]:
    """Events that a recorded stream wait holds, and the event each waits for.

    A wait holds what is launched on its stream after the call, until all is done that had been launched on the other
    stream before its event was recorded there.
    """
    is_wait = context.trace.strings.matches(records.kind, lambda text: text == "Stream Wait Event")
    wait = np.flatnonzero(is_wait & (records.call >= 0) & (records.source_call >= 0) & (records.key != records.source))
    start = context.calls.start
    waiting = _first_launched(streams, records.key[wait], start[records.call[wait]])
    source = last_launched(streams, records.source[wait], start[records.source_call[wait]])
    known = (waiting >= 0) & (source >= 0)
    return streams.event[waiting[known]], streams.event[source[known]]


def _first_launched(streams: Lanes, key: NDArray[np.int64], t: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row of the first event launched on each stream at or after each instant, -1 for none."""
    row = _launched_before(streams, key, t)
    return np.where(row < np.searchsorted(streams.key, key, "right"), row, -1)


def last_launched(streams: Lanes, key: NDArray[np.int64], t: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row of the last event launched on each stream before each instant, -1 for none."""
    row = _launched_before(streams, key, t) - 1
    return np.where(row >= np.searchsorted(streams.key, key), row, -1)


def _launched_before(streams: Lanes, key: NDArray[np.int64], t: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row after the last event launched on each stream before each instant."""
    row = np.empty(len(key), np.int64)
    for one in distinct(key).tolist():
        low, high = streams.bounds(one)
        here = np.flatnonzero(key == one)
        row[here] = low + np.searchsorted(streams.launched[low:high], t[here])
    return row


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
) -> Iterator[tuple[Rows, Rows]]:
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
