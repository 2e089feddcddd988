"""Why the device is idle: every gap split into causes that sum to it exactly (definitions §5)."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.idle.host_state import States, host_states, peers_unknown
from traceanalyze.analyses.steps.window import Steps, amounts, step_labels, window_of
from traceanalyze.model import intervals
from traceanalyze.model.columns import Rows, occurs, short, taken
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.patterns import dataclass
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, declare
from traceanalyze.model.vocabulary import NEED_CALLS, NEED_CLOCKS, NEED_HOST_OPS, NEED_RUNTIME, Cause

LAUNCH_LATENCY_NS = 10_000
"""τ: how long a launched kernel may take to start before something else must be holding it (definitions, notation)."""

_BEGINNING = 8
"""After so many device events a recording is no longer at its beginning (own)."""


@dataclass(frozen=True, eq=False)
class Gaps:
    """Maximal idle intervals of one device in time order, with the event that ended each. -1 = none."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    event: NDArray[np.int32]
    """Position in `DeviceEvents` of the event that starts at the gap's end."""
    call: NDArray[np.int32]
    """Position in `ApiCalls` of that event's launch; -1 also when it is later than the event itself (clock error)."""
    launch_start: NDArray[np.int64]
    launch_end: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.start)


class Pieces(NamedTuple):
    """Parts of gaps with one cause each, in time order; `track` is the host thread that was blamed, -1 for none."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    cause: NDArray[np.uint8]
    gap: NDArray[np.int32]
    track: NDArray[np.int32]


def idle_gaps(context: Context) -> Gaps:
    """Gaps of the headline device from the first step to the last, whichever steps were chosen."""
    first, last, device = int(context.all_steps.start.min()), int(context.all_steps.end.max()), context.devices[0]
    events, link, calls = context.device, context.link, context.calls
    own = np.flatnonzero((events.device == device) & (events.end > events.start))
    start = events.start[own]
    free = intervals.gaps(intervals.merge(start, events.end[own]), first, last)
    if (start[1:] == start[:-1]).any():
        own = own[np.lexsort((_taken(calls.start, link[own]), start))]
    at = intervals.passed(start, free.end - 1)
    at[at == len(own)] = 0
    # A gap cut off by the end of the range has no next event, though the device may go on later.
    event = np.where(start[at] == free.end, own[at], -1) if len(own) else np.full(len(at), -1, np.int64)
    call = np.where(event >= 0, link[event], -1) if len(link) else np.full(len(at), -1, np.int64)
    launch_start, launch_end = _taken(calls.start, call), _taken(calls.end, call)
    late_clock = (call >= 0) & (launch_start > events.start[event] if len(events) else False)
    return Gaps(*free, short(event), short(np.where(late_clock, -1, call)), launch_start, launch_end)


def _taken(values: NDArray[np.int64], index: Rows) -> NDArray[np.int64]:
    """`values[index]`, with the largest int64 where the index is -1."""
    out = np.full(len(index), np.iinfo(np.int64).max)
    valid = index >= 0
    out[valid] = taken(values, index[valid])
    return out


def idle_pieces(context: Context) -> Pieces:
    """Causes of the gaps of the headline device."""
    gaps, call_track, threads = context.once(idle_gaps), context.calls.track, context.threads
    known = gaps.call >= 0
    host_end = np.where(known, np.clip(gaps.launch_end, gaps.start, gaps.end), gaps.end)
    launcher = np.full(len(gaps), -1, np.int64)
    launcher[known] = taken(call_track, gaps.call[known])
    member = short(np.flatnonzero(host_end > gaps.start))
    order = member[np.argsort(launcher[member], kind="stable")]
    parts, left, open_ = [_device_side(gaps, host_end, known)], [], set[int]()
    for gap in np.split(order, np.flatnonzero(np.diff(launcher[order])) + 1):
        first = dict.fromkeys(t for t in (int(launcher[gap[0]]), context.step_track) if t >= 0) if len(gap) else {}
        # Only the launching and the step thread can wait for data on the step's behalf.
        states = [context.once(host_states, t, True) for t in first]
        found, rest = _blamed(_Rest(gaps.start[gap], host_end[gap], gap), states, first)
        parts.extend(found)
        left.append(rest)
        open_ |= {*threads} - {*first} if len(gap) else set()
    # What comes next is the same for all gaps, whoever launched what ends them. Who was asked about each knows no more.
    start, end, of = (np.concatenate(column) for column in zip(*left, strict=True))
    by_time = np.argsort(start, kind="stable")
    later = [t for t in threads if t in open_]
    every = (context.once(host_states, t, False) for t in later)
    found, rest = _blamed(_Rest(start[by_time], end[by_time], of[by_time]), every, later)
    nowhere = np.full(len(rest.gap), -1, np.int32)
    untraced = Pieces(rest.start, rest.end, np.full(len(rest.gap), Cause.UNTRACED, np.uint8), rest.gap, nowhere)
    joined = Pieces(*(np.concatenate(column) for column in zip(*parts, *found, untraced, strict=True)))
    joined.cause[occurs(joined.cause, _doubted(context))] = Cause.UNTRACED
    return _rows(joined, np.argsort(joined.start, kind="stable"))


def idle_begun_before(context: Context) -> Intervals:
    """Idle time before a stream's first recorded work, launched long before, at the beginning.

    What it waits for was launched before the recording began, and none of it is recorded.
    """
    gaps, pieces, device = context.once(idle_gaps), context.once(idle_pieces), context.device
    held = pieces.cause == Cause.DEVICE_DEPENDENCY
    start, end, ended = pieces.start[held], pieces.end[held], gaps.event[pieces.gap[held]]
    own = np.sort(device.start[device.device == context.devices[0]], kind="stable")  # They are mostly sorted.
    found = intervals.EMPTY
    for at in np.flatnonzero((np.searchsorted(own, start) < _BEGINNING) & (ended >= 0)).tolist():
        event, length = ended[at], end[at] - start[at]
        stream = (device.stream == device.stream[event]) & (device.device == device.device[event])
        again = stream[ended] & (ended != event) & (2 * (end - start) >= length)
        if device.start[stream].min() == device.start[event] and not again.any():
            found = intervals.union(found, intervals.merge(start[at : at + 1], end[at : at + 1]))
    return found


def _doubted(context: Context) -> tuple[Cause, ...]:
    """Causes that are not to be told from this recording although it has calls."""
    if context.doubt_of_idle is None:
        return () if context.doubt is None else NEED_CLOCKS
    if context.doubt_of_idle == "no_names":
        return (*NEED_CALLS, Cause.DATA_LOADING, Cause.PEER_WAIT)
    return NEED_CALLS if context.doubt_of_idle == "unknown_runtime" else (*NEED_CALLS, *NEED_HOST_OPS)


def _device_side(gaps: Gaps, host_end: NDArray[np.int64], known: NDArray[np.bool_]) -> Pieces:
    """From the launch call's return to the gap's end: latency, dependency, or kernel-to-kernel gap."""
    during = known & (gaps.launch_end > gaps.start)
    latency_end = np.where(during, np.minimum(host_end + LAUNCH_LATENCY_NS, gaps.end), host_end)
    late, held = np.flatnonzero(latency_end > host_end), np.flatnonzero(gaps.end > latency_end)
    one_to_next = (known & ~during & (gaps.end - gaps.start <= LAUNCH_LATENCY_NS))[held]
    gap, latency = short(np.concatenate((late, held))), np.full(len(late), int(Cause.DISPATCH_LATENCY), np.uint8)
    queued = np.where(one_to_next, np.uint8(Cause.DEVICE_GAP), np.uint8(Cause.DEVICE_DEPENDENCY))
    return Pieces(
        start=np.concatenate((host_end[late], latency_end[held])),
        end=np.concatenate((latency_end[late], gaps.end[held])),
        cause=np.concatenate((latency, queued)),
        gap=gap,
        track=np.full(len(gap), -1, np.int32),
    )


class _Rest(NamedTuple):
    """Disjoint parts of gaps that no thread explains yet, in time order, and the gap of each."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    gap: NDArray[Any]


