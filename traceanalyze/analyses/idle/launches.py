"""How work reached the device: launch cost, delay, queue depth, late launches (definitions §6)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.events import call_label
from traceanalyze.analyses.idle.host_state import is_sync_call
from traceanalyze.analyses.idle.idle import idle_gaps
from traceanalyze.analyses.results import LaunchClass, Launches
from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, known
from traceanalyze.model.vocabulary import ApiClass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context
    from traceanalyze.analyses.host.events import ApiCalls
    from traceanalyze.analyses.results import Steps
    from traceanalyze.model.trace import Trace

FULL_QUEUE_DEPTH = 1000
"""A long launch with this many events waiting on its stream blocks because the queue is full (definitions §6)."""
LONG_LAUNCH_NS = 50_000
CLOCK_ERROR_SHARE = 0.05
"""With more kernels than this starting before their launch, host and device clocks disagree (definitions §14, Q04)."""


class Queue(NamedTuple):
    """The queues of the streams, of events whose launch is known and began before them."""

    good: NDArray[np.bool_]
    """Whether each device event is one of them."""
    event: NDArray[np.int64]
    """The first event of each launch, by stream."""
    depth: NDArray[np.int64]
    """Events that wait on its stream when it starts, itself included."""
    blocked: int
    """Time in launches that a full queue blocked, ns."""


def launches(context: Context) -> Launches:
    """Launch metrics of a whole trace; gaps are those of the headline device."""
    device, link, calls = context.device, context.link, context.calls
    gaps, queue = context.once(idle_gaps), context.once(launch_queue)
    linked = link >= 0
    called = np.where(linked, calls.start[link], 0)
    launch_start, good = context.launch_start, queue.good
    clock_error = linked & ~good
    delay = np.maximum(device.start[good] - context.launch_end[good], 0)
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
        delay_p50=_observed(delay, 50) if trusted else None,
        delay_p90=_observed(delay, 90) if trusted else None,
        queue_depth_p50=_between(queue.depth, 50) if trusted else None,
        queue_depth_p90=_between(queue.depth, 90) if trusted else None,
        idle_queue_empty=1 - intervals.total(intervals.intersect(idle, waiting)) / idle_time
        if trusted and idle_time
        else None,
        queue_full=queue.blocked,
        calls=_calls(context.trace, calls, context.once(is_sync_call)),
    )


def clocks_agree(clock_error: NDArray[np.bool_], linked: NDArray[np.bool_]) -> bool:
    """Whether so few of the linked events start before their launch that delays and depths can be believed."""
    return bool(clock_error.sum() <= CLOCK_ERROR_SHARE * linked.sum())


def _observed(values: NDArray[np.int64], q: int) -> int | None:
    """An observed value: the upper one where the percentile falls between two."""
    return int(np.sort(values)[math.ceil((len(values) - 1) * (q / 100))]) if len(values) else None


def _between(values: NDArray[np.int64], q: int) -> float | None:
    """Interpolated where the percentile falls between two values; `np.percentile` would import `numpy.ma`."""
    if len(values) == 0:
        return None
    place = (len(values) - 1) * (q / 100)
    ordered, low = np.sort(values), math.floor(place)
    lower, upper, share = int(ordered[low]), int(ordered[math.ceil(place)]), place - low
    return lower + (upper - lower) * share if share < 0.5 else upper - (upper - lower) * (1 - share)


def launch_queue(context: Context) -> Queue:
    """Depth of the streams' queues. Events of one launch (a graph) wait as one, until the first of them starts."""
    device, link, calls, launch_start = context.device, context.link, context.calls, context.launch_start
    good = (link >= 0) & (device.start >= launch_start)
    firsts, depths = [], []
    blocked = 0
    events = np.flatnonzero(good)
    lane = device.device[events] * (1 << 32) + device.stream[events]
    for one in distinct(lane).tolist():
        mine = events[lane == one]
        mine = mine[np.sort(group(link[mine]).first)]
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
        return Queue(good, np.empty(0, np.int64), np.empty(0, np.int64), blocked)
    return Queue(good, np.concatenate(firsts), np.concatenate(depths), blocked)


