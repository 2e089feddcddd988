"""Where device time went: by kernel name, by what kernels are for, by launch configuration, by duration."""

import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import COUNT, DEVICE_TIME, EXTREMES, MEAN, Groups, group
from traceanalyze.analyses.kernels.work import (
    DEVICES,
    NO_OP,
    WORK,
    device_work,
    on_devices,
    ratio_argument,
    texts_or_none,
    work_terms,
)
from traceanalyze.model.columns import MISSING, Rows
from traceanalyze.model.kernel_classes import TensorCore
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import (
    Column,
    Kind,
    Message,
    NotMeasured,
    Table,
    Value,
    Values,
    declare,
    known,
    sentences,
    where,
)
from traceanalyze.model.vocabulary import DeviceClass, EventKind

_SAY = sentences(
    throttled=(
        "For {share} of the time of kernels whose clock is known the cores ran below 95 % of the highest clock seen, "
        "{clock} MHz: throttled by heat or power."
    ),
    short_kernels="{count} kernel(s), {share} of all, (takes|take) less than 10 µs, about what launching one costs.",
)

BUCKETS_NS = (0, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 1_000_000, 10_000_000)
"""Lower ends of the duration classes. Below 10 µs a kernel is shorter than its launch costs the host (definitions, τ;
TraceLens counts the same)."""
_NAME = Column("name", Kind.KERNEL, "name of the kernel, copy or fill")
_KERNELS = declare(
    "kernels",
    "Kernels, copies and fills (sum over the analysed steps)",
    _NAME,
    WORK,
    DEVICES,
    COUNT,
    DEVICE_TIME,
    Column("share", Kind.SHARE, "part of all device time"),
    MEAN,
    *EXTREMES,
    Column(
        "tensor_core",
        Kind.TERM,
        "whether it uses tensor cores or MFMA units, by its name",
        heading="matrix units",
        minor=True,
    ),
    Column(
        "occupancy",
        Kind.SHARE,
        "estimated share of the warps that fit on a multiprocessor, weighted by time",
        minor=True,
    ),
    Column(
        "blocks_per_sm",
        Kind.NUMBER,
        "thread blocks per multiprocessor, weighted by time; below 1 some stay empty",
        heading="blocks per SM",
        minor=True,
    ),
    Column("launched_by", Kind.NAME, "operator that launched the first of them", minor=True),
    Column(
        "launching_ops", Kind.COUNT, "number of different operators that launched them", heading="operators", minor=True
    ),
    NO_OP,
    ranked=True,
)
_GROUPS = declare(
    "kernel_groups",
    "Device time by kind of work (sum over the analysed steps)",
    WORK,
    DEVICES,
    Column("count", Kind.COUNT, "device events"),
    DEVICE_TIME,
    Column("share", Kind.SHARE, "part of all device time"),
    Column(
        "tensor_core_ns",
        Kind.DURATION,
        "of the device time, kernels on tensor cores or MFMA units by their name",
        heading="on matrix units",
        minor=True,
    ),
    NO_OP,
    bar="share",
    ranked=True,
)
_CONFIGURATIONS = declare(
    "kernel_configurations",
    "Kernels by operator, grid and block (sum over the analysed steps)",
    _NAME,
    Column("launched_by", Kind.NAME, "operator that launched them"),
    Column("grid", Kind.TEXT, "thread blocks per dimension (on ROCm threads)"),
    Column("block", Kind.TEXT, "threads per dimension"),
    Column("registers", Kind.COUNT, "registers per thread", minor=True),
    Column("shared_memory_bytes", Kind.BYTES, "shared memory per block", minor=True),
    DEVICES,
    COUNT,
    DEVICE_TIME,
    Column("share", Kind.SHARE, "part of the time of all kernels with a known grid"),
    MEAN,
    *EXTREMES,
    ranked=True,
    detail=True,
)
_DURATIONS = declare(
    "kernel_durations",
    "How long kernels take (sum over the analysed steps)",
    Column("duration", Kind.TEXT, "how long the kernels of this row take"),
    Column("from_ns", Kind.DURATION, "shortest duration in this row", machine=True),
    Column("below_ns", Kind.DURATION, "durations in this row are shorter", machine=True),
    Column("count", Kind.COUNT, "kernels of this duration"),
    Column("count_share", Kind.SHARE, "part of all kernels", heading="of kernels"),
    DEVICE_TIME,
    Column("share", Kind.SHARE, "part of all kernel time"),
    skip_zero="count",
    detail=True,
)
_TYPES = declare(
    "kernel_types",
    "Kernels by type and core (sum over the analysed steps)",
    Column("op_type", Kind.NAME, "type of the operator, as in the profile's kernel table", heading="type"),
    Column("core", Kind.TEXT, "kind of core the kernels ran on"),
    WORK,
    DEVICES,
    COUNT,
    DEVICE_TIME,
    Column("share", Kind.SHARE, "part of the time of all kernels with a known type"),
    MEAN,
    *EXTREMES,
    Column(
        "cube_utilisation",
        Kind.SHARE,
        "part of the time of all cube cores that these kernels ran on them, as the profile says, mean weighted by time",
        heading="cores used",
    ),
    Column("busiest", Kind.TERM, "unit of the cores that worked longest, most likely what limits these kernels"),
    Column("busiest_share", Kind.SHARE, "part of the duration in which that unit worked", heading="of the time"),
    *(
        Column(f"{unit}_share", Kind.SHARE, what, heading=heading, minor=True)
        for unit, what, heading in (
            ("cube", "part of the duration in which the matrix unit worked", "cube busy"),
            ("vector", "part of the duration in which the vector unit worked", "vector busy"),
            ("scalar", "part of the duration in which the scalar unit worked", "scalar busy"),
            ("mte2", "part of the duration in which data came from memory (MTE2)", "reading"),
            ("mte3", "part of the duration in which vector cores wrote to memory (MTE3)", "writing"),
            ("mte1", "part of the duration in which data went to the matrix unit (MTE1)", "cube input"),
            ("fixpipe", "part of the duration in which results left the matrix unit (FixPipe)", "cube output"),
        )
    ),
    Column(
        "core_clock", Kind.NUMBER, "clock of the cores, MHz, mean weighted by time", heading="clock (MHz)", minor=True
    ),
    Column(
        "l2_hit_rate",
        Kind.SHARE,
        "part of the accesses to memory that the L2 cache served, as the profile says, mean weighted by time",
        heading="L2 hits",
        minor=True,
    ),
    Column("dynamic", Kind.COUNT, "kernels compiled for any shapes, the table's OP State", minor=True),
    ranked=True,
)
UNITS = {
    "cube": "mac_time",
    "vector": "vec_time",
    "scalar": "scalar_time",
    "mte2": "mte2_time",
    "mte3": "mte3_time",
    "mte1": "mte1_time",
    "fixpipe": "fixpipe_time",
}
DYNAMIC = regex(r"dynamic", re.IGNORECASE)


