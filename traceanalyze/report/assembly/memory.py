"""Tables of the caching allocator: peaks by device and step, use over time, and its runtime calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.analyses.results import Steps
    from traceanalyze.analyses.results_device import AllocatorCall, AllocatorSite, DeviceMemory, Memory, MemoryPeak
    from traceanalyze.model.table import Row
    from traceanalyze.model.trace import ModuleMemory
    from traceanalyze.model.vocabulary import Phase

_DEVICE = (Column("memory_of", Kind.TERM), Column("device", Kind.COUNT))
_PEAKS = (
    *_DEVICE,
    Column("records", Kind.COUNT),
    Column("peak_allocated_bytes", Kind.MEMORY),
    Column("peak_reserved_bytes", Kind.MEMORY),
    Column("relative_peak_bytes", Kind.MEMORY),
    Column("allocated_bytes", Kind.MEMORY, minor=True),
    Column("freed_bytes", Kind.MEMORY, minor=True),
)
_STEPS = (Column("step", Kind.TEXT), *_DEVICE, Column("peak_bytes", Kind.MEMORY), Column("relative", Kind.FLAG))
_CURVE = (
    *_DEVICE,
    Column("record_ns", Kind.DURATION),
    Column("in_use_bytes", Kind.MEMORY),
    Column("reserved_bytes", Kind.MEMORY),
    Column("relative", Kind.FLAG),
)
_PLACES = (
    Column("device", Kind.COUNT),
    Column("peak_bytes", Kind.MEMORY),
    Column("step", Kind.TEXT),
    Column("phase", Kind.TERM),
    Column("op", Kind.NAME),
    Column("module", Kind.NAME),
)
_SITES = (
    Column("op", Kind.NAME),
    Column("call", Kind.NAME),
    Column("count", Kind.COUNT),
    Column("host_time_ns", Kind.DURATION),
    Column("idle_ns", Kind.DURATION),
    Column("max_ns", Kind.DURATION, scale="call"),
    Column("phase", Kind.TERM, minor=True),
    Column("module", Kind.NAME, minor=True),
)
_MODULES = (
    Column("component", Kind.NAME),
    Column("device", Kind.COUNT),
    Column("peak_reserved_bytes", Kind.MEMORY),
    Column("last_reserved_bytes", Kind.MEMORY),
    Column("samples", Kind.COUNT, minor=True),
)
_CALLS = (
    Column("call", Kind.NAME),
    Column("count", Kind.COUNT),
    Column("host_time_ns", Kind.DURATION),
    Column("mean_call_ns", Kind.DURATION, scale="call"),
    Column("max_ns", Kind.DURATION, scale="call"),
    Column("implicit_sync", Kind.FLAG),
)


def memory_tables(
    memory: Memory | NotMeasured,
    steps: Steps,
    modules: Sequence[ModuleMemory] = (),
    process: Sequence[ModuleMemory] = (),
) -> list[Table]:
    """Peaks, peaks by step, curve, allocator calls; what CANN samples of the process and its components."""
    if isinstance(memory, NotMeasured):
        return []
    return [
        _peaks(memory.devices),
        _peak_places(memory.peaks),
        _by_step(memory.devices, steps),
        _curve(memory.devices),
        _calls(memory.calls),
        _sites(memory.sites),
        *([_modules(modules, process)] if modules or process else []),
    ]


def _peak_places(peaks: tuple[MemoryPeak, ...] | NotMeasured) -> Table:
    if isinstance(peaks, NotMeasured):
        return table_of_rows("memory_peak_place", _PLACES, peaks, detail=True)
    rows = tuple(map(_place, peaks))
    return table_of_rows("memory_peak_place", _PLACES, rows, detail=True)


def _place(peak: MemoryPeak) -> Row:
    return peak.device, peak.bytes, _step(peak.step), _phase(peak.phase), peak.op, peak.module


def _sites(sites: tuple[AllocatorSite, ...] | NotMeasured) -> Table:
    if isinstance(sites, NotMeasured):
        return table_of_rows("allocator_sites", _SITES, sites, detail=True)
    rows = tuple(
        (
            site.op,
            site.call,
            site.time.count,
            site.time.total,
            site.idle,
            site.time.longest,
            _phase(site.phase),
            site.module,
        )
        for site in sites
    )
    return table_of_rows("allocator_sites", _SITES, rows, ranked=True, detail=True)


def _modules(modules: Sequence[ModuleMemory], process: Sequence[ModuleMemory]) -> Table:
    """The whole process, and what the vendor's own software reserved in it; only profiles that tell have it."""
    named = [*((f"{one.component} (process)", one) for one in process), *((one.component, one) for one in modules)]
    rows = tuple((name, one.device, one.peak, one.last, one.samples) for name, one in named)
    return table_of_rows("module_memory", _MODULES, rows, ranked=True, detail=True)


def _step(name: str | None) -> str | None:
    return step_labels([name])[0] if name else None


def _phase(phase: Phase | None) -> str | None:
    return None if phase is None else f"phase_{phase.name.lower()}"


def _where(item: DeviceMemory) -> tuple[str, int | None]:
    """Host or device, and its number; the host has none."""
    return f"memory_of_{item.kind}", item.device if item.device >= 0 else None


def _peaks(devices: tuple[DeviceMemory, ...] | NotMeasured) -> Table:
    if isinstance(devices, NotMeasured):
        return table_of_rows("memory", _PEAKS, devices, detail=True)
    rows = tuple(
        (
            *_where(item),
            item.records,
            item.peak_allocated,
            item.peak_reserved,
            item.relative_peak,
            item.allocated,
            item.freed,
        )
        for item in devices
    )
    return table_of_rows("memory", _PEAKS, rows, detail=True)


def _by_step(devices: tuple[DeviceMemory, ...] | NotMeasured, steps: Steps) -> Table:
    if isinstance(devices, NotMeasured):
        return table_of_rows("step_memory", _STEPS, devices, detail=True)
    rows = tuple(
        (
            label,
            *_where(item),
            NotMeasured("no_memory_records") if peak is None else peak,
            isinstance(item.peak_allocated, NotMeasured),
        )
        for item in devices
        for label, peak in zip(step_labels(steps.name), item.step_peaks, strict=True)
    )
    return table_of_rows("step_memory", _STEPS, rows, detail=True)


def _curve(devices: tuple[DeviceMemory, ...] | NotMeasured) -> Table:
    if isinstance(devices, NotMeasured):
        return table_of_rows("memory_curve", _CURVE, devices, detail=True)
    rows: list[Row] = []
    for item in devices:
        curve = item.curve
        unknown = (NotMeasured("no_memory_totals"),) * len(curve.t)
        reserved = unknown if curve.reserved is None else curve.reserved.tolist()
        points = zip(curve.t.tolist(), curve.allocated.tolist(), reserved, strict=True)
        rows.extend((*_where(item), *point, curve.relative) for point in points)
    return table_of_rows("memory_curve", _CURVE, tuple(rows), ranked=True, detail=True)


def _calls(calls: tuple[AllocatorCall, ...] | NotMeasured) -> Table:
    if isinstance(calls, NotMeasured):
        return table_of_rows("allocator_calls", _CALLS, calls, detail=True)
    rows = tuple(
        (call.name, call.time.count, call.time.total, call.time.mean, call.time.longest, call.implicit_sync)
        for call in calls
    )
    return table_of_rows("allocator_calls", _CALLS, rows, ranked=True, detail=True)