def _blamed(rest: _Rest, states: Iterable[States], tracks: Iterable[int]) -> tuple[list[Pieces], _Rest]:
    """Blame the first thread that is in any state; the pieces, and what no thread explains."""
    parts = []
    for state, track in zip(states, tracks, strict=True):
        if len(rest.start) == 0:
            break
        if len(state.start) == 0:
            continue
        # A thread that lives for a moment is looked at where it lives.
        low = int(np.searchsorted(rest.end, state.start[0], "right"))
        high = int(np.searchsorted(rest.start, state.end[-1], "left"))
        here = _Rest(*(column[low:high] for column in rest))
        hit = intervals.overlaps(Intervals(here.start, here.end), state.spans)
        if len(hit.start) == 0:
            continue
        blame = np.full(len(hit.start), track, np.int32)
        parts.append(Pieces(hit.start, hit.end, state.cause[hit.second], here.gap[hit.first], blame))
        outside = intervals.gaps(intervals.merge(hit.start, hit.end), int(here.start[0]), int(here.end[-1]))
        free = intervals.overlaps(Intervals(here.start, here.end), outside)
        new = _Rest(free.start, free.end, here.gap[free.first])
        rest = _Rest(*(np.concatenate((old[:low], mid, old[high:])) for old, mid in zip(rest, new, strict=True)))
    return parts, rest


