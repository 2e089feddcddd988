"""The tables beside a timeline, and what is lost without those that are missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from traceanalyze.frozen import frozen
from traceanalyze.readers.ascend.comm_tables import communication_tables
from traceanalyze.readers.ascend.other_export import database_beside
from traceanalyze.readers.ascend.sampled_memory import module_memory, process_memory
from traceanalyze.readers.ascend.shared import ABSENT, Allocations
from traceanalyze.readers.ascend.tables import KERNELS, MEMORY_RECORD, Table, allocations, read_table, step_times

if TYPE_CHECKING:
    from pathlib import Path

    from traceanalyze.model.collectives import VendorCollectives
    from traceanalyze.model.trace import ModuleMemory, OtherExport, VendorNumbers
    from traceanalyze.readers.ascend.folder import Profile
    from traceanalyze.readers.ascend.info import About


_T = TypeVar("_T")


@frozen
class Side:
    """What the tables say; None for those that are missing."""

    kernels: Table | None
    memory: Allocations | None
    vendor: VendorNumbers | None
    collectives: VendorCollectives | None
    other: OtherExport | None
    module_memory: tuple[ModuleMemory, ...]
    process_memory: tuple[ModuleMemory, ...]
    notes: tuple[str, ...]

    @property
    def only_device(self) -> int | None:
        """The device's number where the tables name just one."""
        named: set[int] = set()
        if self.kernels is not None:
            named |= set(self.kernels.integers("device").tolist())
        if self.memory is not None:
            named |= set(self.memory.device[self.memory.device_type == 1].tolist())
        named.discard(ABSENT)
        return named.pop() if len(named) == 1 else None


def read_side(profile: Profile, about: About) -> Side:
    """Read the tables of a profile's text form. One that cannot be read is noted and left out."""
    notes: list[str] = []
    kernels = _read(profile, "kernel_details.csv", lambda path: read_table(path, KERNELS), notes)
    record = _read(profile, "memory_record.csv", lambda path: read_table(path, MEMORY_RECORD), notes)
    operators = profile.table("operator_memory.csv")
    memory = None
    try:
        memory = allocations(operators, record) if operators or record else None
    except OSError as error:
        notes.append(f"operator_memory.csv cannot be read ({error.strerror or error}): no memory curves")
    vendor = _read(profile, "step_trace_time.csv", step_times, notes)
    modules = _read(profile, "npu_module_mem.csv", module_memory, notes) or ()
    process = () if record is None else process_memory(record)
    collectives = communication_tables(profile, about, notes)
    other = database_beside(profile, notes)
    notes += _missing(profile, kernels)
    return Side(kernels, memory, vendor, collectives, other, modules, process, tuple(notes))


_PAIRS = (
    ("operator_memory.csv", "memory_record.csv", "which operator allocated what is not known"),
    ("memory_record.csv", "operator_memory.csv", "no totals beside those of operators, no memory of the whole process"),
    ("step_trace_time.csv", "kernel_details.csv", "no step times of the profile's own to compare with"),
)
"""Tables that are written together: what is lost with the first alone."""


def _missing(profile: Profile, kernels: Table | None) -> list[str]:
    notes = []
    if profile.output is not None and profile.table("kernel_details.csv") is None:
        notes.append("kernel_details.csv is missing: no operator types, cores, shapes and counters of kernels")
    if kernels is not None and kernels.short:
        notes.append(f"kernel_details.csv: {kernels.short:,} rows are cut off and were left out")
    if kernels is not None and kernels.rows and (kernels.times("start") == ABSENT).any():
        notes.append(
            "kernel_details.csv: some start times are no exact numbers (was it saved by a spreadsheet?): "
            "these rows cannot be joined to the timeline"
        )
    notes += [
        f"{name} is missing: {lost}"
        for name, other, lost in _PAIRS
        if profile.table(name) is None and profile.table(other) is not None
    ]
    return notes


def _read(profile: Profile, name: str, read: Callable[[Path], _T | None], notes: list[str]) -> _T | None:
    path = profile.table(name)
    if path is None:
        return None
    try:
        return read(path)
    except OSError as error:
        notes.append(f"{name} cannot be read ({error.strerror or error}) and was left out")
        return None
