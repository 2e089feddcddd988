"""How work reached the device: launch cost, delay, queue depth, late launches (definitions §6)."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.idle.host_state import is_sync_call
from traceanalyze.analyses.idle.idle import idle_gaps
from traceanalyze.analyses.steps.window import Steps, step_labels
from traceanalyze.model import intervals
from traceanalyze.model.columns import Rows, distinct, median, occurs, short
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Kind, Layout, NotMeasured, Table, Value, Values, declare, known, where
from traceanalyze.model.vocabulary import ApiClass

FULL_QUEUE_DEPTH = 1000
"""A long launch with this many events waiting on its stream blocks because the queue is full (definitions §6)."""
LONG_LAUNCH_NS = 50_000
_BEGIN_CAPTURE, _END_CAPTURE = regex(r"StreamBeginCapture"), regex(r"StreamEndCapture")

LAUNCHES = declare(
    "launches",
    "How work reached the device (but for steps that are left out)",
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
    "Host time in runtime calls (sum over the analysed steps)",
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
    waits: NDArray[np.bool_]
    """Whether it is also the first of its launch: later ones of a graph are not in the queue."""
    event: NDArray[np.int32]
    """The first event of each launch, by stream."""
    depth: NDArray[np.int32]
    """Events that wait on its stream when it starts, itself included."""
    blocked: int
    """Time in launches that a full queue blocked, ns."""


def launches(context: Context) -> Table:
    """How work of the headline device was launched, whose gaps these are, all but that of steps that do not count."""
    if len(context.calls) == 0:
        return LAUNCHES.missing("no_api")
    device, gaps, queue = context.device, context.once(idle_gaps), context.once(launch_queue)
    every, left_out = context.all_steps, ~occurs(context.all_steps.start, context.counted.start)
    elsewhere = intervals.merge(every.start[left_out], every.end[left_out])
    counted, here = (~intervals.contains(elsewhere, start) for start in (device.start, gaps.start))
    counted &= device.device == context.devices[0]
    linked, unlinked = counted & (context.link >= 0), counted & (context.link < 0)
    launch_start, good = context.launch_start, counted & queue.good
    count = int(linked.sum())
    row: dict[str, Value] = {
        "linked": count,
        "unlinked": int(unlinked.sum()),
        "unlinked_ns": int((device.end - device.start)[unlinked].sum()),
        "negative_latency": int((device.start[linked] < launch_start[linked]).sum()),
    }
    late = ended_late(context)
    if late is not None and count:
        late = late & ~intervals.contains(elsewhere, gaps.end)
        delay = np.maximum(device.start[good] - context.launch_end[good], 0)
        idle = intervals.Intervals(gaps.start[here], gaps.end[here])
        depth = queue.depth[counted[queue.event]]
        idle_time = intervals.total(idle)
        waiting = intervals.merge(launch_start[queue.waits & counted], device.start[queue.waits & counted])
        row |= {
            "late": int(late.sum()),
            "late_share": int(late.sum()) / count,
            "queue_full_ns": queue.blocked,
            "delay_p50_ns": _observed(delay, 50),
            "delay_p90_ns": _observed(delay, 90),
            "queue_depth_p50": _of_all(depth, 50),
            "queue_depth_p90": _of_all(depth, 90),
        }
        row["idle_queue_empty"] = (
            1 - intervals.total(intervals.intersect(idle, waiting)) / idle_time
            if idle_time
            else NotMeasured("never_idle")
        )
    unknown = NotMeasured(context.doubt or "no_linked_launches")
    return LAUNCHES.fill_records([{key: unknown if row.get(key) is None else row[key] for key in LAUNCHES.keys}])


def median_depth(context: Context) -> float | None:
    """Events that half of all launches find waiting before them; None where launches are in doubt."""
    depth = context.once(launch_queue).depth
    return median(depth) if context.doubt is None and len(depth) else None


def ended_late(context: Context) -> NDArray[np.bool_] | None:
    """Gaps that a device event ended that was launched after they began; None where launches are in doubt."""
    gaps = context.once(idle_gaps)
    return (gaps.call >= 0) & (gaps.launch_start >= gaps.start) if context.doubt is None else None


def _of_all(values: Rows, q: int, *, between: bool = True) -> float | None:
    """Percentile of all values, None of none."""
    found = float(_percentiles(np.sort(values, kind="stable"), np.array((0, len(values))), q, between=between)[0])
    return None if math.isnan(found) else found


def _observed(values: NDArray[np.int64], q: int) -> int | None:
    """An observed value: the upper one where the percentile falls between two."""
    found = _of_all(values, q, between=False)
    return None if found is None else int(found)


def lost_launches(context: Context) -> Rows:
    """Positions of the launches and copies of which the recording shows no work of the device.

    Calls that hardly ever have an event of their own only lead to one that has (`aclnn*`, `Enqueue`). What a capture of
    a graph launches does not run.
    """
    calls, shown = context.calls, np.zeros(len(context.calls) + 1, np.bool_)
    shown[context.link] = True
    begins, ends = (context.trace.strings.matches(calls.name, one.search) for one in (_BEGIN_CAPTURE, _END_CAPTURE))
    shown[:-1] |= np.cumsum(begins.astype(np.int64) - ends) > 0
    each = group(calls.name)
    usual = 2 * each.sum(shown[:-1].astype(np.int64)) >= each.count()
    asked = (calls.klass == ApiClass.LAUNCH) | (calls.klass == ApiClass.COPY)
    return np.flatnonzero(asked & ~shown[:-1] & usual[each.of])


def launch_queue(context: Context) -> Queue:
    """Depth of the streams' queues. Events of one launch (a graph) wait as one, until the first of them starts."""
    device, link, calls, launch_start = context.device, context.link, context.calls, context.launch_start
    good = (link >= 0) & (device.start >= launch_start)
    firsts, depths, blocked = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
    events = np.flatnonzero(good)
    lane = device.device[events] * (1 << 32) + device.stream[events]
    for one in distinct(lane).tolist():
        first = events[lane == one]
        first = first[np.sort(group(link[first]).first)]
        firsts.append(first)
        queued = np.sort(launch_start[first], kind="stable")
        started = device.start[first]
        depths.append(intervals.passed(queued, started) - intervals.passed(started, started - 1))
        launch = link[first]
        slow = (calls.end[launch] - calls.start[launch] > LONG_LAUNCH_NS) & (calls.klass[launch] == ApiClass.LAUNCH)
        launch, at = launch[slow], launch_start[first[slow]]
        depth = intervals.passed(queued, at) - intervals.passed(started, at)
        full = launch[depth >= FULL_QUEUE_DEPTH]
        blocked += int((calls.end[full] - calls.start[full]).sum())
    waits = np.zeros(len(device), np.bool_)
    waits[events[group(link[events]).first]] = True
    return Queue(good, waits, short(np.concatenate(firsts)), short(np.concatenate(depths)), blocked)


