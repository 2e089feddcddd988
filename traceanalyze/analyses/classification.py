"""Which name counted as what, and by which rule: the table that makes the partition checkable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.results import KernelClass
from traceanalyze.model.vocabulary import DeviceClass

if TYPE_CHECKING:
    from traceanalyze.analyses.device_events import DeviceEvents
    from traceanalyze.model.trace import Trace


def classification(trace: Trace, device: DeviceEvents) -> tuple[KernelClass, ...]:
    """Device events by (name, class, rule), most time first."""
    if len(device) == 0:
        return ()
    key = (device.name.astype(np.int64) * len(DeviceClass) + device.klass) * len(device.rules) + device.rule
    distinct, inverse, count = np.unique(key, return_inverse=True, return_counts=True)
    time = np.zeros(len(distinct), np.int64)
    np.add.at(time, inverse.reshape(-1), device.end - device.start)
    table = []
    for code, n, t in zip(distinct.tolist(), count, time, strict=True):
        rest, rule = divmod(code, len(device.rules))
        name, klass = divmod(rest, len(DeviceClass))
        table.append(
            KernelClass(trace.strings.text(name), DeviceClass(klass).name.lower(), device.rules[rule], int(n), int(t))
        )
    return tuple(sorted(table, key=lambda row: (-row.time, row.name)))
