"""How much of the exposed communication moved data, where the profile of one rank tells (definitions §12, Ascend)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.analyses.exclusive import own_start
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.compare.groups import event_groups
from traceanalyze.model.vocabulary import DeviceClass

if TYPE_CHECKING:
    from traceanalyze.compare.groups import Names
    from traceanalyze.compare.results import Time
    from traceanalyze.compare.side import Side


def exposed_transfers(side: Side, names: Names) -> dict[str, Time]:
    """Exposed time of each group in which one of its collectives moved data, by the common name of the group.

    The rest of the group's exposed time is waiting. Not measured without the tasks that its collectives consist of.
    """
    context = side.context
    device, parts = context.device, context.collective_parts
    if side.partition is None:
        return {}
    events = context.work.event
    comm = events[(device.klass[events] == DeviceClass.COMM) & (device.device[events] == side.partition.device)]
    labels, group_of = event_groups(context, comm)
    if parts is None:
        reason = "no_collective_tasks" if context.trace.origin.format == "ascend" else "needs_all_ranks"
        return {names[label]: NotMeasured(reason) for label in labels}
    compute = (device.klass == DeviceClass.COMPUTE) & (device.device == side.partition.device)
    windows = intervals.merge(context.steps.start, context.steps.end)
    free = intervals.subtract(windows, intervals.merge(device.start[compute], device.end[compute]))
    begin = np.full(len(device), np.iinfo(np.int64).max)
    begin[comm] = own_start(device.start[comm], device.end[comm])
    # A piece counts from when its collective has the time for itself; pieces of other devices never do.
    start = np.minimum(np.maximum(parts.start, begin[parts.event]), parts.end)
    moved = parts.by_event(intervals.coverage(free, start, parts.end))[comm]
    found: dict[str, Time] = {}
    for index, label in enumerate(labels):
        mine = group_of == index
        told = bool(parts.recorded[comm[mine]].all())
        found[names[label]] = int(moved[mine].sum()) if told else NotMeasured("no_collective_tasks")
    return found