def _calls(trace: Trace, calls: ApiCalls, sync: NDArray[np.bool_]) -> tuple[LaunchClass, ...]:
    """Host cost of runtime calls by name and class; a call inside another counts in the outer one."""
    outer = np.flatnonzero(calls.outermost)
    klass = np.where(sync[outer], ApiClass.SYNC, calls.klass[outer])
    key = calls.name[outer].astype(np.int64) * 8 + klass
    keys = group(key)
    columns = (key[keys.first], keys.count(), keys.sum(calls.end[outer] - calls.start[outer]))
    table = [
        LaunchClass(trace.strings.text(code // 8), call_label(code % 8), count, duration)
        for code, count, duration in zip(*(column.tolist() for column in columns), strict=True)
    ]
    return tuple(sorted(table, key=lambda c: (-c.duration, c.name, c.kind)))


_STEP_LAUNCHES = Table(
    "step_launches",
    (
        Column("step", Kind.TEXT, meaning="number of the step, or its name"),
        Column(
            "late_launches",
            Kind.COUNT,
            heading="launched late",
            meaning="device events launched after the device had run dry",
        ),
        Column(
            "wait_p50_ns",
            Kind.DURATION,
            heading="wait, median",
            meaning="from the launch call's return to the start on the device; "
            "half of the step's events wait no longer",
            scale="wait",
        ),
        Column(
            "wait_p90_ns",
            Kind.DURATION,
            heading="wait, 90 %",
            meaning="the same; nine of ten wait no longer",
            scale="wait",
        ),
        Column(
            "depth_p50",
            Kind.NUMBER,
            heading="queued, median",
            meaning="work launched and not yet started when an event starts, median",
        ),
        Column("depth_p90", Kind.NUMBER, heading="queued, 90 %", meaning="the same; nine of ten see no more"),
    ),
    title="Launches step by step",
    detail=True,
)


def step_launches(context: Context) -> Table:
    """Launch delays and queue depths of the device events that start inside each window (definitions §6)."""
    device, steps = context.device, context.steps
    linked = context.link >= 0
    if not linked.any():
        return _STEP_LAUNCHES.missing("no_linked_launches" if len(context.calls) else "no_api")
    queue = context.once(launch_queue)
    if not clocks_agree(linked & ~queue.good, linked):
        return _STEP_LAUNCHES.missing("clocks_disagree")
    delay = np.maximum(device.start[queue.good] - context.launch_end[queue.good], 0)
    delayed = _by_step(steps, device.start[queue.good], delay)
    queued = _by_step(steps, device.start[queue.event], queue.depth)
    return _STEP_LAUNCHES.fill(
        step=step_labels(steps.name),
        late_launches=_late(context),
        wait_p50_ns=_whole(_percentiles(delayed, 50, between=False)),
        wait_p90_ns=_whole(_percentiles(delayed, 90, between=False)),
        depth_p50=known(_percentiles(queued, 50, between=True), "no_linked_launches"),
        depth_p90=known(_percentiles(queued, 90, between=True), "no_linked_launches"),
    )


def _whole(delays: NDArray[np.float64]) -> list[int | NotMeasured]:
    """Observed delays, ns; a step without any has none."""
    missing = NotMeasured("no_linked_launches")
    return [missing if math.isnan(delay) else int(delay) for delay in delays.tolist()]


def step_of(steps: Steps, t: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row of the window that holds each instant, -1 for none."""
    row = np.searchsorted(steps.start, t, "right") - 1
    return np.where((row >= 0) & (t < steps.end[row]), row, -1)


def _late(context: Context) -> NDArray[np.int64]:
    """Events of the headline device that ended a gap and were launched after it began, by step."""
    gaps = context.once(idle_gaps)
    late = (gaps.call >= 0) & (gaps.launch_start >= gaps.start)
    row = step_of(context.steps, gaps.end[late])
    return np.bincount(row[row >= 0], minlength=len(context.steps))


class _Sorted(NamedTuple):
    """Values step by step, ascending in each."""

    value: NDArray[np.int64]
    first: NDArray[np.int64]
    """Place of each step's first value."""
    size: NDArray[np.int64]
    """Number of its values."""


def _by_step(steps: Steps, t: NDArray[np.int64], values: NDArray[np.int64]) -> _Sorted:
    """Values of each step."""
    row = step_of(steps, t)
    order = np.lexsort((values, row))
    cuts = np.searchsorted(row[order], np.arange(len(steps) + 1))
    return _Sorted(values[order], cuts[:-1], np.diff(cuts))


def _percentiles(values: _Sorted, q: int, *, between: bool) -> NDArray[np.float64]:
    """Percentile of each step as `numpy.percentile` has it, NaN for a step without values.

    Args:
        values: what to take it of.
        q: 0 to 100.
        between: interpolate ("linear") where it falls between two values; else the larger ("higher").
    """
    out = np.full(len(values.size), np.nan)
    some = values.size > 0
    first, last = values.first[some], values.size[some] - 1
    place = last * (q / 100)
    low = (np.floor(place) if between else np.ceil(place)).astype(np.int64)
    lower, upper = values.value[first + low], values.value[first + np.minimum(low + 1, last)]
    share = np.where(between, place - low, 0.0)
    step = upper - lower
    out[some] = np.where(share < 0.5, lower + step * share, upper - step * (1 - share))
    return out
