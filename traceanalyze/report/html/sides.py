"""What a page of two sides has: the way from one step to the other, bar by bar, then causes, then all tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from traceanalyze.model.table import LABELLED, Kind, Message, Table, Value
from traceanalyze.report.format import Formatter
from traceanalyze.report.html.curve import ticks
from traceanalyze.report.html.frame import element, safe, sentence
from traceanalyze.report.model import Report
from traceanalyze.report.view import BESIDE, OVERVIEW, halves, with_columns

_WIDE, _HIGH = 1_000_000, 100
_TOP, _BOTTOM = 22, 78
"""Of a bar within its line."""
_FROM_ZERO = 0.25
"""Changes this large beside the steps can be seen on an axis that starts at zero."""
_ROOM = 0.08
"""Share of the changes that is left free at either end of an axis that does not."""
_LINES = 5


class _Axis(NamedTuple):
    """Times at the ends of the picture."""

    start: int
    end: int
    per_ns: int

    def at(self, time: int) -> int:
        """How far from the left end, in units of the picture."""
        return _WIDE * (time - self.start) // (self.end - self.start)


def waterfall(parts: Table, sides: Table, formatter: Formatter) -> str:
    """The way from the base's step to the candidate's (tables `step_difference`, `compare_sides`), if they differ."""
    steps = [max(cast("int", count), 1) for count in sides.column("steps_compared")]
    total: Mapping[str, Any] = parts.totals or {}
    moves = list(_moves(parts, total, steps)) if total else []
    if not moves:
        return ""
    places = [total["base_sum_ns"] * steps[1]]
    for _, change in moves:
        places.append(places[-1] + change)
    axis = _axis(places, steps[0] * steps[1])
    words = formatter.texts.messages
    first, last = (
        _line(words[side], _whole(axis, place, side), formatter.value(Kind.DURATION, total[f"{side}_time_ns"]), "whole")
        for side, place in (("base", places[0]), ("candidate", places[-1]))
    )
    body = [_move(part, change, place, axis, formatter) for (part, change), place in zip(moves, places, strict=False)]
    sentences = [Message("waterfall")]
    if axis.start:
        sentences.append(Message("waterfall_cut", (("start", Kind.DURATION, axis.start // axis.per_ns),)))
    caption = element("figcaption", sentence(formatter.sentences(sentences)))
    table = element("table", f"<tbody>{first}{''.join(body)}{last}{_scale(axis)}</tbody>")
    return f'<figure class="waterfall">{caption}{table}</figure>'


def _moves(parts: Table, total: Mapping[str, Any], steps: Sequence[int]) -> Iterator[tuple[Any, int]]:
    """Parts that differ, largest change (ns per step, times both numbers of steps) first; together they are the whole.

    None stands for what one side did not measure.
    """

    def change(base: int, candidate: int) -> int:
        return candidate * steps[0] - base * steps[1]

    sums = ((part, part.base_sum_ns, part.candidate_sum_ns) for part in parts.records())
    found = [(part, change(*pair)) for part, *pair in sums if all(isinstance(each, int) for each in pair)]
    rest = change(total["base_sum_ns"], total["candidate_sum_ns"]) - sum(moved for _, moved in found)
    found.sort(key=lambda move: -abs(move[1]))
    yield from (move for move in (*found, (None, rest)) if move[1])


def _axis(places: Sequence[int], per_ns: int) -> _Axis:
    low, high = min(places), max(places)
    if high - low >= _FROM_ZERO * high:
        return _Axis(0, high, per_ns)
    room = max(round((high - low) * _ROOM), 1)
    return _Axis(max(low - 2 * room, 0), high + room, per_ns)


def _move(part: Any, change: int, place: int, axis: _Axis, formatter: Formatter) -> str:
    """The bar, between the levels before and after it."""
    css = "worse" if change > 0 else "better"
    before, after = axis.at(place), axis.at(place + change)
    bar = f'<path class="level" d="M{before},0V{_TOP}M{after},{_BOTTOM}V{_HIGH}"/>' + _bar(
        css, min(before, after), abs(after - before)
    )
    words = formatter.texts.messages
    name = title = formatter.value(Kind.TERM, part.part) if part else words["not_measured"].lower()
    if part:
        base, candidate = (formatter.value(Kind.DURATION, time) for time in (part.base_time_ns, part.candidate_time_ns))
        title = f"{name}: {words['base']} {base}, {words['candidate']} {candidate}"
    shown = formatter.value(Kind.CHANGE, round(change / axis.per_ns))
    return _line(name, _picture(f"<title>{safe(title)}</title>{bar}"), shown, css)


def _whole(axis: _Axis, place: int, side: str) -> str:
    """A step: a bar from the left, torn where it does not begin at zero."""
    end = axis.at(place)
    level = f"{end},{_BOTTOM}V{_HIGH}" if side == "base" else f"{end},0V{_TOP}"
    inside = f'<path class="level" d="M{level}"/>{_bar("step", 0, end)}'
    if axis.start:
        tears = "".join(f"M{left},{_BOTTOM + 10}L{left + 8_000},{_TOP - 10}" for left in (12_000, 22_000))
        inside += f'<path class="torn" d="{tears}"/>'
    return _picture(inside)


def _bar(css: str, left: int, width: int) -> str:
    return f'<rect class="{css}" x="{left}" y="{_TOP}" width="{width}" height="{_BOTTOM - _TOP}"/>'


def _picture(inside: str) -> str:
    return element("svg", inside, viewBox=f"0 0 {_WIDE} {_HIGH}", preserveAspectRatio="none", aria_hidden="true")


def _line(name: str, picture: str, value: str, css: str) -> str:
    label, shown = element("th", safe(name), scope="row"), element("td", safe(value), class_=f"n {css}")
    return f'<tr class="{css}">{label}<td class="picture">{picture}</td>{shown}</tr>'


def _scale(axis: _Axis) -> str:
    """Round times below."""
    first, last = -(-axis.start // axis.per_ns), axis.end // axis.per_ns
    labels = [
        f'<span style="left:{axis.at(time * axis.per_ns) / _WIDE:.2%}">{safe(label)}</span>'
        for time, label in ticks(last - first, _LINES, first)
    ]
    return f'<tr class="scale" aria-hidden="true"><td></td><td class="picture">{"".join(labels)}</td><td></td></tr>'


MAX_CAUSES = 10
"""Causes shown at once in each direction."""
MAX_TEXT = 300
"""Letters of a name: lists of kernels may be far longer, and nobody reads them."""
_LAST = ("compare_sides", "compare_options")


class Shown(NamedTuple):
    """A table as a page has it."""

    table: Table
    chart: str = ""
    whole: float | None = None
    """What a whole bar stands for; None: by default."""


def headline(report: Report, formatter: Formatter) -> Iterator[Shown | str]:
    """The way from one step to the other, the tables that say most, and the largest causes of each direction."""
    tables = report.tables
    if "causes" not in tables:
        yield from (Shown(table) for table in report.summary if len(table) and not table.detail)
        return
    parts = tables["step_difference"]
    chart = waterfall(parts, tables["compare_sides"], formatter)
    if chart or "overall_metrics" not in tables:
        yield Shown(replace(parts, detail=False), chart)
    yield from (Shown(replace(tables[key], detail=False)) for key in OVERVIEW if key in tables and len(tables[key]))
    causes = tables["causes"]
    # One scale for the bars of both directions.
    whole = max((abs(cast("int", diff)) for diff in causes.column("diff_ns")), default=None)
    for half in halves(causes):
        shown = min(MAX_CAUSES, half.weighty)
        yield Shown(_largest(half.table, shown), whole=whole) if shown else formatter.texts.messages[f"no_{half.key}"]
    yield from (Shown(tables[key]) for key in BESIDE if key in tables and len(tables[key]))
    if len(causes):
        yield Shown(replace(_differences_first(causes), detail=True))


def details(report: Report) -> Iterator[Shown]:
    """The other tables that have rows, to be opened."""
    first = {"step_difference", "causes", *OVERVIEW, *BESIDE, *_LAST} if "causes" in report.tables else set()
    for table in report.summary:
        if table.key not in first and len(table) and (first or table.detail):
            yield Shown(replace(_cut(_differences_first(table)), detail=True))


def sections(report: Report) -> list[Table]:
    """Tables of which a page says why they are missing."""
    return [table for table in report.summary if table.key not in {"causes", *_LAST}]


def inputs(report: Report) -> Iterator[Shown]:
    """What was compared, and how."""
    yield from (Shown(replace(table, detail=True)) for table in report.summary if table.key in _LAST and len(table))


def _largest(causes: Table, count: int) -> Table:
    """The first causes, by the columns that tell most."""
    kept = [index for index, column in enumerate(causes.columns) if not (column.minor or column.machine)]
    return with_columns(replace(causes.take(range(min(count, len(causes)))), bar="diff_ns"), kept)


def _differences_first(table: Table) -> Table:
    """What differs before the many columns of both sides, which would push it out of sight."""
    columns = table.columns
    first = next((index for index, column in enumerate(columns) if column.side is not None), len(columns))

    def order(index: int) -> int:
        column = columns[index]
        differs = column.par is not None or (column.kind == Kind.SHARE and column.side is None)
        return 0 if index < first else 1 if differs else 2

    return with_columns(table, sorted(range(len(columns)), key=order))


def _cut(table: Table) -> Table:
    """Without the rest of very long names, which is said; those of kernels have labels."""
    cells = [table.column(column.key) for column in table.columns]
    kept = [column.kind in LABELLED for column in table.columns]
    short = [values if keep else tuple(map(_short, values)) for values, keep in zip(cells, kept, strict=True)]
    if table.absent is not None or short == cells:
        return table
    columns = tuple(column.of(values) for column, values in zip(table.columns, short, strict=True))
    cut = Message("page_texts_cut", (("count", Kind.COUNT, MAX_TEXT),))
    return replace(table, columns=columns, notes=(*table.notes, cut))


def _short(value: Value) -> Value:
    return f"{value[:MAX_TEXT]}…" if isinstance(value, str) and len(value) > MAX_TEXT else value
