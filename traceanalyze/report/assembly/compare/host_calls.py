"""Host operators and runtime calls of both sides by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.report.assembly.compare.columns import CHANGE_SHARE, MATCH, PLACE, both, ratio
from traceanalyze.report.assembly.compare.per_step import match, rounded
from traceanalyze.report.assembly.compare.ranking import ranked
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.comparison.results import ApiPair, ApiSide
    from traceanalyze.model.table import Row
    from traceanalyze.report.assembly.compare.per_step import PerStep
    from traceanalyze.report.assembly.compare.ranking import Ranked

KEY = "api_compare"
_COLUMNS = (
    replace(PLACE, alias="Order Id"),
    Column("api", Kind.NAME, alias="api name"),
    *both(
        ("total_ns", Kind.DURATION, "Total Duration(ms)"),
        ("self_ns", Kind.DURATION, "Self Time(ms)"),
        ("avg_ns", Kind.DURATION, "Avg Duration(ms)", "call"),
        ("calls", Kind.NUMBER, "Calls"),
    ),
    ratio("total_ratio", "Diff Total Ratio"),
    ratio("self_ratio", "Diff Self Ratio"),
    ratio("avg_ratio", "Diff Avg Ratio"),
    Column("calls_ratio", Kind.RATIO, par=1.0, alias="Diff Calls Ratio"),
    Column("total_diff_ns", Kind.CHANGE, par=0.0),
    Column("self_diff_ns", Kind.CHANGE, par=0.0),
    CHANGE_SHARE,
    MATCH,
)
_NONE = (0, 0, 0)


def host_calls_table(pairs: tuple[ApiPair, ...] | NotMeasured, per: PerStep) -> Table:
    """Calls by how much the time in themselves, without the calls inside, differs."""
    if isinstance(pairs, NotMeasured):
        return table_of_rows(KEY, _COLUMNS, pairs)
    found = ranked(pairs, lambda pair: (_numbers(pair.base)[1], _numbers(pair.candidate)[1]), per)
    return table_of_rows(KEY, _COLUMNS, tuple(_row(row, per) for row in found), ranked=True)


def _row(found: Ranked[ApiPair], per: PerStep) -> Row:
    row = found.row
    base, candidate = _numbers(row.base), _numbers(row.candidate)
    return (
        found.place,
        row.name,
        *_side(row.base, per.base_steps),
        *_side(row.candidate, per.candidate_steps),
        per.ratio(base[0], candidate[0]),
        per.ratio(base[1], candidate[1]),
        mean_ratio(base[0], base[2], candidate[0], candidate[2]),
        per.ratio(base[2], candidate[2]),
        per.diff(base[0], candidate[0]),
        per.diff(base[1], candidate[1]),
        found.share,
        match(row.base, row.candidate),
    )


def mean_ratio(base: int, base_count: int, candidate: int, candidate_count: int) -> float | None:
    """Time of one call of the candidate over that of the base; None where a side has no call or no time."""
    if not (base and base_count and candidate_count):
        return None
    return candidate * base_count / (base * candidate_count)


def _side(side: ApiSide | None, steps: int) -> Row:
    if side is None:
        return (None,) * 4
    mean = rounded(side.total, side.count) if side.count else None
    return (rounded(side.total, steps), rounded(side.own, steps), mean, side.count / steps)


def _numbers(side: ApiSide | None) -> tuple[int, int, int]:
    return _NONE if side is None else (side.total, side.own, side.count)
