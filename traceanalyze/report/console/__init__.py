"""Reports as text for a terminal: one screen of each, or all of it.

A screen has at most 40 lines whatever was recorded, in one order for all commands. Every section has a number of lines
that it needs at least, and one that it gets before others get more. What has no room is counted, and `--all` prints it.
"""

from collections.abc import Sequence

from traceanalyze.locales import Texts
from traceanalyze.model.table import sentences
from traceanalyze.model.vocabulary import Detail
from traceanalyze.report.console.full import Printer, curve_lines, render
from traceanalyze.report.console.sections import Sections, fitted
from traceanalyze.report.console.style import Style, file_style, style_for
from traceanalyze.report.format import printable
from traceanalyze.report.model import Report, formatter_over
from traceanalyze.report.view import View

__all__ = ["Printer", "Style", "curve_lines", "file_style", "render", "render_all", "style_for"]

HEIGHT = 40
_SAY = sentences(
    screen_runs="And {count} more runs.",
    screen_where="--all: the whole report · -v: every table · -o report.html or .xlsx: a file",
)
_RUNS = 8
"""That share a screen at most."""
_ROOMY = 20
"""Lines from which a report has blank lines, and room for tables."""


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


def one_line(report: Report, texts: Texts, *, named: bool = False) -> str:
    """The verdict on one line, of several runs with the name of each."""
    text = printable(formatter_over(report, texts, 1).sentences(report.verdict_messages))
    return f"{printable(report.name)}: {text}\n" if named else f"{text}\n"


def on_screen(reports: Sequence[Report], texts: Texts, style: Style) -> str:
    """Reports on one screen; of several runs as much of each as there is room for."""
    where = [style.paint(line, "dim") for line in style.clip(texts.messages[_SAY["screen_where"]], 2)]
    if len(reports) == 1:
        lines = [*_page(Sections(reports[0], texts, style), HEIGHT - len(where) - 1), "", *where]
        return "\n".join(lines) + "\n"
    rule = ("═" if style.unicode else "=") * 2
    shown, lines = reports[:_RUNS], list[str]()
    for report in shown:
        lines.append(style.paint(f"{rule} {style.shorten(printable(report.name), style.width - 3)}", "bold"))
        lines += _page(Sections(report, texts, style, alone=False), (HEIGHT - len(where) - 1) // len(shown) - 1)
    if len(reports) > len(shown):
        lines.append(texts.messages[_SAY["screen_runs"]].format(count=len(reports) - len(shown)))
    return "\n".join([*lines, *where]) + "\n"


def _page(made: Sections, height: int) -> list[str]:
    """One report in so many lines at most."""
    roomy = height >= _ROOMY
    lines = made.top(*((5, 3) if roomy else (min(height - 2, 3), 1)))
    sections = list(made.sections() if roomy else made.few())
    for each in fitted(sections, height - len(lines), gap=int(roomy)):
        lines += [*([""] * roomy), *each]
    return lines
