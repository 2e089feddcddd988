"""Which name counted as what, and by which rule: the table that makes the partition checkable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.results import KernelClass
from traceanalyze.model.vocabulary import DeviceClass

if TYPE_CHECKING:
    from traceanalyze.analyses.device_events import DeviceEvents
    from traceanalyze.model.trace import Trace


def classification(trace: Trace, device: DeviceEvents) -> tuple[KernelClass, ...]:
    """Device events by (name, class, rule), most time first."""
    if len(device) == 0:
        return ()
    keys = group(device.name, device.klass, device.rule)
    columns = (device.name[keys.first], device.klass[keys.first], device.rule[keys.first])
    amounts = (keys.count(), keys.sum(device.end - device.start))
    table = [
        KernelClass(trace.strings.text(name), DeviceClass(klass).name.lower(), device.rules[rule], count, time)
        for name, klass, rule, count, time in zip(*(each.tolist() for each in (*columns, *amounts)), strict=True)
    ]
    return tuple(sorted(table, key=lambda row: (-row.time, row.name)))
