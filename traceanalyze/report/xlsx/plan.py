"""Which sheets a workbook has, in order, under which names, and how much of each table they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from traceanalyze.locales import Texts
from traceanalyze.model.table import Layout, Row, Table
from traceanalyze.report.format import Formatter
from traceanalyze.report.model import RankReport, Report, formatter_of
from traceanalyze.report.xlsx.text import SheetNames, readable

MAX_ROWS = 5000
"""Rows of a table in a sheet: more are slow to write and to open, and nobody reads them."""
MAX_RANKS = 8
"""Ranks whose tables get sheets."""
RECORDS_ABREAST = 3
"""Records shown as names and values beside each other; more are rows."""
_PARTS = 12
"""Causes named in a cell."""


@dataclass(frozen=True)
class Sheet:
    """A table with its place in the workbook; one that has nothing to show has no name."""

    table: Table
    formatter: Formatter
    name: str | None
    rows: tuple[Row, ...]
    """Those shown."""
    left_out: int = 0
    groups: tuple[tuple[str, str], ...] = ()
    """Sides of a comparison and what stands above their columns."""

    @property
    def is_record(self) -> bool:
        """Whether it reads best as a list of names and values."""
        return self.table.layout == Layout.RECORD and len(self.rows) <= RECORDS_ABREAST


class RankPlan(NamedTuple):
    """A rank shown in detail."""

    report: RankReport
    formatter: Formatter
    sheets: tuple[Sheet, ...]

    def sheet(self, key: str) -> Sheet | None:
        """Sheet of a table, if it is there and has rows."""
        return next((sheet for sheet in self.sheets if sheet.table.key == key and sheet.rows), None)


class RunPlan(NamedTuple):
    """A run's part of the workbook."""

    report: Report
    summary: str
    """Name of its summary sheet."""
    shared: tuple[Sheet, ...]
    """Tables over all ranks."""
    ranks: tuple[RankPlan, ...]
    recording: tuple[Sheet, ...]
    """Records of files, which the capture sheet shows."""

    @property
    def sheets(self) -> tuple[Sheet, ...]:
        """Every table in the order of the workbook, those without a sheet among them."""
        return (*self.shared, *(sheet for rank in self.ranks for sheet in rank.sheets))


class Plan(NamedTuple):
    """The workbook."""

    runs: tuple[RunPlan, ...]
    columns: str
    capture: str


def plan(reports: Sequence[Report], texts: Texts) -> Plan:
    """Names and contents of all sheets."""
    names = SheetNames()
    several = len(reports) > 1
    # Summaries first, so that their plain names and those of the last sheets are theirs.
    summaries = [names.take(f"Summary {number}" if several else "Summary") for number in range(1, len(reports) + 1)]
    columns, capture = names.take("Columns"), names.take("Capture")
    runs = tuple(
        _run(report, summary, names, f"{number} " if several else "", texts)
        for number, (report, summary) in enumerate(zip(reports, summaries, strict=True), start=1)
    )
    return Plan(runs, columns, capture)


def _run(report: Report, summary: str, names: SheetNames, prefix: str, texts: Texts) -> RunPlan:
    first = formatter_of(report.ranks[report.focus[0]], texts, _PARTS)
    recording = tuple(
        Sheet(table, first, None, table.known_rows)
        for table in report.summary
        if table.layout == Layout.RECORD and not table.absent
    )
    in_capture = {sheet.table.key for sheet in recording if sheet.is_record}
    shared = [table for table in report.summary if table.key not in in_capture]
    return RunPlan(
        report,
        summary,
        tuple(_sheets(shared, first, names, prefix)),
        tuple(_ranks(report, names, prefix, texts)),
        tuple(sheet for sheet in recording if sheet.is_record),
    )


def _ranks(report: Report, names: SheetNames, prefix: str, texts: Texts) -> Iterator[RankPlan]:
    several = len(report.focus) > 1
    for index in report.focus[:MAX_RANKS]:
        rank = report.ranks[index]
        formatter = formatter_of(rank, texts, _PARTS)
        label = f"r{index if rank.rank is None else rank.rank} " if several else ""
        yield RankPlan(rank, formatter, tuple(_sheets(rank.tables, formatter, names, prefix + label)))


def _sheets(tables: Sequence[Table], formatter: Formatter, names: SheetNames, prefix: str) -> Iterator[Sheet]:
    for table in tables:
        name = names.take(prefix + readable(table.key)) if len(table) else None
        yield Sheet(table, formatter, name, table.known_rows[:MAX_ROWS], max(len(table) - MAX_ROWS, 0))
