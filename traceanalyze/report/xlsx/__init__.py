"""The report as an Excel workbook; the only package that knows xlsxwriter."""

from collections.abc import Sequence
from io import BytesIO

from xlsxwriter import Workbook

from traceanalyze.locales import Texts
from traceanalyze.report.model import Report
from traceanalyze.report.xlsx.book import write_runs
from traceanalyze.report.xlsx.plan import MAX_RANKS, MAX_ROWS
from traceanalyze.report.xlsx.sides import write_sides

__all__ = ["MAX_RANKS", "MAX_ROWS", "render"]

_OPTIONS = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}


def render(reports: Sequence[Report], texts: Texts) -> bytes:
    """Reports of all runs, or of two sides, as one workbook, the same bytes for the same reports."""
    target = BytesIO()
    with Workbook(target, _OPTIONS) as workbook:
        if reports[0].sides:
            write_sides(workbook, reports[0], texts)
        else:
            write_runs(workbook, reports, texts)
    return target.getvalue()
