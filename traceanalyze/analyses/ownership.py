"""When the program asked for each device event, which decides the step that owns it (definitions §3)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.work import MISSING, argument

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context


def ownership(context: Context) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Time at which the program asked for each device event, and whether it is known.

    The start of the call that asked for it; on Ascend, where the call was not recorded, the start of its operator, else
    of the step that the kernel table names, else of the first step whose device window it begins in. That window is
    the vendor's: from the first device event of the step to the last, or to the end of the marker.
    """
    known = context.link >= 0
    time = np.zeros(len(context.device), np.int64)
    time[known] = context.calls.start[context.asked[known]]
    if context.trace.origin.format != "ascend" or known.all():
        return time, known
    by_op = ~known & (context.event_op >= 0)
    time[by_op] = context.op_nest.start[context.event_op[by_op]]
    return _by_window(context, *_by_step(context, time, known | by_op))


def _by_step(
    context: Context, time: NDArray[np.int64], known: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The same with events that only the kernel table's step number places."""
    step = argument(context, "step", context.device.row)
    if context.markers is None or (step == MISSING).all():
        return time, known
    known = known.copy()
    for name, start in zip(context.markers.name, context.markers.start.tolist(), strict=True):
        number = re.search(r"(\d+)$", name)
        mine = ~known & (step == int(number[1])) if number else np.zeros(len(known), np.bool_)
        time[mine] = start
        known |= mine
    return time, known


def _by_window(
    context: Context, time: NDArray[np.int64], known: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The same with events that only lie in the device window of a step."""
    if context.markers is None or known.all():
        return time, known
    markers, device, known = context.markers, context.device, known.copy()
    owner = np.where(known, np.searchsorted(markers.start, time, "right") - 1, -1)
    for index, (start, end) in enumerate(zip(markers.start.tolist(), markers.end.tolist(), strict=True)):
        mine = owner == index
        if not mine.any():
            continue
        begins = (device.start >= device.start[mine].min()) & (device.start < max(int(device.end[mine].max()), end))
        time[begins & ~known] = start
        known |= begins
    return time, known
