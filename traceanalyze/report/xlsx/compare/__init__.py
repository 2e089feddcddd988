"""A comparison as an Excel workbook."""

from __future__ import annotations

from traceanalyze.report.xlsx.compare.book import render

__all__ = ["render"]
