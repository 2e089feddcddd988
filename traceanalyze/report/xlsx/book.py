"""The workbook as a whole."""

from __future__ import annotations

from datetime import datetime
from io import BytesIO
from pathlib import PurePath
from typing import TYPE_CHECKING

from xlsxwriter import Workbook

from traceanalyze.report.xlsx.capture import write_capture
from traceanalyze.report.xlsx.dictionary import write_dictionary
from traceanalyze.report.xlsx.formats import Formats
from traceanalyze.report.xlsx.page import Book
from traceanalyze.report.xlsx.plan import plan
from traceanalyze.report.xlsx.record import write_record
from traceanalyze.report.xlsx.rows import write_rows
from traceanalyze.report.xlsx.summary import write_summary
from traceanalyze.report.xlsx.text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.locales import Texts
    from traceanalyze.report.model import Report

OPTIONS = {
    "in_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
}
# Not the time of writing: the same input gives the same bytes.
CREATED = datetime(1980, 1, 1)
_FILES_NAMED = 5


def render(reports: Sequence[Report], texts: Texts) -> bytes:
    """Reports of all runs as one workbook, the same bytes for the same reports."""
    target = BytesIO()
    with Workbook(target, OPTIONS) as workbook:
        workbook.set_properties(_properties(reports))
        book = Book(workbook, Formats(workbook), texts, plan(reports, texts))
        for run in book.plan.runs:
            write_summary(book, run)
        for run in book.plan.runs:
            for sheet in run.sheets:
                if sheet.name is not None:
                    write = write_record if sheet.is_record else write_rows
                    write(book, sheet, sheet.name, run.summary)
        write_dictionary(book)
        write_capture(book)
    return target.getvalue()


def _properties(reports: Sequence[Report]) -> dict[str, object]:
    """What the file says about itself: tool, version and input."""
    tool = f"traceanalyze {reports[0].version}"
    paths = [PurePath(rank.path).name for report in reports for rank in report.ranks]
    more = ", …" if len(paths) > _FILES_NAMED else ""
    return {
        "title": clean("traceanalyze · " + ", ".join(report.name for report in reports)),
        "subject": clean(", ".join(paths[:_FILES_NAMED]) + more),
        "author": tool,
        "comments": tool,
        "created": CREATED,
    }
