"""Curves of a table drawn in characters: what is in use filled, what is reserved above it shaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.results import NotMeasured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.report.console.style import Style
    from traceanalyze.report.format import Formatter
    from traceanalyze.report.model import Table, Value

HEIGHT = 8
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_MOST = 120


def curve_lines(table: Table, formatter: Formatter, style: Style) -> list[str]:
    """The two columns `Table.plot` names over the table's first column, as long as the room allows."""
    if isinstance(table.rows, NotMeasured) or len(table.rows) < 2:
        return []
    keys = [column.key for column in table.columns]
    outer, inner = (keys.index(key) for key in table.plot)
    top = max(_number(row[outer]) for row in table.rows)
    kind = table.columns[outer].kind
    labels = (formatter.value(kind, top), formatter.value(kind, 0))
    margin = max(map(len, labels))
    width = min(style.width - margin - 2, _MOST)
    places = _buckets([_number(row[0]) for row in table.rows], width)
    above = _highest([_number(row[outer]) for row in table.rows], places, width)
    below = _highest([_number(row[inner]) for row in table.rows], places, width)
    wall = "┤" if style.unicode else "|"
    lines = []
    for level in range(HEIGHT - 1, -1, -1):
        label = labels[0] if level == HEIGHT - 1 else labels[1] if level == 0 else ""
        cells = "".join(_cell(below[x], above[x], level, top, style) for x in range(width))
        lines.append(f"{label:>{margin}} {wall}{cells.rstrip()}")
    return lines


def _cell(inside: int, outside: int, level: int, top: int, style: Style) -> str:
    """One character: how far the filled part reaches into it, else whether the shaded one does."""
    low = level / HEIGHT
    filled = (inside / top - low) * HEIGHT if top else 0.0
    if not style.unicode:
        return "#" if filled >= 0.5 else "." if top and outside / top > low else " "
    if filled >= 1 / 8:
        return _EIGHTHS[min(int(filled * 8), 8)]
    return "░" if top and outside / top > low else " "


def _buckets(position: Sequence[int], width: int) -> list[int]:
    """Column of each row, by its place along the first column."""
    first, last = position[0], max(position[-1], position[0] + 1)
    return [min((at - first) * width // (last - first), width - 1) for at in position]


def _highest(values: Sequence[int], places: Sequence[int], width: int) -> list[int]:
    """Highest value of each column; a column without a row keeps the last value before it."""
    highest = [-1] * width
    last_of: dict[int, int] = {}
    for value, place in zip(values, places, strict=True):
        highest[place] = max(highest[place], value)
        last_of[place] = value
    current = values[0]
    for place in range(width):
        if highest[place] < 0:
            highest[place] = current
        current = last_of.get(place, current)
    return highest


def _number(value: Value) -> int:
    return value if isinstance(value, int) else 0
