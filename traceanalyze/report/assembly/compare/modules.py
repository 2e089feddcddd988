"""Modules of both sides and the operators inside them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.report.assembly.compare.columns import CHANGE_SHARE, MATCH, PLACE, both, diff, ratio
from traceanalyze.report.assembly.compare.details import kernel_details
from traceanalyze.report.assembly.compare.per_step import match, rounded
from traceanalyze.report.assembly.compare.ranking import ranked
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.comparison.results import ModulePair, ModuleSide
    from traceanalyze.model.table import Row
    from traceanalyze.report.assembly.compare.per_step import PerStep
    from traceanalyze.report.assembly.compare.ranking import Ranked

ALL_OPERATORS = "[ TOTAL ]"
"""Stands for all operators of a module, as in msprof-analyze."""
_KEYS = (
    replace(PLACE, alias="Order Id"),
    Column("module_class", Kind.TEXT, alias="Module Class"),
    Column("module_level", Kind.COUNT, alias="Module Level"),
    Column("module", Kind.NAME, alias="Module Name"),
)
_CHANGES = (
    diff("Device Total Time Diff", "total_diff_ns"),
    diff("Device Self Time Diff", "self_diff_ns"),
    ratio("ratio", "Diff Total Ratio"),
    Column("base_frame", Kind.NAME, side="base", alias="Base Call Stack"),
    Column("candidate_frame", Kind.NAME, side="candidate", alias="Comparison Call Stack"),
    CHANGE_SHARE,
    Column("direction_of_pass", Kind.TERM),
    MATCH,
)
_STATISTIC = (
    *_KEYS,
    Column("op", Kind.NAME, alias="Operator Name"),
    *both(
        ("kernels", Kind.NAME, "Kernel Details"),
        ("self_ns", Kind.DURATION, "Device Self Time(ms)"),
        ("calls", Kind.NUMBER, "Number"),
        ("total_ns", Kind.DURATION, "Device Total Time(ms)"),
    ),
    *_CHANGES,
)
_OPERATORS = (
    *_KEYS,
    *both(
        ("op", Kind.NAME, "Operator Name"),
        ("kernels", Kind.NAME, "Kernel Details"),
        ("self_ns", Kind.DURATION, "Device Self Time(us)"),
        ("total_ns", Kind.DURATION, "Device Total Time(us)"),
    ),
    *_CHANGES,
)


def modules_table(pairs: tuple[ModulePair, ...] | NotMeasured, per: PerStep) -> Table:
    """Modules by how much their own work differs; below each its operators."""
    key = "module_compare_statistic"
    if isinstance(pairs, NotMeasured):
        return table_of_rows(key, _STATISTIC, pairs)
    found = _by_module(pairs, per)
    return table_of_rows(key, _STATISTIC, tuple(_statistic(row, per) for row in found), ranked=True)


def module_operators_table(pairs: tuple[ModulePair, ...] | NotMeasured, per: PerStep) -> Table:
    """Operators in their modules, by how much each differs."""
    key = "module_compare"
    if isinstance(pairs, NotMeasured):
        return table_of_rows(key, _OPERATORS, pairs, detail=True)
    found = ranked([pair for pair in pairs if pair.op is not None], _own, per)
    return table_of_rows(key, _OPERATORS, tuple(_operator(row, per) for row in found), ranked=True, detail=True)


def _by_module(pairs: tuple[ModulePair, ...], per: PerStep) -> list[Ranked[ModulePair]]:
    """Each module with its operators after it; their shares are those of the modules' own work."""
    inside: dict[tuple[str, bool], list[ModulePair]] = {}
    for pair in pairs:
        if pair.op is not None:
            inside.setdefault((pair.path, pair.backward), []).append(pair)
    out = []
    for module in ranked([pair for pair in pairs if pair.op is None], _own, per):
        out.append(module)
        group = inside.pop((module.row.path, module.row.backward), [])
        out += [replace(row, place=module.place, share=None) for row in ranked(group, _own, per)]
    return out


def _statistic(found: Ranked[ModulePair], per: PerStep) -> Row:
    row = found.row
    base, candidate = (
        (None,) * 4
        if side is None
        else (
            kernel_details(side.kernels),
            rounded(side.device_self, steps),
            None if side.calls is None else side.calls / steps,
            rounded(side.device_total, steps),
        )
        for side, steps in ((row.base, per.base_steps), (row.candidate, per.candidate_steps))
    )
    return (*_names(found), row.op or ALL_OPERATORS, *base, *candidate, *_changes(found, per))


def _operator(found: Ranked[ModulePair], per: PerStep) -> Row:
    row = found.row
    base, candidate = (
        (None,) * 4
        if side is None
        else (
            row.op,
            kernel_details(side.kernels),
            rounded(side.device_self, steps),
            rounded(side.device_total, steps),
        )
        for side, steps in ((row.base, per.base_steps), (row.candidate, per.candidate_steps))
    )
    return (*_names(found), *base, *candidate, *_changes(found, per))


def _names(found: Ranked[ModulePair]) -> Row:
    return (found.place, found.row.name, found.row.level, found.row.path)


def _changes(found: Ranked[ModulePair], per: PerStep) -> Row:
    row = found.row
    totals = _total(row.base), _total(row.candidate)
    return (
        per.diff(*totals),
        per.diff(found.base, found.candidate),
        per.ratio(*totals),
        None if row.base is None else row.base.frame,
        None if row.candidate is None else row.candidate.frame,
        found.share,
        "phase_backward" if row.backward else "phase_forward",
        match(row.base, row.candidate),
    )


def _own(row: ModulePair) -> tuple[int, int]:
    return (
        0 if row.base is None else row.base.device_self,
        0 if row.candidate is None else row.candidate.device_self,
    )


def _total(side: ModuleSide | None) -> int:
    return 0 if side is None else side.device_total
