"""Device time with every instant given to one event, so that the times of events sum to the busy time (§4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.model.vocabulary import DeviceClass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.device_events import DeviceEvents


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
