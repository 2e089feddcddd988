"""Calls of the allocator that took memory from the device or gave it back: the events that can make the device wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.memory.holes import GROWTH, RELEASE
from traceanalyze.analyses.memory.results_calls import DeviceCalls
from traceanalyze.model.snapshot import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.analyses.memory.results import ReleaseRun
    from traceanalyze.model.snapshot import History


def device_calls(history: History, runs: Sequence[ReleaseRun]) -> DeviceCalls:
    """Successive growth and release events of one call are one row.

    Args:
        history: The events.
        runs: From `release_runs`: what the releases were for.
    """
    grows, frees = np.isin(history.action, GROWTH), np.isin(history.action, RELEASE)
    events = np.flatnonzero(grows | frees)
    if len(events) == 0:
        none = np.zeros(0, np.int64)
        return DeviceCalls(none, none, (), none, none, none)
    new = np.ones(len(events), np.bool_)
    call = history.call[events]
    # Without stacks nothing says that a growth belongs to the release before it.
    apart = (call[1:] != call[:-1]) | ((call[1:] < 0) & (grows[events[1:]] != grows[events[:-1]]))
    new[1:] = (np.diff(events) != 1) | apart
    first = np.flatnonzero(new)
    begin, last = events[first], events[np.append(first[1:], len(events)) - 1]
    kind = {run.event: run.kind for run in runs}
    return DeviceCalls(
        first=begin,
        last=last,
        kind=tuple(kind.get(event, "growth") for event in begin.tolist()),
        request=_requests(history, last),
        grown=np.add.reduceat(np.where(grows[events], history.size[events], 0), first),
        released=np.add.reduceat(np.where(frees[events], history.size[events], 0), first),
    )


def _requests(history: History, last: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bytes asked for by the allocation that follows each event at once, 0 where none does."""
    after = np.minimum(last + 1, len(history) - 1)
    asks = (after > last) & np.isin(history.action[after], (Action.ALLOC, Action.OOM))
    asks &= history.call[after] == history.call[last]
    return np.where(asks, history.size[after], 0)
