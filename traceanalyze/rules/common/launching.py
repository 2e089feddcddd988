"""How far the host is from keeping the device busy, for the rules about dispatch."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.host.frames import user_frames
from traceanalyze.analyses.idle.host_state import PYTHON_NS, host_states
from traceanalyze.analyses.idle.idle import LAUNCH_LATENCY_NS, idle_begun_before, idle_gaps
from traceanalyze.analyses.idle.launches import median_depth
from traceanalyze.analyses.idle.pauses import profiling
from traceanalyze.model import intervals
from traceanalyze.model.columns import Rows, occurs
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import DISPATCH, ApiClass, Cause, DeviceClass, EventKind
from traceanalyze.replay.parts import last_part
from traceanalyze.replay.replay import Change, together
from traceanalyze.rules.common.host_ops import RECORDING_NS
from traceanalyze.rules.common.one_off import one_off
from traceanalyze.rules.common.replay import saved
from traceanalyze.rules.rule import Facts, Finding, Options, Scope, intervals_of, measured, merged, picked

FRAME_NS = 1_000
"""What the profiler adds to each Python function: own, entry and return of a small one on current hosts."""
FEW_LAUNCHED, FEW_STEPS, MANY_UNLINKED = 8, 3, 32
"""Fewer launches recorded, in fewer steps, are an excerpt or a toy (own: the smallest program that is worth a profile
launches some ten); beside so many events of devices, launches are what was not recorded."""
_EXPLAINED = Cause.DATA_LOADING, Cause.SYNC, Cause.PEER_WAIT, Cause.UNTRACED
GRAPH = regex(r"GraphLaunch")
"""Calls that launch a graph."""
LATE_HOST = {"share": (0.10, "as HST101"), "late": (0.20, "as HST101")}
"""Options of rules that ask whether the host is late."""


class Launching(NamedTuple):
    """How the host kept up in the windows."""

    share: float
    """Idle time in dispatch and host operators over the step (`launch_bound_share`, definitions §6), without what is
    done once."""
    late: float
    """Idle time in gaps that ended with work whose launch was not over when they began, over all; NaN where the clocks
    disagree. By time: most gaps are the moment between two queued kernels."""
    depth: float | None
    """Median queue depth; None where the clocks disagree."""
    spans: NDArray[np.int64]
    """(n, 2) idle time in which the host was on its way to the next launch: dispatch, operators, Python in between."""
    gap: Rows
    """Which of `idle_gaps` each of them lies in."""

    def bound(self, share: float, late: float) -> bool:
        """Whether the host cannot keep the queue filled."""
        empty = self.depth is not None and self.depth <= 1
        return self.share >= share and (self.late >= late or empty)


def cut_off(facts: Facts) -> bool:
    """Whether the file ends before the windows do, so that the device may have worked where it seems idle."""
    cut = facts.context.cut_at
    return cut is not None and bool((facts.windows.end > cut).any())


def excerpt(facts: Facts) -> bool:
    """Whether too few launches were recorded to tell what the host did; use with `Facts.once`.

    What was cut out of a recording, or never was in it, looks like a host that does nothing.
    """
    device, calls = facts.context.device, facts.context.calls
    inside = facts.inside(device.start)
    if cut_off(facts):
        return True
    whole = facts.context.doubt == "only_sums"
    if whole or facts.window.count >= FEW_STEPS or int(inside.sum()) >= MANY_UNLINKED:
        return False
    asked = np.isin(calls.klass, (ApiClass.LAUNCH, ApiClass.COPY)) & facts.inside(calls.start)
    return max(int((inside & (facts.context.link >= 0)).sum()), int(asked.sum())) < FEW_LAUNCHED


def begun_before(facts: Facts) -> Intervals:
    """Of the windows what first waits for work launched before the recording; use with `Facts.once`.

    If it came back, it would be the program's own.
    """
    return intervals.intersect(facts.context.once(idle_begun_before), facts.windows)


def recording(facts: Facts) -> Change:
    """The host without what recording its operators and functions takes; use with `Facts.once`.

    Between two calls of a thread so much less as begins there. Nothing where the recording has activities alone.
    """
    context, found = facts.context, dict[int, intervals.Intervals]()
    if not any(each.id == "Q11" for each in facts.analysis.checks):
        return Change()
    events, calls, nest = context.trace.events, context.calls, context.op_nest
    frames = np.flatnonzero(context.kind == EventKind.PYTHON)
    for track in dict.fromkeys((context.step_track, *context.threads)):
        frame = frames[events.track[frames] == context.once(user_frames).track(track)]
        called = slice(*np.searchsorted(calls.track, np.array((track, track + 1), calls.track.dtype)))
        busy = intervals.merge(calls.start[called], calls.end[called])
        free = intervals.gaps(busy, int(context.all_steps.start.min()), int(context.all_steps.end.max()))
        spent = np.zeros(len(free.start))
        for begun, each in ((nest.start[nest.of(track)], RECORDING_NS), (np.sort(events.ts[frame]), FRAME_NS)):
            if len(begun):
                spent += each * (intervals.passed(begun, free.end - 1) - intervals.passed(begun, free.start - 1))
        found[track] = last_part(free, spent / np.maximum(free.end - free.start, 1))
    return Change(threads=found)


def at_least(facts: Facts, spans: NDArray[np.int64]) -> int:
    """What is saved at least without some launching (n, 2), ns a step: of a program that nobody records."""
    both = together(facts.once(recording), Change(facts.merged(spans)))
    return max(0, saved(facts, both) - facts.once(_by_recording))


def _by_recording(facts: Facts) -> int:
    """What a step is shorter where nobody records it, ns."""
    return saved(facts, facts.once(recording))


class Held(NamedTuple):
    """Collectives that began as soon as a late host had launched them."""

    spans: NDArray[np.int64]
    """(n, 2) their time beside no compute, in the windows."""
    before: intervals.Intervals
    """Dispatch and host operators as long before each launch."""
    number: int


def held_collectives(facts: Facts) -> Held:
    """What a faster host would begin while the device still computes."""
    context, device, calls = facts.context, facts.context.device, facts.context.calls
    compute, own = facts.busy(DeviceClass.COMPUTE), facts.headline(DeviceClass.COMM) & (context.link >= 0)
    rows = np.flatnonzero(own & (device.start - context.launch_end <= LAUNCH_LATENCY_NS) & facts.inside(device.start))
    alone = intervals.subtract(intervals.merge(device.start[rows], device.end[rows]), compute)
    shown = intervals.coverage(alone, device.start[rows], device.end[rows])
    begun = calls.start[context.link[rows]]
    tracks = dict.fromkeys((context.step_track, *context.threads))
    works = (context.once(host_states, track, True).of(DISPATCH) for track in tracks if track >= 0)
    before = intervals.intersect(intervals.union(intervals.EMPTY, *works), intervals.merge(begun - shown, begun))
    return Held(intervals_of(*intervals.intersect(alone, facts.windows)), before, len(rows))


def late_host(facts: Facts, options: Options) -> bool:
    """Whether the host cannot keep the queue filled, by the options `LATE_HOST`."""
    return facts.once(launching).bound(options.number("share"), options.number("late"))


def idle_during(facts: Facts, rows: NDArray[np.int64], about: tuple[str, ...] = ()) -> Finding:
    """Idle time of the device during some events of the host, at most all their time; by default about the first."""
    host = merged(facts.spans(rows))
    spans = facts.overlap(host)
    saving, bound = facts.length(spans), facts.mean(intervals.total(host))
    return Finding(
        saving=saving,
        bound=bound,
        change=Change(host),
        draws="idle",
        intervals=spans,
        evidence=measured(idle=saving, host=bound, count=len(rows)),
        scope=Scope(ops=about or facts.names(rows)),
        count=len(rows),
    )


def launching(facts: Facts) -> Launching:
    """The host's part in the idle time of a rank."""
    context, pieces = facts.context, facts.pieces
    gaps = context.once(idle_gaps)
    asked = gaps.launch_end > gaps.start
    late = asked & (gaps.call >= 0)
    length = pieces.end - pieces.start
    dispatch = occurs(pieces.cause, DISPATCH)
    others = intervals.union(facts.once(one_off).every, context.once(profiling))
    once = 2 * intervals.coverage(others, pieces.start, pieces.end) > length
    once |= facts.once(excerpt)
    dispatch &= ~once
    share = facts.share(facts.mean(int(length @ dispatch)))
    idle = intervals.coverage(facts.windows, gaps.start, gaps.end)
    share_late = int(idle[late].sum()) / max(int(idle.sum()), 1) if context.doubt is None else float("nan")
    # On the way from one to the next it is in Python for a moment.
    dispatch |= (pieces.cause == Cause.UNTRACED) & (length < PYTHON_NS) & ~once
    chosen = np.flatnonzero(dispatch & asked[pieces.gap])
    spans = picked(pieces.start, pieces.end, chosen)
    return Launching(share, share_late, context.once(median_depth), spans, pieces.gap[chosen])


def underused(facts: Facts, busy: float, other: float) -> float | None:
    """Busy share of the step where it is below `busy` and less than `other` of the idle time has a reason of its own.

    That is data, sync, peers, unknown work and what is done once. What waits for work that was launched before the
    recording is no part of the step.

    None where the device is busy enough, or idle for these reasons.
    """
    parts = facts.analysis.partitions[0]
    before = facts.mean(intervals.total(facts.once(begun_before)))
    share = facts.mean(facts.window.sum(parts.busy)) / max(1, facts.step_time - before)
    idle = facts.mean(facts.window.sum(parts.idle)) - before
    once = intervals_of(*intervals.subtract(facts.once(one_off).every, facts.merged(facts.idle(*_EXPLAINED))))
    explained = facts.idle_mean(*_EXPLAINED) + facts.length(once)
    return None if share >= busy or explained >= other * idle else share
