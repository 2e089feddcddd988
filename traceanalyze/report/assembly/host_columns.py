"""Tables of times on device and host, where there is no device."""

from __future__ import annotations

from dataclasses import replace

from traceanalyze.model.table import Column, Kind, Value

_DEVICE = ("device_", "forward_", "backward_")


def columns_of(columns: tuple[Column, ...], *, device: bool) -> tuple[Column, ...]:
    """The columns; without a device those of the host are the ones for short views."""
    return columns if device else tuple(_of_host(column) for column in columns)


def _of_host(column: Column) -> Column:
    if column.key.startswith("host_"):
        return replace(column, minor=False)
    return replace(column, minor=column.minor or column.key.startswith(_DEVICE))


def ranked_by(*, device: bool) -> tuple[tuple[str, Kind, Value], ...]:
    """Which time the rows are ordered by, for the title."""
    return (("by", Kind.TERM, "by_device_time" if device else "by_host_time"),)
