"""Kernels by operator type and core, where the profile has a kernel table (Ascend)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.grouping import Groups, group
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.analyses.results_device import KernelType, Measure
from traceanalyze.analyses.work import MISSING, argument, ratio_argument
from traceanalyze.model.kernel_classes import KernelGroup

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context


def kernel_types(context: Context) -> tuple[KernelType, ...] | NotMeasured:
    """Kernels inside the analysed windows by (type, core), most time first."""
    work, device = context.work, context.device
    every = device.row[work.event]
    op_type = argument(context, "op_type", every)
    chosen = np.flatnonzero(op_type != MISSING)
    if len(chosen) == 0:
        return NotMeasured("no_kernel_types")
    row, time = every[chosen], work.time[chosen]
    op_type, core = op_type[chosen], argument(context, "core", row)
    duration = (device.end - device.start)[work.event[chosen]]
    groups = group(op_type, core)
    cube = groups.mean(ratio_argument(context, "cube_utilisation", row) / 100, time)
    mac, vec = (_share(context, groups, row, duration, field) for field in ("mac_time", "vec_time"))
    text = context.trace.strings.text
    table = [
        KernelType(
            op_type=text(int(op_type[first])),
            core=text(int(core[first])) if core[first] != MISSING else NotMeasured("no_kernel_types"),
            group=KernelGroup(int(work.group[chosen[first]])),
            time=spread,
            cube_utilisation=_measure(float(cube[index])),
            cube_share=mac[index],
            vector_share=vec[index],
        )
        for index, (first, spread) in enumerate(zip(groups.first.tolist(), groups.spreads(time), strict=True))
    ]
    return tuple(sorted(table, key=lambda item: (-item.time.total, item.op_type, str(item.core))))


def _share(
    context: Context, groups: Groups, row: NDArray[np.int64], duration: NDArray[np.int64], field: str
) -> list[Measure]:
    """Time in which a unit worked over the duration of the kernels that say so, by group."""
    worked = argument(context, field, row)
    known = worked != MISSING
    total = groups.sum(np.where(known, duration, 0)).tolist()
    part = groups.sum(np.where(known, worked, 0)).tolist()
    return [a / b if b else NotMeasured("no_core_counters") for a, b in zip(part, total, strict=True)]


def _measure(value: float) -> Measure:
    return NotMeasured("no_core_counters") if np.isnan(value) else value
