"""Tables of times on device and host, as they suit a recording with a device or without one."""

from __future__ import annotations

from dataclasses import replace

from traceanalyze.model.table import Column, Kind, NotMeasured, Table

_OF_DEVICE = ("device_", "forward_", "backward_")


def for_recording(table: Table, *, device: bool) -> Table:
    """The table, whose title says which time orders its rows, if that depends on whether there is a device.

    Without a device its times were not measured, and those of the host are the ones for short views.
    """
    if "{by}" in table.title:
        by = ("by", Kind.TERM, "by_device_time" if device else "by_host_time")
        table = replace(table, title_values=(*table.title_values, by))
    return table if device else replace(table, columns=tuple(_without_device(column) for column in table.columns))


def _without_device(column: Column) -> Column:
    if column.key.startswith("host_"):
        return replace(column, minor=False)
    if not column.key.startswith(_OF_DEVICE):
        return column
    measured = column.kind == Kind.COUNT
    return replace(column, minor=True, values=column.values if measured else NotMeasured("no_device_events"))
