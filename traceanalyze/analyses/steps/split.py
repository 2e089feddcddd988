"""Where the steps' time went: the headline split, the totals beside it, both step by step (definitions §§3, 4)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.idle.host_state import HostSplit, host_split, peers_unknown
from traceanalyze.analyses.idle.idle import IdleCauses
from traceanalyze.analyses.steps.partition import Partition, partition
from traceanalyze.analyses.steps.window import Steps, Window, amounts, median, step_labels, window_of
from traceanalyze.model.table import Column, Kind, Layout, Message, NotMeasured, Table, Value, declare, sentences
from traceanalyze.model.trace import Trace
from traceanalyze.model.vocabulary import BUSY_PARTS, HEADLINE, IDLE_PARTS, DeviceClass, EventKind

_SAY = sentences(
    communication_overlap="Communication runs {total} a step in all; {hidden} of it is hidden behind compute.",
    memory_ops_overlap="Copies and fills run {total} a step in all; {hidden} of it is hidden behind other work.",
)

Parts: TypeAlias = "Mapping[str, NDArray[np.int64] | NotMeasured]"
"""Time of each step by exclusive part, ns; what the profile cannot give is in the last one."""

SPLIT = declare(
    "split",
    "Where the step's time went (mean of {steps} complete steps)",
    Column("part", Kind.TERM, "what the time was spent on"),
    Column("mean_ns", Kind.DURATION, "mean over the complete steps", heading="time"),
    Column("share", Kind.SHARE, "part of the step"),
    Column("sum_ns", Kind.DURATION, "sum over the complete steps", machine=True),
    title_one="Where the time went",
    bar="share",
)
TOTALS = declare(
    "totals",
    "Total and hidden work per step",
    Column("part", Kind.TERM, "what the time was spent on"),
    Column("total_ns", Kind.DURATION, "time in which this kind of work ran, mean of the complete steps"),
    Column("exposed_ns", Kind.DURATION, "of it, with no work of a more important kind beside it"),
    Column("overlapped_ns", Kind.DURATION, "of it, hidden behind more important work", heading="hidden"),
    Column("overlap_ratio", Kind.SHARE, "hidden part of the total", heading="hidden"),
    Column("device_time_ns", Kind.DURATION, "sum of the durations: parallel work counts twice"),
    Column("concurrency", Kind.RATIO, "device time over the time in which any of it ran", heading="parallel"),
    detail=True,
)
STEPS = declare(
    "steps",
    "Step by step",
    Column("step", Kind.TEXT, "number of the step, or its name"),
    Column("time_ns", Kind.DURATION, "time of the step"),
    Column("compute_ns", Kind.DURATION, "some compute kernel is running"),
    Column("communication_ns", Kind.DURATION, "a collective is running and no compute kernel", heading="comm"),
    Column(
        "memory_ops_ns",
        Kind.DURATION,
        "a copy or fill is running, and neither compute nor communication",
        heading="memory",
    ),
    Column("data_loading_ns", Kind.DURATION, "device idle: the host waits for the next batch", heading="data"),
    Column("sync_ns", Kind.DURATION, "device idle: the host was waiting for the device"),
    Column("dispatch_ns", Kind.DURATION, "device idle: the host prepares or launches work"),
    Column("idle_ns", Kind.DURATION, "device idle for other reasons"),
    Column("host_sync_ns", Kind.DURATION, "the host waits for the device", heading="sync"),
    Column("peer_wait_ns", Kind.DURATION, "the host waits for other processes"),
    Column("host_api_ns", Kind.DURATION, "the host is inside runtime or driver calls", heading="API"),
    Column("host_op_ns", Kind.DURATION, "the host is inside PyTorch operators", heading="host ops"),
    Column("untraced_ns", Kind.DURATION, "the host does something that the trace does not show"),
    Column("complete", Kind.FLAG, "it has at least 80 % of the usual number of device events", minor=True),
    Column(
        "counted", Kind.FLAG, "counts in sums and means: complete, and not of the start of the run", heading="counts"
    ),
    Column("start_ns", Kind.DURATION, "start, counted from the time base of the file", machine=True),
    Column("device_events", Kind.COUNT, "kernels, copies and fills launched in the step", minor=True),
    worst="time_ns",
)
_IDLE = Column("idle_ns", Kind.DURATION, "nothing is running on the device")
_BUSY = tuple(STEPS[f"{key}_ns"] for key in BUSY_PARTS)
DEVICES = declare(
    "devices",
    "Devices of this process (mean step)",
    Column("device", Kind.COUNT, "number of the device"),
    Column("device_name", Kind.NAME, "name of the device as recorded", heading="name", minor=True),
    Column("headline", Kind.FLAG, "whether the split and the idle causes are those of this device"),
    Column("step_ns", Kind.DURATION, "mean step time"),
    *_BUSY,
    _IDLE,
    Column("idle_share", Kind.SHARE, "nothing is running on the device", heading="idle"),
)
DEVICE_SPANS = declare(
    "device_spans",
    "First to last device event",
    Column("device", Kind.COUNT, "number of the device"),
    Column("span_ns", Kind.DURATION, "from the first to the last device event"),
    *_BUSY[:2],
    Column(
        "communication_total_ns",
        Kind.DURATION,
        "a collective is running, hidden or not",
        heading="comm total",
        minor=True,
    ),
    _BUSY[2],
    _IDLE,
    Column("compute_kernels", Kind.COUNT, "number of compute kernels", minor=True),
    Column("communication_kernels", Kind.COUNT, "number of communication kernels", heading="comm kernels", minor=True),
    Column("copies", Kind.COUNT, "number of copies", minor=True),
    Column("fills", Kind.COUNT, "number of fills", minor=True),
    STEPS["start_ns"],
    detail=True,
)
STEP_STATISTICS = declare(
    "step_statistics",
    "Step times",
    Column("steps", Kind.COUNT, "all steps in the recording"),
    Column("complete_steps", Kind.COUNT, "steps that count in the means"),
    Column("mean_ns", Kind.DURATION, "mean of the complete steps", heading="time"),
    Column("median_ns", Kind.DURATION, "half of the complete steps are no longer"),
    Column("min_ns", Kind.DURATION, "shortest complete step", heading="shortest"),
    Column("max_ns", Kind.DURATION, "longest complete step", heading="longest"),
    Column("between_steps_ns", Kind.DURATION, "time between step markers that belongs to no step", minor=True),
    Column(
        "lead_in_ns",
        Kind.DURATION,
        "the device was still busy with work launched before the first step",
        heading="earlier work cut off the first step",
        minor=True,
    ),
    layout=Layout.RECORD,
    detail=True,
)


def partitions(context: Context) -> tuple[Partition, ...]:
    """Parts of the analysed steps on each device, the headline device first."""
    start, end = context.steps.start, context.steps.end
    return tuple(partition(context.device, each, context.class_sets(each), start, end) for each in context.devices)


def device_parts(partition: Partition, idle: IdleCauses, unmeasured: Mapping[str, str]) -> Parts:
    """The seven headline parts of every step; those `unmeasured`, for the reason given, are in the rest."""
    busy = (partition.compute, partition.comm_exposed, partition.mem_exposed)
    parts: dict[str, NDArray[np.int64] | NotMeasured] = dict(zip(BUSY_PARTS, busy, strict=True))
    rest = partition.idle
    for key, causes in IDLE_PARTS.items():
        if key in HEADLINE:
            # Host operators without the calls under them do not make dispatch measured: they stay in the rest.
            parts[key] = why = idle.missing.get(causes[0]) or idle.by_step[:, causes].sum(axis=1)
            rest = rest if isinstance(why, NotMeasured) else rest - why
    return {**parts, "idle": rest, **{part: NotMeasured(why) for part, why in unmeasured.items()}}


def host_parts(host: HostSplit) -> Parts:
    """Parts of a step when only the host was recorded."""
    return dict(zip(("data_loading", "host_sync", "peer_wait", "host_api", "host_op", "untraced"), host, strict=True))


def host_split_tables(context: Context) -> list[Table]:
    """The split and the steps where only the host was recorded; none where that was not, either."""
    host = context.once(host_split)
    if isinstance(host, NotMeasured):
        return []
    unknown = context.once(peers_unknown)
    parts = {**host_parts(host), **({} if unknown is None else {"peer_wait": unknown})}
    return [split(parts, window_of(context.steps), marked=False), *step_tables(context.steps, parts)]


def split(parts: Parts, window: Window, *, marked: bool, notes: tuple[Message, ...] = ()) -> Table:
    """The parts: mean per step, share of the step, exact sum; `marked` where the recording has steps."""
    sums = {key: time if isinstance(time, NotMeasured) else window.sum(time) for key, time in parts.items()}
    whole = "step" if marked or window.count > 1 else "trace"
    return replace(amounts(SPLIT, sums, (whole, window.total), window), notes=notes)


def totals(partition: Partition, window: Window) -> Table:
    """Per step: how long each kind of work ran at all, and how much of it was hidden behind other work."""
    rows = []
    for key, total, exposed, spent in (
        ("compute", partition.compute, None, partition.compute_dur),
        ("communication", partition.comm_total, partition.comm_exposed, partition.comm_dur),
        ("memory_ops", partition.mem_total, partition.mem_exposed, partition.mem_dur),
        ("busy", partition.busy, None, partition.compute_dur + partition.comm_dur + partition.mem_dur),
    ):
        whole, summed = window.sum(total), window.sum(spent)
        row: dict[str, Value] = dict.fromkeys(TOTALS.keys) | {
            "part": key,
            "total_ns": window.mean(whole),
            "device_time_ns": window.mean(summed),
            "concurrency": summed / whole if whole else None,
        }
        if exposed is not None:
            hidden = whole - window.sum(exposed)
            row |= {
                "exposed_ns": window.mean(whole - hidden),
                "overlapped_ns": window.mean(hidden),
                "overlap_ratio": hidden / whole if whole else NotMeasured(f"no_{key}"),
            }
        rows.append(row)
    return replace(TOTALS.fill_records(rows), title_values=(("steps", Kind.COUNT, window.count),))


def overlap_notes(totals: Table) -> tuple[Message, ...]:
    """A sentence on communication and on copies, where there are any, as the split shows only their exposed part."""
    notes = []
    for one in totals.records():
        if isinstance(one.overlap_ratio, float) and one.overlap_ratio > 0:
            values = (("total", Kind.DURATION, one.total_ns), ("hidden", Kind.SHARE, one.overlap_ratio))
            notes.append(Message(_SAY[f"{one.part}_overlap"], values))
    return tuple(notes)


def devices(partitions: Sequence[Partition], trace: Trace, window: Window) -> Table:
    """Mean step of every device of the process, the headline device first; worth a look where there are several."""
    table = DEVICES.fill(
        device=[part.device for part in partitions],
        device_name=[trace.device_name(part.device) for part in partitions],
        headline=[index == 0 for index in range(len(partitions))],
        step_ns=[window.mean(window.total)] * len(partitions),
        compute_ns=[window.mean(window.sum(part.compute)) for part in partitions],
        communication_ns=[window.mean(window.sum(part.comm_exposed)) for part in partitions],
        memory_ops_ns=[window.mean(window.sum(part.mem_exposed)) for part in partitions],
        idle_ns=[window.mean(window.sum(part.idle)) for part in partitions],
        idle_share=[window.share(window.sum(part.idle)) for part in partitions],
    )
    return replace(table, detail=len(partitions) < 2)


def step_tables(steps: Steps, parts: Parts) -> tuple[Table, Table]:
    """One row a step, with its time by headline part and the means below; and what the step times are like."""
    window = window_of(steps)
    columns = {f"{key}_ns": time for key, time in parts.items()}
    others = [key for key in STEPS.keys if key.endswith("_ns") and key not in {*columns, "time_ns", "start_ns"}]
    table = STEPS.drop(*others).fill(
        step=step_labels(steps.name),
        time_ns=steps.time,
        complete=steps.complete,
        counted=steps.counted,
        start_ns=steps.start,
        device_events=steps.owned,
        **columns,
    )
    means: dict[str, Value] = {
        key: time if isinstance(time, NotMeasured) else window.mean(window.sum(time)) for key, time in columns.items()
    }
    means |= {"step": "mean", "time_ns": window.mean(window.total)}
    one = len(steps) == 1
    return replace(table, totals=means if len(steps) > 1 else None, detail=one), _statistics(steps, window)


def _statistics(steps: Steps, window: Window) -> Table:
    times = steps.time[list(window.rows)]
    if len(times) == 0:
        return STEP_STATISTICS.missing("no_steps")
    return STEP_STATISTICS.fill(
        steps=[len(steps)],
        complete_steps=[window.count],
        mean_ns=[window.mean(window.total)],
        median_ns=[median(times)],
        min_ns=[int(times.min())],
        max_ns=[int(times.max())],
        between_steps_ns=[steps.between_steps],
        lead_in_ns=[steps.lead_in],
    )


def device_spans(context: Context) -> Table:
    """First to last event of each device, the headline device first, split the same way: as other tools print it."""
    events, rows = context.device, list[dict[str, int]]()
    kernels = events.kind == EventKind.KERNEL
    for device in context.devices:
        own = events.device == device
        start, end = events.start[own].min(keepdims=True), events.end[own].max(keepdims=True)
        part = partition(events, device, context.class_sets(device), start, end)
        rows.append(
            {
                "device": device,
                "span_ns": int(end[0] - start[0]),
                "compute_ns": int(part.compute[0]),
                "communication_ns": int(part.comm_exposed[0]),
                "communication_total_ns": int(part.comm_total[0]),
                "memory_ops_ns": int(part.mem_exposed[0]),
                "idle_ns": int(part.idle[0]),
                "compute_kernels": int((own & kernels & (events.klass == DeviceClass.COMPUTE)).sum()),
                "communication_kernels": int((own & kernels & (events.klass == DeviceClass.COMM)).sum()),
                "copies": int((own & (events.kind == EventKind.MEMCPY)).sum()),
                "fills": int((own & (events.kind == EventKind.MEMSET)).sum()),
                "start_ns": int(start[0]),
            }
        )
    return DEVICE_SPANS.fill_records(rows)
