"""What a run of the program would not do if a part of its step took no time, or less: changes by the names of parts."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.idle.host_state import host_states
from traceanalyze.model import intervals
from traceanalyze.model.columns import Rows
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.vocabulary import DISPATCH, DISPATCH_CALLS, Cause, DeviceClass
from traceanalyze.replay.replay import Change

ON_DEVICE = {"compute": DeviceClass.COMPUTE, "communication": DeviceClass.COMM, "memory_ops": DeviceClass.MEM}
"""Parts of a step in which the device works."""
ON_HOST: dict[str, tuple[Cause, ...]] = {
    "data_loading": (Cause.DATA_LOADING,),
    "sync": (Cause.SYNC,),
    "peer_wait": (Cause.PEER_WAIT,),
    "dispatch": DISPATCH,
    **{cause.key: (cause,) for cause in (*DISPATCH_CALLS[:-1], Cause.HOST_OP)},
    "untraced": (Cause.UNTRACED,),
}
"""Parts of its idle time that are time of the host, with the states of the host that they are. A launch's latency and
what the device alone causes are no such parts."""
PARTS = (*ON_DEVICE, *ON_HOST)
WAITS = frozenset({"sync", "peer_wait"})
"""Parts that wait for something else: there is nothing about them that could be faster."""


def part(context: Context, name: str, share: float = 1.0) -> Change:
    """The program without a part of its step (one of `PARTS`), or with so much less of it.

    What the workers of a loader make is there so much sooner.
    """
    if name in ON_DEVICE:
        return shorter(context, np.flatnonzero(context.device.klass == ON_DEVICE[name]), share)
    states = ON_HOST[name]
    gone = (
        {context.step_track: _untraced(context)}
        if states == (Cause.UNTRACED,)
        else {track: host_states(context, track, True).of(states) for track in _threads(context)}
    )
    batches = share if name == "data_loading" else 0.0
    return Change(threads={track: last_part(spans, share) for track, spans in gone.items()}, batches=batches)


def named(context: Context, fits: Callable[[str], object]) -> NDArray[np.int64]:
    """Device events (positions in `Context.device`) by their names."""
    return np.flatnonzero(context.trace.strings.matches(context.device.name, fits))


def shorter(context: Context, event: Rows, share: float | NDArray[np.float64]) -> Change:
    """Device events (positions in `Context.device`) that take so much less of their time."""
    return less(event, (context.device.end - context.device.start)[event], share)


def less(event: Rows, time: NDArray[np.int64], share: float | NDArray[np.float64]) -> Change:
    """The same where their times are known."""
    return Change(events=event, shorter=np.round(time * share).astype(np.int64))


def last_part(spans: Intervals, share: float | NDArray[np.float64]) -> Intervals:
    """So much of each stretch of a set, its end."""
    if isinstance(share, float) and share >= 1.0:
        return spans
    start = spans.end - np.round((spans.end - spans.start) * np.minimum(share, 1.0)).astype(np.int64)
    some = np.flatnonzero(spans.end > start)
    return Intervals(start, spans.end) if len(some) == len(start) else Intervals(start[some], spans.end[some])


def _threads(context: Context) -> tuple[int, ...]:
    """That of the steps, and those that launch."""
    return tuple(dict.fromkeys(track for track in (context.step_track, *context.threads) if track >= 0))


def _untraced(context: Context) -> Intervals:
    """When none of the threads is in a state that the recording shows."""
    steps = context.all_steps
    first = int(min(steps.start.min(), steps.host_start.min()))
    known = [context.once(host_states, track, True).spans for track in _threads(context)]
    seen = intervals.union(intervals.EMPTY, *known)
    return intervals.gaps(seen, first, int(steps.end.max()))
