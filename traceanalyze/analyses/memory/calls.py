"""Runtime calls that allocate device memory: how long they take, who makes them, and what they cost."""

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import COUNT, group
from traceanalyze.analyses.host.modules import module_places
from traceanalyze.analyses.idle.idle import idle_pieces
from traceanalyze.analyses.kernels.work import texts_or_none
from traceanalyze.analyses.steps.phases import PhaseRanges
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct
from traceanalyze.model.table import Column, Kind, Table, declare
from traceanalyze.model.vocabulary import ApiClass, Cause, Mode, Phase, SyncKind

_CALL = Column("call", Kind.NAME, "runtime or driver call")
_HOST_TIME = Column("host_time_ns", Kind.DURATION, "host time inside the calls")
_CALLS = declare(
    "allocator_calls",
    "Runtime calls that allocate device memory",
    _CALL,
    COUNT,
    _HOST_TIME,
    Column("mean_call_ns", Kind.DURATION, "mean duration of a call", scale="call"),
    Column("max_ns", Kind.DURATION, "longest call", heading="longest", scale="call"),
    Column("implicit_sync", Kind.FLAG, "the call waits until the device is idle", heading="waits for the device"),
    ranked=True,
    detail=True,
)
_SITES = declare(
    "allocator_sites",
    "Operators that call the allocator of the device",
    Column("op", Kind.NAME, "innermost operator around the call", heading="operator"),
    _CALL,
    COUNT,
    _HOST_TIME,
    Column("idle_ns", Kind.DURATION, "idle time of the device that these calls caused"),
    Column("max_ns", Kind.DURATION, "longest call", heading="longest", scale="call"),
    Column("phase", Kind.TERM, "part of the training step", minor=True),
    Column("module", Kind.NAME, "place in the model", minor=True),
    ranked=True,
    detail=True,
)


def allocator_calls(context: Context) -> Table:
    """Allocation calls begun inside the analysed windows by name, most host time first."""
    calls, steps = context.calls, context.counted
    if len(calls) == 0:
        return _CALLS.missing("no_api")
    start, end = (steps.host_start, steps.host_end) if context.mode == Mode.STEPS else (steps.start, steps.end)
    window = np.searchsorted(start, calls.start, "right") - 1
    inside = (window >= 0) & (calls.start <= end[window])
    chosen = np.flatnonzero(inside & calls.outermost & (calls.klass == ApiClass.ALLOC))
    names = group(calls.name[chosen])
    first, spread = chosen[names.first], names.spread(calls.end[chosen] - calls.start[chosen])
    return _CALLS.fill(
        call=list(context.trace.strings.texts(calls.name[first])),
        count=spread.number,
        host_time_ns=spread.total,
        mean_call_ns=spread.mean,
        max_ns=spread.longest,
        implicit_sync=calls.sync[first] == SyncKind.IMPLICIT,
    ).sort("-host_time_ns", "call")


def allocator_sites(context: Context) -> Table:
    """Allocator calls inside the analysed windows by operator and call, most idle time first.

    Phase and module are those of the first of them.
    """
    calls = context.calls
    if len(calls) == 0:
        return _SITES.missing("no_api")
    inside = intervals.contains(context.host_windows, calls.start)
    chosen = np.flatnonzero(inside & calls.outermost & (calls.klass == ApiClass.ALLOC))
    place = context.call_op[chosen]
    op = np.full(len(chosen), -1, np.int64)
    op[place >= 0] = context.trace.events.name[context.op_nest.row[place[place >= 0]]]
    sites = group(op, calls.name[chosen])
    first, spread = chosen[sites.first], sites.spread(calls.end[chosen] - calls.start[chosen])
    where = Places(context).at(calls.track[first], calls.start[first]) if len(first) else []
    return _SITES.fill(
        op=texts_or_none(context, op[sites.first]),
        call=list(context.trace.strings.texts(calls.name[first])),
        count=spread.number,
        host_time_ns=spread.total,
        idle_ns=sites.sum(_idle(context, chosen)),
        max_ns=spread.longest,
        phase=[phase for phase, _ in where],
        module=[module for _, module in where],
    ).sort("-idle_ns", "-host_time_ns", "op", "call")


def _idle(context: Context, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Idle time inside each call that the idle analysis lays to allocator calls of its thread."""
    idle = np.zeros(len(chosen), np.int64)
    if context.mode in {Mode.HOST_ONLY, Mode.EMPTY}:
        return idle
    pieces, calls = context.once(idle_pieces), context.calls
    blamed = pieces.cause == Cause.DISPATCH_ALLOC
    for track in distinct(calls.track[chosen]).tolist():
        own, caused = calls.track[chosen] == track, blamed & (pieces.track == track)
        spans = intervals.merge(pieces.start[caused], pieces.end[caused])
        idle[own] = intervals.coverage(spans, calls.start[chosen[own]], calls.end[chosen[own]])
    return idle


class Places:
    """Phase and module of a thread at an instant; each is worked out once."""

    def __init__(self, context: Context) -> None:
        self._phases = context.once(PhaseRanges)
        self._modules = module_places(context)

    def at(self, track: NDArray[np.int32], t: NDArray[np.int64]) -> list[tuple[str | None, str | None]]:
        """Both for each instant: the phase as a term, the module as its path."""
        phases = [f"phase_{Phase(each).name.lower()}" for each in self._phases.at(track, t).tolist()]
        phase = phases if self._phases.known else [None] * len(t)
        modules = self._modules
        found = (
            [None] * len(t)
            if modules is None
            else [modules.places[at].path if at >= 0 else None for at in modules.at(track, t).tolist()]
        )
        return list(zip(phase, found, strict=True))
