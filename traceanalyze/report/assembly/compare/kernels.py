"""Kernels of both sides, by name and shapes or by type."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Word
from traceanalyze.report.assembly.compare.columns import CHANGE_SHARE, DIFF, MATCH, PLACE, both, ratio
from traceanalyze.report.assembly.compare.host_calls import mean_ratio
from traceanalyze.report.assembly.compare.per_step import match, rounded
from traceanalyze.report.assembly.compare.ranking import ranked
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.comparison.results import KernelPair, Measured
    from traceanalyze.model.table import Row
    from traceanalyze.report.assembly.compare.per_step import PerStep
    from traceanalyze.report.assembly.compare.ranking import Ranked

_NUMBERS = (
    *both(
        ("total_ns", Kind.DURATION, "Total Duration(us)"),
        ("avg_ns", Kind.DURATION, "Avg Duration(us)", "call"),
        ("max_ns", Kind.DURATION, "Max Duration(us)", "call"),
        ("min_ns", Kind.DURATION, "Min Duration(us)", "call"),
        ("calls", Kind.NUMBER, "Calls"),
    ),
    ratio("total_ratio", "Diff Total Ratio"),
    ratio("avg_ratio", "Diff Avg Ratio"),
    DIFF,
    CHANGE_SHARE,
    Column("work", Kind.TERM, minor=True),
    MATCH,
    Column("base_kernel", Kind.NAME, minor=True, side="base"),
    Column("candidate_kernel", Kind.NAME, minor=True, side="candidate"),
)
_KERNELS = (
    replace(PLACE, alias="Order Id"),
    Column("kernel", Kind.NAME, alias="Kernel"),
    Column("shapes", Kind.NAME, alias="Input Shape"),
    *_NUMBERS,
    Column("core", Kind.TEXT, minor=True),
)
_TYPES = (
    replace(PLACE, alias="Order Id"),
    Column("kernel_type", Kind.NAME, alias="Kernel Type"),
    Column("core", Kind.TEXT, alias="Core Type"),
    *_NUMBERS,
)


def kernels_table(pairs: tuple[KernelPair, ...] | NotMeasured, per: PerStep) -> Table:
    """Kernels by how much their time differs."""
    key = "kernel_compare"
    if isinstance(pairs, NotMeasured):
        return table_of_rows(key, _KERNELS, pairs)
    rows = tuple(
        (found.place, found.row.name, found.row.shapes, *_numbers(found, per), found.row.core)
        for found in _ranked(pairs, per)
    )
    return table_of_rows(key, _KERNELS, rows, ranked=True)


def kernel_types_table(pairs: tuple[KernelPair, ...] | NotMeasured, per: PerStep) -> Table:
    """The same by type of kernel and core."""
    key = "kernel_type_compare"
    if isinstance(pairs, NotMeasured):
        return table_of_rows(key, _TYPES, pairs, detail=True)
    rows = tuple(
        (found.place, _type_name(found.row), found.row.core, *_numbers(found, per)) for found in _ranked(pairs, per)
    )
    return table_of_rows(key, _TYPES, rows, ranked=True, detail=True)


def _type_name(row: KernelPair) -> str:
    """A type that the profile names, or a kind of work that the tool does."""
    group = row.group.name.lower()
    return Word(f"work_{group}") if row.name == group else row.name


def _ranked(pairs: tuple[KernelPair, ...], per: PerStep) -> list[Ranked[KernelPair]]:
    return ranked(pairs, lambda pair: (_sums(pair.base)[0], _sums(pair.candidate)[0]), per)


def _numbers(found: Ranked[KernelPair], per: PerStep) -> Row:
    row = found.row
    return (
        *_side(row.base, per.base_steps),
        *_side(row.candidate, per.candidate_steps),
        per.ratio(found.base, found.candidate),
        mean_ratio(*_sums(row.base), *_sums(row.candidate)),
        per.diff(found.base, found.candidate),
        found.share,
        f"work_{row.group.name.lower()}",
        match(row.base, row.candidate),
        None if row.base is None else row.base.name,
        None if row.candidate is None else row.candidate.name,
    )


def _side(side: Measured | None, steps: int) -> Row:
    if side is None:
        return (None,) * 5
    mean = rounded(side.total, side.count) if side.count else None
    return (rounded(side.total, steps), mean, side.longest, side.shortest, side.count / steps)


def _sums(side: Measured | None) -> tuple[int, int]:
    return (0, 0) if side is None else (side.total, side.count)
