"""What every renderer is given: a report of typed tables and keyed messages, free of layout and of language.

Columns say what their values are (`Kind`), so that all renderers format units alike; texts are keys into `locales`.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from traceanalyze.analyses.results import NotMeasured, RankAnalysis
from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from traceanalyze.analyses.excerpt.window import Place
    from traceanalyze.comparison.results import Comparison
    from traceanalyze.model.vocabulary import Level, Mode
    from traceanalyze.rules import finding as rule_findings

Breakdown = tuple[tuple[str, int], ...]
"""Term keys and the nanoseconds of each."""

Value = int | float | str | bool | Breakdown | NotMeasured | None
"""None means that the row has no such value; NotMeasured that the profile cannot give it."""


Row = tuple[Value, ...]


class Word(str):
    """A word of the tool where names of the trace stand: key of a term, translated by `Texts.terms`."""

    __slots__ = ()


class Kind(StrEnum):
    """What a value is, hence how it is formatted."""

    DURATION = "duration_ns"
    """Integer nanoseconds."""
    CHANGE = "change_ns"
    """Difference of durations, shown with its sign."""
    SHARE = "share"
    """Fraction, 1.0 is everything; shown in percent."""
    RATIO = "ratio"
    """A factor, 1.0 is equal."""
    COUNT = "count"
    NUMBER = "number"
    """Any other plain number."""
    BYTES = "bytes"
    MEMORY = "memory_bytes"
    """Bytes of device memory, in binary units."""
    MEMORY_CHANGE = "change_memory_bytes"
    """Difference of them, shown with its sign."""
    BYTES_CHANGE = "change_bytes"
    """Difference of sizes, shown with its sign."""
    TEXT = "text"
    NAME = "name"
    """Text of any length (kernels, paths), may be shortened in the middle."""
    TERM = "term"
    """Key of a word of the tool, translated by `Texts.terms`."""
    FLAG = "flag"
    BREAKDOWN = "breakdown"
    """Terms and their times, largest first."""


_DTYPES = {
    Kind.DURATION: "Int64",
    Kind.CHANGE: "Int64",
    Kind.COUNT: "Int64",
    Kind.BYTES: "Int64",
    Kind.MEMORY: "Int64",
    Kind.MEMORY_CHANGE: "Int64",
    Kind.BYTES_CHANGE: "Int64",
    Kind.SHARE: "Float64",
    Kind.RATIO: "Float64",
    Kind.NUMBER: "Float64",
}
TIMES = frozenset({Kind.DURATION, Kind.CHANGE})
"""What is counted in nanoseconds."""
SIZES = frozenset({Kind.BYTES, Kind.BYTES_CHANGE, Kind.MEMORY, Kind.MEMORY_CHANGE})


@frozen
class Column:
    """One column of a table."""

    key: str
    """Name in JSON and pandas; its heading is `Texts.columns[key]`."""
    kind: Kind
    scale: str = "time"
    """Durations of one scale share their unit within a table."""
    minor: bool = False
    """Left out where there is little room, and from a record when it is zero."""
    machine: bool = False
    """For programs only."""
    side: str | None = None
    """Of a comparison: base or candidate, whose column it is."""
    par: float | None = None
    """Of a comparison: the value that says equal; above it is worse, below it better."""
    alias: str = ""
    """What msprof-analyze calls it."""


class Layout(StrEnum):
    """How a table reads best."""

    ROWS = "rows"
    RECORD = "record"
    """Few rows of many columns: a list of names and values."""


@frozen
class Message:
    """A sentence by key, with the values it mentions."""

    key: str
    values: tuple[tuple[str, Kind, Value], ...] = ()


@frozen
class Table:
    """Rows under typed columns, or the reason why there are none."""

    key: str
    """Its title is `Texts.tables[key]`."""
    columns: tuple[Column, ...]
    rows: tuple[Row, ...] | NotMeasured
    total: Row | None = None
    """What the rows sum to."""
    bar: str | None = None
    """Share column that a picture may show as bars."""
    skip_zero: str | None = None
    """Rows whose value in this column is 0 say nothing in a short view."""
    ranked: bool = False
    """Most important first, or a curve that is drawn rather than read: the console stops early."""
    worst: str | None = None
    """Column by whose largest values a short view picks rows when there are many."""
    detail: bool = False
    """Left out of a short view."""
    level: str | None = None
    """Column of how deep a row lies under those before it; the first column is indented by it."""
    plot: tuple[str, ...] = ()
    """Columns that are drawn as curves over the first one."""
    stack: tuple[str, ...] = ()
    """Columns that are drawn over the first one as bands, one on top of the other."""
    layout: Layout = Layout.ROWS
    told: bool = False
    """Its notes tell all that its rows hold: pages of text show them only."""
    notes: tuple[Message, ...] = ()
    title_values: tuple[tuple[str, Kind, Value], ...] = ()

    def column(self, key: str) -> tuple[Value, ...]:
        """Values of one column, top to bottom; empty when nothing was measured."""
        index = [column.key for column in self.columns].index(key)
        return () if isinstance(self.rows, NotMeasured) else tuple(row[index] for row in self.rows)

    def to_pandas(self) -> pd.DataFrame:
        """The table as a data frame: durations in ns, shares as fractions, missing values as NA."""
        import pandas as pd

        columns = {column.key: [_plain(value) for value in self.column(column.key)] for column in self.columns}
        dtypes = {column.key: _DTYPES[column.kind] for column in self.columns if column.kind in _DTYPES}
        return pd.DataFrame(columns, dtype=object).astype(dtypes)


def _plain(value: Value) -> object:
    """A value as data frames hold it."""
    return None if isinstance(value, NotMeasured) else value


@frozen
class Finding:
    """A data-quality check that had something to say."""

    id: str
    level: Level
    message: Message


@frozen
class CompareReport:
    """What makes two profiles differ."""

    version: str
    paths: tuple[str, str]
    """Of base and candidate."""
    resolution_ns: int
    """Of the coarser clock."""
    verdict: tuple[Message, ...]
    sides: tuple[tuple[Message, ...], tuple[Message, ...]]
    """What was compared, piece by piece: file, rank, device, step time, steps."""
    listing: tuple[Table, ...]
    """All tables in reading order."""
    caveats: tuple[Message, ...]
    """What makes parts less comparable."""
    quality: tuple[Message, ...]
    """How far the numbers can be trusted: linked time, clocks, levels."""
    notes: tuple[Message, ...] = ()
    """Remarks on the input."""
    advice: tuple[Message, ...] = ()
    """Where to look next, for each part that takes longer."""
    comparison: Comparison | None = field(default=None, repr=False)
    """The results behind the tables, for programs; renderers do not use them."""

    @property
    def tables(self) -> Mapping[str, Table]:
        """Tables by name."""
        return {table.key: table for table in self.listing}


@frozen
class FindingExcerpt:
    """What the trace shows where a finding is worst."""

    rule: str
    """Id of its rule, as in tables of findings."""
    finding: str
    """Term, as in tables of findings."""
    told: tuple[Message, ...]
    """Where it is, and what one sees."""
    place: Place


@frozen
class RankReport:
    """What one rank's recording says."""

    rank: int | None
    path: str
    mode: Mode
    resolution_ns: int
    headline: Message
    """What was analysed: file, device, number of windows."""
    verdict: tuple[Message, ...]
    tables: tuple[Table, ...]
    checks: tuple[Finding, ...]
    hints: tuple[str, ...]
    """Keys of reasons and checks, of an Ascend profile with `.ascend`; what `Texts.hints` knows of them is advice."""
    findings: tuple[rule_findings.Finding, ...] = field(default=(), repr=False)
    """What the rules found, behind the table of that name, for programs; renderers do not use them."""
    excerpts: tuple[FindingExcerpt, ...] = field(default=(), repr=False)
    """What the trace shows around some of the findings, most saving first."""


@frozen
class Report:
    """Everything the tool says about one run."""

    name: str
    version: str
    verdict: tuple[Message, ...]
    notes: tuple[Message, ...]
    summary: tuple[Table, ...]
    """Tables with a row a rank."""
    ranks: tuple[RankReport, ...]
    focus: tuple[int, ...]
    """Indices into `ranks` of those shown in detail."""
    analyses: tuple[RankAnalysis, ...] = field(default=(), repr=False)
    """The arrays behind `ranks`, for programs; renderers do not use them."""
    run_findings: tuple[rule_findings.Finding, ...] = field(default=(), repr=False)
    """What the rules about ranks found in the comparison of the ranks, behind the table of that name; for programs."""

    @property
    def tables(self) -> Mapping[str, Table]:
        """Tables by name: those over all ranks, and those of the rank shown in detail."""
        detail = self.ranks[self.focus[0]].tables if self.focus else ()
        return {table.key: table for table in (*detail, *self.summary)}
