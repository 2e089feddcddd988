"""The generations of Ascend exports: names, columns and ids that changed over the years."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tests.simulate.npu_kernels import GROUP_HASH

if TYPE_CHECKING:
    from collections.abc import Iterable

ERAS = ("2023", "8.0", "8.3", "2026")
NONE = 2**32 - 1
"""How the files write "no value"."""
_SORT = {
    "2023": {"CANN": 2, "Ascend Hardware": 3, "HCCL": 8, "Overlap Analysis": 11, "NPU MEM": 5},
    "8.0": {"CANN": 7, "Ascend Hardware": 13, "HCCL": 15, "Overlap Analysis": 23, "NPU MEM": 19},
    "2026": {"CANN": 7, "Ascend Hardware": 14, "HCCL": 16, "Overlap Analysis": 31, "NPU MEM": 19},
}


@dataclass(frozen=True, slots=True)
class AscendLayout:
    """How one generation of the profiler writes, and what it was told to record."""

    era: str = "8.0"
    """One of `ERAS`."""
    level: int = 1
    shapes: bool = True
    memory: bool = True
    planes: bool = True
    """Parts of collectives are exported; else only the collectives."""
    crlf: bool = False
    """Lines of the CSV files end as on Windows."""
    device: int = 0
    damage: str = ""
    """What happened to trace_view.json: `open` (no end), `comma` (`,]`), `cut` (inside the last event), or
    `host_open`, `host_comma` (the same before the device's part was written)."""

    @property
    def number(self) -> int:
        """Place of the era in `ERAS`."""
        return ERAS.index(self.era)

    @property
    def comm_process(self) -> str:
        """Process of the collectives."""
        return "HCCL" if self.number < 2 else "Communication"

    @property
    def comm_api(self) -> str:
        """Prefix of the host calls of collectives."""
        return "Communication@" if self.era == "2026" else "Hccl@"

    @property
    def comm_core(self) -> str:
        """Accelerator core of collectives in the kernel table."""
        return "HCCL" if self.number < 2 else "COMMUNICATION"

    @property
    def group(self) -> str:
        """How the one group is called in the timeline."""
        return {"2023": "0", "8.0": "0", "8.3": "group_name_0", "2026": str(GROUP_HASH)}[self.era]

    @property
    def group_id(self) -> str:
        """How the database calls it."""
        return "127.0.0.1%lo_60000_0_1767225500000000" if self.number < 2 else "group_name_0"

    @property
    def stream_key(self) -> str:
        """Argument with the stream of a device task."""
        return "Stream Id" if self.era == "2023" else "Physic Stream Id"

    @property
    def label(self) -> str:
        """Label of the device's processes."""
        return f"NPU {self.device}" if self.era == "2026" else "NPU"

    def sort_index(self, process: str) -> int:
        """Place of a process in the timeline."""
        return _SORT.get(self.era, _SORT["8.0"])["HCCL" if process == "Communication" else process]

    def process(self, os_pid: int, process: str) -> int:
        """Number that stands for a process of the device side."""
        sort = self.sort_index(process)
        return sort * 100 if self.era == "2023" else os_pid << 10 | sort << 5 | self.device

    def task_type(self, core: str) -> str:
        """Type that the timeline gives a kernel of a core."""
        if self.era == "2023":
            return "Other"
        return "AI_CORE" if core == "AI_VECTOR_CORE" and self.era == "8.0" else core

    def flow_id(self, kind: str, stream: int, task: int, connection: int) -> str:
        """Id of the arrow from the host to a device task."""
        if self.era == "2026":
            return str(connection << 32)
        if self.era == "2023":
            return str(connection << 32 | NONE)
        if kind == "comm":
            return str((connection << 32) - 1)
        return str(connection if kind == "memcpy" else stream << 64 | task << 48 | NONE)

    def csv_time(self, text: str) -> str:
        """A time cell: newer exports put a tab behind it, so that spreadsheets keep the digits."""
        return text if self.era == "2023" else text + "\t"

    def columns(self, first: str, *rest: str) -> list[str]:
        """A header: newer exports tell the device after the first column."""
        return [first, "Device_id", *rest] if self.number >= 2 and first == "Step Id" else [first, *rest]

    def with_device(self, columns: Iterable[Any], device: object = "") -> list[Any]:
        """A row of the tables in which the device comes first."""
        if self.number < 2:
            return list(columns)
        return [self.device if device == "" else device, *columns]


def every_era(layout: AscendLayout | None = None) -> tuple[AscendLayout, ...]:
    """The same recording as each generation writes it."""
    return tuple(replace(layout or AscendLayout(), era=era) for era in ERAS)
