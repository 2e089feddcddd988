"""Tables of device time: by kind of work, by kernel, by launch configuration, by duration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results_device import (
        DurationBucket,
        Kernel,
        KernelGroupTime,
        LaunchConfiguration,
        Spread,
    )

SPREAD = (
    Column("count", Kind.COUNT),
    Column("device_time_ns", Kind.DURATION),
    Column("share", Kind.SHARE),
    Column("mean_event_ns", Kind.DURATION, scale="event"),
    Column("min_ns", Kind.DURATION, scale="event", minor=True),
    Column("max_ns", Kind.DURATION, scale="event", minor=True),
)
_GROUPS = (
    Column("work", Kind.TERM),
    Column("count", Kind.COUNT),
    Column("device_time_ns", Kind.DURATION),
    Column("share", Kind.SHARE),
    Column("tensor_core_ns", Kind.DURATION, minor=True),
    Column("no_op_ns", Kind.DURATION, minor=True),
)
_KERNELS = (
    Column("name", Kind.NAME),
    Column("work", Kind.TERM),
    *SPREAD,
    Column("tensor_core", Kind.TERM, minor=True),
    Column("occupancy", Kind.SHARE, minor=True),
    Column("blocks_per_sm", Kind.NUMBER, minor=True),
    Column("launched_by", Kind.NAME, minor=True),
    Column("launching_ops", Kind.COUNT, minor=True),
    Column("no_op_ns", Kind.DURATION, minor=True),
)
_CONFIGURATIONS = (
    Column("name", Kind.NAME),
    Column("launched_by", Kind.NAME),
    Column("grid", Kind.TEXT),
    Column("block", Kind.TEXT),
    Column("registers", Kind.COUNT, minor=True),
    Column("shared_memory_bytes", Kind.BYTES, minor=True),
    *SPREAD,
)
_DURATIONS = (
    Column("duration", Kind.TEXT),
    Column("from_ns", Kind.DURATION, machine=True),
    Column("below_ns", Kind.DURATION, machine=True),
    Column("count", Kind.COUNT),
    Column("count_share", Kind.SHARE),
    Column("device_time_ns", Kind.DURATION),
    Column("share", Kind.SHARE),
)


def _range(bucket: DurationBucket) -> str:
    """Bounds of a class of durations in microseconds."""
    low = f"{bucket.low // 1000:,}"
    return f"≥ {low} µs" if bucket.high is None else f"{low} - {bucket.high // 1000:,} µs"


def part(amount: int, whole: int) -> float:
    """A fraction, 0 of nothing."""
    return amount / whole if whole else 0.0


def spread_cells(time: Spread, whole: int) -> tuple[int, int, float, int, int, int]:
    """Cells of the `SPREAD` columns."""
    return time.count, time.total, part(time.total, whole), time.mean, time.shortest, time.longest


def groups_table(groups: tuple[KernelGroupTime, ...]) -> Table:
    """Device time by kind of work; the rows sum to all device time of the analysed steps."""
    whole = sum(group.total for group in groups)
    rows = tuple(
        (
            f"work_{group.group.name.lower()}",
            group.count,
            group.total,
            part(group.total, whole),
            group.tensor_core,
            group.no_op,
        )
        for group in groups
    )
    total = (
        "all_work",
        sum(group.count for group in groups),
        whole,
        1.0 if whole else 0.0,
        sum(group.tensor_core for group in groups),
        sum(group.no_op for group in groups),
    )
    return table_of_rows("kernel_groups", _GROUPS, rows, total=total, bar="share", ranked=True)


def kernels_table(kernels: tuple[Kernel, ...]) -> Table:
    """Kernels, copies and fills by name."""
    whole = sum(kernel.time.total for kernel in kernels)
    rows = tuple(
        (
            kernel.name,
            f"work_{kernel.group.name.lower()}",
            *spread_cells(kernel.time, whole),
            f"tensor_core_{kernel.tensor_core.name.lower()}",
            kernel.occupancy,
            kernel.blocks_per_sm,
            kernel.op,
            kernel.ops,
            kernel.no_op,
        )
        for kernel in kernels
    )
    return table_of_rows("kernels", _KERNELS, rows, ranked=True)


def configurations_table(configurations: tuple[LaunchConfiguration, ...] | NotMeasured) -> Table:
    """Kernels by operator, grid and block."""
    if isinstance(configurations, NotMeasured):
        return table_of_rows("kernel_configurations", _CONFIGURATIONS, configurations, detail=True)
    whole = sum(item.time.total for item in configurations)
    rows = tuple(
        (
            item.name,
            item.op,
            item.grid,
            item.block,
            item.registers,
            item.shared_memory,
            *spread_cells(item.time, whole),
        )
        for item in configurations
    )
    return table_of_rows("kernel_configurations", _CONFIGURATIONS, rows, ranked=True, detail=True)


def durations_table(buckets: tuple[DurationBucket, ...], short: tuple[int, int]) -> Table:
    """Kernels by duration; `short` is the number of kernels shorter than their launch, and of all."""
    count, whole = sum(bucket.count for bucket in buckets), sum(bucket.total for bucket in buckets)
    rows = tuple(
        (
            _range(bucket),
            bucket.low,
            bucket.high,
            bucket.count,
            part(bucket.count, count),
            bucket.total,
            part(bucket.total, whole),
        )
        for bucket in buckets
    )
    note = Message("short_kernels", (("count", Kind.COUNT, short[0]), ("share", Kind.SHARE, part(short[0], short[1]))))
    return table_of_rows(
        "kernel_durations", _DURATIONS, rows, skip_zero="count", detail=True, notes=(note,) if short[0] else ()
    )
