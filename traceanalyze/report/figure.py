"""The main view of a report as a figure of matplotlib, which is imported when one is asked for."""

from typing import Any

from traceanalyze.errors import UsageError
from traceanalyze.model.table import SIZES, TIMES
from traceanalyze.model.units import MEMORY_SIZES, column_unit
from traceanalyze.report.shown import ShownTable

_BARS, _LETTERS = 15, 40
_WIDE, _HIGH = 8, 0.35


def figure(table: ShownTable | None, label: str, amount: str) -> Any:
    """The first rows of a table as bars: what each is called, and its amount.

    Raises:
        UsageError: matplotlib is not installed, or there is nothing to draw.
    """
    if table is None:
        raise UsageError("there is nothing to draw: no table of this report has rows")
    try:
        # With pyplot notebooks know how to show it; it would also keep every figure, so that it is closed at once.
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise UsageError("figures need matplotlib (pip install matplotlib)") from error
    names, values = table[label], table[amount]
    known = [(row, value) for row, value in enumerate(values.cells(len(table))) if isinstance(value, int | float)]
    name, size = "", 1
    if values.kind in TIMES:
        name, size, _ = column_unit(max((abs(int(value)) for _, value in known), default=0))
    elif values.kind in SIZES:
        name, size = MEMORY_SIZES[1]
    shown = known[:_BARS][::-1]
    made, axes = plt.subplots(figsize=(_WIDE, _HIGH * len(shown) + 1.5), layout="constrained")
    plt.close(made)
    texts = [table.said(names, names.cells(len(table))[row])[:_LETTERS] for row, _ in shown]
    # As text, and not as mathematics between dollar signs.
    axes.barh(range(len(shown)), [value / size for _, value in shown])
    axes.set_yticks(range(len(shown)), texts, parse_math=False)
    axes.set_xlabel(" ".join(filter(None, (table.formatter.texts.heading(table, values), name and f"({name})"))))
    axes.set_title(table.formatter.title(table), parse_math=False)
    return made
