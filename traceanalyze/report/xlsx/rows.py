"""The sheet of a table: title, way back, header, rows, total, notes; of a comparison also sides, and what is worse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING

from xlsxwriter.utility import xl_rowcol_to_cell

from traceanalyze.model.table import Kind, Message, Table
from traceanalyze.report.format import absent_reasons, column_units
from traceanalyze.report.xlsx.formats import (
    BETTER,
    FAINT,
    HEADER_FILL,
    SCALE,
    SHARE_BAR,
    SIDE_FILLS,
    STAGE_FILLS,
    TIME_BAR,
    WORSE,
    Cell,
    Field,
    InUnit,
    clean,
    field_of,
    fields_of,
    lines,
    link,
    width,
)
from traceanalyze.report.xlsx.page import LINE_POINTS, TITLE_POINTS, Book, Page, put
from traceanalyze.report.xlsx.plan import HEADER, MORE, Sheet, theme_of

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet


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


def mark_worse(book: Book, page: Worksheet, sheet: Sheet, fields: Sequence[Field], first: int, last: int) -> None:
    """Worse is red and better green, whatever the sign; what tells of nothing but chance is grey."""
    key, value = sheet.table.faint
    for col in (col for col, field in enumerate(fields) if field.column.key == key):
        cell, text = xl_rowcol_to_cell(first, col, col_abs=True), sheet.formatter.value(Kind.TERM, value)
        grey = {"criteria": f'={cell}="{text}"', "format": book.formats.colour(FAINT), "stop_if_true": True}
        page.conditional_format(first, 0, last, len(fields) - 1, {"type": "formula", **grey})
    with_par = [(col, field.column) for col, field in enumerate(fields) if field.column.par is not None]
    for col, column in with_par:
        cell = xl_rowcol_to_cell(first, col, col_abs=True)
        for sign, colour in ((">", WORSE), ("<", BETTER)):
            # Texts and empty cells are neither.
            criteria = f"=AND(ISNUMBER({cell}),{cell}{sign}{column.par:g})"
            shown = {"type": "formula", "criteria": criteria, "format": book.formats.colour(colour)}
            page.conditional_format(first, col, last, col, shown)


def mark_stages(book: Book, page: Worksheet, sheet: Sheet, fields: Sequence[Field], first: int, last: int) -> None:
    """What a stage of a pipeline does in colours, so that bubbles are seen between its passes."""
    for col in (
        col for col, field in enumerate(fields) if sheet.table.key == "pipeline" and field.column.key == "part"
    ):
        for part, fill in STAGE_FILLS.items():
            text = sheet.formatter.value(Kind.TERM, part)
            shown = {"type": "cell", "criteria": "==", "value": f'"{text}"', "format": book.formats.fill(fill)}
            page.conditional_format(first, col, last, col, shown)


def indent(book: Book, page: Worksheet, sheet: Sheet, field: Field, first: int) -> None:
    """Names of rows as far in as they lie, which can be folded away."""
    page.outline_settings(symbols_below=False)
    for row, values in enumerate(sheet.rows, start=first):
        level = sheet.table.depth(values)
        if level:
            put(page, row, 0, field.cell(values[field.index], sheet.formatter), book.formats.indented(2 * level))
            page.set_row(row, None, None, {"level": min(level, 7)})


_NARROWEST = 9
_WIDEST = {Kind.NAME: 56, Kind.BREAKDOWN: 40}
_WIDEST_MINOR, _WIDEST_OTHER = 32, 36
_NOTE_COLUMNS = 8
"""Columns printed at least, so that titles and notes are not cut."""
_ARROW = 2
"""Indent that keeps a heading clear of its filter's arrow."""
_MARGIN = 5
"""Room a heading needs beside its text, which is bold and indented."""

Extent = tuple[list[int], list[dict[str, object]], int]
"""Widths and options of a table's columns, those of low value folded, and its last row."""


