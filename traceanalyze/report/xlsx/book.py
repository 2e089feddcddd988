"""The workbook as a whole."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING

from traceanalyze.locales import Texts
from traceanalyze.report.model import Report
from traceanalyze.report.xlsx import rows
from traceanalyze.report.xlsx.formats import INSET, Field, Formats, fields_of
from traceanalyze.report.xlsx.page import Book, Page, put
from traceanalyze.report.xlsx.plan import HEADER, RankPlan, RunPlan, Sheet, by_sheet, plan
from traceanalyze.report.xlsx.summary import write_check, write_summary
from traceanalyze.report.xlsx.text import clean, link

if TYPE_CHECKING:
    from xlsxwriter import Workbook

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
    for note in run.report.note_messages:
        page.sentence(run.formatter.message(note))
    for sheet in run.recording:
        page.section(sheet.formatter.title(sheet.table))
        rows.write_fields_down(page, sheet)
    for rank in run.ranks:
        _rank(page, rank, f" · {rank.report.path}" if len(run.ranks) > 1 else "")


def _rank(page: Page, rank: RankPlan, label: str) -> None:
    book = page.book
    if rank.report.checks:
        page.section(book.words["quality"] + label)
        for check in rank.report.checks:
            write_check(page, rank, check)
    # A line a table, though several may have one reason.
    missing = [line for sheet in rank.sheets for line in rank.formatter.absent([sheet.table])]
    page.listed(book.words["not_measured"] + label, missing)
    page.listed(book.words["measure_more"] + label, rank.formatter.hints(rank.report.hints))


_DICTIONARY_WIDTHS = (26, 40, 9, 84, 26, 42)


def write_dictionary(book: Book) -> None:
    """Write the sheet; tables of several ranks have their columns listed once, unless their units differ."""
    found = (
        (sheet, sheet.name or fallback)
        for run in book.plan.runs
        for sheets, fallback in ((run.recording, book.plan.capture), (run.sheets, ""))
        for sheet in sheets
        if sheet.rows
    )
    write_columns(book, book.plan.columns, book.plan.runs[0].summary, found)


def write_columns(book: Book, name: str, home: str, sheets: Iterable[tuple[Sheet, str]]) -> None:
    """Write the columns of tables, each with the sheet that shows it; what another tool calls them if any has that."""
    listed = list(_columns(sheets))
    aliases = any(field.column.alias for _, _, field in listed)
    page = book.add(name)
    rows.write_title(book, page, book.words["column_dictionary"], home)
    keys = ("table", "column", "unit", "meaning", "data_name", *(("in_msprof",) if aliases else ()))
    for col, key in enumerate(keys):
        rows.write_header(book, page, col, book.words[key], right=False)
        page.set_column(col, col, _DICTIONARY_WIDTHS[col])
    row = HEADER
    for row, (sheet, where, field) in enumerate(listed, start=HEADER + 1):
        to = sheet.link() if sheet.name else link(where)
        page.write_url(row, 0, to, book.formats["link"], sheet.called if sheet.name else where)
        page.write_string(row, 1, field.heading, book.formats.get(bold=True, **INSET))
        put(page, row, 2, field.unit, book.formats.cell(None))
        page.write_string(
            row, 3, book.texts.meaning(sheet.table, field.column), book.formats.get(text_wrap=True, **INSET)
        )
        page.write_string(row, 4, field.column.key, book.formats["aside"])
        if field.column.alias:
            page.write_string(row, 5, field.column.alias, book.formats["aside"])
    page.autofilter(HEADER, 0, row, len(keys) - 1)
    rows.finish(page, HEADER)


def _columns(sheets: Iterable[tuple[Sheet, str]]) -> Iterator[tuple[Sheet, str, Field]]:
    """Columns in the order of the sheets, each table's once."""
    listed = set()
    for sheet, where in sheets:
        for field in _fields(sheet):
            what = (sheet.table.key, field.column.key, field.unit, field.whole)
            if what not in listed:
                listed.add(what)
                yield sheet, where, field


def _fields(sheet: Sheet) -> Iterator[Field]:
    if sheet.is_record:
        yield from (field for field, _ in rows.fields_down(sheet))
    else:
        yield from fields_of(sheet.table, sheet.rows, sheet.formatter)


_FILES_NAMED = 5


def write_runs(workbook: "Workbook", reports: Sequence[Report], texts: Texts) -> None:
    """Write all sheets of the reports of all runs."""
    workbook.set_properties(_properties(reports))
    book = Book(workbook, Formats(workbook), texts, plan(reports, texts))
    for run in book.plan.runs:
        write_summary(book, run)
    for run in book.plan.runs:
        write_tables(book, run.sheets, run.summary)
    write_dictionary(book)
    write_capture(book)


def write_tables(book: Book, sheets: Iterable[Sheet], home: str) -> None:
    """Write the sheets of tables, theme by theme."""
    for name, group in by_sheet(sheets):
        rows.write_sheet(book, group, name, home)


def _properties(reports: Sequence[Report]) -> dict[str, object]:
    paths = [PurePath(rank.path).name for report in reports for rank in report.ranks]
    more = ", …" if len(paths) > _FILES_NAMED else ""
    title = "traceanalyze · " + ", ".join(report.name for report in reports)
    return properties(title, ", ".join(paths[:_FILES_NAMED]) + more, reports[0].version)


def properties(title: str, subject: str, version: str) -> dict[str, object]:
    """What the file says about itself: tool, version and input."""
    tool = f"traceanalyze {version}"
    shown = {"title": clean(title), "subject": clean(subject), "author": tool, "comments": tool}
    # Not the time of writing: the same input gives the same bytes.
    return {**shown, "created": datetime(1980, 1, 1)}
