"""Reports as text for a terminal: one screen of each, or all of it.

A screen has at most 40 lines whatever was recorded, in one order for all commands. Every section has a number of lines
that all others leave to it, one that it needs, and one that it gets before others get more. What has no room is
counted, and `--all` prints it.
"""

from collections.abc import Sequence
from functools import cache, partial

from traceanalyze.locales import Texts
from traceanalyze.model.table import Kind, Message, sentences
from traceanalyze.model.vocabulary import Detail
from traceanalyze.report.console.fitting import fitted
from traceanalyze.report.console.full import Printer, curve_lines, render
from traceanalyze.report.console.sections import Sections
from traceanalyze.report.console.style import Style, file_style, style_for
from traceanalyze.report.format import printable
from traceanalyze.report.model import Report, formatter_over
from traceanalyze.report.view import View, common_folder

__all__ = ["Printer", "Style", "curve_lines", "file_style", "render", "render_all", "style_for"]

HEIGHT = 40
_SAY = sentences(
    screen_runs="And {count} more run(s).",
    screen_detail="The largest in detail: {name}",
    screen_where="--all: the whole report · -v: every table · -o report.html or .xlsx: a file",
)
_RUNS = 8
"""That share a screen at most."""
_FEW = 4
"""Runs with room for a blank line after each."""
_RUN = 8
"""Lines of one of few runs."""


def render_all(reports: Sequence[Report], texts: Texts, style: Style, view: View) -> str:
    """Reports of several runs: together on one screen, or whole, one after another, each under its name."""
    if view.detail == Detail.QUIET:
        return "".join(one_line(report, texts, named=len(reports) > 1) for report in reports)
    if view.detail == Detail.NORMAL and not view.whole:
        return on_screen(reports, texts, style, view.rows)
    if len(reports) == 1:
        return render(reports[0], texts, style, view)
    rule = ("═" if style.unicode else "=") * 2
    names = style.apart([report.name for report in reports], style.width - 3)
    titles = [style.paint(f"{rule} {name}", "bold") for name in names]
    pages = [render(report, texts, style, view) for report in reports]
    return "\n".join(f"{title}\n\n{page}" for title, page in zip(titles, pages, strict=True))


def one_line(report: Report, texts: Texts, *, named: bool = False) -> str:
    """The verdict on one line, of several runs with the name of each."""
    text = printable(formatter_over(report, texts, 1).sentences(report.verdict_messages))
    return f"{printable(report.name)}: {text}\n" if named else f"{text}\n"


def on_screen(reports: Sequence[Report], texts: Texts, style: Style, rows: int = 0) -> str:
    """Reports on one screen; of several runs as much of each as there is room for.

    Of what takes most it has so many rows, where they are asked for and there is room.
    """
    where = [style.paint(line, "dim") for line in style.clip(texts.messages[_SAY["screen_where"]], 2)]
    if len(reports) == 1:
        lines = [*_page(Sections(reports[0], texts, style, rows=rows), HEIGHT - len(where) - 1), "", *where]
        return "\n".join(lines) + "\n"
    folder = common_folder([report.name for report in reports])
    names = [printable(report.name.removeprefix(folder)) for report in reports]
    called = cache(partial(style.apart, names))
    own = [partial(lambda at, room: called(room)[at], at) for at in range(len(reports))]
    runs = [Sections(report, texts, style, each, rows) for report, each in zip(reports, own, strict=True)]
    longest, shown = max(runs, key=lambda one: one.length), runs[:_RUNS]
    more = Message(_SAY["screen_runs"], (("count", Kind.COUNT, len(runs) - _RUNS),))
    left = [longest.formatter.message(more)] if runs[_RUNS:] else []
    detail = texts.messages[_SAY["screen_detail"]].format(name=longest.called(style.width // 2))
    # Of few, a blank line sets each apart from the one before.
    apart = [""] if len(shown) <= _FEW else []
    height = HEIGHT - len(where) - len(left) - len(apart) * len(shown)
    # What runs share has a third of the screen, and what is not needed for a few of them.
    below = max(height // 3, height - _RUN * len(shown))
    parts = [_part(one, (height - below) // len(shown)) for one in shown]
    others = [one for one in runs if one is not longest]
    room = height - sum(map(len, parts)) - 1
    sections = fitted([*longest.details(), *longest.trust(*others)], room, gap=0)
    lines = [line for each in parts for line in (*each, *apart)]
    title = style.paint("".join(style.clip(detail, 1)), "bold")
    return "\n".join([*lines, *left, title, *(line for each in sections for line in each), *where]) + "\n"


def _page(made: Sections, height: int) -> list[str]:
    """One report in so many lines at most."""
    lines = made.top(5, 5)
    for each in fitted(list(made.sections()), height - len(lines), gap=1):
        lines += ["", *each]
    return lines


def _part(made: Sections, height: int) -> list[str]:
    """One run among others: its name, its verdict, and what to do."""
    todo = list(made.few())
    lines = [made.title, *made.top(max(height - 1 - len(todo), 1) if height < _RUN else 3, 0)]
    return [*lines, *(line for each in fitted(todo, height - len(lines), gap=0) for line in each)]
