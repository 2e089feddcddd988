"""Device events with their launches, host threads, and step windows: definitions §2.5, §3 and §8."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING

from tests.oracle import classes

if TYPE_CHECKING:
    from tests.oracle.raw import Event, Raw

Thread = tuple[str, str]
_FLOWS = {"ac2g", "async_cpu_to_gpu", "async_gpu", "async"}
_OVERLAP = 100_000
_BEYOND = 1_000_000_000


@dataclass(slots=True)
class Trace:
    base: int
    device: list[Event]
    launch: dict[int, Event]
    """Order number of a device event → the call that launched it."""
    ops: list[Event]
    annotations: list[Event]
    calls: list[Event]
    device_annotations: list[Event]
    repaired: int


@dataclass(slots=True)
class Window:
    name: str
    host_start: int
    host_end: int
    start: int
    end: int
    owned: int
    complete: bool = True
    counted: bool = True
    """Complete, and not of the start of the run (§18)."""


@dataclass(slots=True)
class Windows:
    mode: str
    """`steps`, `whole trace`, or `host only`."""
    thread: Thread | None
    rows: list[Window] = field(default_factory=list)
    between: int = 0
    lead_in: int = 0


def build(raw: Raw) -> Trace:
    kinds: dict[str, list[Event]] = defaultdict(list)
    for event in raw.events:
        kinds[classes.kind(event)].append(event)
    device = kinds["device"]
    repaired = _repair(device, raw.events)
    launch = _launches(device, kinds["api"], raw)
    _put_on_host_clock([*device, *kinds["device annotation"]], launch)
    return Trace(
        raw.base, device, launch, kinds["op"], kinds["annotation"], kinds["api"], kinds["device annotation"], repaired
    )


def device_of(event: Event) -> str:
    return str(event.args.get("device", event.pid))


def stream_of(event: Event) -> str:
    return str(event.args.get("stream", event.tid))


def _repair(device: list[Event], events: list[Event]) -> int:
    """Clip impossible durations (§2.5)."""
    repaired = 0
    queues: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in device:
        queues[device_of(event), stream_of(event)].append(event)
    for queue in queues.values():
        queue.sort(key=lambda event: (event.start, event.order))
        for event, following in itertools.pairwise(queue):
            if event.end - following.start > _OVERLAP:
                event.end = following.start
                repaired += 1
    if device and len(events) > 1:
        last = max(device, key=lambda event: event.end)
        others = max(event.end for event in events if event is not last)
        if last.end - others > _BEYOND:
            last.end = max(last.start, others)
            repaired += 1
    return repaired


def correlation(event: Event) -> int | None:
    value = event.args.get("correlation")
    try:
        number = int(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return None if number in {0, -1, 2**64 - 1, 2**32 - 1} else number


def _launches(device: list[Event], calls: list[Event], raw: Raw) -> dict[int, Event]:
    by_id: dict[int, Event] = {}
    for call in calls:
        number = correlation(call)
        if number is not None:
            by_id.setdefault(number, call)
    found: dict[int, Event] = {}
    for event in device:
        number = correlation(event)
        if number is not None and number in by_id:
            found[event.order] = by_id[number]
    missing = [event for event in device if event.order not in found]
    found.update(_launches_by_flow(missing, calls, raw))
    return found


def _launches_by_flow(missing: list[Event], calls: list[Event], raw: Raw) -> dict[int, Event]:
    heads = {
        (flow.thread, flow.time): (flow.cat, flow.id) for flow in raw.flows if flow.phase == "f" and flow.cat in _FLOWS
    }
    tails = {(flow.cat, flow.id): flow for flow in raw.flows if flow.phase == "s" and flow.cat in _FLOWS}
    starts = {(call.thread, call.start): call for call in calls}
    found: dict[int, Event] = {}
    for event in missing:
        tail = tails.get(heads.get((event.thread, event.start), ("", "")))
        if tail is not None and (tail.thread, tail.time) in starts:
            found[event.order] = starts[tail.thread, tail.time]
    return found


def _put_on_host_clock(timed: list[Event], launch: dict[int, Event]) -> None:
    """Where more than one linked event in 1000 starts before its launch, all are later by the same (§18, clocks).

    Launches are found by where arrows end, so this comes after. No public trace drifts, or is off by 10 ms.
    """
    for device in {device_of(event) for event in timed}:
        own = [event for event in timed if device_of(event) == device]
        early = sorted(launch[event.order].start - event.start for event in own if event.order in launch)
        allowed = len(early) // 1000
        shift = early[-1 - allowed] if early else 0
        for event in own if shift > 0 else ():
            event.start += shift
            event.end += shift


def windows(trace: Trace) -> Windows:
    """Step windows (§3)."""
    markers, thread = _markers(trace)
    if not markers:
        return _whole(trace)
    result = Windows("steps" if trace.device else "host only", thread)
    starts = [marker.start for marker in markers]
    owners = {event.order: _owner(trace.launch.get(event.order), starts, markers[-1].end) for event in trace.device}
    owned: dict[int, list[Event]] = defaultdict(list)
    for event in trace.device:
        owned[owners[event.order]].append(event)
    left_over = _left_over(owned)
    previous = None
    for index, marker in enumerate(markers):
        if previous is None:
            start = max(marker.start, left_over) if left_over is not None else marker.start
            result.lead_in = start - marker.start
        else:
            start = max(marker.start, previous)
            result.between += max(0, marker.start - previous)
        end = max([marker.end, start, *(event.end for event in owned[index])])
        result.rows.append(Window(marker.name, marker.start, marker.end, start, end, len(owned[index])))
        previous = end
    if classes.is_step_marker(markers[0]):
        _complete(result.rows)
        _count(result.rows)
        return result
    for row in result.rows:
        row.complete = row.counted = row.owned > 0 or not any(each.owned for each in result.rows)
    return result


def _markers(trace: Trace) -> tuple[list[Event], Thread | None]:
    host = [event for event in (*trace.ops, *trace.annotations) if classes.is_step_marker(event)]
    if not (trace.ops or trace.annotations or trace.calls):
        host = [event for event in trace.device_annotations if classes.is_step_marker(event)]
    for style in classes.ITERATIONS:
        host = host or [event for event in trace.annotations if style.fullmatch(event.name)]
    if not host:
        return [], None
    host.sort(key=lambda event: event.order)
    thread = Counter(event.thread for event in host).most_common(1)[0][0]
    chosen: list[Event] = []
    for event in sorted((each for each in host if each.thread == thread), key=lambda each: (each.start, -each.end)):
        if not any(other.name == event.name and other.end >= event.end for other in chosen):
            chosen.append(event)
    return chosen, thread


def _owner(launch: Event | None, starts: list[int], last_end: int) -> int:
    """Index of the owning step, -1 without one."""
    if launch is None or launch.start < starts[0] or launch.start > last_end:
        return -1
    return bisect_right(starts, launch.start) - 1


def _left_over(owned: dict[int, list[Event]]) -> int | None:
    if not owned[0]:
        return None
    first = min(event.start for event in owned[0])
    ends = [event.end for event in owned[-1] if event.end <= first]
    return max(ends) if ends else None


def _complete(rows: list[Window]) -> None:
    counts = [row.owned for row in rows]
    reference = max(counts) if len(counts) == 2 else Fraction(median(counts))
    for row in rows:
        row.complete = len(counts) == 1 or row.owned >= reference * Fraction(8, 10)


def _count(rows: list[Window]) -> None:
    """Leading complete steps of over twice the median of those after them do not count, while two are left."""
    left = [row for row in rows if row.complete]
    while len(left) > 2 and left[0].end - left[0].start > 2 * median(row.end - row.start for row in left[1:]):
        del left[0]
    for row in rows:
        row.counted = not left or any(row is each for each in left)


def _whole(trace: Trace) -> Windows:
    if not trace.device:
        return Windows("host only", None)
    start = min(event.start for event in trace.device)
    end = max(event.end for event in trace.device)
    launches = Counter(call.thread for call in trace.launch.values())
    thread = launches.most_common(1)[0][0] if launches else None
    return Windows("whole trace", thread, [Window("whole trace", start, end, start, end, len(trace.device))])
