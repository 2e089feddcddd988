"""Device-side tables: the devices side by side, their spans, and what counted as what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results import DeviceSpan, KernelClass, Partition
    from traceanalyze.analyses.steps.window import Window
    from traceanalyze.model.trace import Device

_DEVICES = (
    Column("device", Kind.COUNT),
    Column("device_name", Kind.NAME, minor=True),
    Column("headline", Kind.FLAG),
    Column("step_ns", Kind.DURATION),
    Column("compute_ns", Kind.DURATION),
    Column("communication_ns", Kind.DURATION),
    Column("memory_ops_ns", Kind.DURATION),
    Column("idle_ns", Kind.DURATION),
    Column("idle_share", Kind.SHARE),
)
_SPANS = (
    Column("device", Kind.COUNT),
    Column("span_ns", Kind.DURATION),
    Column("compute_ns", Kind.DURATION),
    Column("communication_ns", Kind.DURATION),
    Column("communication_total_ns", Kind.DURATION, minor=True),
    Column("memory_ops_ns", Kind.DURATION),
    Column("idle_ns", Kind.DURATION),
    Column("compute_kernels", Kind.COUNT, minor=True),
    Column("communication_kernels", Kind.COUNT, minor=True),
    Column("copies", Kind.COUNT, minor=True),
    Column("fills", Kind.COUNT, minor=True),
    Column("start_ns", Kind.DURATION, machine=True),
)
_CLASSES = (
    Column("name", Kind.NAME),
    Column("class", Kind.TERM),
    Column("rule", Kind.TEXT),
    Column("count", Kind.COUNT),
    Column("device_time_ns", Kind.DURATION),
    Column("share", Kind.SHARE),
)


def devices_table(partitions: tuple[Partition, ...], described: tuple[Device, ...], window: Window) -> Table:
    """Mean step of every device of the process; worth showing only when there are several."""
    names = {device.id: device.name for device in described}
    rows = tuple(
        (
            part.device,
            names.get(part.device),
            index == 0,
            window.mean(window.total),
            window.mean(window.sum(part.compute)),
            window.mean(window.sum(part.comm_exposed)),
            window.mean(window.sum(part.mem_exposed)),
            window.mean(window.sum(part.idle)),
            window.share(window.sum(part.idle)),
        )
        for index, part in enumerate(partitions)
    )
    return table_of_rows("devices", _DEVICES, rows, detail=len(rows) < 2)


def spans_table(spans: tuple[DeviceSpan, ...]) -> Table:
    """First to last event of each device, split the same way: the figures other tools print."""
    rows = tuple(
        (
            span.device,
            span.end - span.start,
            int(span.partition.compute[0]),
            int(span.partition.comm_exposed[0]),
            int(span.partition.comm_total[0]),
            int(span.partition.mem_exposed[0]),
            int(span.partition.idle[0]),
            *span.counts,
            span.start,
        )
        for span in spans
    )
    return table_of_rows("device_spans", _SPANS, rows, detail=True)


def classification_table(classes: tuple[KernelClass, ...]) -> Table:
    """Every kernel name with the class it counts as and the rule that said so, longest first."""
    whole = sum(item.time for item in classes)
    ordered = sorted(classes, key=lambda item: (-item.time, item.name))
    rows = tuple(
        (item.name, f"class_{item.klass}", item.rule, item.count, item.time, item.time / whole if whole else 0.0)
        for item in ordered
    )
    return table_of_rows("classification", _CLASSES, rows, ranked=True, detail=True)