def _rows(pieces: Pieces, chosen: NDArray[Any]) -> Pieces:
    """The chosen rows of every column."""
    return Pieces(*(column[chosen] for column in pieces))


def analysed_time(context: Context) -> Intervals:
    """The steps that count, and the time between two of them that follow each other."""
    every, chosen = context.all_steps, occurs(context.all_steps.start, context.counted.start)
    bridged = chosen[:-1] & chosen[1:]
    return intervals.merge(
        np.concatenate((every.start[chosen], every.end[:-1][bridged])),
        np.concatenate((every.end[chosen], every.start[1:][bridged])),
    )


def clipped(pieces: Pieces, start: NDArray[np.int64], end: NDArray[np.int64]) -> tuple[Pieces, NDArray[np.int64]]:
    """Pieces cut to the windows, and the window each lies in. Windows must be sorted and disjoint."""
    step = np.flatnonzero(end > start)
    hit = intervals.overlaps(Intervals(start[step], end[step]), Intervals(pieces.start, pieces.end))
    cut = Pieces(hit.start, hit.end, pieces.cause[hit.second], pieces.gap[hit.second], pieces.track[hit.second])
    return cut, step[hit.first]


def step_pieces(context: Context) -> tuple[Pieces, NDArray[np.int64]]:
    """Pieces cut to the windows to show, and the window each lies in; use with `Context.once`."""
    return clipped(context.once(idle_pieces), context.steps.start, context.steps.end)


class IdleCauses(NamedTuple):
    """Idle time of the headline device by step and cause: (steps, len(Cause)) ns; rows sum to `Partition.idle`."""

    by_step: NDArray[np.int64]
    missing: Mapping[Cause, NotMeasured] = {}
    """Causes this profile cannot show; their time is inside `UNTRACED` (definitions §15)."""


