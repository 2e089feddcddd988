"""Tables of a comparison as short views show them: slower and faster apart, and only the rows that matter."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.frozen import frozen
from traceanalyze.report.view import View

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceanalyze.report.model import Row, Table

OF_WEIGHT = 0.001
"""Share of all changes from which a cause is shown without being asked for."""
_ALWAYS = ("comm_wait", "comm_transfer")


@frozen
class Half:
    """The causes of one direction."""

    key: str
    """`slower` or `faster`."""
    table: Table
    """All of them, largest first."""
    weighty: int
    """How many of them matter."""

    @property
    def count(self) -> int:
        """How many there are."""
        return 0 if isinstance(self.table.rows, NotMeasured) else len(self.table.rows)

    def first(self, top: int) -> int:
        """How many to show of at most `top`: those that matter; all of them where more are asked for than usual."""
        return min(top, self.count if top > View().top else self.weighty)


def halves(causes: Table, *, least: float = OF_WEIGHT) -> Iterator[Half]:
    """Slower and faster apart; nothing where nothing differs.

    Args:
        causes: Table `causes`.
        least: Share of all changes from which a cause matters.
    """
    rows = () if isinstance(causes.rows, NotMeasured) else causes.rows
    if not rows:
        return
    diffs = cast("tuple[int, ...]", causes.column("diff_ns"))
    limit = least * sum(map(abs, diffs))
    for key, sign in (("slower", 1), ("faster", -1)):
        picked = tuple(row for row, diff in zip(rows, diffs, strict=True) if diff * sign > 0)
        weighty = sum(diff * sign > 0 and abs(diff) >= limit for diff in diffs)
        yield Half(key, replace(causes, key=key, rows=picked, total=None), weighty)


def shallow(table: Table) -> Table:
    """Without rows more than one level in, but for what every comparison of several ranks turns on."""
    if table.level is None or isinstance(table.rows, NotMeasured):
        return table
    at = [column.key for column in table.columns].index(table.level)
    return replace(table, rows=tuple(row for row in table.rows if row[at] in {0, 1} or row[0] in _ALWAYS))


def with_columns(table: Table, kept: Sequence[int]) -> Table:
    """Only these columns, in this order."""

    def picked(row: Row) -> Row:
        return tuple(row[index] for index in kept)

    return replace(
        table,
        columns=tuple(table.columns[index] for index in kept),
        rows=table.rows if isinstance(table.rows, NotMeasured) else tuple(map(picked, table.rows)),
        total=None if table.total is None else picked(table.total),
    )
