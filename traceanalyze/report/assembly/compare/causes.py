"""What the difference is made of, largest first; more calls told apart from longer ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, Table, Word
from traceanalyze.report.assembly.compare.columns import DIFF, STEP_SHARE, SUMS, ratio
from traceanalyze.report.assembly.compare.per_step import rounded
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.comparison.results import Comparison, Contribution
    from traceanalyze.model.table import Row, Value
    from traceanalyze.report.assembly.compare.per_step import PerStep

WORDS = ("copy", "kernels", "rest", "data_loading")
"""Kinds of contributions that the tool names."""
MOSTLY = 0.8
"""Share of a difference from which one of its two effects is called its reason."""
_SIDES = {
    side: (
        Column(f"{side}_time_ns", Kind.DURATION, side=side),
        Column(f"{side}_number", Kind.NUMBER, minor=True, side=side),
        Column(f"{side}_each_ns", Kind.DURATION, scale="call", minor=True, side=side),
    )
    for side in ("base", "candidate")
}
_CAUSES = (
    Column("place", Kind.COUNT, minor=True),
    Column("contribution", Kind.NAME),
    Column("part", Kind.TERM),
    *_SIDES["base"],
    *_SIDES["candidate"],
    DIFF,
    STEP_SHARE,
    Column("change", Kind.TERM),
    replace(ratio(alias=""), minor=True),
    Column("number_effect_ns", Kind.CHANGE, minor=True, par=0.0),
    Column("each_effect_ns", Kind.CHANGE, minor=True, par=0.0),
    Column("what", Kind.TERM, minor=True),
    Column("module", Kind.NAME, minor=True),
    Column("frame", Kind.NAME, minor=True),
    *SUMS,
)


def causes_table(comparison: Comparison, per: PerStep) -> Table:
    """Every reason that changes anything; together they are the whole difference."""
    changed = [row for row in comparison.contributions if per.exact(row.base, row.candidate)]
    ordered = sorted(changed, key=lambda row: -abs(per.exact(row.base, row.candidate)))
    rows = tuple(_row(row, place, per) for place, row in enumerate(ordered, start=1))
    total = sum(row.base for row in changed), sum(row.candidate for row in changed)
    return table_of_rows("causes", _CAUSES, rows, total=_total(*total, per) if rows else None, ranked=True)


def effects(base: int, candidate: int, counts: tuple[int, int], per: PerStep) -> tuple[int, int]:
    """A difference per step as what the number of calls makes of it, and what the time of each does.

    Both are measured at the mean of the two sides, so that swapping the sides negates them; they sum to the
    difference. What one side lacks is due to its number.
    """
    whole = per.diff(base, candidate)
    if not all(counts):
        return (whole, 0) if any(counts) else (0, whole)
    before, after = counts
    # (n2/s2 - n1/s1) · (c/n2 + b/n1) / 2, over one denominator.
    numbers = after * per.base_steps - before * per.candidate_steps
    means = candidate * before + base * after
    by_number = rounded(numbers * means, 2 * before * after * per.base_steps * per.candidate_steps)
    return by_number, whole - by_number


def contribution_name(row: Contribution) -> str:
    """Its name: of the trace, or a word of the tool."""
    return Word(row.name) if row.what in WORDS else row.name


def _row(row: Contribution, place: int, per: PerStep) -> Row:
    counts = row.base_count, row.candidate_count
    by_number, by_each = effects(row.base, row.candidate, counts, per)
    return (
        place,
        contribution_name(row),
        row.part,
        per.base(row.base),
        per.base_number(row.base_count),
        rounded(row.base, row.base_count) if row.base_count else None,
        per.candidate(row.candidate),
        per.candidate_number(row.candidate_count),
        rounded(row.candidate, row.candidate_count) if row.candidate_count else None,
        per.diff(row.base, row.candidate),
        per.share(row.base, row.candidate),
        _reason(row, by_number, by_each),
        per.ratio(row.base, row.candidate),
        by_number,
        by_each,
        row.what,
        row.module,
        row.frame,
        row.base,
        row.candidate,
    )


def _reason(row: Contribution, by_number: int, by_each: int) -> str:
    """Which of the two effects it is, if one of them is most of it."""
    if row.base == 0 and row.base_count == 0:
        return "change_new"
    if row.candidate == 0 and row.candidate_count == 0:
        return "change_vanished"
    whole = by_number + by_each
    if whole and by_number / whole >= MOSTLY:
        return "change_more" if whole > 0 else "change_fewer"
    if whole and by_each / whole >= MOSTLY:
        return "change_longer" if whole > 0 else "change_shorter"
    return "change_both"


def _total(base: int, candidate: int, per: PerStep) -> Row:
    known: dict[str, Value] = {
        "part": "all_causes",
        "base_time_ns": per.base(base),
        "candidate_time_ns": per.candidate(candidate),
        "diff_ns": per.diff(base, candidate),
        "step_change_share": per.share(base, candidate),
        "ratio": per.ratio(base, candidate),
        "base_sum_ns": base,
        "candidate_sum_ns": candidate,
    }
    return tuple(known.get(column.key) for column in _CAUSES)
