"""Why the device is idle: definitions §5 gap by gap, and the cost of sync calls: §7."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.oracle import classes
from tests.oracle.spans import Span, clip, subtract, union

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.oracle.raw import Event
    from tests.oracle.trace import Thread, Trace

TAU = 10_000
_BLOCKING = 50_000

Cause = str
Piece = tuple[int, int, Cause]


@dataclass(slots=True)
class Gap:
    start: int
    end: int
    next: Event | None
    launch: Event | None


@dataclass(slots=True)
class Host:
    """What each thread is doing, by cause, and the order in which threads are asked."""

    step_thread: Thread | None
    launching: list[Thread]
    """Threads of the step thread's process that launch device work, most launches first."""
    layers: dict[Thread, list[tuple[Cause, list[Span]]]] = field(default_factory=dict)
    syncs: list[Event] = field(default_factory=list)


def host(trace: Trace, step_thread: Thread | None) -> Host:
    """Index of the host threads' states."""
    own_copy = _copy_starts(trace)
    states: dict[Thread, dict[Cause, list[Span]]] = defaultdict(lambda: defaultdict(list))
    result = Host(step_thread, _launching(trace, step_thread))
    for call in outermost(trace.calls):
        label = sync_kind(call, own_copy)
        if label is None:
            states[call.thread]["dispatch." + classes.api_class(call.name)].append((call.start, call.end))
    for call in trace.calls:
        if sync_kind(call, own_copy) is not None:
            result.syncs.append(call)
            states[call.thread]["sync"].append((call.start, call.end))
    for event in (*trace.ops, *trace.annotations):
        if classes.is_loader(event):
            states[event.thread]["data_loading"].append((event.start, event.end))
        if classes.is_peer_wait(event):
            states[event.thread]["peer_wait"].append((event.start, event.end))
    for event in trace.ops:
        states[event.thread]["host_op"].append((event.start, event.end))
    for thread, by_cause in states.items():
        result.layers[thread] = [(cause, union(by_cause[cause])) for cause in _ORDER if by_cause.get(cause)]
    if step_thread is not None:
        others = [one for thread, one in states.items() if thread != step_thread and thread[0] == step_thread[0]]
        workers = union(span for by_cause in others for span in by_cause.get("peer_wait", ()))
        result.layers.setdefault(step_thread, []).append(("peer_wait", workers))
    return result


_DISPATCH = ("dispatch.launch", "dispatch.copy", "dispatch.alloc", "dispatch.other")
_ORDER = ("data_loading", "sync", "peer_wait", *_DISPATCH, "host_op")


def _copy_starts(trace: Trace) -> dict[int, int]:
    """Order number of a call → start of the first device event it launched."""
    starts: dict[int, int] = {}
    for event in trace.device:
        call = trace.launch.get(event.order)
        if call is not None:
            starts[call.order] = min(starts.get(call.order, event.start), event.start)
    return starts


def sync_kind(call: Event, own_copy: dict[int, int]) -> str | None:
    """`sync` or `blocking in effect` for a call that counts as sync point."""
    if classes.api_class(call.name) == "sync":
        return "sync"
    begun = own_copy.get(call.order)
    blocks = begun is not None and call.end > begun and call.end - call.start >= _BLOCKING
    return "blocking in effect" if blocks and classes.is_async_copy(call.name) else None


def outermost(calls: list[Event]) -> Iterator[Event]:
    """Calls of each thread that are not inside another."""
    reached: dict[Thread, int] = {}
    for call in sorted(calls, key=lambda each: (each.start, -each.end, each.order)):
        if call.end > reached.get(call.thread, call.start - 1):
            reached[call.thread] = call.end
            yield call


def _launching(trace: Trace, step_thread: Thread | None) -> list[Thread]:
    counts = Counter(call.thread for call in trace.launch.values())
    pid = step_thread[0] if step_thread else None
    return [thread for thread, _ in counts.most_common() if pid in {None, thread[0]}]


def gaps(device: list[Event], launch: dict[int, Event], start: int, end: int) -> list[Gap]:
    """Maximal idle intervals of one device inside `[start, end)`, each with the event that ends it."""
    events = sorted((event for event in device if event.end > event.start), key=lambda each: each.start)
    busy = union((event.start, event.end) for event in events)
    first: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        first[event.start].append(event)
    result = []
    for a, b in subtract([(start, end)], busy):
        enders = first.get(b, [])
        following = min(enders, key=lambda each: _launch_time(each, launch)) if enders else None
        result.append(Gap(a, b, following, launch.get(following.order) if following else None))
    return result


def _launch_time(event: Event, launch: dict[int, Event]) -> tuple[bool, int, int]:
    call = launch.get(event.order)
    return call is None, call.start if call else 0, event.order


def pieces(gap: Gap, state: Host) -> list[Piece]:
    """The gap cut into pieces with one cause each; they cover it exactly."""
    call = gap.launch
    if call is None or gap.next is None or call.start > gap.next.start:
        return host_pieces(gap.start, gap.end, None, state)
    waiting = min(max(gap.start, call.end), gap.end)
    found = host_pieces(gap.start, waiting, call.thread, state)
    rest = gap.end - waiting
    if rest == 0:
        return found
    if call.end > gap.start:
        latency = min(rest, TAU)
        found.append((waiting, waiting + latency, "dispatch.latency"))
        if rest > latency:
            found.append((waiting + latency, gap.end, "device_side.dependency"))
    else:
        found.append((waiting, gap.end, "device_side.gap" if rest <= TAU else "device_side.dependency"))
    return found


def host_pieces(start: int, end: int, launching: Thread | None, state: Host) -> list[Piece]:
    """The host's state over `[start, end)`."""
    order = [thread for thread in (launching, state.step_thread) if thread is not None]
    may_load = set(order)
    order += state.launching
    left = [(start, end)] if end > start else []
    found: list[Piece] = []
    for thread in dict.fromkeys(order):
        for cause, spans in state.layers.get(thread, []):
            if not left:
                break
            if cause == "data_loading" and thread not in may_load:
                continue
            near = clip(_slice(spans, start, end), start, end)
            rest = subtract(left, near)
            found += [(a, b, cause) for a, b in subtract(left, rest)]
            left = rest
    found += [(a, b, "untraced") for a, b in left]
    return found


def _slice(spans: list[Span], start: int, end: int) -> list[Span]:
    """Those of sorted disjoint spans that may touch `[start, end)`."""
    low, high = 0, len(spans)
    while low < high:
        middle = (low + high) // 2
        if spans[middle][1] <= start:
            low = middle + 1
        else:
            high = middle
    stop = low
    while stop < len(spans) and spans[stop][0] < end:
        stop += 1
    return spans[low:stop]
