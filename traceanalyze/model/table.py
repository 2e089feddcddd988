"""Tables: what analyses return, rules read and renderers show. A column is declared once, where it is computed.

A module declares its table, and the function that computes it fills that in:

    _COPIES = declare("copies", "Copies and fills", Column("direction", Kind.TERM), Column("count", Kind.COUNT))
    …
    return _COPIES.fill(direction=directions, count=counts) if len(counts) else _COPIES.missing("no_device_events")

Columns say what their values are (`Kind`), so that all renderers format units alike. English stands in the declaration;
other languages are catalogues, found by the keys of tables and columns.
"""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache, cached_property
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from traceanalyze.model.patterns import dataclass

if TYPE_CHECKING:
    # Commands that read no trace load these neither.
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True, slots=True)
class NotMeasured:
    """A number the profile cannot give, and why; shown as "not measured: reason", never as 0."""

    reason: str
    """Key of the reason's text, see `locales/en/sentences.py`."""


class Word(str):
    """A word of the tool where names of the trace stand: key of a term, translated by `Texts.terms`."""

    __slots__ = ()


class Between(int):
    """A duration of which only the range is known, in ns; its own value is the most likely one."""

    low: int
    high: int

    @classmethod
    def of(cls, value: int, low: int, high: int) -> Self:
        """The duration with its range."""
        made = cls(value)
        made.low, made.high = low, high
        return made


class Quantity(NamedTuple):
    """A number with a unit of its own, for columns whose cells are not alike."""

    number: float
    unit: str
    """ns, B, count, % (of a fraction), percent, points (of percent), or one to be shown as it is."""
    change: bool = False
    """A difference, shown with its sign."""
    remark: str = ""
    """Key of a term that people read in its place; programs have the number."""


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
    """Text of any length (operators, paths), may be shortened in the middle."""
    KERNEL = "kernel"
    """Name of device work: people read its label (`model.kernel_names`), programs all of it."""
    PLACE = "place"
    """Name of an operator, call, source line or of device work, which alone has a label."""
    TERM = "term"
    """Key of a word of the tool, translated by `Texts.terms`."""
    FLAG = "flag"
    QUANTITY = "quantity"
    """A number with its own unit (`Quantity`), or a word of the tool (`Word`)."""
    LIST = "list"
    """Phrases, joined as the language does."""
    BREAKDOWN = "breakdown"
    """Terms and their times, largest first."""


TIMES = frozenset({Kind.DURATION, Kind.CHANGE})
"""What is counted in nanoseconds."""
SIZES = frozenset({Kind.BYTES, Kind.BYTES_CHANGE, Kind.MEMORY, Kind.MEMORY_CHANGE})
NUMBERS = frozenset({*TIMES, *SIZES, Kind.SHARE, Kind.RATIO, Kind.COUNT, Kind.NUMBER, Kind.QUANTITY})
UNITS = {
    **dict.fromkeys(TIMES, "ns"),
    **dict.fromkeys(SIZES, "bytes"),
    Kind.SHARE: "fraction of 1",
    Kind.RATIO: "factor",
    Kind.COUNT: "count",
}
"""Of numbers as programs have them; those of other kinds have none, or one of their own."""
LABELLED = frozenset({Kind.KERNEL, Kind.PLACE})
_WORDS = frozenset({Kind.TEXT, Kind.NAME, *LABELLED, Kind.TERM})
_DTYPES = {
    **dict.fromkeys((*TIMES, *SIZES, Kind.COUNT), "Int64"),
    **dict.fromkeys((Kind.SHARE, Kind.RATIO, Kind.NUMBER, Kind.QUANTITY), "Float64"),
}

