"""The gate for a terminal, in the manner of benchstat: one line a metric, worst first, then why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.gate.results import Overall, Verdict
from traceanalyze.report.console.style import printable
from traceanalyze.report.console.wrap import display_width, padded
from traceanalyze.report.gate import words
from traceanalyze.report.gate.why import sections

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceanalyze.gate.results import GateResult
    from traceanalyze.locales import Texts
    from traceanalyze.report.console.style import Style

_COLOURS = {Overall.FAIL: "red", Overall.INCONCLUSIVE: "yellow", Overall.PASS: "green"}
_GAP = 2
_LEAST_NAME = 12


def render(result: GateResult, texts: Texts, style: Style) -> str:
    """The whole text."""
    return "\n".join(_lines(result, texts, style)) + "\n"


def _lines(result: GateResult, texts: Texts, style: Style) -> Iterator[str]:
    say = texts.messages
    yield style.paint(style.wrap(words.headline(result, texts)), _COLOURS[result.overall])
    yield ""
    sides = [side for side in (result.baseline, result.candidate) if side.runs]
    labels = [words.label(side, texts) for side in sides]
    width = max(map(display_width, labels))
    yield from (f"{padded(label, width)}  {words.side(side, texts)}" for label, side in zip(labels, sides, strict=True))
    yield ""
    judged = [each for each in result.metrics if each.verdict != Verdict.NOT_MEASURED]
    heads = tuple(say[f"gate_column_{name}"] for name in words.COLUMNS)
    yield from table(heads, [words.line(each, texts).cells() for each in judged], style, text_columns={0, 6})
    if any(each.statistics is not None for each in judged):
        yield style.wrap(say["gate_legend"])
    unknown = [each.name for each in result.metrics if each.verdict == Verdict.NOT_MEASURED]
    if unknown:
        yield style.wrap(say["gate_not_measured"].format(names=say["list_mark"].join(unknown)))
    for section in sections(result, texts):
        yield ""
        yield style.paint(style.wrap(section.title), "bold")
        yield from table(section.columns, section.rows, style, text_columns={0}, sums=section.sums)
    for key, names in (
        ("gate_counts", words.changed_counts(result, texts)),
        ("gate_findings", words.changed_findings(result)),
    ):
        if names:
            yield ""
            yield style.wrap(say[key].format(names=say["list_mark"].join(names)))
    for key, lines in (
        ("gate_environment", list(words.environment(result, texts))),
        ("gate_notes", list(words.notes(result, texts))),
    ):
        if lines:
            yield ""
            yield style.paint(say[key], "bold")
            yield from (style.wrap(printable(line), indent="  ", first="- ") for line in lines)


def table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], style: Style, *, text_columns: set[int], sums: int = 0
) -> Iterator[str]:
    """Aligned columns; names in the first are cut where the width does not suffice."""
    cells = [[printable(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(display_width(row[at]) for row in cells) for at in range(len(heads))]
    room = style.width - sum(widths[1:]) - _GAP * (len(widths) - 1)
    widths[0] = min(widths[0], max(room, _LEAST_NAME))
    rule = ("─" if style.unicode else "-") * min(sum(widths) + _GAP * (len(widths) - 1), style.width)
    names = _cut([row[0] for row in cells], widths[0], style)
    for index, row in enumerate(cells):
        if index == 1 or (sums and index == len(cells) - sums):
            yield rule
        shown = [names[index], *row[1:]]
        yield (
            (" " * _GAP)
            .join(
                _padded(cell, width, left=at in text_columns)
                for at, (cell, width) in enumerate(zip(shown, widths, strict=True))
            )
            .rstrip()
        )


def _cut(names: Sequence[str], width: int, style: Style) -> list[str]:
    """Names cut in the middle, or, where that makes two of them the same, at their beginning."""
    short = [style.shorten(name, width) for name in names]
    if len(set(short)) == len(set(names)):
        return short
    mark = "…" if style.unicode else "..."
    ends = [name if display_width(name) <= width else mark + name[len(mark) - width :] for name in names]
    return ends if max(map(display_width, ends)) <= width else short


def _padded(cell: str, width: int, *, left: bool) -> str:
    space = " " * (width - display_width(cell))
    return cell + space if left else space + cell
