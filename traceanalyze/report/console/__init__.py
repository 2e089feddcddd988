"""Reports as text for a terminal: one screen of each, or all of it."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyze.locales import Texts
from traceanalyze.model.vocabulary import Detail
from traceanalyze.report.console.full import Printer, curve_lines, render
from traceanalyze.report.console.screen import on_screen, one_line
from traceanalyze.report.console.style import Style, file_style, style_for
from traceanalyze.report.model import Report
from traceanalyze.report.view import View

__all__ = ["Printer", "Style", "curve_lines", "file_style", "render", "render_all", "style_for"]


def render_all(reports: Sequence[Report], texts: Texts, style: Style, view: View) -> str:
    """Reports of several runs: together on one screen, or whole, one after another, each under its name."""
    if view.detail == Detail.QUIET:
        return "".join(one_line(report, texts, named=len(reports) > 1) for report in reports)
    if view.detail == Detail.NORMAL and not view.whole:
        return on_screen(reports, texts, style)
    if len(reports) == 1:
        return render(reports[0], texts, style, view)
    rule = ("═" if style.unicode else "=") * 2
    titles = [style.paint(f"{rule} {style.shorten(report.name, style.width - 3)}", "bold") for report in reports]
    pages = [render(report, texts, style, view) for report in reports]
    return "\n".join(f"{title}\n\n{page}" for title, page in zip(titles, pages, strict=True))
