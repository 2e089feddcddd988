"""The first sheet: verdict, the parts of both steps side by side, main causes, quality, the way to every sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.model.table import Message, NotMeasured
from traceanalyze.report.format import Formatter
from traceanalyze.report.model import CompareReport
from traceanalyze.report.xlsx.compare.plan import SUMMARY, ComparePlan
from traceanalyze.report.xlsx.formats import DIM, HEADER_FILL, SIDE_COLOURS, SIDE_FILLS, Field, fields_of
from traceanalyze.report.xlsx.page import Book, Page
from traceanalyze.report.xlsx.plan import Sheet
from traceanalyze.report.xlsx.rows import mark_worse

if TYPE_CHECKING:
    from xlsxwriter.chart_column import ChartColumn

HEIGHT, ROW_PIXELS = 260, 20
_CHAR_PIXELS, _CELL_PADDING = 7, 5


def parts_chart(book: Book, parts: Sheet, first: int, widths: Sequence[int]) -> ChartColumn:
    """Two columns a part, drawn from the table of parts that begins in row `first` of the summary."""
    fields = fields_of(parts.table, parts.rows, parts.formatter)
    last = first + len(parts.rows) - 1
    chart = book.workbook.add_chart({"type": "column"})
    unit = ""
    for col, field in enumerate(fields):
        if field.column.side is not None:
            unit = field.unit
            chart.add_series(
                {
                    "name": book.words[field.column.side],
                    "categories": [SUMMARY, first, 0, last, 0],
                    "values": [SUMMARY, first, col, last, col],
                    "gap": 60,
                    "fill": {"color": SIDE_COLOURS[field.column.side]},
                }
            )
    chart.set_title({"name": book.words["compare_chart"], "name_font": {"size": 11, "bold": True}})
    chart.set_y_axis(
        {
            "name": unit,
            "min": 0,
            "name_font": {"bold": False, "color": DIM, "rotation": -90},
            "num_format": "#,##0.###",
            "major_gridlines": {"visible": True, "line": {"color": "#E0E0E0"}},
            "line": {"none": True},
        }
    )
    chart.set_legend({"position": "bottom"})
    chart.set_size({"width": sum(width * _CHAR_PIXELS + _CELL_PADDING for width in widths), "height": HEIGHT})
    return chart


_WIDTHS = (44, 24, 16, 16, 16, 14, 14, 18)
_CAUSES = 5
"""Causes named in each direction."""
_SHOWN_OF_CAUSES = (
    "contribution",
    "part",
    "base_time_ns",
    "candidate_time_ns",
    "diff_ns",
    "step_change_share",
    "ratio",
    "change",
)


def write_summary(book: Book, report: CompareReport, plan: ComparePlan) -> None:
    """Write the sheet."""
    page = Page(book, book.add(SUMMARY), _WIDTHS)
    page.title(f"traceanalyze · {book.words['compare_title']}")
    parts = plan.sheet("step_difference")
    formatter = (parts or plan.in_parameters[0]).formatter
    for sentence in report.verdict:
        page.sentence(formatter.message(sentence), book.formats.get(bold=True, text_wrap=True))
    for side, pieces in zip(("base", "candidate"), report.sides, strict=True):
        fill = book.formats.get(bg_color=SIDE_FILLS[side], text_wrap=True)
        page.sheet.write_string(page.row, 0, book.words[side], book.formats.get(bold=True, bg_color=SIDE_FILLS[side]))
        page.sentence(" · ".join(formatter.message(piece) for piece in pieces), fill, start=1)
    for note in report.notes:
        page.sentence(formatter.message(note))
    if parts is not None:
        first = _section(page, parts)
        _chart(page, parts, first)
    _causes(page, plan.sheet("causes"))
    _sentences(page, "advice", report.advice, formatter)
    for key in ("memory_peak", "link_rates"):
        sheet = plan.sheet(key)
        if sheet is not None:
            _section(page, sheet)
    _sentences(page, "caveats", report.caveats, formatter)
    _sentences(page, "quality", report.quality, formatter)
    _contents(page, plan)


def _section(page: Page, sheet: Sheet) -> int:
    """A small table under its title; the row of its first line."""
    page.section(sheet.formatter.title(sheet.table))
    return _table(page, sheet, fields_of(sheet.table, sheet.rows, sheet.formatter))


def _table(page: Page, sheet: Sheet, fields: tuple[Field, ...]) -> int:
    formats = page.book.formats
    fills = [SIDE_FILLS.get(field.column.side or "", HEADER_FILL) for field in fields]
    heads = [
        formats.header(
            right=field.number_format is not None, indent=int(field.number_format is None and col > 0), fill=fill
        )
        for col, (field, fill) in enumerate(zip(fields, fills, strict=True))
    ]
    page.line([field.header for field in fields], heads)
    first = page.row
    forms = [formats.cell(field.number_format, first=col == 0) for col, field in enumerate(fields)]
    for row in sheet.rows:
        page.line([field.cell(row[field.index], sheet.formatter) for field in fields], forms)
    if sheet.table.total is not None:
        total = [field.cell(sheet.table.total[field.index], sheet.formatter) for field in fields]
        page.line(total, [formats.total(field.number_format, first=col == 0) for col, field in enumerate(fields)])
    mark_worse(page.book, page.sheet, fields, first, page.row - 1)
    return first


def _chart(page: Page, parts: Sheet, first: int) -> None:
    chart = parts_chart(page.book, parts, first, page.widths)
    page.row += 1
    page.sheet.insert_chart(page.row, 0, chart, {"description": page.book.words["compare_chart"]})
    page.row += HEIGHT // ROW_PIXELS + 1


def _causes(page: Page, causes: Sheet | None) -> None:
    """The largest causes in each direction, in the units of all of them."""
    if causes is None:
        return
    every = fields_of(causes.table, causes.rows, causes.formatter)
    by_key = {field.column.key: field for field in every}
    fields = tuple(by_key[key] for key in _SHOWN_OF_CAUSES)
    at = by_key["diff_ns"].index
    for key, sign in (("slower", 1), ("faster", -1)):
        rows = [row for row in causes.rows if isinstance(row[at], int) and row[at] * sign > 0]  # type: ignore[operator]
        title = page.book.texts.tables[key]
        page.section(title)
        if rows:
            short = replace(causes, table=replace(causes.table, totals=None), rows=tuple(rows[:_CAUSES]))
            _table(page, short, fields)
            if len(rows) > _CAUSES and causes.name is not None:
                page.link(0, causes.name, f"→ {causes.name}")
                page.row += 1
        else:
            page.sentence(page.book.words[f"no_{key}"])


def _sentences(page: Page, title: str, sentences: tuple[Message, ...], formatter: Formatter) -> None:
    if sentences:
        page.section(page.book.words[title])
        for sentence in sentences:
            page.sentence(formatter.message(sentence))


def _contents(page: Page, plan: ComparePlan) -> None:
    """Links to all sheets, and once for each reason why there is none for the others."""
    book = page.book
    page.section(book.words["contents"])
    for sheet in plan.sheets:
        if sheet.name is not None:
            page.link(0, sheet.name, sheet.name)
            about = sheet.formatter.title(sheet.table)
            count = len(sheet.rows) + sheet.left_out
            page.sheet.write_number(page.row, 1, count, book.formats.cell("#,##0"))
            page.sheet.write_string(page.row, 2, about, book.formats.cell(None))
            page.row += 1
    for name, text in ((plan.parameters, "parameters"), (plan.columns, "column_dictionary")):
        page.link(0, name, name)
        page.sheet.write_string(page.row, 2, book.words[text], book.formats.cell(None))
        page.row += 1
    for sheet in plan.sheets:
        if sheet.name is None:
            page.sheet.write_string(page.row, 0, sheet.formatter.topic(sheet.table), book.formats.note)
            page.sentence(_why(book, sheet), book.formats.get(font_color=DIM, text_wrap=True), start=1)


def _why(book: Book, sheet: Sheet) -> str:
    rows = sheet.table.rows
    if isinstance(rows, NotMeasured):
        return sheet.formatter.missing([rows.reason])
    return book.words["no_rows"]
