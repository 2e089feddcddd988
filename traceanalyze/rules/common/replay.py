"""What if the host had not spent some time: how much earlier the device would have got its work.

The host's program is moved forward by the time taken out of it, and every device event by as much as three things
allow: its launch (it may have waited in the queue, too), the idle time before it, and the shift of the event before.
Where the host still waits for the device, it goes on when the device is ready; where it waits for a batch of the
loader's workers, when that is there: no earlier than now. Work of several streams that overlaps
moves together, so that what streams wait for each other for stays as it was.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.idle.host_state import is_sync_call
from traceanalyze.analyses.idle.idle import LAUNCH_LATENCY_NS, idle_gaps
from traceanalyze.model import intervals
from traceanalyze.model.intervals import Intervals
from traceanalyze.rules.common.loader import WORKERS
from traceanalyze.rules.facts import RANGES
from traceanalyze.rules.rule import Facts, intervals_of

BETWEEN_KERNELS_NS = 1_500
"""What stays of a gap when the next kernel is there in time; typical of current devices."""
WAITED_NS = 1_000_000
"""Fetching a batch that is ready takes less: in a longer call the loop waited for the loader's workers."""


class Gain(NamedTuple):
    """What would be saved."""

    saving: int
    """ns a step."""
    idle: NDArray[np.int64]
    """(n, 2) the idle time that would be gone, in the windows."""


@dataclass(frozen=True, eq=False)
class _Queue:
    """Events of the headline device by start, and the gaps before them."""

    event: NDArray[np.int64]
    """Position in `Context.device`."""
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    launch: NDArray[np.int64]
    slack: NDArray[np.int64]
    """How much earlier its launch could not have come, as it waited in the queue; huge where no launch is known."""
    free: NDArray[np.int64]
    """Idle time before each event that an earlier launch would remove."""


