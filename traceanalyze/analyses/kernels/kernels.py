"""Where device time went: by kernel name, by what kernels are for, by launch configuration, by duration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.grouping import Groups, group
from traceanalyze.analyses.kernels.work import argument, device_work, ratio_argument
from traceanalyze.analyses.results_device import (
    Count,
    DurationBucket,
    Kernel,
    KernelGroupTime,
    KernelType,
    LaunchConfiguration,
    Measure,
)
from traceanalyze.model.columns import MISSING
from traceanalyze.model.kernel_classes import KernelGroup, TensorCore
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import EventKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context

BUCKETS_NS = (0, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 1_000_000, 10_000_000)
"""Lower ends of the duration classes. Below 10 µs a kernel is shorter than its launch costs the host (definitions, τ;
TraceLens counts the same)."""


def kernels(context: Context) -> tuple[Kernel, ...]:
    """Device events by (name, group), most time first."""
    work, device = context.once(device_work), context.device
    row = device.row[work.event]
    groups = group(device.name[work.event], work.group)
    spreads = groups.spreads(work.time)
    occupancy = groups.mean(ratio_argument(context, "occupancy", row) / 100, work.time)
    blocks = groups.mean(ratio_argument(context, "blocks_per_sm", row), work.time)
    no_op = groups.sum(np.where(work.op < 0, work.time, 0))
    ops, first_op = _ops(groups, work.op_name)
    text = context.trace.strings.text
    table = [
        Kernel(
            name=text(int(device.name[work.event[first]])),
            group=KernelGroup(int(work.group[first])),
            time=spreads[index],
            tensor_core=TensorCore(int(work.tensor_core[first])),
            occupancy=_measure(occupancy[index], "no_occupancy"),
            blocks_per_sm=_measure(blocks[index], "no_occupancy"),
            op=text(int(first_op[index])) if first_op[index] >= 0 else None,
            ops=int(ops[index]),
            no_op=int(no_op[index]),
        )
        for index, first in enumerate(groups.first.tolist())
    ]
    return tuple(sorted(table, key=lambda kernel: (-kernel.time.total, kernel.name, kernel.group)))


def _measure(value: float, reason: str) -> Measure:
    return NotMeasured(reason) if np.isnan(value) else float(value)


def _ops(groups: Groups, op_name: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct launching operators of each group, and the name of the first (-1 where none is known)."""
    known = np.flatnonzero(op_name >= 0)
    pairs = group(groups.of[known], op_name[known])
    ops = np.bincount(groups.of[known][pairs.first], minlength=len(groups))
    first = np.full(len(groups), -1, np.int64)
    first[groups.of[known[::-1]]] = op_name[known[::-1]]
    return ops, first


def kernel_groups(context: Context) -> tuple[KernelGroupTime, ...]:
    """Device time by what it is for, most first."""
    work = context.once(device_work)
    groups = group(work.group)
    columns = (
        groups.count(),
        groups.sum(work.time),
        groups.sum(np.where(work.op < 0, work.time, 0)),
        groups.sum(np.where(work.tensor_core == TensorCore.YES, work.time, 0)),
    )
    names = [KernelGroup(code) for code in work.group[groups.first].tolist()]
    table = [KernelGroupTime(name, *row) for name, *row in zip(names, *(c.tolist() for c in columns), strict=True)]
    return tuple(sorted(table, key=lambda row: (-row.total, row.group)))


def configurations(context: Context) -> tuple[LaunchConfiguration, ...] | NotMeasured:
    """Kernels by (name, operator, grid, block, registers, shared memory), most time first."""
    work, device = context.once(device_work), context.device
    fields = context.trace.events.fields
    if "grid" not in fields or "block" not in fields:
        return NotMeasured("no_launch_configuration")
    grid = argument(context, "grid", device.row[work.event])
    chosen = np.flatnonzero((grid >= 0) & (device.kind[work.event] == EventKind.KERNEL))
    row = device.row[work.event[chosen]]
    block, registers, shared = (argument(context, field, row) for field in ("block", "registers", "shared_memory"))
    grid, op_name = grid[chosen], work.op_name[chosen]
    groups = group(device.name[work.event[chosen]], op_name, grid, block, registers, shared)
    spreads = groups.spreads(work.time[chosen])

    def text(code: int) -> str:
        return context.trace.strings.text(code) if code >= 0 else ""

    table = [
        LaunchConfiguration(
            name=text(int(device.name[work.event[chosen[first]]])),
            op=text(int(op_name[first])) or None,
            grid=_dimensions(text(int(grid[first]))),
            block=_dimensions(text(int(block[first]))),
            registers=_count(int(registers[first])),
            shared_memory=_count(int(shared[first])),
            time=spread,
        )
        for first, spread in zip(groups.first.tolist(), spreads, strict=True)
    ]
    return tuple(sorted(table, key=lambda item: (-item.time.total, item.name, item.op or "", item.grid, item.block)))


def _dimensions(text: str) -> str:
    """`[50, 1, 1]` as `50 × 1 × 1`."""
    return " × ".join(part.strip() for part in text.strip("[] \n").split(",") if part.strip())


def _count(value: int) -> Count:
    return NotMeasured("no_launch_configuration") if value == MISSING else value


def durations(context: Context) -> tuple[DurationBucket, ...]:
    """Kernels by how long they take as a whole; all classes, also empty ones."""
    work, device = context.once(device_work), context.device
    kernel = device.kind[work.event] == EventKind.KERNEL
    event = work.event[kernel]
    bucket = np.searchsorted(np.array(BUCKETS_NS), device.end[event] - device.start[event], "right") - 1
    count = np.bincount(bucket, minlength=len(BUCKETS_NS))
    total = np.zeros(len(BUCKETS_NS), np.int64)
    np.add.at(total, bucket, work.time[kernel])
    high = (*BUCKETS_NS[1:], None)
    return tuple(DurationBucket(*row) for row in zip(BUCKETS_NS, high, count.tolist(), total.tolist(), strict=True))


def kernel_types(context: Context) -> tuple[KernelType, ...] | NotMeasured:
    """Kernels inside the analysed windows by (type, core), most time first."""
    work, device = context.once(device_work), context.device
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
            cube_utilisation=_kernel_types_measure(float(cube[index])),
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


def _kernel_types_measure(value: float) -> Measure:
    return NotMeasured("no_core_counters") if np.isnan(value) else value
