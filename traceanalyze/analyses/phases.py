"""Device and host time of the phases of a training step (definitions §10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.analyses.results_host import PhaseTime
from traceanalyze.model.vocabulary import Mode, Phase

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context

_WITH_PARTS = {
    Phase.BACKWARD: (Phase.BACKWARD, Phase.RECOMPUTE),
    Phase.OPTIMIZER: (Phase.OPTIMIZER, Phase.ZERO_GRAD),
}


def event_phases(context: Context) -> NDArray[np.uint8]:
    """Phase of each device event: that of the instant it was launched, or of its operator if only that is known."""
    phase = np.full(len(context.device), Phase.UNKNOWN, np.uint8)
    track, t = launch_places(context)
    known = track >= 0
    phase[known] = context.phase_ranges.at(track[known], t[known])
    return phase


def launch_places(context: Context) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Thread and time at which the program asked for each device event; the thread is -1 where nothing is known."""
    track = np.full(len(context.device), -1, np.int32)
    t = np.zeros(len(context.device), np.int64)
    linked = context.link >= 0
    track[linked] = context.calls.track[context.asked[linked]]
    t[linked] = context.calls.start[context.asked[linked]]
    by_op = np.flatnonzero(~linked & (context.event_op >= 0))
    place = context.event_op[by_op]
    track[by_op] = context.trace.events.track[context.op_nest.row[place]]
    t[by_op] = context.op_nest.start[place]
    return track, t


def phases(context: Context, phase: NDArray[np.uint8]) -> tuple[PhaseTime, ...] | NotMeasured:
    """Time of each phase in each step; phases that run at the same time overlap."""
    if not context.phase_ranges.known:
        return NotMeasured("no_host_ops")
    steps, device = context.steps, context.device
    counted = np.zeros(len(device), np.bool_)
    if len(device):
        counted[context.work.event] = True
        counted &= device.device == context.devices[0]
    states = [context.phase_ranges.states(track) for track in _threads(context)]
    found = []
    for each in Phase:
        parts = _WITH_PARTS.get(each, (each,))
        mine = np.flatnonzero(counted & np.isin(phase, parts))
        ran = intervals.merge(device.start[mine], device.end[mine])
        member = [np.isin(state.cause, parts) for state in states]
        host = intervals.merge(
            np.concatenate([state.start[chosen] for state, chosen in zip(states, member, strict=True)]),
            np.concatenate([state.end[chosen] for state, chosen in zip(states, member, strict=True)]),
        )
        time = intervals.coverage(ran, steps.start, steps.end), intervals.coverage(host, *_host_steps(context))
        found.append(PhaseTime(each, *time, events=len(mine)))
    return tuple(row for row in found if row.events or row.host.any())


def _host_steps(context: Context) -> intervals.Intervals:
    """The windows of the steps; of a trace without steps, all of it."""
    whole = context.mode == Mode.WHOLE_TRACE
    return context.host_windows if whole else intervals.Intervals(context.steps.start, context.steps.end)


def _threads(context: Context) -> list[int]:
    """Threads of the step thread's process that run operators, and the step thread itself."""
    tracks = context.trace.tracks
    busy = np.flatnonzero(np.diff(context.op_nest.bounds)).tolist()
    same = [track for track in busy if tracks[track, 0] == tracks[context.step_track, 0]]
    return sorted({*same, context.step_track})
