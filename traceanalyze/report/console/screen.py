"""The report on one screen: at most 40 lines whatever was recorded, in one order for all commands.

Every section has a number of lines that it needs at least, and one that it gets before others get more. What has no
room is counted, and `--all` prints it.
"""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyze.locales import Texts
from traceanalyze.model.table import sentences
from traceanalyze.report.console.section import fitted
from traceanalyze.report.console.sections import Sections
from traceanalyze.report.console.style import Style
from traceanalyze.report.format import printable
from traceanalyze.report.model import Report, formatter_over

HEIGHT = 40
_SAY = sentences(
    screen_runs="And {count} more runs.",
    screen_where="--all: the whole report · -v: every table · -o report.html or .xlsx: a file",
)
_RUNS = 8
"""That share a screen at most."""
_ROOMY = 20
"""Lines from which a report has blank lines, and room for tables."""


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
