"""Tables and findings of a report in its language, as notebooks show them: headings, words for keys, and figures."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from traceanalyze.errors import UsageError
from traceanalyze.model.patterns import by_identity, dataclass
from traceanalyze.model.table import LABELLED, NUMBERS, SIZES, TIMES, Column, Kind, NotMeasured, Table, Value, no_such
from traceanalyze.model.units import MEMORY_SIZES, column_unit
from traceanalyze.report.finding import Finding, as_table
from traceanalyze.report.format import Formatter, absent_reasons
from traceanalyze.report.formats import function_of

if TYPE_CHECKING:
    import pandas as pd

LEADING = {
    "run_causes": ("finding", "gain_ns"),
    "whatif": ("subject", "gain_ns"),
    "gate_metrics": ("metric", "relative_change"),
    "step_difference": ("part", "diff_ns"),
    "ranks": ("rank", "step_ns"),
    "split": ("part", "mean_ns"),
    "memory_at_peak": ("source_line", "block_bytes"),
}
"""Tables that say most, and what figures draw of each: names and amounts. The first that has rows is meant."""
SHOWN = 20
"""Rows of a table in a notebook."""
_SPOKEN = frozenset({Kind.TERM, Kind.TEXT, Kind.LIST, Kind.BREAKDOWN, Kind.QUANTITY, *LABELLED})
_FOR_PROGRAMS = ("id", "severity", "confidence", "command", "page", "trace")
"""Columns of findings that say nothing to people, or what others say in words."""


@dataclass(frozen=True, eq=False, repr=False)
class ShownColumn(Column):
    """A column of a table that speaks."""

    formatter: Formatter = field(kw_only=True)

    @property
    def why_not(self) -> str:
        """Why it, or some of its cells, were not measured; empty where all were."""
        rows = [[self.values]] if isinstance(self.values, NotMeasured) else [[each] for each in self.cells(0)]
        return " ".join(self.formatter.texts.reasons[each] for each in absent_reasons(map(tuple, rows)))


@dataclass(frozen=True, eq=False, repr=False)
class ShownTable(Table):
    """A table that speaks."""

    formatter: Formatter = field(kw_only=True)

    @classmethod
    def of(cls, table: Table, formatter: Formatter) -> Self:
        """The table with what writes its values, its title in words."""
        made = object.__new__(cls)
        title = formatter.title(table) if table.absent is None else formatter.topic(table)
        made.__dict__.update(table.__dict__, formatter=formatter, title=title)
        return made

    def __getitem__(self, key: str) -> ShownColumn:
        """A column by its key."""
        made = object.__new__(ShownColumn)
        made.__dict__.update(super().__getitem__(key).__dict__, formatter=self.formatter)
        return made

    @cached_property
    def why_not(self) -> str:
        """Why nothing was measured; empty where something was."""
        return "" if self.absent is None else self.formatter.texts.reasons[self.absent.reason]

    def to_pandas(self, *, words: bool = True) -> "pd.DataFrame":
        """The table as a data frame: durations in ns, shares as fractions, what was not measured as NA.

        Without `words`, headings and labels as in other outputs, it has keys as in JSON, whole names and every column.
        """
        if not words:
            return super().to_pandas()
        import pandas as pd

        found: dict[str, pd.Series] = {}
        raw = super().to_pandas()
        for column in self.columns:
            if not column.machine:
                spoken = pd.Series(self._texts(column), dtype="str") if column.kind in _SPOKEN else raw[column.key]
                found[self._heading(column, found)] = spoken
        return pd.DataFrame(found)

    def _heading(self, column: Column, taken: Iterable[str]) -> str:
        unit = " (ns)" if column.kind in TIMES else " (B)" if column.kind in SIZES else ""
        heading = f"{self.formatter.texts.heading(self, column)}{unit}"
        # Two columns may be told apart by what stands above them only.
        return f"{heading}, {column.key.replace('_', ' ')}" if heading in taken else heading

    def _texts(self, column: Column) -> list[str | None]:
        cells = self.column(column.key)
        return [None if each is None or isinstance(each, NotMeasured) else self.said(column, each) for each in cells]

    def said(self, column: Column, value: Value) -> str:
        """A value in words."""
        if column.kind in LABELLED or column.kind == Kind.TEXT:
            return self.formatter.cell(column, value, None)
        return self.formatter.value(column.kind, value)

    def figure(self) -> Any:
        """Its curves, or its first rows as bars, as a figure of matplotlib, which has to be installed."""
        return figure(self)

    def _repr_html_(self) -> str:
        return str(function_of("html.notebook:table")(self, self.formatter))


@by_identity
class Tables(dict[str, ShownTable]):
    """Tables by their keys."""

    def __missing__(self, key: str) -> ShownTable:
        """Say what was probably meant."""
        raise KeyError(no_such("table", key, list(self)))

    def __repr__(self) -> str:
        """The keys."""
        return f"<{len(self)} tables: {', '.join(self)}>"[:2000]

    def _repr_html_(self) -> str:
        titles = ((key, each.formatter.title(each)) for key, each in self.items())
        return str(function_of("html.notebook:listing")(titles))


class Findings(tuple[Finding, ...]):  # noqa: SLOT001 - keeps what writes its values
    """Findings in words, what is worth most first."""

    formatter: Formatter

    @classmethod
    def of(cls, found: Iterable[Finding], formatter: Formatter) -> Self:
        """Findings with what writes their values."""
        made = cls(found)
        made.formatter = formatter
        return made

    def to_pandas(self, *, words: bool = True) -> "pd.DataFrame":
        """A row a finding; without `words` as files of tables have it."""
        table = as_table(self).drop(*(_FOR_PROGRAMS if words else ()))
        return ShownTable.of(table, self.formatter).to_pandas(words=words)

    def __repr__(self) -> str:
        """Their titles."""
        return f"<{len(self)} findings: {'; '.join(one.title for one in self)}>"[:2000]

    def _repr_html_(self) -> str:
        return "".join(one._repr_html_() for one in self[:SHOWN])


def shared(found: Iterable[Finding]) -> Iterator[Finding]:
    """Findings of single ranks, what several have once: the first of them, with the ranks of all.

    By its rule and title, and where one rank has several of these by its place, too.
    """
    known = [((one.rule, one.title), (one.scope.ranks, one.link.trace), one) for one in found]
    several = {kind for (kind, _), count in Counter(each[:2] for each in known).items() if count > 1}
    groups, before = dict[tuple[object, ...], list[Finding]](), Counter[tuple[object, ...]]()
    for kind, rank, one in known:
        place = one.scope[2:] if kind in several else ()
        # What stands twice on one rank is two things.
        before[kind, place, rank] += 1
        groups.setdefault((kind, place, before[kind, place, rank]), []).append(one)
    for same in groups.values():
        ranks = sorted({rank for one in same for rank in one.scope.ranks})
        yield replace(same[0], scope=same[0].scope._replace(ranks=tuple(ranks)))


_BARS, _LETTERS = 15, 40
_WIDE, _HIGH = 8, 0.35
_CURVES = 4.5
"""Inches that curves are high."""


def figure(table: ShownTable | None) -> Any:
    """What a table says most with; a UsageError without matplotlib, or where there is nothing to draw."""
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
