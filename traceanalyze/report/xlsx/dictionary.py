"""The column dictionary: meaning and unit of every column of every sheet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.report.xlsx.fields import fields_of
from traceanalyze.report.xlsx.formats import INSET
from traceanalyze.report.xlsx.names import link
from traceanalyze.report.xlsx.page import TITLE_POINTS, put
from traceanalyze.report.xlsx.record import fields_down
from traceanalyze.report.xlsx.rows import HEADER, finish, write_header

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from traceanalyze.report.xlsx.fields import Field
    from traceanalyze.report.xlsx.page import Book
    from traceanalyze.report.xlsx.plan import Sheet

_WIDTHS = (26, 40, 9, 84, 26, 42)


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
    page.set_row(0, TITLE_POINTS)
    page.write_string(0, 0, book.words["column_dictionary"], book.formats.title)
    page.write_url(1, 0, link(home), book.formats.link, f"← {home}")
    keys = ("table", "column", "unit", "meaning", "data_name", *(("in_msprof",) if aliases else ()))
    for col, key in enumerate(keys):
        write_header(book, page, col, book.words[key], right=False)
        page.set_column(col, col, _WIDTHS[col])
    row = HEADER
    for row, (sheet, where, field) in enumerate(listed, start=HEADER + 1):
        page.write_url(row, 0, link(where), book.formats.link, where)
        page.write_string(row, 1, field.heading, book.formats.get(bold=True, **INSET))
        put(page, row, 2, field.unit, book.formats.cell(None))
        page.write_string(
            row, 3, book.texts.meaning_of(sheet.table.key, field.column.key), book.formats.get(text_wrap=True, **INSET)
        )
        page.write_string(row, 4, field.column.key, book.formats.aside)
        if field.column.alias:
            page.write_string(row, 5, field.column.alias, book.formats.aside)
    page.autofilter(HEADER, 0, row, len(keys) - 1)
    finish(page, HEADER)


def _columns(sheets: Iterable[tuple[Sheet, str]]) -> Iterator[tuple[Sheet, str, Field]]:
    """Columns in the order of the sheets, each table's once."""
    seen = set()
    for sheet, where in sheets:
        for field in _fields(sheet):
            what = (sheet.table.key, field.column.key, field.unit)
            if what not in seen:
                seen.add(what)
                yield sheet, where, field


def _fields(sheet: Sheet) -> Iterator[Field]:
    if sheet.is_record:
        yield from (field for field, _ in fields_down(sheet))
    else:
        yield from fields_of(sheet.table, sheet.rows, sheet.formatter)
