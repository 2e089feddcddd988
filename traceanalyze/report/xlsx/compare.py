"""A comparison as a workbook; sheets are named as in msprof-analyze, where that has them."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

from xlsxwriter import Workbook

from traceanalyze.locales import Texts
from traceanalyze.model.table import Table
from traceanalyze.report.format import Formatter
from traceanalyze.report.model import CompareReport
from traceanalyze.report.view import distinct_names
from traceanalyze.report.xlsx.book import OPTIONS, properties, write_columns
from traceanalyze.report.xlsx.formats import DIM, SIDE_COLOURS, SIDE_FILLS, Formats, fields_of
from traceanalyze.report.xlsx.page import Book, Page
from traceanalyze.report.xlsx.plan import MAX_ROWS, Plan, Sheet
from traceanalyze.report.xlsx.rows import write_fields_down, write_rows
from traceanalyze.report.xlsx.summary import drawn_in, insert, why_absent, write_small
from traceanalyze.report.xlsx.text import SheetNames

_SUMMARY = "Summary"
_IN_SUMMARY = ("step_difference", "memory_peak", "link_rates")
_IN_PARAMETERS = ("compare_sides", "compare_options")
_PARAMETER_WIDTHS = (36, 56, 56)
_SUMMARY_WIDTHS = (44, 24, 16, 16, 16, 14, 14, 18)
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


def render(report: CompareReport, texts: Texts) -> bytes:
    """The comparison as a workbook, the same bytes for the same report."""
    target, names = BytesIO(), distinct_names(*report.paths)
    with Workbook(target, OPTIONS) as workbook:
        title = f"traceanalyze compare · {names[0]} · {names[1]}"
        workbook.set_properties(properties(title, " · ".join(report.paths), report.version))
        taken = SheetNames()
        taken.take(_SUMMARY)
        book = Book(workbook, Formats(workbook), texts, Plan((), taken.take("Columns"), taken.take("Parameters")))
        sheets = _sheets(report, texts, taken)
        _write_summary(book, report, sheets)
        for sheet in sheets.values():
            if sheet.name is not None:
                write_rows(book, sheet, sheet.name, _SUMMARY)
        _write_parameters(book, report, sheets)
        listed = sorted(sheets.values(), key=lambda sheet: _place(sheet.table))
        shown = ((sheet, _where(book, sheet)) for sheet in listed if sheet.rows)
        write_columns(book, book.plan.columns, _SUMMARY, shown)
    return target.getvalue()


def _place(table: Table) -> int:
    """Tables in the summary come first, those about the comparison itself last."""
    return 0 if table.key in _IN_SUMMARY else 2 if table.key in _IN_PARAMETERS else 1


def _where(book: Book, sheet: Sheet) -> str:
    """Name of the sheet that shows a table."""
    return sheet.name or (_SUMMARY if sheet.table.key in _IN_SUMMARY else book.plan.capture)


def _sheets(report: CompareReport, texts: Texts, names: SheetNames) -> dict[str, Sheet]:
    """All tables by key, the causes first; those without rows, or shown in other sheets, have no name."""
    formatter = Formatter(texts, report.resolution_ns)
    groups = tuple(
        (side, texts.messages[f"group_{side}"].format(path=path))
        for side, path in zip(("base", "candidate"), distinct_names(*report.paths), strict=True)
    )
    found = {}
    for table in sorted(report.listing, key=lambda table: table.key != "causes"):
        rows = table.known_rows
        own = len(table) and _place(table) == 1
        # `operator_compare_statistic` as msprof-analyze writes it.
        name = names.take("".join(word.capitalize() for word in table.key.split("_"))) if own else None
        left_out = max(len(rows) - MAX_ROWS, 0)
        found[table.key] = Sheet(table, formatter, name, rows[:MAX_ROWS], left_out, groups)
    return found


def _write_parameters(book: Book, report: CompareReport, sheets: dict[str, Sheet]) -> None:
    page = Page(book, book.add(book.plan.capture), _PARAMETER_WIDTHS)
    page.title(book.words["parameters"])
    page.link(0, _SUMMARY, f"← {_SUMMARY}")
    page.row += 1
    sides, options = (sheets[key] for key in _IN_PARAMETERS)
    formatter = sides.formatter
    page.section(formatter.title(sides.table))
    write_fields_down(page, sides)
    if options.rows:
        page.section(formatter.title(options.table))
    for option, value in options.rows:
        page.line([str(option), str(value)], [book.formats.get(), book.formats["wrapped"]])
    page.listed(book.words["caveats"], map(formatter.message, report.caveats))
    page.listed(book.words["quality"], map(formatter.message, report.quality))
    # A line a table, though several may have one reason.
    absent = [line for table in report.listing if _place(table) == 1 for line in formatter.absent([table])]
    page.listed(book.words["not_compared"], absent)


def _write_summary(book: Book, report: CompareReport, sheets: dict[str, Sheet]) -> None:
    """Verdict, the parts of both steps side by side, main causes, quality, the way to every sheet."""
    page = Page(book, book.add(_SUMMARY), _SUMMARY_WIDTHS)
    page.title(f"traceanalyze · {book.words['compare_title']}")
    formatter = sheets["compare_sides"].formatter
    for sentence in report.verdict:
        page.sentence(formatter.message(sentence), book.formats.get(bold=True, text_wrap=True))
    for side, pieces in zip(("base", "candidate"), report.sides, strict=True):
        fill = book.formats.get(bg_color=SIDE_FILLS[side], text_wrap=True)
        page.sheet.write_string(page.row, 0, book.words[side], book.formats.get(bold=True, bg_color=SIDE_FILLS[side]))
        page.sentence(" · ".join(formatter.message(piece) for piece in pieces), fill, start=1)
    for note in report.notes:
        page.sentence(formatter.message(note))
    parts = sheets["step_difference"]
    if parts.rows:
        _parts_chart(page, parts, _section(page, parts))
    _causes(page, sheets["causes"])
    page.listed(book.words["advice"], map(formatter.message, report.advice))
    for key in ("memory_peak", "link_rates"):
        if key in sheets and sheets[key].rows:
            _section(page, sheets[key])
    page.listed(book.words["caveats"], map(formatter.message, report.caveats))
    page.listed(book.words["quality"], map(formatter.message, report.quality))
    _contents(page, sheets)


def _section(page: Page, sheet: Sheet) -> int:
    """A small table under its title; the row of its first line."""
    page.section(sheet.formatter.title(sheet.table))
    return write_small(page, sheet, fields_of(sheet.table, sheet.rows, sheet.formatter))


def _parts_chart(page: Page, parts: Sheet, first: int) -> None:
    """Two columns a part, drawn from the table of parts that begins in row `first`."""
    book, unit, last = page.book, "", first + len(parts.rows) - 1
    chart = book.workbook.add_chart({"type": "column"})
    for col, field in enumerate(fields_of(parts.table, parts.rows, parts.formatter)):
        if field.column.side is not None:
            unit = field.unit
            chart.add_series(
                {
                    "name": book.words[field.column.side],
                    "categories": [_SUMMARY, first, 0, last, 0],
                    "values": [_SUMMARY, first, col, last, col],
                    "gap": 60,
                    "fill": {"color": SIDE_COLOURS[field.column.side]},
                }
            )
    title = book.words["compare_chart"]
    insert(page, drawn_in(chart, title, unit, "#,##0.###", page.widths), title)


def _causes(page: Page, causes: Sheet) -> None:
    """The largest causes in each direction, in the units of all of them."""
    if causes.name is None:
        return
    by_key = {field.column.key: field for field in fields_of(causes.table, causes.rows, causes.formatter)}
    fields = tuple(by_key[key] for key in _SHOWN_OF_CAUSES)
    diffs = causes.table.array("diff_ns")[:MAX_ROWS]
    for key, places in (("slower", (diffs > 0).nonzero()[0]), ("faster", (diffs < 0).nonzero()[0])):
        page.section(page.book.texts.tables[key])
        if len(places) == 0:
            page.sentence(page.book.words[f"no_{key}"])
            continue
        rows = tuple(causes.rows[place] for place in places[:_CAUSES].tolist())
        write_small(page, replace(causes, table=replace(causes.table, totals=None), rows=rows), fields)
        if len(places) > _CAUSES:
            page.link(0, causes.name, f"→ {causes.name}")
            page.row += 1


def _contents(page: Page, sheets: dict[str, Sheet]) -> None:
    """Links to all sheets, and once for each reason why there is none for the others."""
    book, about = page.book, page.book.formats.cell(None)
    page.section(book.words["contents"])
    own = [sheet for sheet in sheets.values() if _place(sheet.table) == 1]
    for sheet in own:
        if sheet.name is not None:
            page.link(0, sheet.name, sheet.name)
            page.sheet.write_number(page.row, 1, len(sheet.rows) + sheet.left_out, book.formats.cell("#,##0"))
            page.sheet.write_string(page.row, 2, sheet.formatter.title(sheet.table), about)
            page.row += 1
    for name, text in ((book.plan.capture, "parameters"), (book.plan.columns, "column_dictionary")):
        page.link(0, name, name)
        page.sheet.write_string(page.row, 2, book.words[text], about)
        page.row += 1
    for sheet in own:
        if sheet.name is None:
            page.sheet.write_string(page.row, 0, sheet.formatter.topic(sheet.table), book.formats["note"])
            page.sentence(why_absent(book, sheet), book.formats.get(font_color=DIM, text_wrap=True), start=1)
