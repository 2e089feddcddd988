"""Where several compute kernels run at once: without one of them the step takes as long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.intervals import Intervals, merge
from traceanalyze.model.vocabulary import DeviceClass

if TYPE_CHECKING:
    from traceanalyze.rules.facts import Facts


def shared_compute(facts: Facts) -> Intervals:
    """Time in which two compute kernels or more run on the headline device; use with `Facts.once`."""
    device = facts.context.device
    if not facts.context.devices:
        return merge(device.start[:0], device.end[:0])
    mine = (device.device == facts.context.devices[0]) & (device.klass == DeviceClass.COMPUTE)
    mine &= device.end > device.start
    time = np.concatenate((device.start[mine], device.end[mine]))
    change = np.concatenate((np.ones(int(mine.sum()), np.int64), np.full(int(mine.sum()), -1, np.int64)))
    # At one instant ends come first: kernels that follow each other share nothing.
    order = np.lexsort((change, time))
    running = np.cumsum(change[order])
    at = np.flatnonzero(running[:-1] >= 2) if len(order) else np.zeros(0, np.int64)
    return merge(time[order][at], time[order][at + 1])
