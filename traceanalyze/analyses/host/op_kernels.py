"""Which operator launches which kernels, and how long they take to get there."""

from __future__ import annotations

import numpy as np

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import COUNT, DEVICE_TIME, group
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, declare

_OP_KERNELS = declare(
    "op_kernels",
    "Kernels by operator",
    Column("op", Kind.NAME, "innermost operator around the call", heading="operator"),
    Column("kernel", Kind.KERNEL, "kernel, copy or fill that the operator launched"),
    COUNT,
    DEVICE_TIME,
    Column(
        "op_to_launch_ns",
        Kind.DURATION,
        "mean time from the start of the operator to its launch call",
        heading="operator to launch",
        scale="delay",
    ),
    Column(
        "launch_to_kernel_ns",
        Kind.DURATION,
        "mean time from the launch call's return to the start on the device",
        scale="delay",
    ),
    ranked=True,
    detail=True,
)


def op_kernels(context: Context) -> Table:
    """Launched device events by operator and kernel name, most device time first, and how long each stage took."""
    if len(context.device) == 0:
        return _OP_KERNELS.missing("no_device_events")
    work, device, nested = context.once(device_work), context.device, context.op_nest
    known = np.flatnonzero((context.link[work.event] >= 0) & (context.event_op[work.event] >= 0))
    if len(known) == 0:
        return _OP_KERNELS.missing("no_linked_launches")
    event = work.event[known]
    op = context.event_op[event]
    op_name = context.trace.events.name[nested.row[op]]
    pairs = group(op_name, device.name[event])
    count = pairs.count()
    launched, returned = context.launch_start[event], context.launch_end[event]
    to_kernel = pairs.sum(np.maximum(device.start[event] - returned, 0)) // count
    texts = context.trace.strings.texts
    return _OP_KERNELS.fill(
        op=list(texts(op_name[pairs.first])),
        kernel=list(texts(device.name[event][pairs.first])),
        count=count,
        device_time_ns=pairs.sum(work.time[known]),
        op_to_launch_ns=pairs.sum(launched - nested.start[op]) // count,
        launch_to_kernel_ns=to_kernel if context.doubt is None else NotMeasured(context.doubt),
    ).sort("-device_time_ns", "op", "kernel")
