"""A table as a figure of matplotlib, which is imported when one is asked for: curves, or its first rows as bars."""

from collections.abc import Sequence
from typing import Any

from traceanalyze.errors import UsageError
from traceanalyze.model.table import NUMBERS, SIZES, TIMES, Value
from traceanalyze.model.units import MEMORY_SIZES, column_unit
from traceanalyze.report.model import LEADING
from traceanalyze.report.shown import ShownColumn, ShownTable

_BARS, _LETTERS = 15, 40
_WIDE, _HIGH = 8, 0.35
_CURVES = 4.5
"""Inches that curves are high."""


def figure(table: ShownTable | None) -> Any:
    """What a table says most with.

    Raises:
        UsageError: matplotlib is not installed, or there is nothing to draw.
    """
    if table is None:
        raise UsageError("there is nothing to draw: no table of this report has rows")
    names, values = map(table.__getitem__, LEADING.get(table.key) or _telling(table))
    try:
        # With pyplot notebooks know how to show it; it would also keep every figure, so that it is closed at once.
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise UsageError("figures need matplotlib (pip install matplotlib)") from error
    high = _CURVES if table.plot else _HIGH * min(len(table), _BARS) + 1.5
    made, axes = plt.subplots(figsize=(_WIDE, high), layout="constrained")
    plt.close(made)
    if table.plot:
        _curves(axes, table, [table[key] for key in dict.fromkeys(table.plot)])
    else:
        _bars(axes, table, names, values)
    # As text, and not as mathematics between dollar signs.
    axes.set_title(table.title, parse_math=False)
    return made


def _bars(axes: Any, table: ShownTable, names: ShownColumn, values: ShownColumn) -> None:
    shown = [at for at, value in enumerate(values.cells(len(table))) if _number(value)][:_BARS][::-1]
    cells, (heights, heading) = names.cells(len(table)), _in_unit(table, values)
    axes.barh(range(len(shown)), [heights[at] for at in shown])
    texts = [table.said(names, cells[at])[:_LETTERS] for at in shown]
    axes.set_yticks(range(len(shown)), texts, parse_math=False)
    axes.set_xlabel(heading)


def _curves(axes: Any, table: ShownTable, curves: Sequence[ShownColumn]) -> None:
    places, heading = _in_unit(table, table[table.keys[0]])
    for each in curves:
        heights, name = _in_unit(table, each)
        axes.plot(places, heights, label=name)
    axes.set_xlabel(heading)
    axes.legend()


def _telling(table: ShownTable) -> tuple[str, str]:
    """The first column of words, and the first of changes, else of times or sizes, else of other numbers."""
    columns = [table[each.key] for each in table.columns if not each.machine]
    amounts = [each for each in columns if each.kind in NUMBERS and any(map(_number, each.cells(len(table))))]
    if not amounts:
        raise UsageError("there is nothing to draw: {name} has no numbers", table.key)
    names = [each for each in columns if each.kind not in NUMBERS] or columns
    return names[0].key, min(amounts, key=lambda each: ("change" not in each.kind, each.kind not in TIMES | SIZES)).key


def _number(value: Value) -> bool:
    return isinstance(value, int | float)


def _in_unit(table: ShownTable, column: ShownColumn) -> tuple[list[float], str]:
    """Values, what was not measured as no number, and the heading with their unit."""
    cells, name, size = column.cells(len(table)), "", 1
    if column.kind in TIMES:
        name, size, _ = column_unit(
            max((abs(round(each)) for each in cells if isinstance(each, int | float)), default=0)
        )
    elif column.kind in SIZES:
        name, size = MEMORY_SIZES[1]
    heading = " ".join(filter(None, (table.formatter.texts.heading(table, column), name and f"({name})")))
    return [each / size if isinstance(each, int | float) else float("nan") for each in cells], heading
