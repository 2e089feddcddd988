"""Allocator records of a database: what operators allocate and release, and the totals of PyTorch's pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.readers.ascend import db_file
from traceanalyze.readers.ascend.shared import ABSENT, Allocations
from traceanalyze.readers.ascend.tables import POOL, joined_allocations

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.readers.ascend.db_file import Columns
    from traceanalyze.readers.ascend.db_rows import Reading

_OPERATORS = (
    *("size", "allocationTime", "releaseTime", "allocationTotalAllocated", "allocationTotalReserved"),
    *("releaseTotalAllocated", "releaseTotalReserved", "deviceId"),
)


def allocations(reading: Reading) -> Allocations:
    """OP_MEMORY, and those records of MEMORY_RECORD's pool of PyTorch that are at other times."""
    table = db_file.integers(reading.database, "OP_MEMORY", _OPERATORS)
    size = table["size"]
    parts = [
        _records(table, "allocationTime", size, "allocationTotalAllocated", "allocationTotalReserved"),
        _records(
            table, "releaseTime", np.where(size == ABSENT, size, -size), "releaseTotalAllocated", "releaseTotalReserved"
        ),
    ]
    columns = ("timestamp", "totalAllocated", "totalReserved", "deviceId")
    pool = ("component", reading.strings.ids_of(POOL))
    totals = db_file.integers(reading.database, "MEMORY_RECORD", columns, only=pool)
    other = ~np.isin(totals["timestamp"], np.concatenate([part.ts for part in parts]))
    change = np.where(other, 0, ABSENT)
    parts.append(_records(totals, "timestamp", change, "totalAllocated", "totalReserved"))
    return joined_allocations(parts)


def _records(table: Columns, at: str, size: NDArray[np.int64], allocated: str, reserved: str) -> Allocations:
    """Rows with a time and a size."""
    rows = np.flatnonzero((table[at] > 0) & (size != ABSENT))
    totals = [np.maximum(table[name][rows], -1) for name in (allocated, reserved)]
    device = np.maximum(table["deviceId"][rows], 0)
    return Allocations(table[at][rows], size[rows], device, np.ones(len(rows), np.int64), totals[0], totals[1])
