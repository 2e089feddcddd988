"""How long the same kernels take on one rank, for the comparison with the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.work import MISSING, argument
from traceanalyze.cluster.results import KernelTime
from traceanalyze.model.vocabulary import DeviceClass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context

LEAST_RUNS = 3
"""Fewer runs of a kernel have no usual time."""
MOST = 64
"""Kernels kept of a rank, longest first: they are sent between processes."""
LEAST_NS = 5_000
"""Shorter kernels take as long as the device needs to start them, at any clock rate."""


def kernel_times(context: Context) -> tuple[KernelTime, ...]:
    """Compute kernels of the headline device that run alone: name, shapes and launch configuration tell what is same.

    Kernels beside communication are left out: they share the device with it, and ranks that wait for others have more
    of them. Empty where neither shapes nor launch configurations are recorded, as a name alone does not tell the work.
    """
    fields = context.trace.events.fields
    if not context.devices or not {"shapes", "kernel_shapes", "grid"} & set(fields):
        return ()
    device, work = context.device, context.work
    mine = device.device == context.devices[0]
    comm = mine & (device.klass == DeviceClass.COMM)
    busy = intervals.merge(device.start[comm], device.end[comm])
    chosen = mine[work.event] & (device.klass[work.event] == DeviceClass.COMPUTE)
    chosen &= work.time >= LEAST_NS
    chosen[chosen] = intervals.coverage(busy, *_span(context, work.event[chosen])) == 0
    event, op = work.event[chosen], work.op[chosen]
    row, time = device.row[event], work.time[chosen]
    shape = np.where(op >= 0, argument(context, "shapes", np.maximum(op, 0)), MISSING)
    shape = np.where(shape == MISSING, argument(context, "kernel_shapes", row), shape)
    grid = argument(context, "grid", row)
    rows = group(device.name[event], shape, grid)
    count, total = rows.count(), rows.sum(time)
    known = (count >= LEAST_RUNS) & ((shape[rows.first] != MISSING) | (grid[rows.first] != MISSING))
    order = np.lexsort((time, rows.of))
    middle = time[order][np.cumsum(count) - count + count // 2] if len(rows) else time
    longest = np.argsort(-np.where(known, total, -1), kind="stable")[:MOST]
    return tuple(
        KernelTime(
            name=context.trace.strings.text(int(device.name[event[first]])),
            what=" ".join(_text(context, code) for code in (int(shape[first]), int(grid[first]))),
            count=int(count[index]),
            time=int(total[index]),
            median=int(middle[index]),
        )
        for index, first in ((index, rows.first[index]) for index in longest.tolist() if known[index])
    )


def _span(context: Context, event: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return context.device.start[event], context.device.end[event]


def _text(context: Context, code: int) -> str:
    return "" if code == MISSING else context.trace.strings.text(code)