def write_sheet(book: Book, sheets: Sequence[Sheet], name: str, home: str) -> None:
    """Write a sheet with a table, or with several below each other, which links at its top lead to."""
    first, alone = sheets[0], not sheets[0].top
    theme = theme_of(first.table)
    page = book.add(name, theme.colour)
    shared = theme if all(theme_of(each.table) == theme for each in sheets) else MORE
    title = first.formatter.title(first.table) if alone else first.formatter.message(Message(shared.title))
    write_title(book, page, clean(title), home)
    for row, sheet in enumerate(() if alone else sheets, start=2):
        page.write_url(row, 0, sheet.link(), book.formats["link"], clean(sheet.formatter.title(sheet.table)))
    written = [(write_record if sheet.is_record else write_rows)(book, page, sheet) for sheet in sheets]
    # The filter of a sheet is that of its longest table; it has but one.
    longest = max(range(len(sheets)), key=lambda at: len(sheets[at].rows))
    widths, options, last = written[longest]
    page.autofilter(sheets[longest].header, 0, last, len(widths) - 1)
    columns = list(zip_longest(*(each[0] for each in written), fillvalue=0))
    for col, wanted in enumerate(columns):
        page.set_column(col, col, max(wanted), None, options[col] if alone else None)
    finish(page, HEADER if alone else 1, repeat=alone)
    # Long names in the last column would otherwise count as printed columns.
    page.print_area(0, 0, max(each.top for each in sheets) + sheets[-1].height, max(len(columns), _NOTE_COLUMNS) - 1)


def write_rows(book: Book, page: Worksheet, sheet: Sheet) -> Extent:
    """Write a table with a row for each of its rows."""
    alone, head = not sheet.top, sheet.header
    fields = [
        field
        for field in fields_of(sheet.table, sheet.rows, sheet.formatter)
        # Where columns cannot be hidden, those without values are left out.
        if alone or not field.column.minor or any(row[field.index] is not None for row in sheet.rows)
    ]
    last, widths, options = head + len(sheet.rows), list[int](), list[dict[str, object]]()
    write_top(book, page, sheet)
    write_groups(book, page, sheet, fields, head - 1)
    high = 1
    for col, field in enumerate(fields):
        cells = [field.cell(row[field.index], sheet.formatter) for row in sheet.rows]
        widths.append(_width(field, cells))
        hidden = field.column.minor and all(cell is None for cell in cells)
        options.append({"level": 1, "hidden": hidden} if field.column.minor and col else {})
        fill = SIDE_FILLS.get(field.column.side or "", HEADER_FILL)
        write_header(book, page, col, field.header, right=field.number_format is not None, fill=fill, row=head)
        _write_column(book, page, col, field, cells, head + 1)
        high = max(high, lines(field.header, widths[-1] - _MARGIN + 1))
    page.set_row(head, LINE_POINTS * high)
    if sheet.table.level is not None:
        indent(book, page, sheet, fields[0], head + 1)
    _pictures(page, sheet.table, fields, head + 1, last)
    mark_worse(book, page, sheet, fields, head + 1, last + 2)
    mark_stages(book, page, sheet, fields, head + 1, last + 2)
    row = last + 1
    if sheet.table.total is not None:
        row += 1
        for col, field in enumerate(fields):
            total = field.cell(sheet.table.total[field.index], sheet.formatter)
            put(page, row, col, total, book.formats.cell(field.number_format, first=col == 0, total=True))
        row += 1
    for below, note in enumerate(sheet.remarks, start=1):
        page.write_string(row + below, 0, clean(note), book.formats["note"])
    return widths, options, last


def write_header(
    book: Book, page: Worksheet, col: int, heading: str, *, right: bool, fill: str = HEADER_FILL, row: int = HEADER
) -> None:
    """Heading of a column with a filter: clear of the filter's arrow at the right, and as far in as the cells."""
    right = right and col > 0
    page.write_string(
        row, col, heading, book.formats.header(right=right, indent=_ARROW if right else min(col, 1), fill=fill)
    )


