"""Operators of both sides: summed by name, and call by call."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Word
from traceanalyze.report.assembly.compare.columns import CHANGE_SHARE, MATCH, PLACE, SUMS, both, diff, ratio
from traceanalyze.report.assembly.compare.details import kernel_details
from traceanalyze.report.assembly.compare.per_step import PerStep, match
from traceanalyze.report.assembly.compare.ranking import ranked
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.comparison.results import OperatorPair, OperatorTotal, OpSide
    from traceanalyze.model.table import Row, Value
    from traceanalyze.report.assembly.compare.ranking import Ranked

_TOTALS = (
    replace(PLACE, alias="Top"),
    Column("op", Kind.NAME, alias="Operator Name"),
    *both(
        ("device_ns", Kind.DURATION, "{side} Device Duration(ms)"),
        ("calls", Kind.NUMBER, "{side} Operator Number"),
    ),
    diff("Diff Duration(ms)"),
    ratio(),
    CHANGE_SHARE,
    MATCH,
    Column("shapes", Kind.NAME, minor=True),
    Column("base_op", Kind.NAME, minor=True, side="base"),
    Column("candidate_op", Kind.NAME, minor=True, side="candidate"),
    *SUMS,
)
_CALLS = (
    Column("order", Kind.COUNT, alias="Order Id"),
    *both(
        ("op", Kind.NAME, "Operator Name"),
        ("shapes", Kind.NAME, "Input Shape"),
        ("dtypes", Kind.NAME, "Input Type"),
        ("kernels", Kind.NAME, "Kernel Details"),
        ("device_ns", Kind.DURATION, "Device Duration(us)"),
    ),
    diff("Diff Duration(us)"),
    ratio(),
    CHANGE_SHARE,
    PLACE,
    MATCH,
    Column("base_start_ns", Kind.DURATION, machine=True),
    Column("candidate_start_ns", Kind.DURATION, machine=True),
    Column("base_frame", Kind.NAME, minor=True, side="base"),
    Column("candidate_frame", Kind.NAME, minor=True, side="candidate"),
)
_ONE_CALL = PerStep(1, 1, 0)


def operators_table(totals: tuple[OperatorTotal, ...] | NotMeasured, per: PerStep) -> Table:
    """Operators by what they change; the rows sum to all device time."""
    key = "operator_compare_statistic"
    if isinstance(totals, NotMeasured):
        return table_of_rows(key, _TOTALS, totals)
    found = ranked(totals, lambda row: (row.base_time, row.candidate_time), per)
    whole = sum(row.base_time for row in totals), sum(row.candidate_time for row in totals)
    known: dict[str, Value] = {
        "op": Word("all_work"),
        "base_device_ns": per.base(whole[0]),
        "candidate_device_ns": per.candidate(whole[1]),
        "diff_ns": per.diff(*whole),
        "ratio": per.ratio(*whole),
        "base_sum_ns": whole[0],
        "candidate_sum_ns": whole[1],
    }
    total = tuple(known.get(column.key) for column in _TOTALS)
    return table_of_rows(key, _TOTALS, tuple(_total(row, per) for row in found), total=total, ranked=True)


def operator_calls_table(pairs: tuple[OperatorPair, ...] | NotMeasured) -> Table:
    """Matched calls by how much they differ; `order` is their order in time."""
    key = "operator_compare"
    if isinstance(pairs, NotMeasured):
        return table_of_rows(key, _CALLS, pairs, detail=True)
    found = ranked(enumerate(pairs, start=1), lambda pair: (_time(pair[1].base), _time(pair[1].candidate)), _ONE_CALL)
    return table_of_rows(key, _CALLS, tuple(_call(row) for row in found), ranked=True, detail=True)


def _total(found: Ranked[OperatorTotal], per: PerStep) -> Row:
    row = found.row
    there = row.base_count or row.base_time or None, row.candidate_count or row.candidate_time or None
    return (
        found.place,
        row.name,
        per.base(row.base_time) if there[0] else None,
        per.base_number(row.base_count) if there[0] else None,
        per.candidate(row.candidate_time) if there[1] else None,
        per.candidate_number(row.candidate_count) if there[1] else None,
        per.diff(row.base_time, row.candidate_time),
        per.ratio(row.base_time, row.candidate_time),
        found.share,
        match(*there),
        row.shapes,
        ", ".join(row.base_names) or None,
        ", ".join(row.candidate_names) or None,
        row.base_time,
        row.candidate_time,
    )


def _call(found: Ranked[tuple[int, OperatorPair]]) -> Row:
    order, pair = found.row
    base, candidate = pair.base, pair.candidate
    return (
        order,
        *_side(base),
        *_side(candidate),
        found.candidate - found.base,
        _ONE_CALL.ratio(found.base, found.candidate),
        found.share,
        found.place,
        match(base, candidate),
        None if base is None else base.start,
        None if candidate is None else candidate.start,
        None if base is None else base.frame,
        None if candidate is None else candidate.frame,
    )


def _side(side: OpSide | None) -> Row:
    if side is None:
        return (None,) * 5
    return (side.name, side.shapes, side.dtypes, kernel_details(side.kernels), side.device_time)


def _time(side: OpSide | None) -> int:
    return 0 if side is None else side.device_time
