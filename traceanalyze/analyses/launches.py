"""How work reached the device: launch cost, delay, queue depth, late launches (definitions §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.analyses.host_events import call_label
from traceanalyze.analyses.links import unskewed
from traceanalyze.analyses.results import LaunchClass, Launches
from traceanalyze.model.columns import distinct
from traceanalyze.model.vocabulary import ApiClass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.device_events import DeviceEvents
    from traceanalyze.analyses.host_events import ApiCalls
    from traceanalyze.analyses.idle import Gaps
    from traceanalyze.model.trace import Trace

FULL_QUEUE_DEPTH = 1000
"""A long launch with this many events waiting on its stream blocks because the queue is full (definitions §6)."""
LONG_LAUNCH_NS = 50_000
CLOCK_ERROR_SHARE = 0.05
"""With more kernels than this starting before their launch, host and device clocks disagree (definitions §14, Q04)."""


def launches(
    trace: Trace, device: DeviceEvents, link: NDArray[np.int64], calls: ApiCalls, gaps: Gaps, sync: NDArray[np.bool_]
) -> Launches:
    """Launch metrics of a whole trace. `gaps` are those of the headline device, `sync` marks the sync calls."""
    linked = link >= 0
    called = np.where(linked, calls.start[link], 0)
    launch_start = unskewed(trace, device, called)
    launch_end = np.where(linked, calls.end[link], 0)
    latency = device.start - launch_start
    clock_error = linked & (latency < 0)
    good = linked & ~clock_error
    delay = np.maximum(device.start[good] - launch_end[good], 0)
    _, depth_at_start, blocked_launch = queue_depth(device, launch_start, good, link, calls)
    ended_late = (gaps.call >= 0) & (gaps.launch_start >= gaps.start)
    waiting = intervals.merge(launch_start[good], device.start[good])
    idle = intervals.Intervals(gaps.start, gaps.end)
    idle_time = intervals.total(idle)
    trusted = clocks_agree(clock_error, linked)
    return Launches(
        linked=int(linked.sum()),
        unlinked=int((~linked).sum()),
        unlinked_time=int((device.end - device.start)[~linked].sum()),
        late=int(ended_late.sum()),
        negative_latency=int((linked & (device.start < called)).sum()),
        delay_p50=_percentile(delay, 50) if trusted else None,
        delay_p90=_percentile(delay, 90) if trusted else None,
        queue_depth_p50=float(np.percentile(depth_at_start, 50)) if trusted and len(depth_at_start) else None,
        queue_depth_p90=float(np.percentile(depth_at_start, 90)) if trusted and len(depth_at_start) else None,
        idle_queue_empty=1 - intervals.total(intervals.intersect(idle, waiting)) / idle_time
        if trusted and idle_time
        else None,
        queue_full=blocked_launch,
        calls=_calls(trace, calls, sync),
    )


def clocks_agree(clock_error: NDArray[np.bool_], linked: NDArray[np.bool_]) -> bool:
    """Whether so few of the linked events start before their launch that delays and depths can be believed."""
    return bool(clock_error.sum() <= CLOCK_ERROR_SHARE * linked.sum())


def _percentile(values: NDArray[np.int64], q: int) -> int | None:
    """An observed value: the upper one where the percentile falls between two."""
    return int(np.percentile(values, q, method="higher")) if len(values) else None


def queue_depth(
    device: DeviceEvents,
    launch_start: NDArray[np.int64],
    good: NDArray[np.bool_],
    link: NDArray[np.int64],
    calls: ApiCalls,
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Depth of its stream's queue when an event starts (itself included); time in launches blocked by a full queue.

    Events of one launch (a graph) wait as one, until the first of them starts.

    Returns:
        The first event of each launch, by stream; the depth at each; and the blocked time, ns.
    """
    firsts, depths = [], []
    blocked = 0
    events = np.flatnonzero(good)
    lane = device.device[events] * (1 << 32) + device.stream[events]
    for one in distinct(lane).tolist():
        mine = events[lane == one]
        _, first = np.unique(link[mine], return_index=True)
        mine = mine[np.sort(first)]
        firsts.append(mine)
        queued = np.sort(launch_start[mine])
        started = device.start[mine]
        depths.append(np.searchsorted(queued, started, "right") - np.searchsorted(started, started, "left"))
        launch = link[mine]
        slow = mine[
            (calls.end[launch] - calls.start[launch] > LONG_LAUNCH_NS) & (calls.klass[launch] == ApiClass.LAUNCH)
        ]
        depth = np.searchsorted(queued, launch_start[slow], "right") - np.searchsorted(
            started, launch_start[slow], "right"
        )
        full = link[slow[depth >= FULL_QUEUE_DEPTH]]
        blocked += int((calls.end[full] - calls.start[full]).sum())
    if not firsts:
        return np.empty(0, np.int64), np.empty(0, np.int64), blocked
    return np.concatenate(firsts), np.concatenate(depths), blocked


def _calls(trace: Trace, calls: ApiCalls, sync: NDArray[np.bool_]) -> tuple[LaunchClass, ...]:
    """Host cost of runtime calls by name and class; a call inside another counts in the outer one."""
    outer = np.flatnonzero(calls.outermost)
    klass = np.where(sync[outer], ApiClass.SYNC, calls.klass[outer])
    key = calls.name[outer].astype(np.int64) * 8 + klass
    distinct, inverse, count = np.unique(key, return_inverse=True, return_counts=True)
    duration = np.zeros(len(distinct), np.int64)
    np.add.at(duration, inverse.reshape(-1), calls.end[outer] - calls.start[outer])
    table = [
        LaunchClass(trace.strings.text(code // 8), call_label(code % 8), int(n), int(d))
        for code, n, d in zip(distinct.tolist(), count, duration, strict=True)
    ]
    return tuple(sorted(table, key=lambda c: (-c.duration, c.name, c.kind)))
