"""The workbook of a comparison as a whole."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from xlsxwriter import Workbook

from traceanalyze.report.paths import told_apart
from traceanalyze.report.xlsx.book import CREATED, OPTIONS
from traceanalyze.report.xlsx.compare.parameters import write_parameters
from traceanalyze.report.xlsx.compare.plan import SUMMARY, compare_plan
from traceanalyze.report.xlsx.compare.summary import write_summary
from traceanalyze.report.xlsx.dictionary import write_columns
from traceanalyze.report.xlsx.formats import Formats
from traceanalyze.report.xlsx.page import Book
from traceanalyze.report.xlsx.plan import Plan
from traceanalyze.report.xlsx.rows import write_rows
from traceanalyze.report.xlsx.text import clean

if TYPE_CHECKING:
    from traceanalyze.locales import Texts
    from traceanalyze.report.model import CompareReport


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
    names = told_apart(*report.paths)
    return {
        "title": clean(f"traceanalyze compare · {names[0]} · {names[1]}"),
        "subject": clean(" · ".join(report.paths)),
        "author": tool,
        "comments": tool,
        "created": CREATED,
    }
