"""Few rows of many columns, as a list of names and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.report.format import column_units
from traceanalyze.report.xlsx.fields import field_of
from traceanalyze.report.xlsx.page import put
from traceanalyze.report.xlsx.rows import HEADER, finish, write_header, write_top
from traceanalyze.report.xlsx.text import width

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.report.xlsx.fields import Cell, Field
    from traceanalyze.report.xlsx.page import Book
    from traceanalyze.report.xlsx.plan import Sheet

_NAME_WIDTH, _UNIT_WIDTH, _MEANING_WIDTH = 42, 9, 80
_VALUE_WIDTHS = (16, 50)


def fields_down(sheet: Sheet) -> Iterator[tuple[Field, list[Cell]]]:
    """Every quantity with its value in each record, in a unit of its own."""
    for index, column in enumerate(sheet.table.columns):
        if column.machine:
            continue
        values = [row[index] for row in sheet.rows]
        units = column_units((column,), [(value,) for value in values], sheet.formatter.resolution_ns)
        field = field_of(column, index, values, units, sheet.formatter)
        yield field, [field.cell(value, sheet.formatter) for value in values]


def explanation(sheet: Sheet, field: Field) -> str:
    """What a quantity means, or why it was not measured."""
    missing = [row[field.index] for row in sheet.rows]
    reasons = {value.reason: None for value in missing if isinstance(value, NotMeasured)}
    if reasons:
        return sheet.formatter.missing(reasons)
    return sheet.formatter.texts.meaning_of(sheet.table.key, field.column.key)


def write_record(book: Book, sheet: Sheet, name: str, home: str) -> None:
    """Write the sheet of a record."""
    page = book.add(name)
    write_top(book, page, sheet, home)
    count = len(sheet.rows)
    values = [book.words["value"]] if count == 1 else [f"{book.words['value']} {n}" for n in range(1, count + 1)]
    for col, heading in enumerate([book.words["quantity"], *values, book.words["unit"], book.words["meaning"]]):
        write_header(book, page, col, heading, right=0 < col <= count)
    widest, row = _VALUE_WIDTHS[0], HEADER
    for row, (field, cells) in enumerate(fields_down(sheet), start=HEADER + 1):
        page.write_string(row, 0, field.heading, book.formats.cell(None, first=True))
        for col, cell in enumerate(cells, start=1):
            shown = book.formats.get(num_format=field.number_format or "General", align="right")
            put(page, row, col, cell, shown)
            widest = max(widest, width(cell) + 1 if isinstance(cell, str) else 0)
        put(page, row, count + 1, field.unit, book.formats.cell(None))
        put(page, row, count + 2, explanation(sheet, field), book.formats.aside)
    page.set_column(0, 0, _NAME_WIDTH)
    page.set_column(1, count, min(widest, _VALUE_WIDTHS[1]))
    page.set_column(count + 1, count + 1, _UNIT_WIDTH)
    page.set_column(count + 2, count + 2, _MEANING_WIDTH)
    page.autofilter(HEADER, 0, row, count + 2)
    finish(page, HEADER)