def runtime_calls(context: Context) -> Table:
    """Host cost of runtime calls by name and class, costliest first; a call inside another counts in the outer one.

    Of each call the part inside the steps that count.
    """
    calls, windows = context.calls, context.host_windows
    if len(calls) == 0:
        return RUNTIME_CALLS.missing("no_api")
    inside = intervals.coverage(windows, calls.start, calls.end)
    outer = np.flatnonzero(calls.outermost & ((inside > 0) | intervals.contains(windows, calls.start)))
    klass = np.where(context.once(is_sync_call)[outer], ApiClass.SYNC, calls.klass[outer])
    keys = group(calls.name[outer], klass)
    count, time = keys.count(), keys.sum(inside[outer])
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
    ended = ended_late(context)
    if context.doubt is not None or ended is None:
        return _STEP_LAUNCHES.missing(context.doubt or "no_linked_launches")
    queue, starts = context.once(launch_queue), device.start
    delays = _by_step(steps, starts[queue.good], np.maximum(starts[queue.good] - context.launch_end[queue.good], 0))
    depths = _by_step(steps, starts[queue.event], queue.depth)
    late = step_of(steps, context.once(idle_gaps).end[ended])
    missing = NotMeasured("no_linked_launches")

    def observed(q: int) -> Values:
        found = _percentiles(*delays, q, between=False)
        return where(~np.isnan(found), np.nan_to_num(found).astype(np.int64), missing)

    return _STEP_LAUNCHES.fill(
        step=step_labels(steps.name),
        late_launches=np.bincount(late[late >= 0], minlength=len(steps)),
        wait_p50_ns=observed(50),
        wait_p90_ns=observed(90),
        depth_p50=known(_percentiles(*depths, 50, between=True), missing.reason),
        depth_p90=known(_percentiles(*depths, 90, between=True), missing.reason),
    )


def step_of(steps: Steps, t: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row of the window that holds each instant, -1 for none."""
    row = np.searchsorted(steps.start, t, "right") - 1
    return np.where((row >= 0) & (t < steps.end[row]), row, -1)


def _by_step(steps: Steps, t: NDArray[np.int64], values: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Values step by step, ascending in each, and where each step's begin, with the end of all."""
    row = step_of(steps, t)
    order = np.lexsort((values, row))
    return values[order], np.searchsorted(row[order], np.arange(len(steps) + 1))


def _percentiles(values: NDArray[np.int64], bounds: NDArray[np.int64], q: int, *, between: bool) -> NDArray[np.float64]:
    """Percentile of each group as `numpy.percentile` has it, which would import `numpy.ma`; NaN for an empty group.

    Values are ascending in each group; `bounds` are where groups begin, and the end of the last. Between two values:
    interpolated ("linear") or the larger ("higher").
    """
    size = np.diff(bounds)
    out = np.full(len(size), np.nan)
    some = size > 0
    first, last = bounds[:-1][some], size[some] - 1
    place = last * (q / 100)
    low = (np.floor(place) if between else np.ceil(place)).astype(np.int64)
    lower, upper = values[first + low], values[first + np.minimum(low + 1, last)]
    share = np.where(between, place - low, 0.0)
    step = upper - lower
    out[some] = np.where(share < 0.5, lower + step * share, upper - step * (1 - share))
    return out