IDLE_CAUSES = declare(
    "idle_causes",
    "Why the device was idle (mean of {steps} complete steps)",
    Column("cause", Kind.TERM, "why the device had nothing to run"),
    Column("mean_ns", Kind.DURATION, "mean over the complete steps", heading="time"),
    Column("share", Kind.SHARE, "part of the step"),
    Column("share_of_idle", Kind.SHARE, "part of the device's idle time", heading="of idle"),
    Column("sum_ns", Kind.DURATION, "sum over the complete steps", machine=True),
    title_one="Why the device was idle",
    bar="share",
    skip_zero="sum_ns",
)
STEP_IDLE_CAUSES = declare(
    "step_idle_causes",
    "Idle causes step by step",
    Column("step", Kind.TEXT, "number of the step, or its name"),
    Column("data_loading_ns", Kind.DURATION, "device idle: the host waits for the next batch", heading="data"),
    Column("sync_ns", Kind.DURATION, "the host sits in a call that waits for the device"),
    Column("peer_wait_ns", Kind.DURATION, "the host waits for other processes"),
    Column("dispatch_launch_ns", Kind.DURATION, "the host is inside launch calls", heading="launch"),
    Column("dispatch_copy_ns", Kind.DURATION, "the host is inside copy calls", heading="copy"),
    Column("dispatch_alloc_ns", Kind.DURATION, "the host allocates or frees device memory", heading="alloc"),
    Column("dispatch_other_ns", Kind.DURATION, "the host is inside other runtime calls", heading="other API"),
    Column("dispatch_latency_ns", Kind.DURATION, "launched, not yet started (up to 10 µs)", heading="latency"),
    Column("host_op_ns", Kind.DURATION, "the host is inside PyTorch operators", heading="host ops"),
    Column("device_gap_ns", Kind.DURATION, "queued; time from kernel to kernel (up to 10 µs)", heading="gap"),
    Column("device_dependency_ns", Kind.DURATION, "queued; waits for an event, a copy or a peer", heading="dependency"),
    Column("untraced_ns", Kind.DURATION, "the host does something that the trace does not show"),
    detail=True,
)


def idle_causes(context: Context) -> IdleCauses:
    """Idle time of the headline device by step and cause."""
    steps = context.steps
    cut, step = context.once(step_pieces)
    by_step = np.zeros((len(steps), len(Cause)), np.int64)
    np.add.at(by_step.reshape(-1), step * len(Cause) + cut.cause, cut.end - cut.start)
    missing: dict[Cause, NotMeasured] = {}
    if len(context.calls) == 0:
        missing |= dict.fromkeys(NEED_CALLS, NotMeasured("no_api"))
    elif context.queue_only:
        missing |= dict.fromkeys(NEED_RUNTIME, NotMeasured("no_cann_calls"))
    elif context.waits_lost:
        lost = (Cause.SYNC, Cause.DISPATCH_ALLOC, Cause.DISPATCH_OTHER)
        missing |= dict.fromkeys(lost, NotMeasured(context.waits_lost))
    if context.doubt is not None:
        missing = dict.fromkeys(_doubted(context), NotMeasured(context.doubt)) | missing
    unknown = context.once(peers_unknown)
    if unknown is not None:
        missing = {Cause.PEER_WAIT: unknown} | missing
    if not context.host_recorded:
        missing |= dict.fromkeys(NEED_HOST_OPS, NotMeasured("no_host_ops"))
    return IdleCauses(by_step, missing)


def idle_tables(steps: Steps, idle: IdleCauses) -> tuple[Table, Table]:
    """Idle time by cause, in the order of definitions §5, summing to the device's idle time; and step by step."""
    window = window_of(steps)
    times = {cause.key: idle.missing.get(cause) or idle.by_step[:, cause] for cause in Cause}
    sums = {key: time if isinstance(time, NotMeasured) else window.sum(time) for key, time in times.items()}
    whole = sum(window.sum(idle.by_step[:, cause]) for cause in Cause)
    by_step = STEP_IDLE_CAUSES.fill(step=step_labels(steps.name), **{f"{key}_ns": time for key, time in times.items()})
    return amounts(IDLE_CAUSES, sums, ("idle_sum", whole), window), by_step
