"""What sheets of a comparison have: columns of two sides, colours for worse and better, rows inside others."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from xlsxwriter.utility import xl_rowcol_to_cell

from traceanalyze.report.xlsx.formats import BETTER, SIDE_FILLS, WORSE
from traceanalyze.report.xlsx.page import put
from traceanalyze.report.xlsx.text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xlsxwriter.worksheet import Worksheet

    from traceanalyze.report.xlsx.formats import Field
    from traceanalyze.report.xlsx.page import Book
    from traceanalyze.report.xlsx.plan import Sheet


def write_groups(book: Book, page: Worksheet, sheet: Sheet, fields: Sequence[Field], row: int) -> None:
    """In the row above the header, which side of a comparison the columns below belong to."""
    texts = dict(sheet.groups)
    for side, run in groupby(enumerate(fields), key=lambda item: item[1].column.side):
        cols = [col for col, _ in run]
        if side is None or side not in texts:
            continue
        form = book.formats.group(SIDE_FILLS[side])
        if len(cols) > 1:
            page.merge_range(row, cols[0], row, cols[-1], "", form)
        text = texts[side] if len(cols) > 1 else book.words[side]
        page.write_string(row, cols[0], clean(text), form)


def judge(book: Book, page: Worksheet, fields: Sequence[Field], first: int, last: int) -> None:
    """Worse is red and better green, whatever the sign."""
    judged = [(col, field.column) for col, field in enumerate(fields) if field.column.par is not None]
    for col, column in judged:
        cell = xl_rowcol_to_cell(first, col, col_abs=True)
        for sign, colour in ((">", WORSE), ("<", BETTER)):
            # Texts and empty cells are neither.
            criteria = f"=AND(ISNUMBER({cell}),{cell}{sign}{column.par:g})"
            shown = {"type": "formula", "criteria": criteria, "format": book.formats.colour(colour)}
            page.conditional_format(first, col, last, col, shown)


def indent(book: Book, page: Worksheet, sheet: Sheet, field: Field, first: int) -> None:
    """Names of rows as far in as they lie, which can be folded away."""
    at = [column.key for column in sheet.table.columns].index(sheet.table.level or "")
    page.outline_settings(symbols_below=False)
    for row, values in enumerate(sheet.rows, start=first):
        level = values[at]
        if isinstance(level, int) and level:
            put(page, row, 0, field.cell(values[field.index], sheet.formatter), book.formats.indented(2 * level))
            page.set_row(row, None, None, {"level": min(level, 7)})
