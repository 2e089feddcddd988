"""Which queue entry a runtime call works off: torch_npu enqueues work on one thread and launches it on another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.work import MISSING
from traceanalyze.model.columns import distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.host_events import ApiCalls
    from traceanalyze.model.trace import Trace

_IN, _OUT = 1, 2


def enqueuing_calls(trace: Trace, calls: ApiCalls) -> NDArray[np.int64]:
    """Position in `calls` of the `Enqueue` behind each call that runs inside a `Dequeue@…`; -1 for the others."""
    found = np.full(len(calls), -1, np.int64)
    column = trace.events.fields.get("queue_id")
    if column is None or len(calls) == 0:
        return found
    number = column.take(calls.row, MISSING)
    side = trace.strings.lookup(calls.name, _side)
    side[number == MISSING] = 0
    entry = np.flatnonzero(side == _IN)
    if len(entry) == 0:
        return found
    taken_out = _around(np.flatnonzero(side == _OUT), calls)
    inside = np.flatnonzero(taken_out >= 0)
    entry = entry[np.lexsort((calls.start[entry], number[entry]))]
    wanted = number[taken_out[inside]]
    at = np.minimum(np.searchsorted(number[entry], wanted), len(entry) - 1)
    known = number[entry[at]] == wanted
    found[inside[known]] = entry[at[known]]
    return found


def only_queue(trace: Trace, calls: ApiCalls) -> bool:
    """Whether the queue is all that was recorded of the runtime (Ascend, profiler level 0)."""
    return len(calls) > 0 and bool(trace.strings.lookup(calls.name, _side).all())


def _side(name: str) -> int:
    return _OUT if name.startswith("Dequeue") else _IN if name.startswith("Enqueue") else 0


def _around(some: NDArray[np.int64], calls: ApiCalls) -> NDArray[np.int64]:
    """Which of some calls, that do not overlap on a thread, each call starts in; -1 for none."""
    found = np.full(len(calls), -1, np.int64)
    for track in distinct(calls.track[some]).tolist():
        mine, every = some[calls.track[some] == track], np.flatnonzero(calls.track == track)
        at = np.searchsorted(calls.start[mine], calls.start[every], "right") - 1
        inside = (at >= 0) & (calls.start[every] < calls.end[mine[at]])
        found[every[inside]] = mine[at[inside]]
    return found
