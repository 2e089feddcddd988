"""The report as one HTML file that needs nothing else: no network, and no script to be read."""

from traceanalyze.report.html.page import MAX_RANKS, render
from traceanalyze.report.html.tables import MAX_ROWS

__all__ = ["MAX_RANKS", "MAX_ROWS", "render"]