def queue(facts: Facts) -> _Queue:
    """The work of the headline device as it was launched."""
    context = facts.context
    device, gaps = context.device, context.once(idle_gaps)
    queued = np.flatnonzero((device.device == context.devices[0]) & (device.end > device.start))
    start, launch = device.start[queued], context.launch_start[queued]
    linked = (context.link[queued] >= 0) & (launch <= start)
    late = (gaps.call >= 0) & (gaps.launch_end > gaps.start)
    latency = (gaps.end - gaps.launch_start)[late & (gaps.launch_start >= gaps.start)]
    usual = min(int(np.median(latency)), LAUNCH_LATENCY_NS) if len(latency) else LAUNCH_LATENCY_NS
    slack = np.where(linked, np.maximum(start - launch - usual, 0), np.iinfo(np.int64).max // 4)
    free = np.zeros(len(queued), np.int64)
    at = np.searchsorted(start, gaps.end[late], "left")
    known = at < len(queued)
    # What is left of a gap long after the launch has something else to wait for, and stays.
    reached = np.minimum(gaps.end, np.where(late, gaps.launch_end, gaps.start) + LAUNCH_LATENCY_NS)
    free[at[known]] = np.maximum(reached - gaps.start - BETWEEN_KERNELS_NS, 0)[late][known]
    return _Queue(queued, start, device.end[queued], launch, slack, free)


def replay_without(
    facts: Facts, removed: Intervals, shorter: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
) -> Gain:
    """What the steps would gain without some host time, and with some device events shorter.

    Args:
        facts: of the rank.
        removed: the host time, a set; sync calls inside it go too, all others stay.
        shorter: positions in `Context.device`, by start, and by how many ns each of these events is shorter.
    """
    work = _with_shorter(facts.once(queue), shorter)
    if not len(work.event):
        return Gain(0, np.zeros((0, 2), np.int64))
    start, end, fixed = _waits(facts, removed)
    ahead_at = _until(removed, end).tolist()
    loss = np.zeros(len(start) + 1, np.int64)
    """How much less the host is ahead than the time taken out before, after so many waits."""
    gained, shift, before = np.cumsum(work.free), np.zeros(len(work.start), np.int64), 0
    edges = [0, *np.searchsorted(work.start, end, "left").tolist(), len(work.start)]
    ended = np.searchsorted(end, work.launch, "right")
    ahead = _until(removed, work.launch) + work.slack
    reach = np.maximum.accumulate(work.end)
    last = np.searchsorted(reach, end, "left")
    for wait, (low, high) in enumerate(itertools.pairwise(edges)):
        if high > low:
            # An event moves by what the one before did and the gap between them, and no further than its launch.
            own = ahead[low:high] - loss[ended[low:high]] - gained[low:high]
            start_at = before - (int(gained[low - 1]) if low else 0)
            shift[low:high] = np.minimum(np.minimum.accumulate(own), start_at) + gained[low:high]
            before = int(shift[high - 1])
        if wait < len(start) and fixed[wait]:
            loss[wait + 1] = ahead_at[wait]
        elif wait < len(start):
            done = int(last[wait]) - 1
            finish = int(reach[done]) if done >= 0 else int(start[wait])
            host = ahead_at[wait]
            own_shift = host - int(loss[wait]) + max(0, finish - int(start[wait]))
            device_shift = (int(shift[done]) if done >= 0 else 0) + max(0, int(start[wait]) - finish)
            loss[wait + 1] = host - min(own_shift, device_shift)
    gone = np.diff(shift, prepend=0)
    gone[work.free == 0] = 0
    spans = intervals_of(work.start - np.maximum(gone, 0), work.start)[gone > 0]
    return Gain(_saved(facts, work, shift, removed, end, loss), intervals_of(*facts.clip(spans)))


def _with_shorter(work: _Queue, shorter: tuple[NDArray[np.int64], NDArray[np.int64]] | None) -> _Queue:
    """What an event is shorter by is as good as idle time before the one that follows it."""
    if shorter is None:
        return work
    after = np.searchsorted(work.event, shorter[0]) + 1
    inside = after < len(work.event)
    free = work.free.copy()
    np.add.at(free, after[inside], shorter[1][inside])
    return replace(work, free=free)


def _waits(facts: Facts, removed: Intervals) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Waits of the host that stay, by their end: sync calls, and waits for a batch, whose end is fixed."""
    context = facts.context
    sync = np.flatnonzero(context.once(is_sync_call))
    batch = facts.spans(facts.rows(RANGES, WORKERS))
    batch = batch[batch[:, 1] - batch[:, 0] >= WAITED_NS]
    start = np.concatenate((context.calls.start[sync], batch[:, 0]))
    end = np.concatenate((context.calls.end[sync], batch[:, 1]))
    fixed = np.arange(len(start)) >= len(sync)
    stays = np.flatnonzero(~intervals.contains(removed, start))
    order = stays[np.argsort(end[stays], kind="stable")]
    return start[order], end[order], fixed[order]


def _until(removed: Intervals, t: NDArray[np.int64]) -> NDArray[np.int64]:
    """Time taken out before each instant."""
    return intervals.coverage(removed, np.full(len(t), np.iinfo(np.int64).min // 4), t)


def _saved(
    facts: Facts,
    work: _Queue,
    shift: NDArray[np.int64],
    removed: Intervals,
    waits: NDArray[np.int64],
    loss: NDArray[np.int64],
) -> int:
    """How much shorter the windows would be, ns a step: each ends when host and device have ended."""
    steps = facts.context.all_steps
    reach = np.maximum.accumulate(work.end)
    at = np.searchsorted(reach, steps.end, "right") - 1
    device = np.where(at >= 0, reach[at] - shift[at], np.iinfo(np.int64).min)
    host = steps.host_end - (_until(removed, steps.host_end) - loss[np.searchsorted(waits, steps.host_end, "right")])
    moved = steps.end - np.minimum(np.maximum(device, host), steps.end)
    gained = np.diff(moved, prepend=0)
    counted = np.isin(steps.start, facts.analysis.steps.start[list(facts.window.rows)])
    return facts.mean(max(0, int(gained[counted].sum())))
