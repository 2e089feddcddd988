"""The exclusive partition of a window: compute, exposed communication, exposed memory operations, idle (§4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.results import Partition
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct
from traceanalyze.model.table import Column, Kind, Table
from traceanalyze.model.vocabulary import DeviceClass, EventKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.kernels.events import DeviceEvents

ClassSets = Mapping[DeviceClass, intervals.Intervals]
"""When a device does work of each class, on any stream."""


def class_sets(events: DeviceEvents, device: int) -> ClassSets:
    """The sets of one device; `Context.class_sets` keeps them."""
    out = {}
    for klass in DeviceClass:
        member = (events.device == device) & (events.klass == klass)
        out[klass] = intervals.merge(events.start[member], events.end[member])
    return out


def partition(
    events: DeviceEvents, device: int, sets: ClassSets, start: NDArray[np.int64], end: NDArray[np.int64]
) -> Partition:
    """Split each window `[start[i], end[i])` by what one device does, over all its streams; `sets` are its own."""
    durations = {}
    for klass in DeviceClass:
        member = (events.device == device) & (events.klass == klass)
        durations[klass] = _clipped_sum(events.start[member], events.end[member], start, end)
    compute = sets[DeviceClass.COMPUTE]
    busy_kernels = intervals.union(compute, sets[DeviceClass.COMM])
    busy = intervals.union(busy_kernels, sets[DeviceClass.MEM])

    def within(one: intervals.Intervals) -> NDArray[np.int64]:
        return intervals.coverage(one, start, end)

    busy_time = within(busy)
    return Partition(
        device=device,
        compute=within(compute),
        comm_exposed=within(busy_kernels) - within(compute),
        mem_exposed=busy_time - within(busy_kernels),
        idle=(end - start) - busy_time,
        comm_total=within(sets[DeviceClass.COMM]),
        mem_total=within(sets[DeviceClass.MEM]),
        busy=busy_time,
        compute_dur=durations[DeviceClass.COMPUTE],
        comm_dur=durations[DeviceClass.COMM],
        mem_dur=durations[DeviceClass.MEM],
    )


def _clipped_sum(
    event_start: NDArray[np.int64], event_end: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Sum of durations inside each window; overlapping events count each."""
    return _time_before(event_start, event_end, end) - _time_before(event_start, event_end, start)


def _time_before(
    event_start: NDArray[np.int64], event_end: NDArray[np.int64], t: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Sum over events of the part before each instant: Σ max(0, t - start) - Σ max(0, t - end)."""
    out = np.zeros(len(t), np.int64)
    for edge, sign in ((np.sort(event_start), 1), (np.sort(event_end), -1)):
        index = np.searchsorted(edge, t, "right")
        # Edges relative to the first keep the running sum far from the int64 limit.
        base = int(edge[0]) if len(edge) else 0
        before = np.concatenate(([0], np.cumsum(edge - base)))
        out += sign * (index * (t - base) - before[index])
    return out


def device_order(events: DeviceEvents, start: NDArray[np.int64], end: NDArray[np.int64]) -> list[int]:
    """Devices by busy time inside the windows, the headline device first."""
    devices: list[int] = distinct(events.device).tolist()
    if len(devices) == 1:
        return devices
    busy = {d: _busy(events, d, start, end) for d in devices}
    return sorted(devices, key=lambda d: (-busy[d], d))


def _busy(events: DeviceEvents, device: int, start: NDArray[np.int64], end: NDArray[np.int64]) -> int:
    mine = events.device == device
    return int(intervals.coverage(intervals.merge(events.start[mine], events.end[mine]), start, end).sum())


DEVICE_SPANS = Table(
    "device_spans",
    (
        Column("device", Kind.COUNT, meaning="number of the device"),
        Column("span_ns", Kind.DURATION, meaning="from the first to the last device event"),
        Column("compute_ns", Kind.DURATION, meaning="some compute kernel is running"),
        Column(
            "communication_ns", Kind.DURATION, heading="comm", meaning="a collective is running and no compute kernel"
        ),
        Column(
            "communication_total_ns",
            Kind.DURATION,
            heading="comm total",
            meaning="a collective is running, hidden or not",
            minor=True,
        ),
        Column(
            "memory_ops_ns",
            Kind.DURATION,
            heading="memory",
            meaning="a copy or fill is running, and neither compute nor communication",
        ),
        Column("idle_ns", Kind.DURATION, meaning="nothing is running on the device"),
        Column("compute_kernels", Kind.COUNT, meaning="number of compute kernels", minor=True),
        Column(
            "communication_kernels",
            Kind.COUNT,
            heading="comm kernels",
            meaning="number of communication kernels",
            minor=True,
        ),
        Column("copies", Kind.COUNT, meaning="number of copies", minor=True),
        Column("fills", Kind.COUNT, meaning="number of fills", minor=True),
        Column(
            "start_ns",
            Kind.DURATION,
            heading="start",
            meaning="start, counted from the time base of the file",
            machine=True,
        ),
    ),
    title="First to last device event",
    detail=True,
)


def device_spans(events: DeviceEvents, sets: Mapping[int, ClassSets]) -> Table:
    """First to last event of each device, split the same way: as other tools print it; `sets` are those of each."""
    rows = list[dict[str, int]]()
    kernels = events.kind == EventKind.KERNEL
    for device, own in sets.items():
        mine = events.device == device
        start, end = events.start[mine].min(keepdims=True), events.end[mine].max(keepdims=True)
        part = partition(events, device, own, start, end)
        rows.append(
            {
                "device": device,
                "span_ns": int(end[0] - start[0]),
                "compute_ns": int(part.compute[0]),
                "communication_ns": int(part.comm_exposed[0]),
                "communication_total_ns": int(part.comm_total[0]),
                "memory_ops_ns": int(part.mem_exposed[0]),
                "idle_ns": int(part.idle[0]),
                "compute_kernels": int((mine & kernels & (events.klass == DeviceClass.COMPUTE)).sum()),
                "communication_kernels": int((mine & kernels & (events.klass == DeviceClass.COMM)).sum()),
                "copies": int((mine & (events.kind == EventKind.MEMCPY)).sum()),
                "fills": int((mine & (events.kind == EventKind.MEMSET)).sum()),
                "start_ns": int(start[0]),
            }
        )
    return DEVICE_SPANS.fill_records(rows)


def exclusive_time(events: DeviceEvents, device: int, windows: intervals.Intervals) -> NDArray[np.int64]:
    """Time of each event of one device inside the windows that counts for it alone.

    At each instant one event counts: compute before communication before copies, and of several of one class the one
    that started first (definitions §4). Hence the times of a class sum to its row of `Partition`, exactly.

    Args:
        events: all device events, in order of start.
        device: the device whose events count.
        windows: a set of intervals.

    Returns:
        ns of each event of `events`; 0 for events of other devices.
    """
    time = np.zeros(len(events), np.int64)
    free = windows
    for klass in DeviceClass:
        mine = np.flatnonzero((events.device == device) & (events.klass == klass))
        start, end = events.start[mine], events.end[mine]
        time[mine] = intervals.coverage(free, own_start(start, end), end)
        free = intervals.subtract(free, intervals.merge(start, end))
    return time


def own_start(start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """When each interval, in order of start, has the time for itself: what started earlier counts until it ends."""
    reach = np.maximum.accumulate(np.concatenate((start[:1], end[:-1])))
    return np.minimum(np.maximum(start, reach), end)
