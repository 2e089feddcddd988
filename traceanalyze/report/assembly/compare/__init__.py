"""Builders of a comparison: from its results to its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import Kind, Message
from traceanalyze.report.assembly.compare.advice import advice
from traceanalyze.report.assembly.compare.causes import causes_table
from traceanalyze.report.assembly.compare.communication import communication_table
from traceanalyze.report.assembly.compare.host_calls import host_calls_table
from traceanalyze.report.assembly.compare.kernels import kernel_types_table, kernels_table
from traceanalyze.report.assembly.compare.memory import memory_calls_table, memory_table
from traceanalyze.report.assembly.compare.modules import module_operators_table, modules_table
from traceanalyze.report.assembly.compare.operators import operator_calls_table, operators_table
from traceanalyze.report.assembly.compare.overall import (
    link_rates_table,
    memory_peak_table,
    overall_table,
    parts_table,
)
from traceanalyze.report.assembly.compare.per_step import PerStep
from traceanalyze.report.assembly.compare.quality import caveats, quality
from traceanalyze.report.assembly.compare.sides import options_table, side_sentence, sides_table
from traceanalyze.report.assembly.compare.unmatched import unmatched_table
from traceanalyze.report.assembly.compare.verdict import verdict
from traceanalyze.report.model import CompareReport

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from traceanalyze.comparison.results import Comparison
    from traceanalyze.model.table import Table


def build_compare(
    comparison: Comparison,
    *,
    version: str,
    notes: Sequence[tuple[str, str]] = (),
    options: Mapping[str, str] | None = None,
) -> CompareReport:
    """The report of a comparison; `options` are shown as they are, `notes` are remarks on the input of a side."""
    per = PerStep.of(comparison.base, comparison.candidate)
    return CompareReport(
        version=version,
        paths=(comparison.base.path, comparison.candidate.path),
        resolution_ns=max(comparison.base.resolution_ns, comparison.candidate.resolution_ns),
        verdict=verdict(comparison, per),
        sides=(side_sentence(comparison.base), side_sentence(comparison.candidate)),
        listing=(*_tables(comparison, per), sides_table(comparison), options_table(options or {})),
        caveats=caveats(comparison),
        quality=quality(comparison),
        notes=tuple(_note(side, text) for side, text in notes),
        advice=advice(comparison, per),
        comparison=comparison,
    )


def _note(side: str, text: str) -> Message:
    return Message("side_note", (("side", Kind.TERM, f"side_{side}"), ("text", Kind.TEXT, text)))


def _tables(found: Comparison, per: PerStep) -> Iterator[Table]:
    """Tables of the sections that were asked for, in reading order."""
    yield parts_table(found, per)
    tables = overall_table(found, per), memory_peak_table(found), link_rates_table(found)
    yield from (table for table in tables if table is not None)
    yield causes_table(found, per)
    yield from _sections(found, per)
    if found.unmatched:
        yield unmatched_table(found, per)


def _sections(found: Comparison, per: PerStep) -> Iterator[Table]:
    """Tables of what was matched; a section that was not asked for has none."""
    if found.collectives is not None:
        yield communication_table(found.collectives, per)
    if found.modules is not None:
        yield modules_table(found.modules, per)
        yield module_operators_table(found.modules, per)
    if found.operators is not None:
        yield operators_table(found.operators, per)
    if found.operator_pairs is not None:
        yield operator_calls_table(found.operator_pairs)
    if found.memory is not None:
        yield memory_table(found.memory, per)
    if found.memory_calls is not None:
        yield memory_calls_table(found.memory_calls)
    if found.apis is not None:
        yield host_calls_table(found.apis, per)
    if found.kernels is not None:
        yield kernels_table(found.kernels, per)
    if found.kernel_types is not None:
        yield kernel_types_table(found.kernel_types, per)
