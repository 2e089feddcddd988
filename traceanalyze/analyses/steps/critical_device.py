"""What each device event waited for: an event before it on its stream or another one, or its launch."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.events import runs
from traceanalyze.analyses.idle.host_state import is_sync_call
from traceanalyze.model.columns import distinct, find

NEVER = int(np.iinfo(np.int64).min)
_MISSING = -(2**31)


class Lanes(NamedTuple):
    """Device events by stream, each stream in its order of execution; a stream is known by `lane_key`."""

    key: NDArray[np.int64]
    """Ascending."""
    event: NDArray[np.int64]
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
    return Lanes(key, order, launched, done)


def sync_records(context: Context) -> SyncRecords:
    """The records of waits; none when they were not recorded."""
    events, calls = context.trace.events, context.calls
    kinds = events.fields.get("sync_kind")
    row = np.empty(0, np.int64) if kinds is None else kinds.row.astype(np.int64)
    offered = events.numbers("correlation", calls.row if len(row) else row)

    def call(field: str) -> NDArray[np.int64]:
        wanted = events.numbers(field, row)
        return np.where(wanted > 0, find(wanted, offered), -1)

    device, stream, source = (events.numbers(field, row, _MISSING) for field in ("device", "stream", "wait_stream"))
    return SyncRecords(
        kind=np.empty(0, np.int32) if kinds is None else kinds.value.astype(np.int32),
        key=lane_key(device, stream),
        device=device,
        call=call("correlation"),
        source=lane_key(device, source),
        source_call=call("wait_record"),
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


def stream_waits(context: Context, streams: Lanes, records: SyncRecords) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
