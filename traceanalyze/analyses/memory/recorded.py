"""What a trace records of allocators: memory in use (`[memory]`), and the runtime calls that allocate."""

from typing import Any, NamedTuple

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
HOST = 0
"""`Device Type` of the host in the profiler's records; every other number is an accelerator."""
_NO_RECORDS, _NO_TOTALS = NotMeasured("no_memory_records"), NotMeasured("no_memory_totals")
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


class _Records(NamedTuple):
    """Records of one device in time order."""

    memory_of: str
    device: int | None
    """None: the host's."""
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


def peak_tables(context: Context) -> list[Table]:
    """The highest values of what the allocator recorded, and where they are."""
    return [memory(context), _peak_places(context, context.once(_recorded))]


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
        *peak_tables(context),
        _by_step(context, records),
        _over_time(records),
        allocator_calls(context),
        allocator_sites(context),
        *([components] if named else []),
    ]


def records_in_time(context: Context) -> NDArray[np.int64]:
    """Rows of `Trace.instants` that are records of the allocator, in order of time."""
    size, ts = context.trace.instants.fields.get("bytes"), context.trace.instants.ts
    rows = np.zeros(0, np.int64) if size is None else size.row.astype(np.int64)
    return rows[np.argsort(ts[rows], kind="stable")]


def field_of(context: Context, name: str, row: NDArray[np.int64], absent: int = -1) -> NDArray[np.int64]:
    """What records say under this name."""
    column = context.trace.instants.fields.get(name)
    return np.full(len(row), absent, np.int64) if column is None else column.take(row, absent)


def _recorded(context: Context) -> list[_Records]:
    """Records by device: accelerators before the host."""
    rows = records_in_time(context)
    kind, device = field_of(context, "device_type", rows), field_of(context, "device", rows)
    devices = group(kind == HOST, device, kind)
    found = []
    for index, first in enumerate(devices.first.tolist()):
        row, host, number = rows[devices.of == index], bool(kind[first] == HOST), int(device[first])
        change, allocated = field_of(context, "bytes", row, 0), field_of(context, "allocated", row)
        relative = not (allocated > 0).any()
        found.append(
            _Records(
                memory_of="memory_of_host" if host else "memory_of_device",
                device=number if number >= 0 else None,
                row=row,
                t=context.trace.instants.ts[row],
                change=change,
                allocated=allocated,
                reserved=field_of(context, "reserved", row),
                relative=relative,
                in_use=np.cumsum(change) if relative else allocated,
            )
        )
    return found


def memory(context: Context) -> Table:
    """Peaks of every device with records, over the whole recording."""
    records = context.once(_recorded)
    if not records:
        return _MEMORY.missing(_NO_RECORDS.reason)
    return _MEMORY.fill_records(
        {
            "memory_of": one.memory_of,
            "device": one.device,
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
    return highest if highest > 0 else _NO_TOTALS


def _by_step(context: Context, records: list[_Records]) -> Table:
    """Highest value during each step's host time, the value at its start included."""
    if not records:
        return _STEPS.missing(_NO_RECORDS.reason)
    steps, rows = context.steps, list[dict[str, Value]]()
    for one in records:
        first = np.maximum(np.searchsorted(one.t, steps.host_start, "right") - 1, 0).tolist()
        last = np.searchsorted(one.t, steps.host_end, "right").tolist()
        rows += (
            {
                "step": label,
                "memory_of": one.memory_of,
                "device": one.device,
                "peak_bytes": int(one.in_use[begin:end].max()) if end > begin else _NO_RECORDS,
                "relative": one.relative,
            }
            for label, begin, end in zip(step_labels(steps.name), first, last, strict=True)
        )
    return _STEPS.fill_records(rows)


def _over_time(records: list[_Records]) -> Table:
    """At most `POINTS` records of each device; every peak and low of them is there."""
    if not records:
        return _CURVE.missing(_NO_RECORDS.reason)
    found: dict[str, list[Any]] = {key: [] for key in _CURVE.keys}
    for one in records:
        known = np.flatnonzero((one.allocated >= 0) | one.relative)
        t, in_use, reserved = one.t[known], one.in_use[known], one.reserved[known]
        whole = bool((reserved > 0).any() and (reserved >= 0).all())
        kept = thinned(t, (in_use, reserved) if whole else (in_use,))
        found["memory_of"] += [one.memory_of] * len(kept)
        found["device"] += [one.device] * len(kept)
        found["record_ns"] += t[kept].tolist()
        found["in_use_bytes"] += in_use[kept].tolist()
        found["reserved_bytes"] += reserved[kept].tolist() if whole else [_NO_TOTALS] * len(kept)
        found["relative"] += [one.relative] * len(kept)
    return _CURVE.fill(**found)


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


def _peak_places(context: Context, records: list[_Records]) -> Table:
    """Step, phase, operator and module at the highest value of each accelerator."""
    # A record without a device type says nothing about an accelerator.
    accelerators = [one for one in records if field_of(context, "device_type", one.row[:1], HOST)[0] != HOST]
    if not accelerators or "device_type" not in context.trace.instants.fields:
        return _PLACES.missing(_NO_RECORDS.reason)
    places = Places(context)
    return _PLACES.fill_records(_peak(context, places, one) for one in accelerators)


def _peak(context: Context, places: "Places", one: _Records) -> dict[str, Value]:
    steps, top = context.all_steps, int(one.in_use.argmax())
    t, track = one.t[top : top + 1], int(context.trace.instants.track[one.row[top]])
    if track not in set(context.threads):
        # Ascend's tables do not tell the thread.
        track = context.step_track
    step = int(np.searchsorted(steps.host_start, t[0], "right")) - 1 if context.mode == Mode.STEPS else -1
    inside = step >= 0 and t[0] <= steps.host_end[step]
    op, phase, module = np.full(1, -1), None, None
    if track >= 0:
        op = ops_at(context, track, t)
        ((phase, module),) = places.at(np.array([track], np.int32), t)
    return {
        "device": -1 if one.device is None else one.device,
        "peak_bytes": int(one.in_use[top]),
        "step": step_labels([steps.name[step]])[0] if inside else None,
        "phase": phase,
        "op": context.trace.strings.text(int(context.trace.events.name[op[0]])) if op[0] >= 0 else None,
        "module": module,
    }


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
