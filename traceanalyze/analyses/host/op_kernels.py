"""Which operator launches which kernels, and how long they take to get there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.idle.launches import clocks_agree
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.analyses.results_host import OpKernel

if TYPE_CHECKING:
    from traceanalyze.analyses.context import Context


def op_kernels(context: Context) -> tuple[OpKernel, ...] | NotMeasured:
    """Launched device events by operator and kernel name, most device time first."""
    if len(context.device) == 0:
        return NotMeasured("no_device_events")
    work, device, nested = context.work, context.device, context.op_nest
    known = np.flatnonzero((context.link[work.event] >= 0) & (context.event_op[work.event] >= 0))
    if len(known) == 0:
        return NotMeasured("no_linked_launches")
    event = work.event[known]
    op = context.event_op[event]
    op_name = context.trace.events.name[nested.row[op]]
    pairs = group(op_name, device.name[event])
    count = pairs.count()
    launched, returned = context.launch_start[event], context.launch_end[event]
    to_launch = pairs.sum(launched - nested.start[op]) // count
    to_kernel = pairs.sum(np.maximum(device.start[event] - returned, 0)) // count
    linked = context.link >= 0
    trusted = clocks_agree(linked & (device.start < context.launch_start), linked)
    numbers = zip(
        op_name[pairs.first].tolist(),
        device.name[event][pairs.first].tolist(),
        *(column.tolist() for column in (count, pairs.sum(work.time[known]), to_launch, to_kernel)),
        strict=True,
    )
    text = context.trace.strings.text
    unknown = NotMeasured("clocks_disagree")
    rows = [
        OpKernel(text(name), text(kernel), n, time, first, second if trusted else unknown)
        for name, kernel, n, time, first, second in numbers
    ]
    return tuple(sorted(rows, key=lambda row: (-row.device_time, row.op, row.kernel)))
