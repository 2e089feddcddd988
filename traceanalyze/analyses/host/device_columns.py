"""Tables of times on device and host, as they suit a recording with a device or without one."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.table import Column, Kind, NotMeasured, Table

_OF_DEVICE = ("device_", "forward_", "backward_")


def for_recording(table: Table, *, device: bool) -> Table:
    """The table, whose title says which time orders its rows, if that depends on whether there is a device.

    Without a device its times were not measured, and those of the host are the ones for short views.
    """
    if "{by}" in table.title:
        by = ("by", Kind.TERM, "by_device_time" if device else "by_host_time")
        table = replace(table, title_values=(*table.title_values, by))
    if device:
        return launched_before(table)
    return replace(table, columns=tuple(_without_device(column) for column in table.columns))


def launched_before(table: Table) -> Table:
    """The table without host times of what the device worked for without a call in the windows: that was before."""
    host = {each.key for each in table.columns if each.key == "calls" or each.key.startswith(("host_", "api_"))}

    def some(chosen: Iterable[Column]) -> NDArray[np.bool_]:
        cells = [[bool(isinstance(cell, (int, float)) and cell) for cell in each.cells(len(table))] for each in chosen]
        return np.asarray(np.reshape(np.array(cells, np.bool_), (-1, len(table))).any(axis=0))

    if not len(table) or "calls" not in host or "step" in table.keys:
        return table
    works = some(one for one in table.columns if one.key.startswith(_OF_DEVICE))
    before = works & ~some(one for one in table.columns if one.key in host)
    if not before.any():
        return table
    missing = NotMeasured("launched_before")

    def told(column: Column) -> Column:
        cells = zip(column.cells(len(table)), before.tolist(), strict=True)
        return column.of([missing if early and cell == 0 else cell for cell, early in cells])

    return replace(table, columns=tuple(told(each) if each.key in host else each for each in table.columns))


def _without_device(column: Column) -> Column:
    if column.key.startswith("host_"):
        return replace(column, minor=False)
    if not column.key.startswith(_OF_DEVICE):
        return column
    measured = column.kind == Kind.COUNT
    return replace(column, minor=True, values=column.values if measured else NotMeasured("no_device_events"))
