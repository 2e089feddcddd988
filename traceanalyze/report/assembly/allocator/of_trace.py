"""What a trace says about memory, without a snapshot: the allocator's records and calls, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.model.table import Kind, Message, NotMeasured

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.model.table import Table
    from traceanalyze.report.model import RankReport, Report

_TABLES = (
    "memory",
    "memory_peak_place",
    "step_memory",
    "memory_curve",
    "allocator_calls",
    "allocator_sites",
    "module_memory",
)


def memory_view(report: Report, *, beside_snapshot: bool = False) -> Report:
    """The report restricted to memory, with a verdict of its own, which may ask for a snapshot."""
    ranks = tuple(_rank(rank, beside_snapshot) for rank in report.ranks)
    return replace(report, ranks=ranks, summary=(), verdict=ranks[report.focus[0]].verdict)


def _rank(rank: RankReport, beside_snapshot: bool) -> RankReport:
    tables = tuple(_shown(table) for table in rank.tables if table.key in _TABLES)
    return replace(rank, tables=tables, checks=(), hints=(), verdict=tuple(_verdict(tables, beside_snapshot)))


def _shown(table: Table) -> Table:
    """The curve of the device that uses most is drawn; the rest is read."""
    if table.key != "memory_curve" or isinstance(table.rows, NotMeasured):
        return replace(table, detail=False)
    top = max((row for row in table.rows if isinstance(row[3], int)), key=lambda row: row[3], default=None)  # type: ignore[arg-type, return-value]
    kept = table.take([at for at, row in enumerate(table.rows) if top is not None and row[:2] == top[:2]])
    columns = kept.columns[2:]
    return replace(kept, columns=columns, plot=(columns[1].key, columns[1].key), ranked=False)


def _verdict(tables: tuple[Table, ...], beside_snapshot: bool) -> Iterator[Message]:
    by_key = {table.key: table for table in tables}
    peaks = by_key.get("memory")
    if peaks is None or isinstance(peaks.rows, NotMeasured) or not peaks.rows:
        yield Message("trace_without_records" if beside_snapshot else "trace_without_memory")
        return
    device = [row for row in peaks.rows if row[0] == "memory_of_device"] or list(peaks.rows)
    allocated, reserved, relative = device[0][3:6]
    if isinstance(allocated, NotMeasured):
        yield Message("trace_memory_relative", (("peak", Kind.MEMORY, relative),))
    else:
        values = (("peak", Kind.MEMORY, allocated), ("reserved", Kind.MEMORY, reserved))
        yield Message("trace_memory_beside" if beside_snapshot else "trace_memory", values)
    calls = by_key.get("allocator_calls")
    if calls is not None and not isinstance(calls.rows, NotMeasured) and calls.rows:
        count = sum(row[1] for row in calls.rows if isinstance(row[1], int))
        time = sum(row[2] for row in calls.rows if isinstance(row[2], int))
        yield Message("trace_allocator_calls", (("count", Kind.COUNT, count), ("time", Kind.DURATION, time)))
