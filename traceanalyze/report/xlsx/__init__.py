"""The report as an Excel workbook; the only package that knows xlsxwriter."""

from __future__ import annotations

from traceanalyze.report.xlsx.book import render
from traceanalyze.report.xlsx.plan import MAX_RANKS, MAX_ROWS

__all__ = ["MAX_RANKS", "MAX_ROWS", "render"]
