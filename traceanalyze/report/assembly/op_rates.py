"""Table of what operators achieved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results_device import OpWork

_OPS = (
    Column("op", Kind.NAME),
    Column("shapes", Kind.NAME),
    Column("dtype", Kind.TEXT),
    Column("work", Kind.TERM, minor=True),
    Column("calls", Kind.COUNT),
    Column("device_time_ns", Kind.DURATION),
    Column("flop", Kind.NUMBER, minor=True),
    Column("bytes", Kind.BYTES, minor=True),
    Column("tflops", Kind.NUMBER),
    Column("bandwidth", Kind.NUMBER),
    Column("intensity", Kind.NUMBER, minor=True),
    Column("bound", Kind.TERM, minor=True),
    Column("roofline_share", Kind.SHARE),
)


def op_rates_table(ops: tuple[OpWork, ...] | NotMeasured) -> Table:
    """Achieved FLOP/s and bytes/s by operator and shapes, and the share of what the device can do."""
    if isinstance(ops, NotMeasured):
        return table_of_rows("op_rates", _OPS, ops, detail=True)
    rows = tuple(
        (
            item.op,
            item.shapes,
            item.dtype,
            f"work_{item.group.name.lower()}",
            item.calls,
            item.time,
            item.flop,
            item.bytes,
            item.tflops,
            item.bandwidth,
            item.intensity,
            item.bound if isinstance(item.bound, NotMeasured) else f"bound_{item.bound}",
            item.roofline_share,
        )
        for item in ops
    )
    return table_of_rows("op_rates", _OPS, rows, ranked=True, detail=True)
