"""Ratios of the headline device (definitions §13), and which kinds of work ran at the same time."""

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.kernels.work import device_work, ratio_argument
from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model import intervals
from traceanalyze.model.kernel_classes import TensorCore
from traceanalyze.model.table import Column, Kind, Layout, NotMeasured, Table, declare
from traceanalyze.model.vocabulary import BUSY_PARTS, DeviceClass, EventKind

SHORT_KERNEL_NS = 10_000
"""A kernel shorter than this is not worth its launch (definitions τ; TraceLens's "short kernels" use the same)."""


CHUNKS = 30
_MOST = 300_000
"""Chunks of all steps together: of more than 10,000 steps each has fewer."""
_THRESHOLD = 0.5
_SUMMARY = declare(
    "device_summary",
    "How well kernels use the device (over the analysed steps)",
    Column(
        "gpu_utilisation",
        Kind.SHARE,
        "part of the steps with at least one kernel running",
        heading="time with a kernel running",
    ),
    Column(
        "sm_efficiency",
        Kind.SHARE,
        "kernel time times the share of multiprocessors with a block, over the steps",
        heading="multiprocessors in use (estimate)",
    ),
    Column("occupancy", Kind.SHARE, "estimated share of the warps that fit on a multiprocessor, weighted by time"),
    Column(
        "tensor_core_share",
        Kind.SHARE,
        "part of compute kernel time in kernels known to use tensor cores or MFMA units",
        heading="kernel time on matrix units",
    ),
    Column(
        "tensor_core_unknown",
        Kind.SHARE,
        "part of compute kernel time in kernels whose name does not tell",
        heading="kernel time that cannot be judged",
    ),
    Column("kernels", Kind.COUNT, "kernels in the steps"),
    Column(
        "short_kernels", Kind.COUNT, "kernels hardly longer than a launch costs the host", heading="kernels under 10 µs"
    ),
    Column("short_kernels_ns", Kind.DURATION, "sum of their durations", heading="device time in kernels under 10 µs"),
    layout=Layout.RECORD,
    detail=True,
)
_OVERLAPS = declare(
    "device_overlap",
    "What ran at the same time (sum over the analysed steps)",
    Column("running", Kind.TERM, "which kinds of work ran; the rows exclude each other"),
    Column("wall_ns", Kind.DURATION, "time in which exactly these ran", heading="time"),
    Column("share", Kind.SHARE, "part of the analysed steps"),
    skip_zero="wall_ns",
    detail=True,
)
_STRETCH = (
    Column("step", Kind.TEXT, "number of the step, or its name"),
    Column("at_ns", Kind.DURATION, "start, counted from the start of the step"),
    Column("start_ns", Kind.DURATION, "start, counted from the time base of the file", machine=True),
)
_BUSY = Column("busy_share", Kind.SHARE, "part of the time in which anything runs on the device", heading="busy")
_CHUNKS = declare(
    "utilisation",
    "How busy the device was over time",
    *_STRETCH,
    Column("chunk", Kind.COUNT, "piece of the step; all pieces of a step are equally long"),
    Column("length_ns", Kind.DURATION, "length of the chunk"),
    _BUSY,
    Column("compute_share", Kind.SHARE, "part of the time in which some compute kernel runs", heading="compute"),
    Column(
        "communication_share", Kind.SHARE, "part of the time with a collective and no compute kernel", heading="comm"
    ),
    bar="busy_share",
    ranked=True,
    detail=True,
)
_LOW = declare(
    "low_utilisation",
    "Stretches in which the device is busy less than half the time",
    *_STRETCH,
    Column("length_ns", Kind.DURATION, "how long it lasts; it may run on into the next steps"),
    _BUSY,
    ranked=True,
    detail=True,
)


def device_summary(context: Context) -> Table:
    """How well the kernels use the headline device; a ratio without its arguments is not measured."""
    work, device, sets = context.once(device_work), context.device, context.class_sets(context.devices[0])
    own = (device.device[work.event] == context.devices[0]) & (device.kind[work.event] == EventKind.KERNEL)
    event, time = work.event[own], work.time[own]
    window = int(context.counted.time.sum())
    blocks = ratio_argument(context, "blocks_per_sm", device.row[event])
    occupancy = ratio_argument(context, "occupancy", device.row[event])
    compute = device.klass[event] == DeviceClass.COMPUTE
    yes, unknown = _tensor_core_shares(time[compute], work.tensor_core[own][compute])
    short = device.end[event] - device.start[event] < SHORT_KERNEL_NS
    running = intervals.union(sets[DeviceClass.COMPUTE], sets[DeviceClass.COMM])
    busy = int(intervals.coverage(running, context.counted.start, context.counted.end).sum())
    return _SUMMARY.fill(
        gpu_utilisation=[busy / window if window else NotMeasured("empty_window")],
        sm_efficiency=[_sm_efficiency(time, blocks, window)],
        occupancy=[_weighted(occupancy / 100, time, "no_occupancy")],
        tensor_core_share=[yes],
        tensor_core_unknown=[unknown],
        kernels=[len(event)],
        short_kernels=[int(short.sum())],
        short_kernels_ns=[int(time[short].sum())],
    )


