"""Why a request failed, by the state at that moment (detector D5); the dump comes later and shows something else."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.memory.holes import GROWTH, RELEASE
from traceanalyze.analyses.memory.results import Churn, OutOfMemory, ReleaseRun
from traceanalyze.analyses.memory.rounding import SMALL
from traceanalyze.model.snapshot import Action
from traceanalyze.model.table import NotMeasured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.analyses.memory.composition import Curve
    from traceanalyze.analyses.memory.holes import Free
    from traceanalyze.analyses.memory.layout import Layout
    from traceanalyze.analyses.memory.sites import Site
    from traceanalyze.model.snapshot import History, Snapshot

OTHERS_SHARE = 0.9
"""Reserved and free bytes of the device below this share of its capacity: something else holds the rest."""


def oom_events(history: History) -> tuple[int, ...]:
    """Events at which a request failed."""
    return tuple(np.flatnonzero(history.action == Action.OOM).tolist())


def out_of_memory(
    history: History, layout: Layout, reserved: Curve, sites: Sequence[Site], capacity: int | None
) -> tuple[OutOfMemory, ...]:
    """Every failed request with its cause."""
    found = []
    for event in oom_events(history):
        request, stream = int(history.size[event]), int(history.stream[event])
        free = layout.watched.get(event, ())
        own = [one for one in free if (one.domain.stream, one.domain.large) == (stream, request > SMALL)]
        other = max((one.largest for one in free if one not in own), default=0)
        available, hole = sum(one.bytes for one in own), max((one.largest for one in own), default=0)
        device_free = history.device_free.get(event)
        found.append(
            OutOfMemory(
                event=event,
                request=request,
                free=available,
                largest_hole=hole,
                elsewhere=other,
                device_free=device_free,
                kind=_kind(request, own, other, device_free, reserved.at(event), capacity),
                line=sites[int(history.stack[event])].line,
            )
        )
    return tuple(found)


def _kind(
    request: int, own: Sequence[Free], other: int, device_free: int | None, reserved: int, capacity: int | None
) -> str:
    available, hole = sum(one.bytes for one in own), max((one.largest for one in own), default=0)
    if max(hole, other) >= request:
        return "isolation"
    if available >= request:
        return "fragmentation"
    if device_free is None:
        return "unknown"
    if available + device_free >= request:
        return "split"
    if capacity is not None and reserved + device_free < OTHERS_SHARE * capacity:
        return "other_processes"
    return "capacity"


CYCLE_SHARE = 0.05
"""Re-acquisition that makes a cycle, of the reserved peak (memory-snapshot specification, D3)."""
CHURN_RATIO = 1.0
CHURN_CYCLES = 3
"""Real offenders recycle more than six times their peak in tens of cycles, all other files less than 0.8 (D3)."""


def release_runs(snapshot: Snapshot, history: History, sites: Sequence[Site]) -> tuple[ReleaseRun, ...]:
    """Runs of releases under one call, in order."""
    events = np.flatnonzero(np.isin(history.action, RELEASE))
    if len(events) == 0:
        return ()
    new = np.ones(len(events), np.bool_)
    new[1:] = (np.diff(events) != 1) | (np.diff(history.call[events]) != 0)
    firsts = np.flatnonzero(new)
    bounds = [(int(events[a]), int(events[b - 1])) for a, b in pairwise([*firsts.tolist(), len(events)])]
    threshold = snapshot.settings.get("garbage_collection_threshold")
    collects = isinstance(threshold, int | float) and threshold > 0
    nexts = [first for first, _ in bounds[1:]] + [len(history)]
    return tuple(
        _run(history, sites, first, last, until, collects=collects)
        for (first, last), until in zip(bounds, nexts, strict=True)
    )


def _run(history: History, sites: Sequence[Site], first: int, last: int, until: int, *, collects: bool) -> ReleaseRun:
    released = int(history.size[first : last + 1].sum())
    after = slice(last + 1, until)
    grown = int(history.size[after][np.isin(history.action[after], GROWTH)].sum())
    kind = _release_runs_kind(history, sites, first, last, grown, collects=collects)
    return ReleaseRun(
        event=first,
        last=last,
        bytes=released,
        kind=kind,
        reacquired=min(released, grown),
        line=sites[int(history.stack[first])].line,
        cost=_cost(history, first, last) if kind in {"retry", "failed_retry"} else None,
    )


def _release_runs_kind(
    history: History, sites: Sequence[Site], first: int, last: int, grown: int, *, collects: bool
) -> str:
    call, following = int(history.call[first]), last + 1
    if call >= 0 and following < len(history) and int(history.call[following]) == call:
        if history.action[following] in GROWTH:
            return "retry"
        if history.action[following] == Action.OOM:
            return "failed_retry"
    if sites[int(history.stack[first])].empties_cache:
        return "empty_cache"
    return "gc" if collects and grown else "unknown"


def _cost(history: History, first: int, last: int) -> int | None:
    """Time from the event before the run to the end of the call that made it."""
    if history.time is None or first == 0:
        return None
    same = np.flatnonzero(history.call[last + 1 : last + 64] == history.call[first])
    end = last + 1 + int(same[-1]) if len(same) else last
    return int(history.time[end] - history.time[first - 1])


def churn(runs: Sequence[ReleaseRun], history: History, reserved_peak: int) -> Churn | NotMeasured:
    """How much memory went back and forth.

    Args:
        runs: From `release_runs`.
        history: The events.
        reserved_peak: Highest reserved bytes.
    """
    if len(history) <= 1:
        return NotMeasured("no_memory_history")
    recycled = _recycled(runs, history)
    cycles = sum(run.reacquired >= CYCLE_SHARE * reserved_peak for run in runs if run.reacquired)
    ratio = recycled / reserved_peak if reserved_peak else 0.0
    kinds: dict[str, int] = {}
    for run in runs:
        kinds[run.kind] = kinds.get(run.kind, 0) + run.bytes
    return Churn(
        released=sum(run.bytes for run in runs),
        recycled=recycled,
        cycles=cycles,
        ratio=ratio,
        kind=max(kinds, key=lambda kind: kinds[kind]) if kinds else "",
        flagged=ratio >= CHURN_RATIO and cycles >= CHURN_CYCLES,
    )


def _recycled(runs: Sequence[ReleaseRun], history: History) -> int:
    """Released bytes that were taken again later, each byte once."""
    waiting = recycled = 0
    for run, until in zip(runs, [*(run.event for run in runs[1:]), len(history)], strict=bool(runs)):
        waiting += run.bytes
        after = slice(run.last + 1, until)
        again = min(waiting, int(history.size[after][np.isin(history.action[after], GROWTH)].sum()))
        recycled += again
        waiting -= again
    return recycled
