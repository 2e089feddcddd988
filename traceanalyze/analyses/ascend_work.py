"""Group and use of the cube unit of kernels on an Ascend device, from its kernel table, else from kernel names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.model.ascend_kernels import cube_use, group_of_type, type_of_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.model.trace import Trace

_UNTIMED, _BUSY = 0, 2
"""Whether the matrix unit worked: not measured, and yes; 1 is no."""


def classify_kernels(
    trace: Trace, row: NDArray[np.int64], name: NDArray[np.int32]
) -> tuple[NDArray[np.int16], NDArray[np.uint8]]:
    """`KernelGroup` (-1 where neither type nor name tells) and `TensorCore` of kernels.

    Args:
        trace: The trace.
        row: Rows of the kernels in its events.
        name: Codes of their names.
    """
    fields = trace.events.fields
    none = np.full(len(row), -1, np.int64)
    op_type, core = (
        none if (column := fields.get(field)) is None else column.take(row, -1).astype(np.int64)
        for field in ("op_type", "core")
    )
    mac = fields.get("mac_time")
    worked = none + 1 if mac is None else np.clip(mac.take(row, -1), -1, 1) + 1
    keys = group(op_type, np.where(op_type >= 0, -1, name), core, worked)
    groups, cube = np.full(len(keys), -1, np.int16), np.zeros(len(keys), np.uint8)
    text = trace.strings.text
    for index, first in enumerate(keys.first.tolist()):
        known = text(int(op_type[first])) if op_type[first] >= 0 else type_of_name(text(int(name[first])))
        found = group_of_type(known)
        groups[index] = -1 if found is None else found
        time = None if worked[first] == _UNTIMED else int(worked[first] == _BUSY)
        cube[index] = cube_use(text(int(core[first])) if core[first] >= 0 else "", found, time)
    return groups[keys.of], cube[keys.of]