def kernels(context: Context) -> Table:
    """Device events by name, most time first; of a kind of work is what most time of the name is of."""
    work, device = context.once(device_work), context.device
    row = device.row[work.event]
    groups = group(device.name[work.event])
    kinds = group(groups.of, work.group)
    # The last one written is the largest.
    order = np.argsort(kinds.sum(work.time), kind="stable")
    kind = np.empty(len(groups), np.uint8)
    kind[groups.of[kinds.first[order]]] = work.group[kinds.first[order]]
    first, spread = groups.first, groups.spread(work.time)
    ops, first_op = _ops(groups, work.op_name)
    return _KERNELS.fill(
        name=list(context.trace.strings.texts(device.name[work.event[first]])),
        work=work_terms(kind),
        devices=on_devices(context, groups, device.device[work.event]),
        **spread.values,
        share=spread.shares,
        tensor_core=[f"tensor_core_{TensorCore(use).name.lower()}" for use in work.tensor_core[first].tolist()],
        occupancy=known(groups.mean(ratio_argument(context, "occupancy", row) / 100, work.time), "no_occupancy"),
        blocks_per_sm=known(groups.mean(ratio_argument(context, "blocks_per_sm", row), work.time), "no_occupancy"),
        launched_by=texts_or_none(context, first_op),
        launching_ops=ops,
        no_op_ns=groups.sum(np.where(work.op < 0, work.time, 0)),
    ).sort("-device_time_ns", "name")


