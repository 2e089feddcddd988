"""Both steps and their difference by parts, and the overall table with what lies inside the parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.comparison.attribution import headline
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table
from traceanalyze.report.assembly.compare.columns import DIFF, STEP_SHARE, SUMS, both, diff, ratio
from traceanalyze.report.assembly.compare.per_step import missing
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceanalyze.comparison.results import Comparison, Overall
    from traceanalyze.model.table import Row, Value
    from traceanalyze.report.assembly.compare.per_step import Amount, PerStep

_PARTS = (
    Column("part", Kind.TERM),
    Column("base_time_ns", Kind.DURATION, side="base"),
    Column("candidate_time_ns", Kind.DURATION, side="candidate"),
    DIFF,
    ratio(),
    STEP_SHARE,
    *SUMS,
)
_SIDED = both(("time_ns", Kind.DURATION, "Duration(ms)"), ("share", Kind.SHARE, "Duration Ratio"))
_OVERALL = (
    Column("index", Kind.TERM, alias="Index"),
    _SIDED[0],
    Column("base_share", Kind.SHARE, minor=True, side="base", alias="Duration Ratio"),
    Column("base_number", Kind.NUMBER, minor=True, side="base", alias="Number"),
    _SIDED[2],
    Column("candidate_share", Kind.SHARE, minor=True, side="candidate", alias="Duration Ratio"),
    Column("candidate_number", Kind.NUMBER, minor=True, side="candidate", alias="Number"),
    diff("Diff Duration(ms)"),
    ratio(),
    STEP_SHARE,
    Column("level", Kind.COUNT, machine=True),
    *SUMS,
)
_MEMORY = (
    Column("index", Kind.TERM),
    *both(("peak_bytes", Kind.BYTES, "Mem Usage")),
    Column("diff_bytes", Kind.BYTES_CHANGE, par=0.0),
    ratio(alias=""),
)
_RATES = (
    Column("link", Kind.TEXT),
    *both(("rate_gbs", Kind.NUMBER, "SDMA Bandwidth, RDMA Bandwidth")),
    Column("rate_ratio", Kind.RATIO),
)
ALWAYS = ("compute", "communication", "memory_ops")
"""Parts that are shown even where they are nothing."""
TOTAL, SPAN = "step", "device_span"


def parts_table(comparison: Comparison, per: PerStep) -> Table:
    """The exclusive parts of the step on both sides; they sum to the step. What neither side has is left out."""
    shown = [part for part in headline(comparison.parts) if part.key in ALWAYS or part.base != 0 or part.candidate != 0]
    rows = tuple((part.key, *_amounts(part.base, part.candidate, per)) for part in shown)
    sides = comparison.base.step_time, comparison.candidate.step_time
    # Where the step is the only part, it needs no sum.
    total = None if [part.key for part in shown] == [TOTAL] else (TOTAL, *_amounts(*sides, per))
    return table_of_rows("step_difference", _PARTS, rows, total=total, detail=True)


def overall_table(comparison: Comparison, per: PerStep) -> Table | None:
    """Every row with its share of the step and of the difference; None where it was not asked for."""
    if comparison.overall is None:
        return None
    steps = comparison.base.step_time, comparison.candidate.step_time
    found = [row for row in comparison.overall if row.kind == "duration"]
    body = [row for row in _worth_showing(found) if row.key not in {TOTAL, SPAN}]
    total = next((_overall(row, steps, per) for row in found if row.key == TOTAL), None)
    rows = tuple(_overall(row, steps, per) for row in body)
    return table_of_rows("overall_metrics", _OVERALL, rows, total=total, level="level", notes=tuple(_span(found, per)))


def memory_peak_table(comparison: Comparison) -> Table | None:
    """Peaks and the like, as they are: not per step."""
    found = [row for row in comparison.overall or () if row.kind == "bytes"]
    rows: list[Row] = []
    for row in found:
        why = missing(row.base, row.candidate)
        diffs: Row = (why, why)
        if isinstance(row.base, int) and isinstance(row.candidate, int):
            diffs = (row.candidate - row.base, row.candidate / row.base if row.base else None)
        rows.append((row.name or row.key, row.base, row.candidate, *diffs))
    if not rows:
        return None
    unknown = [row.base for row in found if isinstance(row.base, NotMeasured)]
    if all(missing(row.base) and missing(row.candidate) for row in found):
        return table_of_rows("memory_peak", _MEMORY, unknown[0])
    return table_of_rows("memory_peak", _MEMORY, tuple(rows))


def link_rates_table(comparison: Comparison) -> Table | None:
    """Speed of the links between devices, in 10⁹ bytes a second; None where no side tells."""
    found = [row for row in comparison.overall or () if row.kind == "rate"]
    rows = tuple((row.name, _gbs(row.base), _gbs(row.candidate), _faster(row)) for row in found)
    return table_of_rows("link_rates", _RATES, rows) if rows else None


def _gbs(rate: Amount) -> float | NotMeasured:
    return rate if isinstance(rate, NotMeasured) else rate / 10**9


def _faster(row: Overall) -> float | None:
    known = isinstance(row.base, int) and isinstance(row.candidate, int) and row.base
    return row.candidate / row.base if known else None  # type: ignore[operator]


def _amounts(base: Amount, candidate: Amount, per: PerStep) -> Row:
    """A duration on both sides, the difference, ratio, share of the change, and the exact sums."""
    cells, changes = _cells(base, candidate, per)
    return (*cells, *changes, base, candidate)


def _cells(base: Amount, candidate: Amount, per: PerStep) -> tuple[Row, Row]:
    shown: list[Value] = [
        base if isinstance(base, NotMeasured) else per.base(base),
        candidate if isinstance(candidate, NotMeasured) else per.candidate(candidate),
    ]
    if isinstance(base, NotMeasured) or isinstance(candidate, NotMeasured):
        why = missing(base, candidate)
        return tuple(shown), (why, why, why)
    pair = base, candidate
    return tuple(shown), (per.diff(*pair), per.ratio(*pair), per.share(*pair))


def _overall(row: Overall, steps: Sequence[int], per: PerStep) -> Row:
    (base, candidate), changes = _cells(row.base, row.candidate, per)
    return (
        row.name or row.key,
        base,
        _share(row.base, steps[0]),
        None if row.base_count is None else per.base_number(row.base_count),
        candidate,
        _share(row.candidate, steps[1]),
        None if row.candidate_count is None else per.candidate_number(row.candidate_count),
        *changes,
        row.level,
        row.base,
        row.candidate,
    )


def _worth_showing(rows: Sequence[Overall]) -> Iterator[Overall]:
    """Rows of the first level always; inside those that are not zero, rows that are not zero themselves."""
    hidden = False
    for row in rows:
        zero = row.base == 0 and row.candidate == 0
        if row.level == 0:
            hidden = zero
            yield row
        elif not hidden and not zero:
            yield row


def _span(rows: Sequence[Overall], per: PerStep) -> Iterator[Message]:
    """First to last device event: what other tools call the end-to-end time."""
    for row in rows:
        if row.key == SPAN and isinstance(row.base, int) and isinstance(row.candidate, int):
            values = (per.base(row.base), per.candidate(row.candidate), per.diff(row.base, row.candidate))
            names = (("base", Kind.DURATION), ("candidate", Kind.DURATION), ("diff", Kind.CHANGE))
            yield Message("compare_span", tuple((*name, value) for name, value in zip(names, values, strict=True)))


def _share(amount: Amount, whole: int) -> Value:
    if isinstance(amount, NotMeasured):
        return amount
    return amount / whole if whole else 0.0
