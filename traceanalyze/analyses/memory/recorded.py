"""Allocator records (`[memory]`) and the runtime calls that allocate: how much was in use, where, and its cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import COUNT, group
from traceanalyze.analyses.host.frames import ops_at
from traceanalyze.analyses.host.modules import module_places
from traceanalyze.analyses.idle.idle import idle_pieces
from traceanalyze.analyses.kernels.work import texts_or_none
from traceanalyze.analyses.steps.phases import PhaseRanges
from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value, declare
from traceanalyze.model.vocabulary import ApiClass, Cause, Mode, Phase, SyncKind

POINTS = 500
_HOST = 0
"""`Device Type` of the host in the profiler's records; every other number is an accelerator."""
_ABSENT = -1
_STEP = Column("step", Kind.TEXT, "number of the step, or its name")
_NUMBER = Column("device", Kind.COUNT, "number of the device")
_DEVICE = (Column("memory_of", Kind.TERM, "whose memory: an accelerator's or the host's"), _NUMBER)
_PEAK = Column("peak_bytes", Kind.MEMORY, "highest total during the step")
_MEMORY = declare(
    "memory",
    "Memory of the caching allocator",
    *_DEVICE,
    Column("records", Kind.COUNT, "allocations and frees recorded"),
    Column("peak_allocated_bytes", Kind.MEMORY, "highest total allocated, over the whole recording"),
    Column("peak_reserved_bytes", Kind.MEMORY, "highest total reserved from the driver, over the whole recording"),
    Column(
        "relative_peak_bytes",
        Kind.MEMORY,
        "highest sum of recorded changes: without what was allocated before",
        heading="peak of recorded changes",
    ),
    Column("allocated_bytes", Kind.MEMORY, "sum of all allocations", minor=True),
    Column("freed_bytes", Kind.MEMORY, "sum of all frees", minor=True),
    detail=True,
)
_PLACES = declare(
    "memory_peak_place",
    "Where memory in use was highest",
    _NUMBER,
    _PEAK,
    _STEP,
    Column("phase", Kind.TERM, "part of the training step"),
    Column("op", Kind.NAME, "innermost operator around the call", heading="operator"),
    Column("module", Kind.NAME, "place in the model"),
    detail=True,
)
_STEPS = declare(
    "step_memory",
    "Peak memory step by step",
    _STEP,
    *_DEVICE,
    _PEAK,
    Column("relative", Kind.FLAG, "the peak is only that of recorded changes"),
    detail=True,
)
_CURVE = declare(
    "memory_curve",
    "Memory in use over time",
    *_DEVICE,
    Column("record_ns", Kind.DURATION, "when, counted from the time base of the file", heading="at"),
    Column("in_use_bytes", Kind.MEMORY, "memory handed out to tensors", heading="allocated"),
    Column("reserved_bytes", Kind.MEMORY, "memory taken from the driver"),
    Column("relative", Kind.FLAG, "only recorded changes: what was allocated before is missing"),
    ranked=True,
    detail=True,
)
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
    Column("idle_ns", Kind.DURATION, "device idle for other reasons"),
    Column("max_ns", Kind.DURATION, "longest complete step", heading="longest", scale="call"),
    Column("phase", Kind.TERM, "part of the training step", minor=True),
    Column("module", Kind.NAME, "place in the model", minor=True),
    ranked=True,
    detail=True,
)
_COMPONENTS = declare(
    "module_memory",
    "Device memory that the vendor's software reserved",
    Column(
        "component",
        Kind.NAME,
        "part of CANN, HCCL, or another; APP (process): all of the process, PyTorch's allocator included",
    ),
    _NUMBER,
    Column("peak_reserved_bytes", Kind.MEMORY, "highest sample"),
    Column("last_reserved_bytes", Kind.MEMORY, "bytes of the last sample", heading="last"),
    Column("samples", Kind.COUNT, "samples taken", minor=True),
    ranked=True,
    detail=True,
)