Breakdown: TypeAlias = tuple[tuple[str, int], ...]
"""Term keys and the nanoseconds of each."""
Value: TypeAlias = "int | float | str | bool | Quantity | Breakdown | tuple[Message, ...] | NotMeasured | None"
"""None means that the row has no such value; NotMeasured that the profile cannot give it."""
Row: TypeAlias = tuple[Value, ...]
Values: TypeAlias = "NDArray[Any] | Sequence[Any] | NotMeasured"
"""Of one column, top to bottom: an array, or a sequence where cells may be None or `NotMeasured`; one `NotMeasured` for
a column that the profile cannot give at all."""


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table, with its values."""

    key: str
    """Name in JSON and pandas."""
    kind: Kind
    meaning: str = ""
    """What it holds: one short line of English."""
    heading: str = ""
    """English, without its unit; what the key says where it is left out."""
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
    cut_start: bool = False
    """A name that is too long loses its beginning: the end tells more."""
    alias: str = ""
    """What msprof-analyze calls it."""
    backward: frozenset[str] = frozenset()
    """Names of device work that the backward pass alone launches."""
    values: Values = ()

    def of(self, values: Values) -> Column:
        """The same column with these values; for columns that several tables share."""
        # As `replace` does it, which takes ten times as long: hundreds of columns are filled for each trace.
        made = object.__new__(Column)
        made.__dict__.update(self.__dict__, values=values)
        made.__dict__.pop("labels", None)
        return made

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """What people read of names of device work: different for all that are different in the column."""
        values = () if isinstance(self.values, NotMeasured) else self.values
        names = (name for name in values if isinstance(name, str) and not isinstance(name, Word))
        return labels_of(self.kind, names, self.backward)

    def __repr__(self) -> str:
        """Short, whatever the values are."""
        return f"<column {self.key!r}>"

    def cells(self, count: int) -> list[Value]:
        """Values as plain Python, for a table of so many rows."""
        if isinstance(self.values, NotMeasured):
            return [self.values] * count
        plain = getattr(self.values, "tolist", None)
        return list(self.values) if plain is None else plain()


class Layout(StrEnum):
    """How a table reads best."""

    ROWS = "rows"
    RECORD = "record"
    """Few rows of many columns: a list of names and values."""


class Sentence(str):
    """Key of a text that has its English with it; `sentences` makes them."""

    __slots__ = ("english",)
    english: str

    def __new__(cls, key: str, english: str = "") -> Sentence:
        """Its values stand in braces."""
        made = super().__new__(cls, key)
        made.english = english
        return made


def sentences(**english: str) -> dict[str, Sentence]:
    """What a module says, by key: declared where it is said, and found there for the catalogues of other languages."""
    return {key: Sentence(key, text) for key, text in english.items()}


class Message(NamedTuple):
    """A sentence by key, with the values it mentions."""

    key: str
    values: tuple[tuple[str, Kind, Value], ...] = ()


@dataclass(frozen=True, eq=False)
class Table:
    """Typed columns of equal length, or the reason why there are none."""

    key: str
    columns: tuple[Column, ...]
    absent: NotMeasured | None = None
    """Why there are no rows: nothing was measured."""
    title: str = ""
    """English; `title_values` fill its placeholders."""
    title_one: str = ""
    """Its title where only one step was analysed, which needs no mean."""
    totals: Mapping[str, Value] | None = None
    """What the rows sum to, by column; columns left out have none."""
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
    telling: str | None = None
    """Column for programs by whose largest values a screen picks rows, which keep their order."""
    level: str | None = None
    """Column of how deep a row lies under those before it; the first column is indented by it."""
    plot: tuple[str, ...] = ()
    """Columns that are drawn as curves over the first one."""
    stack: tuple[str, ...] = ()
    """Columns that are drawn over the first one as bands, one on top of the other."""
    faint: tuple[str, str] = ("", "")
    """A column, and its value in rows that tell of nothing but chance: these are grey."""
    layout: Layout = Layout.ROWS
    in_words: bool = False
    """Its notes say all that its rows hold: pages of text show them only."""
    notes: tuple[Message, ...] = ()
    title_values: tuple[tuple[str, Kind, Value], ...] = ()

    def fill(self, **values: Values | None) -> Table:
        """The declared table with the values of its columns, by their keys; without those whose values are None."""
        if set(values) != set(self.keys):
            raise KeyError(f"{self.key}: {sorted(set(values) ^ set(self.keys))}")
        filled = ((column, values[column.key]) for column in self.columns)
        return replace(self, columns=tuple(column.of(given) for column, given in filled if given is not None))

    def fill_records(self, records: Iterable[Mapping[str, Value]]) -> Table:
        """The declared table from rows whose cells go by the keys of the columns; for few rows of mixed cells."""
        rows = list(records)
        return self.fill(**{key: [row[key] for row in rows] for key in self.keys})

    def missing(self, reason: str, *, detail: bool = False) -> Table:
        """The declared table where nothing was measured, and why; a `detail` is not worth a word in a short view."""
        return replace(self, absent=NotMeasured(reason), detail=self.detail or detail)

    def variant(self, key: str, title: str, meanings: Mapping[str, str], **shown: Any) -> Table:
        """A declared table with the same columns, some of which mean something of their own."""
        columns = tuple(replace(each, meaning=meanings.get(each.key, each.meaning)) for each in self.columns)
        return replace(self, key=key, title=title, columns=columns, **shown)

    def drop(self, *keys: str) -> Table:
        """The table without these columns."""
        return replace(self, columns=tuple(column for column in self.columns if column.key not in keys))

    def is_faint(self, row: Row) -> bool:
        """Whether a row tells of nothing but chance."""
        key, value = self.faint
        return key in self.keys and row[self.keys.index(key)] == value

    def __len__(self) -> int:
        """Number of rows."""
        known = [len(each.values) for each in self.columns if not isinstance(each.values, NotMeasured)]
        return known[0] if known and self.absent is None else 0

    def __getitem__(self, key: str) -> Column:
        """A column by its key."""
        if key not in self.keys:
            raise KeyError(no_such("column", key, self.keys))
        return self.columns[self.keys.index(key)]

    def __repr__(self) -> str:
        """Short, whatever the rows hold."""
        state = "not measured" if self.absent is not None else f"{len(self)} rows"
        return f"<table {self.key!r}: {state}, {len(self.columns)} columns>"

    @property
    def keys(self) -> list[str]:
        """Of the columns."""
        return [column.key for column in self.columns]

    def column(self, key: str) -> tuple[Value, ...]:
        """Values of one column, top to bottom; empty when nothing was measured."""
        return () if self.absent is not None else tuple(self[key].cells(len(self)))

    def numbers(self, key: str) -> list[int]:
        """A column of whole numbers; 0 where a row has none."""
        return [value if isinstance(value, int) else 0 for value in self.column(key)]

    def array(self, key: str) -> NDArray[Any]:
        """A column of numbers that all rows have."""
        import numpy as np

        return np.asarray([] if self.absent is not None else self[key].values)

    @cached_property
    def rows(self) -> tuple[Row, ...] | NotMeasured:
        """The cells, row by row; the reason where nothing was measured."""
        if self.absent is not None:
            return self.absent
        count = len(self)
        return tuple(zip(*(column.cells(count) for column in self.columns), strict=True))

    @property
    def known_rows(self) -> tuple[Row, ...]:
        """The cells, row by row; none where nothing was measured."""
        return () if isinstance(self.rows, NotMeasured) else self.rows

    @cached_property
    def total(self) -> Row | None:
        """The total as a row."""
        return None if self.totals is None else tuple(self.totals.get(key) for key in self.keys)

    def depth(self, row: Row) -> int | None:
        """How deep a row lies under those before it, where the table has levels."""
        depth = None if self.level is None else row[self.keys.index(self.level)]
        return depth if isinstance(depth, int) else None

    def records(self) -> Iterator[Any]:
        """Rows whose cells are attributes named by the columns' keys (`class_`); none when nothing was measured."""
        yield from map(_record(*self.keys)._make, self.known_rows)

    def directed(self, backward: frozenset[str]) -> Table:
        """The table with the names that the backward pass alone launches, which labels say."""
        columns = (replace(each, backward=backward) if each.kind in LABELLED else each for each in self.columns)
        return replace(self, columns=tuple(columns)) if backward else self

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64] | Sequence[int]) -> Table:
        """Some of the rows, by mask or position."""
        import numpy as np

        places = np.asarray(rows)
        at = np.flatnonzero(places) if places.dtype == np.bool_ else places.astype(np.int64)
        return replace(self, columns=tuple(_taken(column, at) for column in self.columns))

    def sort(self, *by: str) -> Table:
        """Rows ordered by these columns, the first one first: ascending, or descending numbers after a `-`.

        What is None or was not measured counts as no text, or 0.
        """
        if self.absent is not None or len(self) < 2:
            return self
        order = list(zip(*(self._order(key) for key in by), strict=True))
        return self.take(sorted(range(len(self)), key=order.__getitem__))

    def _order(self, key: str) -> list[Any]:
        column = self[key.removeprefix("-")]
        empty: Any = "" if column.kind in _WORDS else 0
        absent = (NotMeasured, type(None))
        cells: list[Any] = [empty if isinstance(cell, absent) else cell for cell in column.cells(len(self))]
        return [-cell for cell in cells] if key.startswith("-") else cells

    def to_pandas(self) -> pd.DataFrame:
        """The table as a data frame: durations in ns, shares as fractions, missing values as NA."""
        import pandas as pd

        columns = {each.key: [plain(each.kind, value) for value in self.column(each.key)] for each in self.columns}
        dtypes = {each.key: _DTYPES[each.kind] for each in self.columns if each.kind in _DTYPES}
        return pd.DataFrame(columns, dtype=object).astype(dtypes)