def write_top(book: Book, page: Worksheet, sheet: Sheet) -> None:
    """What the reader must know before the numbers: among other tables the title, and whether rows were left out."""
    if sheet.top:
        page.write_string(sheet.top, 0, clean(sheet.formatter.title(sheet.table)), book.formats.get(bold=True))
    if sheet.left_out:
        kept = book.words["rows_left_out"].format(
            kept=f"{len(sheet.rows):,}", count=f"{len(sheet.rows) + sheet.left_out:,}"
        )
        page.write_string(sheet.top or 1, 1 + bool(sheet.top), kept, book.formats["note"])


def write_title(book: Book, page: Worksheet, title: str, home: str) -> None:
    """Title and the way back."""
    page.set_row(0, TITLE_POINTS)
    page.write_string(0, 0, title, book.formats["title"])
    page.write_url(1, 0, link(home), book.formats["link"], f"← {home}")


def finish(page: Worksheet, header: int, *, repeat: bool = True) -> None:
    """Keep header and first column in sight and on every printed page; no marks at steps that are text."""
    page.freeze_panes(header + 1, 1)
    if repeat:
        page.repeat_rows(header)
    page.ignore_errors({"number_stored_as_text": "A1:XFD1048576"})


def _write_column(book: Book, page: Worksheet, col: int, field: Field, cells: Sequence[Cell], first: int) -> None:
    form = book.formats.cell(field.number_format, first=col == 0)
    missing = book.formats["missing"]
    number, string = page.write_number, page.write_string
    for row, cell in enumerate(cells, start=first):
        if cell is None:
            continue
        if isinstance(cell, str):
            string(row, col, cell, missing if field.number_format else form)
        else:
            number(row, col, cell, book.formats.fitting(form, cell))


def _width(field: Field, cells: Sequence[Cell]) -> int:
    """Enough for most values, and for the longest word of the heading."""
    if field.number_format is None:
        longest = max((width(cell) for cell in cells if isinstance(cell, str)), default=0)
    else:
        numbers = [abs(cell) for cell in cells if isinstance(cell, int | float)]
        decimals = len(field.number_format.partition(";")[0].partition(".")[2])
        behind = max(
            (len(cell.number_format.partition(";")[0]) for cell in cells if isinstance(cell, InUnit)), default=0
        )
        longest = len(f"{max(numbers, default=0):,.0f}") + 1 + max(decimals, behind - len('#,##0""'))
    words = max(map(width, field.header.split()), default=0) + _MARGIN
    half = (width(field.header) + 1) // 2 + _MARGIN
    widest = _WIDEST_MINOR if field.column.minor else _WIDEST.get(field.column.kind, _WIDEST_OTHER)
    return max(_NARROWEST, words, min(max(longest + 2, half), widest))


def _pictures(page: Worksheet, table: Table, fields: Sequence[Field], first: int, last: int) -> None:
    """Bars in the main columns of times and shares, shades in ratios."""
    if any(field.column.side for field in fields):
        return
    for field, colour in ((_main_time(table, fields), TIME_BAR), (_main_share(table, fields), SHARE_BAR)):
        if field is not None:
            col = fields.index(field)
            whole = {"max_type": "num", "max_value": 1} if field.column.kind == Kind.SHARE else {}
            page.conditional_format(first, col, last, col, {**bar(colour), **whole})
    for col, field in enumerate(fields):
        if field.column.kind == Kind.RATIO and last - first >= 2:
            colours = dict(zip(("min_color", "mid_color", "max_color"), SCALE, strict=True))
            page.conditional_format(first, col, last, col, {"type": "3_color_scale", **colours})


def bar(colour: str) -> dict[str, object]:
    """A bar that starts at zero."""
    return {
        "type": "data_bar",
        "bar_solid": True,
        "bar_color": colour,
        "bar_border_color": colour,
        "min_type": "num",
        "min_value": 0,
    }


