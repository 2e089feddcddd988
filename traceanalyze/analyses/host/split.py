"""Host time of traces without device events: the step thread by what it did (definitions §3, fallback)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.results import HostSplit
from traceanalyze.model import intervals
from traceanalyze.model.vocabulary import DISPATCH_CALLS, Cause

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.idle.host_state import States


def host_split(states: States, start: NDArray[np.int64], end: NDArray[np.int64]) -> HostSplit:
    """Split each window by the state of one thread; the rest is untraced."""

    def time(*causes: Cause) -> NDArray[np.int64]:
        member = np.isin(states.cause, causes)
        return intervals.coverage(intervals.merge(states.start[member], states.end[member]), start, end)

    named = {
        "data_loading": time(Cause.DATA_LOADING),
        "sync": time(Cause.SYNC),
        "peer_wait": time(Cause.PEER_WAIT),
        "api": time(*DISPATCH_CALLS),
        "host_op": time(Cause.HOST_OP),
    }
    return HostSplit(**named, untraced=(end - start) - np.sum(list(named.values()), axis=0))