def _ops(groups: Groups, op_name: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct launching operators of each group, and the name of the first (-1 where none is known)."""
    launched = np.flatnonzero(op_name >= 0)
    pairs = group(groups.of[launched], op_name[launched])
    ops = np.bincount(groups.of[launched][pairs.first], minlength=len(groups))
    first = np.full(len(groups), -1, np.int64)
    first[groups.of[launched[::-1]]] = op_name[launched[::-1]]
    return ops, first


def kernel_groups(context: Context) -> Table:
    """Device time by what it is for, most first; the rows sum to the sum of all durations, exactly."""
    work = context.once(device_work)
    groups = group(work.group)
    spread, untold = groups.spread(work.time), NotMeasured("tensor_core_unknown")
    matrix, open_ = (
        groups.sum(np.where(work.tensor_core == use, work.time, 0)) for use in (TensorCore.YES, TensorCore.UNKNOWN)
    )
    table = _GROUPS.fill(
        work=work_terms(work.group[groups.first]),
        devices=on_devices(context, groups, context.device.device[work.event]),
        count=spread.number,
        device_time_ns=spread.total,
        share=spread.shares,
        tensor_core_ns=where((matrix > 0) | (open_ == 0), matrix, untold),
        no_op_ns=groups.sum(np.where(work.op < 0, work.time, 0)),
    ).sort("-device_time_ns")
    sums = ("count", "device_time_ns", "no_op_ns")
    totals: dict[str, Value] = {key: int(table.array(key).sum()) for key in sums}
    totals["tensor_core_ns"] = int(matrix.sum()) if matrix.any() or not open_.any() else untold
    return replace(table, totals={"work": "all_work", "share": float(spread.shares.any()), **totals})


def configurations(context: Context) -> Table:
    """Kernels by (name, operator, grid, block, registers, shared memory), most time first."""
    work, device = context.once(device_work), context.device
    fields = context.trace.events.fields
    if "grid" not in fields or "block" not in fields:
        return _CONFIGURATIONS.missing("no_launch_configuration")
    grid = context.trace.events.numbers("grid", device.row[work.event])
    chosen = np.flatnonzero((grid >= 0) & (device.kind[work.event] == EventKind.KERNEL))
    event = work.event[chosen]
    block, registers, shared = (
        context.trace.events.numbers(field, device.row[event]) for field in ("block", "registers", "shared_memory")
    )
    grid, op_name = grid[chosen], work.op_name[chosen]
    groups = group(device.name[event], op_name, grid, block, registers, shared)
    first, spread = groups.first, groups.spread(work.time[chosen])
    missing = NotMeasured("no_launch_configuration")
    return _CONFIGURATIONS.fill(
        name=list(context.trace.strings.texts(device.name[event[first]])),
        launched_by=texts_or_none(context, op_name[first]),
        grid=[_dimensions(text) for text in texts_or_none(context, grid[first])],
        block=[_dimensions(text) for text in texts_or_none(context, block[first])],
        registers=where(registers[first] != MISSING, registers[first], missing),
        shared_memory_bytes=where(shared[first] != MISSING, shared[first], missing),
        devices=on_devices(context, groups, device.device[event]),
        **spread.values,
        share=spread.shares,
    ).sort("-device_time_ns", "name", "launched_by", "grid", "block")


def _dimensions(text: str | None) -> str:
    """`[50, 1, 1]` as `50 × 1 × 1`."""
    return " × ".join(part.strip() for part in (text or "").strip("[] \n").split(",") if part.strip())


def durations(context: Context, summary: Table) -> Table:
    """Kernels by how long they take as a whole, also empty classes; the summary knows how many are too short."""
    work, device = context.once(device_work), context.device
    kernel = device.kind[work.event] == EventKind.KERNEL
    event = work.event[kernel]
    bucket = np.searchsorted(np.array(BUCKETS_NS), device.end[event] - device.start[event], "right") - 1
    count = np.bincount(bucket, minlength=len(BUCKETS_NS))
    total = np.zeros(len(BUCKETS_NS), np.int64)
    np.add.at(total, bucket, work.time[kernel])
    (of_all,) = summary.records()
    share = of_all.short_kernels / max(of_all.kernels, 1)
    note = Message(_SAY["short_kernels"], (("count", Kind.COUNT, of_all.short_kernels), ("share", Kind.SHARE, share)))
    below = (*BUCKETS_NS[1:], None)
    return replace(_DURATIONS, notes=(note,) if of_all.short_kernels else ()).fill(
        duration=[_range(*ends) for ends in zip(BUCKETS_NS, below, strict=True)],
        from_ns=BUCKETS_NS,
        below_ns=below,
        count=count,
        count_share=count / max(int(count.sum()), 1),
        device_time_ns=total,
        share=total / max(int(total.sum()), 1),
    )


def _range(low: int, high: int | None) -> str:
    """Bounds of a class of durations in microseconds; the last has no upper end."""
    return f"≥ {low // 1000:,} µs" if high is None else f"{low // 1000:,} - {high // 1000:,} µs"


def kernel_types(context: Context) -> Table:
    """Kernels inside the analysed windows by (type, core), most time first."""
    work, device = context.once(device_work), context.device
    every = device.row[work.event]
    op_type = context.trace.events.numbers("op_type", every)
    chosen = np.flatnonzero(op_type != MISSING)
    if len(chosen) == 0:
        return _TYPES.missing("no_kernel_types", detail=True)
    row, time = every[chosen], work.time[chosen]
    op_type, core = op_type[chosen], context.trace.events.numbers("core", row)
    duration = context.trace.events.dur[row]
    groups = group(op_type, core)
    first, spread = groups.first, groups.spread(time)
    busy = {unit: _share(context, groups, row, duration, field) for unit, field in UNITS.items()}
    shares, untold = np.nan_to_num(np.array(list(busy.values()))), NotMeasured("no_core_counters")
    # Other choices of counters tell of some units only.
    limited = ~np.isnan(busy["mte2"]) & (shares.max(0) > 0)
    state = context.trace.events.numbers("op_state", row, -1)
    dynamic = context.trace.strings.matches(np.maximum(state, 0).astype(np.int32), DYNAMIC.fullmatch) & (state >= 0)
    clock = ratio_argument(context, "core_clock", row)
    return (
        replace(_TYPES, notes=_throttling(clock, time))
        .fill(
            op_type=texts_or_none(context, op_type[first]),
            core=[text or NotMeasured("no_kernel_types") for text in texts_or_none(context, core[first])],
            work=work_terms(work.group[chosen[first]]),
            devices=on_devices(context, groups, device.device[work.event[chosen]]),
            **spread.values,
            share=spread.shares,
            cube_utilisation=known(
                groups.mean(ratio_argument(context, "cube_utilisation", row) / 100, time), "no_core_counters"
            ),
            **{f"{unit}_share": known(share, "no_core_counters") for unit, share in busy.items()},
            busiest=where(limited, np.array([f"unit_{unit}" for unit in UNITS])[shares.argmax(0)], untold),
            busiest_share=where(limited, shares.max(0), untold),
            core_clock=known(groups.mean(clock, time), "no_core_counters"),
            l2_hit_rate=known(groups.mean(ratio_argument(context, "l2_hit_rate", row), time), "vendor_does_not_say"),
            dynamic=where(groups.sum(state >= 0) > 0, groups.sum(dynamic), NotMeasured("vendor_does_not_say")),
        )
        .sort("-device_time_ns", "op_type")
    )


_THROTTLED = 0.95
"""Own: of the highest clock of a recording; below it the cores are throttled."""
_NOTED = 0.01
"""Own: part of the time of kernels, from which on that is said."""


def _throttling(clock: NDArray[np.float64], time: NDArray[np.int64]) -> tuple[Message, ...]:
    """What part of the time kernels ran at a lower clock than others of the recording."""
    told = ~np.isnan(clock)
    most = float(clock[told].max(initial=0))
    slow = int(time[told][clock[told] < _THROTTLED * most].sum()) / max(int(time[told].sum()), 1)
    values = (("share", Kind.SHARE, slow), ("clock", Kind.NUMBER, most))
    return (Message(_SAY["throttled"], values),) if slow >= _NOTED else ()


def _share(context: Context, groups: Groups, row: Rows, duration: NDArray[np.int64], field: str) -> NDArray[np.float64]:
    """Time in which a unit worked over the recorded duration of the kernels that say so, by group; NaN without any."""
    worked = context.trace.events.numbers(field, row)
    stated = worked != MISSING
    total, part = groups.sum(np.where(stated, duration, 0)), groups.sum(np.where(stated, worked, 0))
    share = np.full(len(groups), np.nan)
    np.divide(part, total, out=share, where=total > 0)
    return share


CLASSIFICATION = declare(
    "classification",
    "What counted as what",
    _NAME,
    Column("class", Kind.TERM, "which part of the step it counts as", heading="counts as"),
    Column("rule", Kind.TEXT, "what decided that", heading="by rule"),
    DEVICES,
    COUNT,
    DEVICE_TIME,
    Column("share", Kind.SHARE, "part of all device time"),
    ranked=True,
    detail=True,
)


def classification(context: Context) -> Table:
    """Every kernel name with the class it counts as and the rules that said so, most time first."""
    device = context.device
    keys = group(device.name, device.klass)
    rules = group(keys.of, device.rule)
    said: list[list[str]] = [[] for _ in range(len(keys))]
    for of, code in zip(keys.of[rules.first].tolist(), device.rule[rules.first].tolist(), strict=True):
        said[of].append(device.rules[code])
    spread = keys.spread(device.end - device.start)
    columns: dict[str, Values | None] = {
        "name": list(context.trace.strings.texts(device.name[keys.first])),
        "class": [f"class_{DeviceClass(code).name.lower()}" for code in device.klass[keys.first].tolist()],
        "rule": list(map(", ".join, said)),
        "devices": on_devices(context, keys, device.device),
        "count": spread.number,
        "device_time_ns": spread.total,
        "share": spread.shares,
    }
    return CLASSIFICATION.fill(**columns).sort("-device_time_ns", "name")