class _Records(NamedTuple):
    """Records of one device in time order."""

    host: bool
    device: int
    row: NDArray[np.int64]
    """In `Trace.instants`."""
    t: NDArray[np.int64]
    change: NDArray[np.int64]
    allocated: NDArray[np.int64]
    """Total after each record, below 0 where it is unknown; the profiler writes 0 for all, as for the host."""
    reserved: NDArray[np.int64]
    relative: bool
    """No total is known."""
    in_use: NDArray[np.int64]
    """`allocated`, else the sum of changes so far."""

    @property
    def place(self) -> tuple[str, int | None]:
        """Host or device, and its number; the host has none."""
        return "memory_of_host" if self.host else "memory_of_device", self.device if self.device >= 0 else None


def memory_tables(context: Context) -> list[Table]:
    """What the allocator recorded, its runtime calls, and what CANN samples of the process and its components."""
    records = context.once(_recorded)
    process, modules = context.trace.process_memory, context.trace.module_memory
    named = [*((f"{one.component} (process)", one) for one in process), *((one.component, one) for one in modules)]
    components = _COMPONENTS.fill_records(
        {
            "component": name,
            "device": one.device,
            "peak_reserved_bytes": one.peak,
            "last_reserved_bytes": one.last,
            "samples": one.samples,
        }
        for name, one in named
    )
    return [
        memory(context),
        _peak_places(context, [each for each in records if not each.host]),
        _by_step(context, records),
        _over_time(records),
        _calls(context),
        allocator_sites(context),
        *([components] if named else []),
    ]


def _recorded(context: Context) -> list[_Records]:
    """Records by device: accelerators before the host."""
    instants = context.trace.instants
    size = instants.fields.get("bytes")
    if size is None:
        return []
    rows = size.row.astype(np.int64)
    rows = rows[np.argsort(instants.ts[rows], kind="stable")]
    kind, device = _field(context, "device_type", rows), _field(context, "device", rows)
    devices = group(kind, device)
    found = []
    for index, first in enumerate(devices.first.tolist()):
        row = rows[devices.of == index]
        change, allocated = size.take(row, 0), _field(context, "allocated", row)
        relative = not (allocated > 0).any()
        found.append(
            _Records(
                host=bool(kind[first] == _HOST),
                device=int(device[first]),
                row=row,
                t=instants.ts[row],
                change=change,
                allocated=allocated,
                reserved=_field(context, "reserved", row),
                relative=relative,
                in_use=np.cumsum(change) if relative else allocated,
            )
        )
    return sorted(found, key=lambda one: (one.host, one.device))


def _field(context: Context, name: str, row: NDArray[np.int64]) -> NDArray[np.int64]:
    column = context.trace.instants.fields.get(name)
    return np.full(len(row), _ABSENT, np.int64) if column is None else column.take(row, _ABSENT)


def memory(context: Context) -> Table:
    """Peaks of every device with records, over the whole recording."""
    records = context.once(_recorded)
    if not records:
        return _MEMORY.missing("no_memory_records")
    return _MEMORY.fill_records(
        {
            "memory_of": one.place[0],
            "device": one.place[1],
            "records": len(one.row),
            "peak_allocated_bytes": _highest(one.allocated),
            "peak_reserved_bytes": _highest(one.reserved),
            "relative_peak_bytes": max(int(np.cumsum(one.change).max()), 0),
            "allocated_bytes": int(one.change[one.change > 0].sum()),
            "freed_bytes": int(-one.change[one.change < 0].sum()),
        }
        for one in records
    )


def _highest(total: NDArray[np.int64]) -> int | NotMeasured:
    highest = int(total.max())
    return highest if highest > 0 else NotMeasured("no_memory_totals")


def _by_step(context: Context, records: list[_Records]) -> Table:
    """Highest value during each step's host time, the value at its start included."""
    if not records:
        return _STEPS.missing("no_memory_records")
    steps, missing = context.steps, NotMeasured("no_memory_records")
    labels, rows = step_labels(steps.name), list[dict[str, Value]]()
    for one in records:
        first = np.maximum(np.searchsorted(one.t, steps.host_start, "right") - 1, 0).tolist()
        last = np.searchsorted(one.t, steps.host_end, "right").tolist()
        for label, begin, end in zip(labels, first, last, strict=True):
            peak: Value = int(one.in_use[begin:end].max()) if end > begin else missing
            kind, number = one.place
            row = {"step": label, "memory_of": kind, "device": number, "peak_bytes": peak, "relative": one.relative}
            rows.append(row)
    return _STEPS.fill_records(rows)


