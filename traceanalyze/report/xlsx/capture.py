"""The sheet on the recording itself: files, what they say of themselves, checks, and what was not measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.report.xlsx.page import LINE_POINTS, Page
from traceanalyze.report.xlsx.record import fields_down
from traceanalyze.report.xlsx.summary import write_check
from traceanalyze.report.xlsx.text import lines

if TYPE_CHECKING:
    from traceanalyze.report.xlsx.page import Book
    from traceanalyze.report.xlsx.plan import RankPlan, RunPlan, Sheet

_WIDTHS = (30, 44, 44, 44)


def write_capture(book: Book) -> None:
    """Write the sheet for all runs."""
    page = Page(book, book.add(book.plan.capture), _WIDTHS)
    page.title(book.words["capture"])
    home = book.plan.runs[0].summary
    page.link(0, home, f"← {home}")
    page.row += 1
    for run in book.plan.runs:
        _run(page, run, named=len(book.plan.runs) > 1)


def _run(page: Page, run: RunPlan, *, named: bool) -> None:
    if named:
        page.section(run.report.name)
    for note in run.report.notes:
        page.sentence(run.ranks[0].formatter.message(note))
    for sheet in run.recording:
        page.section(sheet.formatter.title(sheet.table))
        _record(page, sheet)
    for rank in run.ranks:
        _rank(page, rank, f" · {rank.report.path}" if len(run.ranks) > 1 else "")


def _record(page: Page, sheet: Sheet) -> None:
    """Names and values, as many lines high as the longest value needs."""
    formats = page.book.formats
    for field, cells in fields_down(sheet):
        if all(cell is None or cell == "" for cell in cells):
            continue
        name = f"{field.heading} ({field.unit})" if field.unit else field.heading
        high = max((lines(cell, _WIDTHS[1] - 2) for cell in cells if isinstance(cell, str)), default=1)
        page.sheet.set_row(page.row, LINE_POINTS * high)
        shown = formats.get(num_format=field.number_format or "General", align="left", text_wrap=True)
        page.line([name, *cells], [formats.get(), *([shown] * len(cells))])


def _rank(page: Page, rank: RankPlan, label: str) -> None:
    book = page.book
    if rank.report.checks:
        page.section(book.words["quality"] + label)
        for check in rank.report.checks:
            write_check(page, rank, check)
    missing = [sheet for sheet in rank.sheets if isinstance(sheet.table.rows, NotMeasured)]
    if missing:
        page.section(book.words["not_measured"] + label)
        for sheet in missing:
            reason = sheet.table.rows.reason if isinstance(sheet.table.rows, NotMeasured) else ""
            page.sentence(rank.formatter.said_of([rank.formatter.topic(sheet.table)], book.texts.reasons[reason]))
    hints = rank.formatter.hints(rank.report)
    if hints:
        page.section(book.words["measure_more"] + label)
        for hint in hints:
            page.sentence(hint)
