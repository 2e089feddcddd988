"""The report as text for a terminal."""

from __future__ import annotations

from traceanalyze.report.console.page import View, render
from traceanalyze.report.console.style import Style, style_for

__all__ = ["Style", "View", "render", "style_for"]