def _main_time(table: Table, fields: Sequence[Field]) -> Field | None:
    """The column of times the table is about: points in time are none, hence the scale."""
    times = [field for field in fields if field.column.kind == Kind.DURATION and not field.column.minor]
    chosen = [field for field in times if field.column.key == table.worst]
    return next(iter([*chosen, *(field for field in times if field.column.scale == "time")]), None)


def _main_share(table: Table, fields: Sequence[Field]) -> Field | None:
    shares = [field for field in fields if field.column.kind == Kind.SHARE and not field.column.minor]
    return next((field for field in shares if field.column.key == table.bar), shares[0] if shares else None)


def write_fields_down(page: Page, sheet: Sheet) -> None:
    """Names and values in a page of mixed contents, as many lines high as the longest value needs."""
    formats = page.book.formats
    for field, cells in fields_down(sheet):
        if all(cell is None or cell == "" for cell in cells):
            continue
        high = max((lines(cell, page.widths[1] - 2) for cell in cells if isinstance(cell, str)), default=1)
        page.sheet.set_row(page.row, LINE_POINTS * high)
        shown = formats.get(num_format=field.number_format or "General", align="left", text_wrap=True)
        page.line([field.header, *cells], [formats.get(), *([shown] * len(cells))])


_NAME_WIDTH, _UNIT_WIDTH, _MEANING_WIDTH = 42, 9, 80
_VALUE_WIDTHS = (16, 50)


def fields_down(sheet: Sheet) -> Iterator[tuple[Field, list[Cell]]]:
    """Every quantity with its value in each record, in a unit of its own."""
    for index, column in enumerate(sheet.table.columns):
        if column.machine:
            continue
        values = [row[index] for row in sheet.rows]
        units = column_units((column,), [(value,) for value in values], sheet.formatter.resolution_ns)
        field = field_of(sheet.table, index, values, units, sheet.formatter)
        yield field, [field.cell(value, sheet.formatter) for value in values]


def explanation(sheet: Sheet, field: Field) -> str:
    """What a quantity means, or why it was not measured."""
    reasons = absent_reasons((row[field.index],) for row in sheet.rows)
    if reasons:
        return sheet.formatter.missing(reasons)
    return sheet.formatter.texts.meaning(sheet.table, field.column)


def write_record(book: Book, page: Worksheet, sheet: Sheet) -> Extent:
    """Write a record as a list of quantities."""
    write_top(book, page, sheet)
    count = len(sheet.rows)
    values = [book.words["value"]] if count == 1 else [f"{book.words['value']} {n}" for n in range(1, count + 1)]
    for col, heading in enumerate([book.words["quantity"], *values, book.words["unit"], book.words["meaning"]]):
        write_header(book, page, col, heading, right=0 < col <= count, row=sheet.header)
    widest, row = _VALUE_WIDTHS[0], sheet.header
    for row, (field, cells) in enumerate(fields_down(sheet), start=sheet.header + 1):
        page.write_string(row, 0, field.heading, book.formats.cell(None, first=True))
        for col, cell in enumerate(cells, start=1):
            shown = book.formats.get(num_format=field.number_format or "General", align="right")
            put(page, row, col, cell, shown)
            widest = max(widest, width(cell) + 1 if isinstance(cell, str) else 0)
        put(page, row, count + 1, field.unit, book.formats.cell(None))
        put(page, row, count + 2, explanation(sheet, field), book.formats["aside"])
    # What a quantity means reaches over the empty cells beside it.
    meaning = _UNIT_WIDTH if sheet.top else _MEANING_WIDTH
    widths = [_NAME_WIDTH, *([min(widest, _VALUE_WIDTHS[1])] * count), _UNIT_WIDTH, meaning]
    return widths, [{}] * len(widths), row
