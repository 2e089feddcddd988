"""The exclusive partition of a window: compute, exposed communication, exposed memory operations, idle (§4)."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.kernels.events import DeviceEvents
from traceanalyze.model import intervals
from traceanalyze.model.vocabulary import DeviceClass

ClassSets = Mapping[DeviceClass, intervals.Intervals]
"""When a device does work of each class, on any stream."""


class Partition(NamedTuple):
    """Exclusive parts of each step on one device, and the totals beside them (definitions §4).

    compute + comm_exposed + mem_exposed + idle = step time, exactly.
    """

    device: int
    compute: NDArray[np.int64]
    comm_exposed: NDArray[np.int64]
    mem_exposed: NDArray[np.int64]
    idle: NDArray[np.int64]
    comm_total: NDArray[np.int64]
    mem_total: NDArray[np.int64]
    busy: NDArray[np.int64]
    compute_dur: NDArray[np.int64]
    """Sum of durations (may exceed wall time); same for the next two."""
    comm_dur: NDArray[np.int64]
    mem_dur: NDArray[np.int64]

    @property
    def comm_overlapped(self) -> NDArray[np.int64]:
        """Communication hidden behind compute."""
        return self.comm_total - self.comm_exposed

    @property
    def mem_overlapped(self) -> NDArray[np.int64]:
        """Copies and fills hidden behind compute or communication."""
        return self.mem_total - self.mem_exposed


def class_sets(events: DeviceEvents, device: int) -> ClassSets:
    """The sets of one device; `Context.class_sets` keeps them."""
    out = {}
    for klass in DeviceClass:
        member = events.of(device, klass)
        out[klass] = intervals.merge(events.start[member], events.end[member])
    return out


def partition(
    events: DeviceEvents, device: int, sets: ClassSets, start: NDArray[np.int64], end: NDArray[np.int64]
) -> Partition:
    """Split each window `[start[i], end[i])` by what one device does, over all its streams; `sets` are its own.

    Windows are in order, none overlaps another.
    """
    durations = {}
    for klass in DeviceClass:
        member = events.of(device, klass)
        durations[klass] = _clipped_sum(events.start[member], events.end[member], start, end)
    compute = sets[DeviceClass.COMPUTE]
    busy_kernels = intervals.union(compute, sets[DeviceClass.COMM])
    busy = intervals.union(busy_kernels, sets[DeviceClass.MEM])

    def within(one: intervals.Intervals) -> NDArray[np.int64]:
        return intervals.coverage(one, start, end)

    busy_time, kernel_time, compute_time = within(busy), within(busy_kernels), within(compute)
    return Partition(
        device=device,
        compute=compute_time,
        comm_exposed=kernel_time - compute_time,
        mem_exposed=busy_time - kernel_time,
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
    parts = intervals.overlaps(intervals.Intervals(event_start, event_end), intervals.Intervals(start, end))
    found = np.zeros(len(start), np.int64)
    np.add.at(found, parts.second, parts.end - parts.start)
    return found


def exclusive_time(events: DeviceEvents, device: int, windows: intervals.Intervals) -> NDArray[np.int64]:
    """Time of each event, in order of start, that counts for it alone inside the windows.

    0 on other devices. At each instant one event counts: compute before communication before copies, and of several of
    one class the one that started first (definitions §4). Hence the times of a class sum to its row of `Partition`,
    exactly.
    """
    time = np.zeros(len(events), np.int64)
    free = windows
    for klass in DeviceClass:
        own = events.of(device, klass)
        start, end = events.start[own], events.end[own]
        time[own] = intervals.coverage(free, own_start(start, end), end)
        free = intervals.subtract(free, intervals.merge(start, end))
    return time


def own_start(start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """When each interval, in order of start, has the time for itself: what started earlier counts until it ends."""
    reach = np.maximum.accumulate(np.concatenate((start[:1], end[:-1])))
    return np.minimum(np.maximum(start, reach), end)
