"""Table of kernels by operator type and core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.report.assembly.kernels import SPREAD, spread_cells
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results_device import KernelType

_TYPES = (
    Column("op_type", Kind.NAME),
    Column("core", Kind.TEXT),
    Column("work", Kind.TERM),
    *SPREAD,
    Column("cube_utilisation", Kind.SHARE),
    Column("cube_share", Kind.SHARE, minor=True),
    Column("vector_share", Kind.SHARE, minor=True),
)


def kernel_types_table(types: tuple[KernelType, ...] | NotMeasured) -> Table:
    """Kernels of the profile's kernel table; `share` is of their time."""
    if isinstance(types, NotMeasured):
        return table_of_rows("kernel_types", _TYPES, types, detail=True)
    whole = sum(item.time.total for item in types)
    rows = tuple(
        (
            item.op_type,
            item.core,
            f"work_{item.group.name.lower()}",
            *spread_cells(item.time, whole),
            item.cube_utilisation,
            item.cube_share,
            item.vector_share,
        )
        for item in types
    )
    return table_of_rows("kernel_types", _TYPES, rows, ranked=True)
