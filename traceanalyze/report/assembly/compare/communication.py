"""Collectives of both sides by type, group and size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.report.assembly.compare.columns import MATCH, PLACE, STEP_SHARE, SUMS, both, diff, ratio
from traceanalyze.report.assembly.compare.per_step import Amount, match, rounded
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.comparison.results import CollectivePair, Measured
    from traceanalyze.model.table import Row, Value
    from traceanalyze.report.assembly.compare.per_step import PerStep

KEY = "communication_compare"
_COLUMNS = (
    replace(PLACE, alias="Order Id"),
    Column("collective", Kind.TEXT),
    Column("group", Kind.NAME),
    Column("size_bytes", Kind.BYTES),
    *both(
        ("name", Kind.NAME, "Communication OP Name"),
        ("calls", Kind.NUMBER, "Calls"),
        ("total_ns", Kind.DURATION, "Total Duration(us)"),
        ("avg_ns", Kind.DURATION, "Avg Duration(us)", "call"),
        ("max_ns", Kind.DURATION, "Max Duration(us)", "call"),
        ("min_ns", Kind.DURATION, "Min Duration(us)", "call"),
        ("wait_ns", Kind.DURATION, "Task Name (Notify_Wait)"),
        ("transfer_ns", Kind.DURATION, "Task Name (Memcpy, Reduce_Inline, RDMASend)"),
        ("exposed_ns", Kind.DURATION, ""),
    ),
    diff("Diff Duration(us)"),
    ratio(),
    Column("exposed_diff_ns", Kind.CHANGE, par=0.0),
    STEP_SHARE,
    MATCH,
    *SUMS,
)


def communication_table(pairs: tuple[CollectivePair, ...] | NotMeasured, per: PerStep) -> Table:
    """One row a type, group and size, by what its exposed time changes in the step."""
    if isinstance(pairs, NotMeasured):
        return table_of_rows(KEY, _COLUMNS, pairs)
    ordered = sorted(
        pairs,
        key=lambda pair: (
            -abs(per.exact(pair.base_exposed, pair.candidate_exposed)),
            -abs(per.exact(_total(pair.base), _total(pair.candidate))),
        ),
    )
    return table_of_rows(
        KEY, _COLUMNS, tuple(_row(pair, place, per) for place, pair in enumerate(ordered, 1)), ranked=True
    )


def _row(pair: CollectivePair, place: int, per: PerStep) -> Row:
    sums = _total(pair.base), _total(pair.candidate)
    exposed = pair.base_exposed, pair.candidate_exposed
    return (
        place,
        pair.kind,
        pair.group,
        pair.bytes,
        *_side(pair.base, (pair.base_wait, pair.base_transfer, exposed[0]), per.base_steps),
        *_side(pair.candidate, (pair.candidate_wait, pair.candidate_transfer, exposed[1]), per.candidate_steps),
        per.diff(*sums),
        per.ratio(*sums),
        per.diff(*exposed),
        per.share(*exposed),
        match(pair.base, pair.candidate),
        *sums,
    )


def _side(side: Measured | None, parts: tuple[Amount, ...], steps: int) -> Row:
    if side is None:
        return (None,) * 9
    shown: list[Value] = [amount if isinstance(amount, NotMeasured) else rounded(amount, steps) for amount in parts]
    mean = rounded(side.total, side.count) if side.count else None
    numbers = (side.count / steps, rounded(side.total, steps), mean, side.longest, side.shortest)
    return (side.name, *numbers, *shown)


def _total(side: Measured | None) -> int:
    return 0 if side is None else side.total
