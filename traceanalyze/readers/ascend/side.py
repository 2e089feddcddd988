"""The tables beside a timeline, and what is lost without those that are missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from traceanalyze.readers.ascend.shared import ABSENT, Allocations
from traceanalyze.readers.ascend.tables import KERNELS, Table, allocations, module_memory, read_table, step_times

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from traceanalyze.model.trace import ModuleMemory, VendorNumbers
    from traceanalyze.readers.ascend.folder import Profile


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Side:
    """What the tables say; None for those that are missing."""

    kernels: Table | None
    memory: Allocations | None
    vendor: VendorNumbers | None
    module_memory: tuple[ModuleMemory, ...]
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


def read_side(profile: Profile) -> Side:
    """Read the tables of a profile's text form. One that cannot be read is noted and left out."""
    notes: list[str] = []
    kernels = _read(profile, "kernel_details.csv", lambda path: read_table(path, KERNELS), notes)
    operators, totals = profile.table("operator_memory.csv"), profile.table("memory_record.csv")
    memory = None
    try:
        memory = allocations(operators, totals) if operators or totals else None
    except OSError as error:
        notes.append(f"the memory tables cannot be read ({error.strerror or error}): no memory curves")
    vendor = _read(profile, "step_trace_time.csv", step_times, notes)
    modules = _read(profile, "npu_module_mem.csv", module_memory, notes) or ()
    return Side(kernels, memory, vendor, modules, (*notes, *_missing(profile, kernels)))


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
    if profile.output is not None and profile.info is None:
        notes.append("profiler_info.json is missing: the profiler's options are not known, nor perhaps the rank")
    if profile.timeline is not None and profile.database is not None:
        notes.append(f"{profile.database.name} describes the same run and was not read")
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