def _over_time(records: list[_Records]) -> Table:
    """At most `POINTS` records of each device; every peak and low of them is there."""
    if not records:
        return _CURVE.missing("no_memory_records")
    places: list[tuple[str, int | None]] = []
    relative: list[bool] = []
    reserves: list[Value] = []
    times, used = [], []
    for one in records:
        known = np.flatnonzero((one.allocated >= 0) | one.relative)
        t, in_use, reserved = one.t[known], one.in_use[known], one.reserved[known]
        whole = bool((reserved > 0).any() and (reserved >= 0).all())
        kept = thinned(t, (in_use, reserved) if whole else (in_use,))
        times.append(t[kept])
        used.append(in_use[kept])
        places += [one.place] * len(kept)
        relative += [one.relative] * len(kept)
        reserves += reserved[kept].tolist() if whole else [NotMeasured("no_memory_totals")] * len(kept)
    return _CURVE.fill(
        memory_of=[kind for kind, _ in places],
        device=[number for _, number in places],
        record_ns=np.concatenate(times),
        in_use_bytes=np.concatenate(used),
        reserved_bytes=reserves,
        relative=relative,
    )


def thinned(t: NDArray[np.int64], curves: tuple[NDArray[np.int64], ...]) -> NDArray[np.int64]:
    """Positions of the lowest and the highest value of every curve in each of some equal pieces of time."""
    if len(t) <= POINTS:
        return np.arange(len(t))
    pieces = POINTS // (2 * len(curves))
    piece = (t - t[0]) * pieces // (int(t[-1] - t[0]) + 1)
    first = np.flatnonzero(np.concatenate(([True], piece[1:] != piece[:-1])))
    length = np.diff(np.concatenate((first, [len(t)])))
    chosen = []
    for curve in curves:
        for extreme in (np.minimum, np.maximum):
            at = np.flatnonzero(curve == np.repeat(extreme.reduceat(curve, first), length))
            chosen.append(at[np.concatenate(([True], piece[at[1:]] != piece[at[:-1]]))])
    return distinct(np.concatenate(chosen))


def _calls(context: Context) -> Table:
    """Allocation calls begun inside the analysed windows by name, most host time first."""
    calls, steps = context.calls, context.steps
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
        count=spread.count,
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
        count=spread.count,
        host_time_ns=spread.total,
        idle_ns=sites.sum(_idle(context, chosen)),
        max_ns=spread.longest,
        phase=[_phase(phase) for phase, _ in where],
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


def _phase(phase: Phase | None) -> str | None:
    """Its term."""
    return None if phase is None else f"phase_{phase.name.lower()}"


def _peak_places(context: Context, records: list[_Records]) -> Table:
    """Step, phase, operator and module at the highest value of each accelerator."""
    if not records or "device_type" not in context.trace.instants.fields:
        return _PLACES.missing("no_memory_records")
    places = Places(context)
    return _PLACES.fill_records(_peak(context, places, one) for one in records)


def _peak(context: Context, places: Places, one: _Records) -> dict[str, Value]:
    instants, steps = context.trace.instants, context.all_steps
    top = int(one.in_use.argmax())
    t, track = int(one.t[top]), int(instants.track[one.row[top]])
    if track not in set(context.threads):
        # Ascend's tables do not tell the thread.
        track = context.step_track
    step = int(np.searchsorted(steps.host_start, t, "right")) - 1 if context.mode == Mode.STEPS else -1
    inside = step >= 0 and t <= int(steps.host_end[step])
    op, phase, module = -1, None, None
    if track >= 0:
        op = int(ops_at(context, track, np.array([t], np.int64))[0])
        ((phase, module),) = places.at(np.array([track], np.int32), np.array([t], np.int64))
    return {
        "device": one.device,
        "peak_bytes": int(one.in_use[top]),
        "step": step_labels([steps.name[step]])[0] if inside else None,
        "phase": _phase(phase),
        "op": context.trace.strings.text(int(context.trace.events.name[op])) if op >= 0 else None,
        "module": module,
    }
