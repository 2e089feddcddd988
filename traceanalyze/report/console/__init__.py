"""The report as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from traceanalyze.report.console.page import render
from traceanalyze.report.console.style import Style, file_style, style_for

if TYPE_CHECKING:
    from traceanalyze.locales import Texts
    from traceanalyze.report.model import Report
    from traceanalyze.report.view import View

__all__ = ["Style", "file_style", "render", "render_all", "style_for"]


def render_all(reports: Sequence[Report], texts: Texts, style: Style, view: View) -> str:
    """Reports of several runs one after another, each under its name."""
    if len(reports) == 1:
        return render(reports[0], texts, style, view)
    rule = ("═" if style.unicode else "=") * 2
    titles = [style.paint(f"{rule} {style.shorten(report.name, style.width - 3)}", "bold") for report in reports]
    pages = [render(report, texts, style, view) for report in reports]
    return "\n".join(f"{title}\n\n{page}" for title, page in zip(titles, pages, strict=True))
