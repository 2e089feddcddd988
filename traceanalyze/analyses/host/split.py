"""Host time of traces without device events: the step thread by what it did (definitions §3, fallback)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.idle.host_state import host_states
from traceanalyze.model import intervals
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import DISPATCH_CALLS, Cause

if TYPE_CHECKING:
    from traceanalyze.analyses.context import Context


class HostSplit(NamedTuple):
    """Host-only report: the step thread's span by what it did (ns per step, rows sum to the step)."""

    data_loading: NDArray[np.int64]
    sync: NDArray[np.int64]
    peer_wait: NDArray[np.int64]
    api: NDArray[np.int64]
    host_op: NDArray[np.int64]
    untraced: NDArray[np.int64]


def host_split(context: Context) -> HostSplit | NotMeasured:
    """Each step by what its thread did; the rest is untraced."""
    if context.step_track < 0:
        return NotMeasured("no_host_events")
    states, steps = context.once(host_states, context.step_track, True), context.steps

    def time(*causes: Cause) -> NDArray[np.int64]:
        return intervals.coverage(states.of(causes), steps.start, steps.end)

    named = {
        "data_loading": time(Cause.DATA_LOADING),
        "sync": time(Cause.SYNC),
        "peer_wait": time(Cause.PEER_WAIT),
        "api": time(*DISPATCH_CALLS),
        "host_op": time(Cause.HOST_OP),
    }
    return HostSplit(**named, untraced=steps.time - np.sum(list(named.values()), axis=0))
