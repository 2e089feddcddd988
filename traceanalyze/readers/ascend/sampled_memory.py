"""Memory that CANN samples every few milliseconds: of each of its components, and of the whole process.

Components: `npu_module_mem.csv`, or NPU_MODULE_MEM of a database. Process: the rows `APP` of `memory_record.csv`, or
of type `app` in NPU_MEM. Both forms hold the same samples. In the table of components `APP` is PyTorch's pool, which
the allocator's own records describe better; it is left out.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.columns import distinct_codes
from traceanalyze.model.trace import ModuleMemory
from traceanalyze.readers.ascend.db_file import Reading
from traceanalyze.readers.ascend.shared import ABSENT
from traceanalyze.readers.ascend.tables import MB, Table, device_of, read_table

PROCESS = "APP"
_POOL_IN_MODULES = "APP"
_MODULES = {
    "component": ("Component",),
    "at": ("Timestamp(us)",),
    "reserved": ("Total Reserved(MB)",),
    "device": ("Device", "Device Type"),
}


def module_memory(path: Path, notes: list[str]) -> tuple[ModuleMemory, ...]:
    """What each component reserved, from the CSV file; most first, without those that never reserved anything."""
    table = read_table(path, _MODULES, notes)
    return () if table is None else _samples(table, lambda name: name != _POOL_IN_MODULES)


def process_memory(record: Table) -> tuple[ModuleMemory, ...]:
    """Memory of the whole process on each device, from memory_record; none in a profile without such rows."""
    return _samples(record, lambda name: name == PROCESS)


def module_memory_of(reading: Reading) -> tuple[ModuleMemory, ...]:
    """The same from a database."""
    database = reading.database
    table = database.integers("NPU_MODULE_MEM", ["moduleId", "timestampNs", "totalReserved", "deviceId"])
    names = database.vocabulary("ENUM_MODULE")
    modules, code = np.unique(table["moduleId"], return_inverse=True)
    component = [names.get(key, f"module {key}") for key in modules.tolist()]
    kept = np.array([name != _POOL_IN_MODULES for name in component], np.bool_)[code]
    size = np.where(kept, table["totalReserved"], ABSENT)
    return _highest(component, code, table["deviceId"], table["timestampNs"], size)


def process_memory_of(reading: Reading) -> tuple[ModuleMemory, ...]:
    """The same from a database; memory on the device's DDR, which few have, counts with that on its HBM."""
    columns = ("type", "timestampNs", "ddr", "hbm", "deviceId")
    wanted = ("type", reading.strings.ids_of("app", PROCESS))
    table = reading.database.integers("NPU_MEM", columns, only=wanted)
    both = np.stack((table["ddr"], table["hbm"]))
    size = np.where((both == ABSENT).all(axis=0), ABSENT, np.where(both == ABSENT, 0, both).sum(axis=0))
    return _highest([PROCESS], np.zeros(len(size), np.int64), table["deviceId"], table["timestampNs"], size)


def _samples(table: Table, wanted: Callable[[str], bool]) -> tuple[ModuleMemory, ...]:
    names, code = table.coded("component")
    others = np.array([name is None or not wanted(name) for name in names], np.bool_)
    size = np.where(others[code], ABSENT, table.sizes("reserved", MB))
    devices, device = table.coded("device")
    number = np.array([device_of(text)[1] for text in devices], np.int64)[device]
    return _highest([name or "" for name in names], code, number, table.times("at"), size)


def _highest(
    names: Sequence[str],
    code: NDArray[np.int64],
    devices: NDArray[np.int64],
    at: NDArray[np.int64],
    size: NDArray[np.int64],
) -> tuple[ModuleMemory, ...]:
    """Highest and last sample by component and device; rows whose size or time is `ABSENT` do not count.

    `code` says which of the `names` each row has.
    """
    rows = np.flatnonzero((size != ABSENT) & (at != ABSENT))
    rows = rows[np.argsort(at[rows], kind="stable")]
    place = {name: number for number, name in enumerate(dict.fromkeys(names))}
    key = np.array([place[name] for name in names], np.int64)[code[rows]]
    numbers, device = np.unique(np.maximum(devices[rows], 0), return_inverse=True)
    whose, of = distinct_codes(key * len(numbers) + device, len(place) * len(numbers))
    peak, last = np.zeros((2, len(whose)), np.int64)
    np.maximum.at(peak, of, size[rows])
    last[of] = size[rows]
    listed, count = list(place), np.bincount(of, minlength=len(whose))
    name, number = (each.tolist() for each in np.divmod(whose, max(len(numbers), 1)))
    columns = [listed[one] for one in name], numbers[number].tolist(), peak.tolist(), last.tolist(), count.tolist()
    found = [ModuleMemory(*each) for each in zip(*columns, strict=True)]
    return tuple(sorted((one for one in found if one.peak), key=lambda one: (-one.peak, one.component, one.device)))