def no_such(what: str, name: str, known: Sequence[str]) -> str:
    """That nothing is called so, and what was probably meant."""
    # Imported here: names are right most of the time.
    from difflib import get_close_matches

    near = get_close_matches(str(name), known, n=1) or [each for each in known if str(name) in each.split("_")]
    if near:
        return f"no {what} {name!r}; did you mean {near[0]!r}?"
    return f"no {what} {name!r}; there is {', '.join(known)}" if known else f"there is no {what}"


def declare(key: str, title: str, *columns: Column, **shown: Any) -> Table:
    """A table to fill: its key, its English title, its columns, and how it is shown (the other fields of `Table`)."""
    return Table(key, columns, title=title, **shown)


def known(values: NDArray[np.float64], reason: str) -> Values:
    """Numbers of which NaN was not measured, for this reason."""
    import numpy as np

    return where(~np.isnan(values), values, NotMeasured(reason))


def where(there: NDArray[np.bool_], values: NDArray[Any], missing: NotMeasured | None) -> Values:
    """The values that are there, and what stands for each of the others."""
    if there.all():
        return values
    return [value if has else missing for value, has in zip(values.tolist(), there.tolist(), strict=True)]


@cache
def _record(*keys: str) -> Any:
    return namedtuple("Record", [f"{key}_" if iskeyword(key) else key for key in keys])


def _taken(column: Column, at: NDArray[np.int64]) -> Column:
    values = column.values
    if isinstance(values, NotMeasured):
        return column
    picked = [values[row] for row in at.tolist()] if isinstance(values, Sequence) else values[at]
    return column.of(picked)


def labels_of(kind: Kind, names: Iterable[str], backward: Collection[str] = ()) -> Mapping[str, str]:
    """Labels of names of a kind that has them, all different; `backward` are those of the backward pass alone."""
    # Imported here: commands that show no kernels read no grammar.
    from traceanalyze.model.kernel_names import labels

    return labels(names, mixed=kind == Kind.PLACE, backward=backward) if kind in LABELLED else {}


def plain(kind: Kind, value: Value) -> object:
    """A value as programs want it: None for what was not measured, numbers without their units."""
    if isinstance(value, Quantity):
        return value.number
    return None if isinstance(value, NotMeasured) or kind == Kind.QUANTITY else value
