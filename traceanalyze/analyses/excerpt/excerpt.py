"""What a trace shows between two times, few enough to be drawn: host, device, and why the device is idle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.excerpt.boxes import Lane, LaneKind, Spans, boxes
from traceanalyze.analyses.excerpt.host import host_lanes
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.idle.idle import idle_pieces
from traceanalyze.model.vocabulary import Cause, DeviceClass

MAX_LANES = 12
_CLASSES = {DeviceClass.COMPUTE: "compute", DeviceClass.COMM: "communication", DeviceClass.MEM: "memory_ops"}


class Launch(NamedTuple):
    """A runtime call and the device event that it launched, both drawn. Times ns since the start of the excerpt."""

    at: int
    """When the call began."""
    start: int
    """When the device event began."""
    thread: int
    """Lane of the call."""
    stream: int
    """Lane of the event."""


class Excerpt(NamedTuple):
    """The lanes of a window, host above device."""

    start: int
    """ns, in the time of the trace."""
    length: int
    lanes: tuple[Lane, ...]
    launch: Launch | None = None
    """How what ends the time of interest was launched."""
    hidden_threads: int = 0
    """Threads with events in the window that are not drawn."""
    hidden_streams: int = 0
    """Streams of this and other devices with work in the window that are not drawn."""

    @property
    def hidden_events(self) -> int:
        """Events of drawn threads that lie too deep to be drawn."""
        return sum(lane.hidden for lane in self.lanes)

    @property
    def merged_events(self) -> int:
        """Events too short to be seen alone, drawn as boxes of several."""
        return sum(box.count for lane in self.lanes for box in lane.boxes if box.count > 1)


def excerpt(context: Context, start: int, end: int, until: int | None = None) -> Excerpt:
    """What the trace shows in `[start, end)` ns: at most 12 lanes of at most 60 boxes each.

    Lanes: step markers; operators of the step thread by depth and its runtime calls; the same of the other launching
    thread that does most here; streams of the headline device, busiest first where there are too many; and the idle
    time of this device by cause (definitions §5).

    Args:
        context: The trace.
        start: Where the window begins.
        end: Where it ends.
        until: End of the time of interest: how the next device event was launched is told.
    """
    window = (start, end)
    host, threads = host_lanes(context, window)
    idle = [lane for lane in (_idle_lane(context, window),) if lane.boxes]
    streams, hidden = _stream_lanes(context, window, MAX_LANES - len(host) - len(idle))
    lanes = (*host, *streams, *idle)
    return Excerpt(start, end - start, lanes, _launch(context, lanes, window, until), threads, hidden)


def _stream_lanes(context: Context, window: tuple[int, int], room: int) -> tuple[list[Lane], int]:
    """The busiest streams by number, and how many are left out."""
    every = _device_events(context, window)
    own, device = _of_headline(context, every), context.device
    stream = device.stream[own]
    numbers, place = np.unique(stream, return_inverse=True)
    length = np.minimum(device.end[own], window[1]) - np.maximum(device.start[own], window[0])
    busy = np.bincount(place.reshape(-1), weights=length, minlength=len(numbers))
    shown = np.sort(np.argsort(-busy, kind="stable")[:room])
    kinds = tuple(_CLASSES[klass] for klass in DeviceClass)
    lanes = []
    for number in numbers[shown].tolist():
        rows = own[stream == number]
        spans = Spans(device.start[rows], device.end[rows], device.name[rows], device.klass[rows])
        lanes.append(Lane(LaneKind.STREAM, str(number), boxes(spans, window, kinds, context.trace.strings.text)))
    known = len(group(device.device[every], device.stream[every]))
    return lanes, known - len(lanes)


def _device_events(context: Context, window: tuple[int, int]) -> NDArray[np.int64]:
    """Events of all devices that touch the window."""
    device = context.device
    early = slice(0, int(np.searchsorted(device.start, window[1], "left")))
    return np.flatnonzero(device.end[early] > window[0])


def _of_headline(context: Context, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those of the headline device, whose idle time is shown."""
    return rows[context.device.device[rows] == context.devices[0]] if len(rows) else rows


def _idle_lane(context: Context, window: tuple[int, int]) -> Lane:
    if not len(context.device):
        return Lane(LaneKind.IDLE, "", ())
    pieces = context.once(idle_pieces)
    spans = Spans(pieces.start, pieces.end, np.full(len(pieces.start), -1, np.int32), pieces.cause)
    kinds = tuple(cause.key for cause in Cause)
    return Lane(LaneKind.IDLE, "", boxes(spans, window, kinds, context.trace.strings.text))


def _launch(context: Context, lanes: tuple[Lane, ...], window: tuple[int, int], until: int | None) -> Launch | None:
    """The call behind the first device event at or after `until`, where both are drawn."""
    if until is None:
        return None
    rows = _of_headline(context, _device_events(context, window))
    rows = rows[context.device.start[rows] >= until]
    if not len(rows) or context.link[rows[0]] < 0:
        return None
    row, call = int(rows[0]), int(context.link[rows[0]])
    at, start = int(context.calls.start[call]), int(context.device.start[row])
    track = int(context.calls.track[call])
    named = list(enumerate(lanes))
    thread = [n for n, lane in named if lane.kind == LaneKind.CALLS and lane.track == track]
    stream = [n for n, lane in named if lane.kind == LaneKind.STREAM and lane.name == str(context.device.stream[row])]
    if not thread or not stream or not window[0] <= at <= start:
        return None
    return Launch(at - window[0], start - window[0], thread[0], stream[0])
