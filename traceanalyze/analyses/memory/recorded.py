"""Allocator records (`[memory]`) and the runtime calls that allocate: how much memory was in use, and its cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.memory.calls import allocator_sites, memory_peaks
from traceanalyze.analyses.results_device import AllocatorCall, Count, DeviceMemory, Memory
from traceanalyze.analyses.results_use import MemoryCurve
from traceanalyze.model.columns import distinct
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import ApiClass, Mode, SyncKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context

POINTS = 500


def memory_curve(
    t: NDArray[np.int64], allocated: NDArray[np.int64], reserved: NDArray[np.int64], *, relative: bool
) -> MemoryCurve:
    """At most `POINTS` of the records of one device.

    Args:
        t: When, ascending.
        allocated: Total after each record, below 0 where it is unknown; with `relative` the sum of changes so far.
        reserved: The same of reserved memory.
        relative: `allocated` is a sum of changes.
    """
    if not relative:
        known = allocated >= 0
        t, allocated, reserved = t[known], allocated[known], reserved[known]
    whole = bool((reserved > 0).any() and (reserved >= 0).all())
    kept = _thinned(t, (allocated, reserved) if whole else (allocated,))
    return MemoryCurve(t[kept], allocated[kept], reserved[kept] if whole else None, relative)


def _thinned(t: NDArray[np.int64], curves: tuple[NDArray[np.int64], ...]) -> NDArray[np.int64]:
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


_HOST = 0
"""`Device Type` of the host in the profiler's records; every other number is an accelerator."""
_ABSENT = -1


def memory(context: Context) -> Memory:
    """What the allocator recorded, and its runtime calls."""
    return Memory(
        devices=_devices(context),
        calls=_calls(context),
        sites=allocator_sites(context),
        peaks=memory_peaks(context),
    )


def _devices(context: Context) -> tuple[DeviceMemory, ...] | NotMeasured:
    """One row a device with records: accelerators before the host."""
    instants = context.trace.instants
    size = instants.fields.get("bytes")
    if size is None:
        return NotMeasured("no_memory_records")
    row = size.row.astype(np.int64)
    row = row[np.argsort(instants.ts[row], kind="stable")]
    kind, device = _field(context, "device_type", row), _field(context, "device", row)
    devices = group(kind, device)
    rows = [_device(context, row[devices.of == index]) for index in range(len(devices.first))]
    return tuple(sorted(rows, key=lambda item: (item.kind, item.device)))


def _field(context: Context, name: str, row: NDArray[np.int64]) -> NDArray[np.int64]:
    column = context.trace.instants.fields.get(name)
    return np.full(len(row), _ABSENT, np.int64) if column is None else column.take(row, _ABSENT)


def _device(context: Context, row: NDArray[np.int64]) -> DeviceMemory:
    """Summary of the records of one device, in time order."""
    change = context.trace.instants.fields["bytes"].take(row, 0)
    running = np.cumsum(change)
    allocated, reserved = _field(context, "allocated", row), _field(context, "reserved", row)
    # The profiler writes 0 for totals it does not know, as for the host.
    totals_known = bool((allocated > 0).any())
    curve = allocated if totals_known else running
    t = context.trace.instants.ts[row]
    return DeviceMemory(
        kind="host" if _field(context, "device_type", row[:1])[0] == _HOST else "device",
        device=int(_field(context, "device", row[:1])[0]),
        records=len(row),
        allocated=int(change[change > 0].sum()),
        freed=int(-change[change < 0].sum()),
        peak_allocated=_peak(allocated),
        peak_reserved=_peak(reserved),
        relative_peak=max(int(running.max()), 0),
        step_peaks=_step_peaks(context, t, curve),
        curve=memory_curve(t, curve, reserved, relative=not totals_known),
    )


def _peak(total: NDArray[np.int64]) -> Count:
    highest = int(total.max())
    return highest if highest > 0 else NotMeasured("no_memory_totals")


def _step_peaks(context: Context, t: NDArray[np.int64], curve: NDArray[np.int64]) -> tuple[int | None, ...]:
    """Highest value during each step's host time, the value at its start included."""
    steps = context.steps
    first = np.maximum(np.searchsorted(t, steps.host_start, "right") - 1, 0)
    last = np.searchsorted(t, steps.host_end, "right")
    return tuple(
        int(curve[begin:end].max()) if end > begin else None
        for begin, end in zip(first.tolist(), last.tolist(), strict=True)
    )


def _calls(context: Context) -> tuple[AllocatorCall, ...] | NotMeasured:
    """Allocation calls begun inside the analysed windows by name, most host time first."""
    calls, steps = context.calls, context.steps
    if len(calls) == 0:
        return NotMeasured("no_api")
    start, end = (steps.host_start, steps.host_end) if context.mode == Mode.STEPS else (steps.start, steps.end)
    window = np.searchsorted(start, calls.start, "right") - 1
    inside = (window >= 0) & (calls.start <= end[window])
    chosen = np.flatnonzero(inside & calls.outermost & (calls.klass == ApiClass.ALLOC))
    names = group(calls.name[chosen])
    table = [
        AllocatorCall(
            name=context.trace.strings.text(int(calls.name[chosen[first]])),
            implicit_sync=bool(calls.sync[chosen[first]] == SyncKind.IMPLICIT),
            time=spread,
        )
        for first, spread in zip(
            names.first.tolist(), names.spreads(calls.end[chosen] - calls.start[chosen]), strict=True
        )
    ]
    return tuple(sorted(table, key=lambda call: (-call.time.total, call.name)))
