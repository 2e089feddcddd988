"""How work reached the device: launch cost, delay, queue depth, late launches (definitions §6)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.idle.host_state import is_sync_call
from traceanalyze.analyses.idle.idle import idle_gaps
from traceanalyze.analyses.steps.window import Steps, step_labels
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct
from traceanalyze.model.table import Column, Kind, Layout, NotMeasured, Table, Value, declare, known
from traceanalyze.model.vocabulary import ApiClass

if TYPE_CHECKING:
    from traceanalyze.analyses.context import Context

FULL_QUEUE_DEPTH = 1000
"""A long launch with this many events waiting on its stream blocks because the queue is full (definitions §6)."""
LONG_LAUNCH_NS = 50_000
CLOCK_ERROR_SHARE = 0.05
"""With more kernels than this starting before their launch, host and device clocks disagree (definitions §14, Q04)."""

LAUNCHES = declare(
    "launches",
    "How work reached the device",
    Column(
        "linked",
        Kind.COUNT,
        "device events whose launch call was recorded",
        heading="device events linked to their launch",
    ),
    Column(
        "unlinked",
        Kind.COUNT,
        "device events without one; they count in all device times",
        heading="device events without a launch record",
        minor=True,
    ),
    Column(
        "unlinked_ns",
        Kind.DURATION,
        "sum of their durations",
        heading="device time without a launch record",
        scale="unlinked",
        minor=True,
    ),
    Column(
        "late",
        Kind.COUNT,
        "the device had nothing to run when they were launched",
        heading="launched after the device had run dry",
    ),
    Column("late_share", Kind.SHARE, "part of the linked device events", heading="share of launches that came late"),
    Column(
        "delay_p50_ns",
        Kind.DURATION,
        "from launch call to start on the device; half of all wait no longer",
        heading="wait in the queue, median",
        scale="delay",
    ),
    Column(
        "delay_p90_ns",
        Kind.DURATION,
        "from launch call to start on the device; nine of ten wait no longer",
        heading="wait in the queue, 90th percentile",
        scale="delay",
    ),
    Column(
        "queue_depth_p50",
        Kind.NUMBER,
        "device events launched and not yet started, seen by half of all launches",
        heading="work queued ahead, median",
    ),
    Column(
        "queue_depth_p90",
        Kind.NUMBER,
        "device events launched and not yet started, seen by nine of ten launches at the most",
        heading="work queued ahead, 90th percentile",
    ),
    Column(
        "idle_queue_empty",
        Kind.SHARE,
        "part of the idle time in which the host had launched nothing to run",
        heading="idle time with nothing queued",
    ),
    Column(
        "queue_full_ns",
        Kind.DURATION,
        "host time in launch calls that wait for room in the queue",
        heading="host blocked by a full queue",
        scale="full",
        minor=True,
    ),
    Column(
        "negative_latency",
        Kind.COUNT,
        "more than a few mean that host and device clocks disagree",
        heading="kernels that start before their launch",
        minor=True,
    ),
    layout=Layout.RECORD,
)
RUNTIME_CALLS = declare(
    "runtime_calls",
    "Host time in runtime calls",
    Column("call", Kind.NAME, "runtime or driver call"),
    Column("kind", Kind.TERM, "kind of the call"),
    Column("count", Kind.COUNT, "how many there are"),
    Column("sum_ns", Kind.DURATION, "host time inside all calls of this name", heading="sum"),
    Column("mean_call_ns", Kind.DURATION, "mean duration of a call", heading="mean call", scale="call"),
    ranked=True,
    detail=True,
)


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


def launches(context: Context) -> Table:
    """How device work of the whole trace was launched; gaps are those of the headline device."""
    if len(context.calls) == 0:
        return LAUNCHES.missing("no_api")
    device, link, gaps, queue = context.device, context.link, context.once(idle_gaps), context.once(launch_queue)
    linked, launch_start, good = link >= 0, context.launch_start, queue.good
    count, late = int(linked.sum()), int(_ended_late(context).sum())
    row: dict[str, Value] = {
        "linked": count,
        "unlinked": int((~linked).sum()),
        "unlinked_ns": int((device.end - device.start)[~linked].sum()),
        "late": late,
        "late_share": late / count if count else None,
        "queue_full_ns": queue.blocked,
        "negative_latency": int((device.start[linked] < context.calls.start[link[linked]]).sum()),
    }
    if clocks_agree(linked & ~good, linked):
        delay = np.maximum(device.start[good] - context.launch_end[good], 0)
        idle = intervals.Intervals(gaps.start, gaps.end)
        idle_time = intervals.total(idle)
        waiting = intervals.merge(launch_start[good], device.start[good])
        row |= {
            "delay_p50_ns": _observed(delay, 50),
            "delay_p90_ns": _observed(delay, 90),
            "queue_depth_p50": _between(queue.depth, 50),
            "queue_depth_p90": _between(queue.depth, 90),
            "idle_queue_empty": 1 - intervals.total(intervals.intersect(idle, waiting)) / idle_time
            if idle_time
            else None,
        }
    unknown = NotMeasured("no_linked_launches")
    return LAUNCHES.fill_records([{key: unknown if row.get(key) is None else row[key] for key in LAUNCHES.keys}])


def median_depth(context: Context) -> float | None:
    """Events that half of all launches find waiting before them; None where the clocks of host and device disagree."""
    linked, queue = context.link >= 0, context.once(launch_queue)
    return _between(queue.depth, 50) if clocks_agree(linked & ~queue.good, linked) else None


def _ended_late(context: Context) -> NDArray[np.bool_]:
    """Gaps that a device event ended that was launched after they began."""
    gaps = context.once(idle_gaps)
    return (gaps.call >= 0) & (gaps.launch_start >= gaps.start)


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


def runtime_calls(context: Context) -> Table:
    """Host cost of runtime calls by name and class, costliest first; a call inside another counts in the outer one."""
    calls = context.calls
    if len(calls) == 0:
        return RUNTIME_CALLS.missing("no_api")
    outer = np.flatnonzero(calls.outermost)
    klass = np.where(context.once(is_sync_call)[outer], ApiClass.SYNC, calls.klass[outer])
    keys = group(calls.name[outer], klass)
    count, time = keys.count(), keys.sum(calls.end[outer] - calls.start[outer])
    labels = [f"api_{each.name.lower()}" for each in ApiClass]
    return RUNTIME_CALLS.fill(
        call=list(context.trace.strings.texts(calls.name[outer][keys.first])),
        kind=[labels[code] for code in klass[keys.first].tolist()],
        count=count,
        sum_ns=time,
        mean_call_ns=time // count,
    ).sort("-sum_ns", "call", "kind")


_STEP_LAUNCHES = declare(
    "step_launches",
    "Launches step by step",
    Column("step", Kind.TEXT, "number of the step, or its name"),
    Column("late_launches", Kind.COUNT, "device events launched after the device had run dry", heading="launched late"),
    Column(
        "wait_p50_ns",
        Kind.DURATION,
        "from the launch call's return to the start on the device; half of the step's events wait no longer",
        heading="wait, median",
        scale="wait",
    ),
    Column("wait_p90_ns", Kind.DURATION, "the same; nine of ten wait no longer", heading="wait, 90 %", scale="wait"),
    Column(
        "depth_p50",
        Kind.NUMBER,
        "work launched and not yet started when an event starts, median",
        heading="queued, median",
    ),
    Column("depth_p90", Kind.NUMBER, "the same; nine of ten see no more", heading="queued, 90 %"),
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
    row = step_of(context.steps, context.once(idle_gaps).end[_ended_late(context)])
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
