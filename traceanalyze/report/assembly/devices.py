"""Device-side tables: the devices side by side, their spans, and what counted as what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results import Partition
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
