"""Which part of the program allocates: calls by operator with the idle time they cause, and where the peak was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.frames import ops_at
from traceanalyze.analyses.host.modules import module_places
from traceanalyze.analyses.idle.idle import idle_pieces
from traceanalyze.analyses.results_device import AllocatorSite, MemoryPeak
from traceanalyze.analyses.steps.phases import PhaseRanges
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import ApiClass, Cause, Mode, Phase

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context

_HOST = 0


def allocator_sites(context: Context) -> tuple[AllocatorSite, ...] | NotMeasured:
    """Allocator calls inside the analysed windows by operator and call, most idle time first."""
    calls = context.calls
    if len(calls) == 0:
        return NotMeasured("no_api")
    inside = intervals.contains(context.host_windows, calls.start)
    chosen = np.flatnonzero(inside & calls.outermost & (calls.klass == ApiClass.ALLOC))
    if len(chosen) == 0:
        return ()
    place = context.call_op[chosen]
    op = np.full(len(chosen), -1, np.int64)
    op[place >= 0] = context.trace.events.name[context.op_nest.row[place[place >= 0]]]
    sites = group(op, calls.name[chosen])
    idle = sites.sum(_idle(context, chosen))
    spreads = sites.spreads(calls.end[chosen] - calls.start[chosen])
    first = chosen[sites.first]
    where = Places(context).at(calls.track[first], calls.start[first])
    text = context.trace.strings.text
    rows = [
        AllocatorSite(text(name) if name >= 0 else None, module, phase, text(call), spread, cost)
        for name, call, (phase, module), spread, cost in zip(
            op[sites.first].tolist(), calls.name[first].tolist(), where, spreads, idle.tolist(), strict=True
        )
    ]
    return tuple(sorted(rows, key=lambda row: (-row.idle, -row.time.total, row.op or "", row.call)))


def _idle(context: Context, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Idle time inside each call that the idle analysis lays to allocator calls of its thread."""
    idle = np.zeros(len(chosen), np.int64)
    if context.mode in {Mode.HOST_ONLY, Mode.EMPTY}:
        return idle
    pieces, calls = context.once(idle_pieces), context.calls
    blamed = pieces.cause == Cause.DISPATCH_ALLOC
    for track in distinct(calls.track[chosen]).tolist():
        mine = np.flatnonzero(calls.track[chosen] == track)
        theirs = blamed & (pieces.track == track)
        spans = intervals.merge(pieces.start[theirs], pieces.end[theirs])
        idle[mine] = intervals.coverage(spans, calls.start[chosen[mine]], calls.end[chosen[mine]])
    return idle


class Places:
    """Phase and module of a thread at an instant; each is worked out once."""

    def __init__(self, context: Context) -> None:
        self._phases = context.once(PhaseRanges)
        self._modules = module_places(context)

    def at(self, track: NDArray[np.int32], t: NDArray[np.int64]) -> list[tuple[Phase | None, str | None]]:
        """Both for each instant."""
        known = self._phases.known
        phase = self._phases.at(track, t).tolist()
        module = [-1] * len(t) if self._modules is None else self._modules.at(track, t).tolist()
        return [
            (Phase(each) if known else None, self._modules.places[at].path if self._modules and at >= 0 else None)
            for each, at in zip(phase, module, strict=True)
        ]


def memory_peaks(context: Context) -> tuple[MemoryPeak, ...] | NotMeasured:
    """Step, phase, operator and module at the highest `Total Allocated` (else running sum) of each accelerator."""
    instants = context.trace.instants
    size, kind = instants.fields.get("bytes"), instants.fields.get("device_type")
    if size is None or kind is None:
        return NotMeasured("no_memory_records")
    row = size.row.astype(np.int64)
    row = row[(kind.take(row, _HOST) != _HOST)]
    row = row[np.argsort(instants.ts[row], kind="stable")]
    if len(row) == 0:
        return NotMeasured("no_memory_records")
    none = np.zeros(len(row), np.int64)
    device = instants.fields["device"].take(row, 0) if "device" in instants.fields else none
    total = instants.fields["allocated"].take(row, 0) if "allocated" in instants.fields else none
    places = Places(context)
    found = []
    for one in distinct(device).tolist():
        mine = np.flatnonzero(device == one)
        curve = total[mine] if (total[mine] > 0).any() else np.cumsum(size.take(row[mine], 0))
        top = row[mine[int(curve.argmax())]]
        found.append(_peak(context, places, int(top), int(one), int(curve.max())))
    return tuple(found)


def _peak(context: Context, places: Places, row: int, device: int, amount: int) -> MemoryPeak:
    t, track = int(context.trace.instants.ts[row]), int(context.trace.instants.track[row])
    if track not in set(context.threads):
        # Ascend's tables do not tell the thread.
        track = context.step_track
    at = np.array([t], np.int64)
    steps = context.all_steps
    step = int(np.searchsorted(steps.host_start, t, "right")) - 1 if context.mode == Mode.STEPS else -1
    named = steps.name[step] if step >= 0 and t <= int(steps.host_end[step]) else None
    if track < 0:
        return MemoryPeak(device, amount, named, None, None, None)
    op = int(ops_at(context, track, at)[0])
    ((phase, module),) = places.at(np.array([track], np.int32), at)
    name = context.trace.strings.text(int(context.trace.events.name[op])) if op >= 0 else None
    return MemoryPeak(device, amount, named, phase, name, module)