def _sm_efficiency(time: NDArray[np.int64], blocks: NDArray[np.float64], window: int) -> float | NotMeasured:
    """Σ dur · min(blocks per SM, 1) / window, over the kernels that say how many blocks they have."""
    known = ~np.isnan(blocks)
    if not known.any() or window == 0:
        return NotMeasured("no_occupancy")
    return float((time[known] * np.minimum(blocks[known], 1.0)).sum() / window)


def _weighted(value: NDArray[np.float64], time: NDArray[np.int64], reason: str) -> float | NotMeasured:
    known = ~np.isnan(value)
    weight = int(time[known].sum())
    return float((value[known] * time[known]).sum() / weight) if weight else NotMeasured(reason)


def _tensor_core_shares(
    time: NDArray[np.int64], use: NDArray[np.uint8]
) -> tuple[float | NotMeasured, float | NotMeasured]:
    """Shares of compute time that use matrix units, and that may; no share where no name can be judged."""
    whole = int(time.sum())
    if whole == 0:
        missing = NotMeasured("no_kernels")
        return missing, missing
    yes, unknown = (int(time[use == verdict].sum()) for verdict in (TensorCore.YES, TensorCore.UNKNOWN))
    share = NotMeasured("tensor_core_unknown") if unknown == whole else yes / whole
    return share, unknown / whole


def overlaps(context: Context) -> Table:
    """Time of the headline device in each combination of compute, communication and copies, and in none.

    The eight times are disjoint and sum to the windows.
    """
    sets = context.class_sets(context.devices[0])
    spans: dict[tuple[bool, ...], intervals.Intervals] = {
        (): intervals.merge(context.counted.start, context.counted.end)
    }
    for klass in DeviceClass:
        # With and without work of this class.
        spans = {
            (*member, runs): split(some, sets[klass])
            for member, some in spans.items()
            for runs, split in ((False, intervals.subtract), (True, intervals.intersect))
        }
    time = {member: intervals.total(some) for member, some in spans.items()}
    members = sorted(time, key=lambda member: (-time[member], member))
    wall = np.array([time[member] for member in members], np.int64)
    return _OVERLAPS.fill(
        running=[_running(member) for member in members], wall_ns=wall, share=wall / max(int(wall.sum()), 1)
    )


def _running(member: tuple[bool, ...]) -> str:
    parts = zip(BUSY_PARTS, member, strict=True)
    return "running_" + ("_and_".join(key for key, runs in parts if runs) or "nothing")


def utilisation(context: Context) -> tuple[Table, Table]:
    """Use of the headline device over all its streams: chunk by chunk, and stretches of little use, longest first.

    Chunks of a step differ by 1 ns at most and leave nothing out; those without length are dropped.
    """
    labels, first, length = step_labels(context.steps.name), context.steps.start, context.steps.time
    each = max(1, min(CHUNKS, _MOST // max(1, len(first))))
    edge = first[:, None] + length[:, None] * np.arange(each + 1) // each
    start, end = edge[:, :-1].ravel(), edge[:, 1:].ravel()
    kept = np.flatnonzero(end > start)
    start, end, step = start[kept], end[kept], kept // each
    sets = context.class_sets(context.devices[0])
    kernels = intervals.union(sets[DeviceClass.COMPUTE], sets[DeviceClass.COMM])
    compute = intervals.coverage(sets[DeviceClass.COMPUTE], start, end)
    busy = intervals.coverage(intervals.union(kernels, sets[DeviceClass.MEM]), start, end)
    chunks = _CHUNKS.fill(
        step=[labels[row] for row in step.tolist()],
        at_ns=start - first[step],
        start_ns=start,
        chunk=kept % each + 1,
        length_ns=end - start,
        busy_share=busy / (end - start),
        compute_share=compute / (end - start),
        communication_share=(intervals.coverage(kernels, start, end) - compute) / (end - start),
    )
    # Chunks below the threshold are joined where one ends as the next begins, also across steps.
    low = np.flatnonzero(busy < _THRESHOLD * (end - start))
    opens = np.flatnonzero(np.concatenate(([True], start[low[1:]] != end[low[:-1]]))[: len(low)])
    closes = np.append(opens[1:], len(low))[: len(opens)] - 1
    begin, time = start[low[opens]], end[low[closes]] - start[low[opens]]
    used = np.add.reduceat(busy[low], opens) if len(low) else busy[low]
    stretches = _LOW.fill(
        step=[labels[row] for row in step[low[opens]].tolist()],
        at_ns=begin - first[step[low[opens]]],
        start_ns=begin,
        length_ns=time,
        busy_share=used / time,
    ).sort("-length_ns", "start_ns")
    return chunks, stretches
