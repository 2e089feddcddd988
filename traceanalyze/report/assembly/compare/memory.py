"""Device memory that operators allocate on both sides."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.report.assembly.compare.columns import CHANGE_SHARE, MATCH, PLACE, both, ratio
from traceanalyze.report.assembly.compare.per_step import PerStep, match, rounded
from traceanalyze.report.assembly.compare.ranking import ranked
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.comparison.results import MemoryCall, MemoryCallPair, MemoryPair, MemorySide
    from traceanalyze.model.table import Row
    from traceanalyze.report.assembly.compare.ranking import Ranked

_TOTALS = (
    replace(PLACE, alias="Top"),
    Column("op", Kind.NAME, alias="Operator Name"),
    *both(
        ("lifetime_ns", Kind.DURATION, "{side} Allocated Duration(ms)"),
        ("bytes", Kind.BYTES, "{side} Allocated Memory(MB)"),
        ("calls", Kind.NUMBER, "{side} Operator Number"),
    ),
    Column("diff_bytes", Kind.BYTES_CHANGE, par=0.0, alias="Diff Memory(MB)"),
    ratio(),
    CHANGE_SHARE,
    MATCH,
)


_CALLS = (
    Column("order", Kind.COUNT, alias="Order Id"),
    *both(
        ("op", Kind.NAME, "Operator Name"),
        ("shapes", Kind.NAME, "Input Shape"),
        ("dtypes", Kind.NAME, "Input Type"),
        ("details", Kind.NAME, "Allocated Details"),
        ("size_bytes", Kind.BYTES, "Size(KB)"),
    ),
    Column("diff_size_bytes", Kind.BYTES_CHANGE, par=0.0, alias="Diff Size(KB)"),
    ratio(),
    CHANGE_SHARE,
    PLACE,
    MATCH,
)
_ONE_CALL = PerStep(1, 1, 0)
_NAMED = 20
"""Allocations named in one text."""


def memory_calls_table(pairs: tuple[MemoryCallPair, ...] | NotMeasured) -> Table:
    """Matched calls by how much more or less they allocate; `order` is their order in time."""
    key = "memory_compare"
    if isinstance(pairs, NotMeasured):
        return table_of_rows(key, _CALLS, pairs, detail=True)
    found = ranked(enumerate(pairs, start=1), lambda pair: (_size(pair[1].base), _size(pair[1].candidate)), _ONE_CALL)
    return table_of_rows(key, _CALLS, tuple(_call(row) for row in found), ranked=True, detail=True)


def memory_table(pairs: tuple[MemoryPair, ...] | NotMeasured, per: PerStep) -> Table:
    """Operators by how much more or less they allocate."""
    key = "memory_compare_statistic"
    if isinstance(pairs, NotMeasured):
        return table_of_rows(key, _TOTALS, pairs)
    found = ranked(pairs, lambda pair: (_bytes(pair.base), _bytes(pair.candidate)), per)
    return table_of_rows(key, _TOTALS, tuple(_row(row, per) for row in found), ranked=True)


def _row(found: Ranked[MemoryPair], per: PerStep) -> Row:
    return (
        found.place,
        found.row.name,
        *_side(found.row.base, per.base_steps),
        *_side(found.row.candidate, per.candidate_steps),
        per.diff(found.base, found.candidate),
        per.ratio(found.base, found.candidate),
        found.share,
        match(found.row.base, found.row.candidate),
    )


def _call(found: Ranked[tuple[int, MemoryCallPair]]) -> Row:
    order, pair = found.row
    return (
        order,
        *_call_side(pair.base),
        *_call_side(pair.candidate),
        found.candidate - found.base,
        _ONE_CALL.ratio(found.base, found.candidate),
        found.share,
        found.place,
        match(pair.base, pair.candidate),
    )


def _call_side(side: MemoryCall | None) -> Row:
    if side is None:
        return (None,) * 5
    shown = [f"{size} B" + (f", {ns / 1000:.3f} µs" if ns is not None else "") for size, ns in side.allocations]
    more = f"; … {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
    return (side.name, side.shapes, side.dtypes, "; ".join(shown[:_NAMED]) + more, side.bytes)


def _size(side: MemoryCall | None) -> int:
    return 0 if side is None else side.bytes


def _side(side: MemorySide | None, steps: int) -> Row:
    if side is None:
        return (None,) * 3
    lifetime = NotMeasured("no_frees") if side.duration is None else rounded(side.duration, steps)
    return (lifetime, rounded(side.bytes, steps), side.count / steps)


def _bytes(side: MemorySide | None) -> int:
    return 0 if side is None else side.bytes
