"""What a trace shows between two times, few enough to be drawn; of a finding the surroundings of its worst instance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from sys import intern
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.nesting import nest_rows
from traceanalyze.analyses.idle.host_state import is_sync_call
from traceanalyze.analyses.idle.idle import idle_pieces
from traceanalyze.model import intervals
from traceanalyze.model.classify import is_data_loading, is_peer_wait, marks_step
from traceanalyze.model.columns import Rows, distinct
from traceanalyze.model.vocabulary import ApiClass, Cause, DeviceClass, EventKind

MAX_BOXES = 60
"""Boxes of a lane."""
_SEEN = 600
"""Part of a window that can just be seen, of a lane of so many boxes."""


@dataclass(frozen=True)
class Box:
    """One event, or several that cannot be told apart. Times int64 ns since the start of the window."""

    start: int
    end: int
    name: str
    """Of several the longest one's; empty where events of a lane have no name."""
    kind: str
    """Key of a term; of several what most of their time is."""
    count: int = 1
    busy: int = 0
    """Time in which any of them runs."""


class Spans(NamedTuple):
    """Events of a lane, in any order: times ns, codes of names (-1 for none), and index of each kind."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    name: NDArray[np.signedinteger[Any]]
    kind: NDArray[np.uint8]

    def taken(self, chosen: NDArray[Any]) -> Spans:
        """Some of the events (a mask or an order)."""
        return Spans(*(column[chosen] for column in self))


def boxes(
    spans: Spans, window: tuple[int, int], kinds: Sequence[str], text: Callable[[int], str], most: int = MAX_BOXES
) -> tuple[Box, ...]:
    """What a lane shows of its events in a window, at most `most` boxes, in time order.

    Args:
        spans: Events of one thread level or stream.
        window: Start and end, ns; what lies outside is cut off.
        kinds: Term of each kind.
        text: Name of a code.
        most: How many boxes there may be.
    """
    first, last = window
    inside = spans.taken((spans.start < last) & (spans.end > first))
    inside = inside.taken(np.argsort(inside.start, kind="stable"))
    start, end = np.maximum(inside.start, first), np.minimum(inside.end, last)
    opens = _opens(start, end, last - first, most, first if most > MAX_BOXES else None)
    if not len(opens):
        return ()
    begins, ends = start[opens], np.maximum.reduceat(end, opens)
    busy = intervals.coverage(intervals.merge(start, end), begins, ends)
    count = np.diff(opens, append=len(start))
    box, length = np.repeat(np.arange(len(opens)), count), end - start
    # The first of the longest ones names a box, the kind with most time colours it.
    code = inside.name[np.lexsort((np.arange(len(box)), -length, box))[opens]]
    time = np.bincount(box * len(kinds) + inside.kind, weights=length, minlength=len(opens) * len(kinds))
    kind = time.reshape(len(opens), -1).argmax(axis=1)
    # Few names are in many boxes, and boxes are kept for all ranks of a run.
    names = {each: intern(text(each)) if each >= 0 else "" for each in set(code.tolist())}
    columns = (begins - first, ends - first, code, kind, count, busy)
    return tuple(
        Box(low, high, names[code], kinds[kind], number, amount)
        for low, high, code, kind, number, amount in zip(*(column.tolist() for column in columns), strict=True)
    )


def _opens(
    start: NDArray[np.int64], end: NDArray[np.int64], length: int, most: int, first: int | None
) -> NDArray[np.int64]:
    """Where a new box begins: events shorter than what can be seen join those before them that are as near.

    What can be seen is made coarser until the boxes are few enough. What is to be zoomed, from `first` on, is cut into
    parts of equal length at least, so that one sees where in a long row of short events what happens.
    """
    if len(start) == 0:
        return np.empty(0, np.int64)
    gap = start[1:] - np.maximum.accumulate(end)[:-1]
    part = np.zeros(len(start), np.int64) if first is None else (start - first) * (most // 2) // max(length, 1)
    seen = max(length * MAX_BOXES // (_SEEN * most), 1)
    while True:
        short = end - start < seen
        joins = short[1:] & short[:-1] & (gap < seen) & (part[1:] == part[:-1])
        opens = np.flatnonzero(np.concatenate(([True], ~joins)))
        # Once the whole window is too short to be seen, all is one box, or one of each part.
        if len(opens) <= most:
            return opens
        seen *= 2


class LaneKind(StrEnum):
    """What the boxes of a lane are."""

    STEPS = "steps"
    OPS = "ops"
    """Operators and annotations of a thread that lie equally deep."""
    CALLS = "calls"
    """Runtime calls of a thread."""
    STREAM = "stream"
    IDLE = "idle"
    """When the headline device runs nothing, by cause."""


class Lane(NamedTuple):
    """Boxes in time order; they overlap only where events of one stream do."""

    kind: LaneKind
    name: str
    """Name of the thread, else its number; number of the stream."""
    boxes: tuple[Box, ...]
    track: int = -1
    """Thread, as in the trace."""
    depth: int = 0
    """Operators around those of this lane."""
    hidden: int = 0
    """Events below the last lane of a thread, which are not drawn."""


Window = tuple[int, int]

LEVELS = 4
"""Levels of operators drawn of the step thread."""
_OTHER_LEVELS = 1
_OPS = ("host_op", "annotation", "data_loading", "peer_wait")
_CALLS = tuple(f"api_{klass.name.lower()}" for klass in ApiClass)


def host_lanes(context: Context, window: Window, most: int = MAX_BOXES) -> tuple[list[Lane], int]:
    """Lanes of the step thread and of the busiest other launching thread, and how many threads are not drawn."""
    ops, calls = _ops(context, window), _calls(context, window)
    track = context.trace.events.track
    active = distinct(np.concatenate((track[ops], context.calls.track[calls]))).tolist()
    step = context.step_track
    others = [each for each in context.threads if each in active and each != step]
    other = sorted(others, key=lambda one: -_time(context, calls, one, window))[:1]
    drawn = {step: LEVELS} if step in active else {}
    drawn |= dict.fromkeys(other, _OTHER_LEVELS)
    lanes = _step_lane(context, window, most)
    for each, levels in drawn.items():
        own = ops[track[ops] == each], calls[context.calls.track[calls] == each]
        lanes += _thread(context, window, each, *own, levels, most)
    return lanes, len(set(active) - set(drawn))


def _ops(context: Context, window: Window) -> Rows:
    """Rows of operators and annotations in the window, without step markers."""
    events, strings = context.trace.events, context.trace.strings
    rows = context.host_rows
    start = events.ts[rows]
    rows = rows[(start < window[1]) & (start + events.dur[rows] > window[0])]
    return rows[~strings.matches(events.name[rows], marks_step(context.options.classify))]


def _calls(context: Context, window: Window) -> NDArray[np.int64]:
    """Positions of outermost runtime calls in the window."""
    calls = context.calls
    return np.flatnonzero((calls.start < window[1]) & (calls.end > window[0]) & calls.outermost)


def _time(context: Context, calls: NDArray[np.int64], track: int, window: Window) -> int:
    """Time that a thread spends in runtime calls."""
    own = calls[context.calls.track[calls] == track]
    start, end = context.calls.start[own], context.calls.end[own]
    return int((np.minimum(end, window[1]) - np.maximum(start, window[0])).sum())


def _step_lane(context: Context, window: Window, most: int) -> list[Lane]:
    markers = context.markers
    if markers is None:
        return []
    inside = np.flatnonzero((markers.start < window[1]) & (markers.end > window[0]))
    if not len(inside):
        return []
    names = markers.name
    spans = Spans(markers.start[inside], markers.end[inside], inside, np.zeros(len(inside), np.uint8))
    return [Lane(LaneKind.STEPS, "", boxes(spans, window, ("step",), names.__getitem__, most))]


def _thread(
    context: Context,
    window: Window,
    track: int,
    ops: NDArray[np.int64],
    calls: NDArray[np.int64],
    levels: int,
    most: int,
) -> list[Lane]:
    """Levels of operators, outermost first, and the runtime calls below them."""
    text, name = context.trace.strings.text, _thread_name(context, track)
    tree = nest_rows(context.trace, ops, context.kind)
    depth = tree.depth
    spans = Spans(tree.start, tree.end, context.trace.events.name[tree.row], _op_kinds(context, tree.row))
    lanes = []
    for level in range(levels):
        drawn = boxes(spans.taken(depth == level), window, _OPS, text, most)
        if drawn:
            lanes.append(Lane(LaneKind.OPS, name, drawn, track, level))
    if lanes:
        last = lanes.pop()
        hidden = int(((depth >= levels) & (tree.start < window[1]) & (tree.end > window[0])).sum())
        lanes.append(Lane(last.kind, name, last.boxes, track, last.depth, hidden))
    every = context.calls
    klass = np.where(context.once(is_sync_call)[calls], np.uint8(ApiClass.SYNC), every.klass[calls])
    made = Spans(every.start[calls], every.end[calls], every.name[calls], klass)
    drawn = boxes(made, window, _CALLS, text, most)
    return [*lanes, Lane(LaneKind.CALLS, name, drawn, track)] if drawn else lanes


def _op_kinds(context: Context, rows: Rows) -> NDArray[np.uint8]:
    """Index into `_OPS` of each event."""
    names, classify = context.trace.events.name[rows], context.options.classify

    def special(text: str) -> int:
        return 2 if is_data_loading(text, classify) else 3 if is_peer_wait(text) else 0

    named = context.trace.strings.lookup(names, special)
    return np.where(named > 0, named, context.kind[rows] == EventKind.ANNOTATION).astype(np.uint8)


def _thread_name(context: Context, track: int) -> str:
    key = context.trace.track_text(track)
    return context.trace.thread_names.get(key) or key[1]


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


def excerpt(context: Context, start: int, end: int, until: int | None = None, most: int = MAX_BOXES) -> Excerpt:
    """What the trace shows in `[start, end)` ns: at most 12 lanes of at most `most` boxes each.

    Lanes: step markers; operators of the step thread by depth and its runtime calls; the same of the other launching
    thread that does most here; streams of the headline device, busiest first where there are too many; and the idle
    time of this device by cause (definitions §5). How the device event after `until` was launched is told.
    """
    window = (start, end)
    host, threads = host_lanes(context, window, most)
    idle = [lane for lane in (_idle_lane(context, window, most),) if lane.boxes]
    streams, hidden = _stream_lanes(context, window, MAX_LANES - len(host) - len(idle), most)
    lanes = (*host, *streams, *idle)
    return Excerpt(start, end - start, lanes, _launch(context, lanes, window, until), threads, hidden)


MOST_BOXES = 1_000
"""Boxes of a lane of a whole trace."""


def whole(context: Context, *, alone: bool = True) -> Excerpt:
    """All of the trace, coarsely; coarser of one of several ranks, which are kept and sent between processes."""
    events = context.trace.events
    end = max(int((events.ts + events.dur).max(initial=0)), int(context.device.end.max(initial=0)), context.begin + 1)
    return excerpt(context, context.begin, end, most=MOST_BOXES if alone else MOST_BOXES // 4)


def _stream_lanes(context: Context, window: tuple[int, int], room: int, most: int) -> tuple[list[Lane], int]:
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
        lanes.append(Lane(LaneKind.STREAM, str(number), boxes(spans, window, kinds, context.trace.strings.text, most)))
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


def _idle_lane(context: Context, window: tuple[int, int], most: int) -> Lane:
    if not len(context.device):
        return Lane(LaneKind.IDLE, "", ())
    pieces = context.once(idle_pieces)
    spans = Spans(pieces.start, pieces.end, np.full(len(pieces.start), -1, np.int32), pieces.cause)
    kinds = tuple(cause.key for cause in Cause)
    return Lane(LaneKind.IDLE, "", boxes(spans, window, kinds, context.trace.strings.text, most))


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


_NEIGHBOURS = 4
"""Device events shown before and after the instance, at least, where there is room for them."""
_FARTHEST = 2
"""Times the length of the instance that is shown on each side at most."""


class Place(NamedTuple):
    """The surroundings of one instance of a finding. Times int64 ns; `start`, `end` since the excerpt begins."""

    excerpt: Excerpt
    start: int
    end: int
    """The instance, cut to the excerpt."""
    length: int
    """Of the whole instance."""
    step: int
    """Row in the analysed steps that it begins in, else the one before; -1 before the first."""
    since_step: int
    """From the beginning of that step to the beginning of the instance."""
    since_first: int
    """From the first event of the trace to the beginning of the instance."""
    idle: int
    """Time of the instance in which the headline device runs nothing."""
    cause: str | None
    """Term of the cause of most of this idle time."""
    doing: str | None
    """What the step thread is in for most of the instance: a wait for data or other processes, else an event that lies
    in no other."""


def place(context: Context, start: int, end: int) -> Place:
    """The surroundings of the instance `[start, end)` ns.

    On each side a quarter of its length and at least four device events, but no more than twice its length; in all no
    more than one step, so that of a longer instance the beginning is shown.
    """
    window = _window(context, start, end)
    found = excerpt(context, *window, until=end)
    step = int(np.searchsorted(context.steps.start, start, "right")) - 1
    begins = int(context.steps.start[step]) if step >= 0 else start
    idle, cause = _idle(context, start, end)
    return Place(
        excerpt=found,
        start=start - window[0],
        end=min(end, window[1]) - window[0],
        length=end - start,
        step=step,
        since_step=start - begins,
        since_first=start - context.begin,
        idle=idle,
        cause=cause,
        doing=_doing(found, start - window[0], min(end, window[1]) - window[0]),
    )


def _window(context: Context, start: int, end: int) -> tuple[int, int]:
    most, length = _longest_step(context, start), end - start
    low, high = start - length // 4, end + length // 4
    device = context.device
    if len(device):
        own = device.device == context.devices[0]
        begins, ends = device.start[own], np.sort(device.end[own], kind="stable")
        before = int(np.searchsorted(ends, start, "right"))
        after = int(np.searchsorted(begins, end, "left"))
        if before:
            low = min(low, int(begins[max(before - _NEIGHBOURS, 0)]))
        if after < len(begins):
            high = max(high, int(ends[min(after + _NEIGHBOURS, len(ends)) - 1]))
    events = context.trace.events
    low = max(low, start - _FARTHEST * length, min(context.begin, start))
    high = min(high, end + _FARTHEST * length, max(int((events.ts + events.dur).max()), end))
    # What does not fit is left out on both sides alike; the beginning of the instance is always seen.
    spare = max(most - length, most // 4)
    low = start - min(start - low, max(spare // 2, spare - (high - end)))
    return low, max(min(high, low + most), low + 1)


def _longest_step(context: Context, at: int) -> int:
    """Length of the step around an instant, of the longest step where it lies in none."""
    steps = context.steps
    length = steps.end - steps.start
    step = int(np.searchsorted(steps.start, at, "right")) - 1
    return max(int(length[step]) if step >= 0 else int(length.max()), 1)


def _idle(context: Context, start: int, end: int) -> tuple[int, str | None]:
    """Idle time in an interval, and what causes most of it."""
    if not len(context.device):
        return 0, None
    pieces = context.once(idle_pieces)
    near = slice(int(np.searchsorted(pieces.end, start, "right")), int(np.searchsorted(pieces.start, end, "left")))
    length = np.minimum(pieces.end[near], end) - np.maximum(pieces.start[near], start)
    time = np.bincount(pieces.cause[near], weights=length, minlength=len(Cause))
    total = int(length.sum())
    return total, Cause(int(time.argmax())).key if total else None


def _doing(found: Excerpt, start: int, end: int) -> str | None:
    """What covers most of the instance on the first thread: a wait, else the outermost event."""
    lanes = [lane for lane in found.lanes if lane.kind == LaneKind.OPS]
    boxes = [box for lane in lanes if lane.track == lanes[0].track for box in lane.boxes if box.count == 1]
    covering = [box for box in boxes if 2 * (min(box.end, end) - max(box.start, start)) > end - start]
    waits = [box.name for box in covering if box.kind in {"data_loading", "peer_wait"}]
    return next(iter([*waits, *(box.name for box in covering)]), None)
