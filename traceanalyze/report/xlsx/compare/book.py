"""The workbook of a comparison as a whole."""

from __future__ import annotations

from io import BytesIO

from xlsxwriter import Workbook

from traceanalyze.locales import Texts
from traceanalyze.model.table import NotMeasured
from traceanalyze.report.model import CompareReport
from traceanalyze.report.view import distinct_names
from traceanalyze.report.xlsx.book import CREATED, OPTIONS, write_columns
from traceanalyze.report.xlsx.compare.plan import SUMMARY, ComparePlan, compare_plan
from traceanalyze.report.xlsx.compare.summary import write_summary
from traceanalyze.report.xlsx.formats import Formats
from traceanalyze.report.xlsx.page import LINE_POINTS, Book, Page
from traceanalyze.report.xlsx.plan import Plan, Sheet
from traceanalyze.report.xlsx.rows import fields_down, write_rows
from traceanalyze.report.xlsx.text import clean, lines

_WIDTHS = (36, 56, 56)


def write_parameters(book: Book, report: CompareReport, plan: ComparePlan) -> None:
    """Write the sheet."""
    page = Page(book, book.add(plan.parameters), _WIDTHS)
    page.title(book.words["parameters"])
    page.link(0, SUMMARY, f"← {SUMMARY}")
    page.row += 1
    for sheet in plan.in_parameters:
        if sheet.rows:
            page.section(sheet.formatter.title(sheet.table))
            (_record if sheet.table.key == "compare_sides" else _pairs)(page, sheet)
    formatter = plan.in_parameters[0].formatter
    _sentences(page, "caveats", [formatter.message(item) for item in report.caveats])
    _sentences(page, "quality", [formatter.message(item) for item in report.quality])
    missing = [(sheet.table, sheet.table.rows) for sheet in plan.sheets if isinstance(sheet.table.rows, NotMeasured)]
    reasons = [formatter.said_of([formatter.topic(table)], book.texts.reasons[why.reason]) for table, why in missing]
    _sentences(page, "not_compared", reasons)


def _record(page: Page, sheet: Sheet) -> None:
    """A quantity a line, base and candidate beside each other."""
    formats = page.book.formats
    for field, cells in fields_down(sheet):
        if all(cell is None or cell == "" for cell in cells):
            continue
        high = max((lines(cell, _WIDTHS[1] - 2) for cell in cells if isinstance(cell, str)), default=1)
        page.sheet.set_row(page.row, LINE_POINTS * high)
        shown = formats.get(num_format=field.number_format or "General", align="left", text_wrap=True)
        page.line([field.header, *cells], [formats.get(), *([shown] * len(cells))])


def _pairs(page: Page, sheet: Sheet) -> None:
    for option, value in sheet.rows:
        page.line([str(option), str(value)], [page.book.formats.get(), page.book.formats.wrapped])


def _sentences(page: Page, title: str, sentences: list[str]) -> None:
    if sentences:
        page.section(page.book.words[title])
        for sentence in sentences:
            page.sentence(sentence)


def render(report: CompareReport, texts: Texts) -> bytes:
    """The comparison as a workbook, the same bytes for the same report."""
    target = BytesIO()
    with Workbook(target, OPTIONS) as workbook:
        workbook.set_properties(_properties(report))
        plan = compare_plan(report, texts)
        book = Book(workbook, Formats(workbook), texts, Plan((), plan.columns, plan.parameters))
        write_summary(book, report, plan)
        for sheet in plan.sheets:
            if sheet.name is not None:
                write_rows(book, sheet, sheet.name, SUMMARY)
        write_parameters(book, report, plan)
        write_columns(book, plan.columns, SUMMARY, plan.listed)
    return target.getvalue()


def _properties(report: CompareReport) -> dict[str, object]:
    tool = f"traceanalyze {report.version}"
    names = distinct_names(*report.paths)
    return {
        "title": clean(f"traceanalyze compare · {names[0]} · {names[1]}"),
        "subject": clean(" · ".join(report.paths)),
        "author": tool,
        "comments": tool,
        "created": CREATED,
    }
