"""All tables about device work and memory, in reading order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import NotMeasured
from traceanalyze.report.assembly.collectives import collectives_table
from traceanalyze.report.assembly.device_use import (
    annotations_table,
    copies_table,
    overlaps_table,
    step_launches_table,
    summary_table,
)
from traceanalyze.report.assembly.kernel_sequences import sequences_table
from traceanalyze.report.assembly.kernel_types import kernel_types_table
from traceanalyze.report.assembly.kernels import configurations_table, durations_table, groups_table, kernels_table
from traceanalyze.report.assembly.memory import memory_tables
from traceanalyze.report.assembly.op_rates import op_rates_table
from traceanalyze.report.assembly.utilisation import low_use_table, utilisation_table

if TYPE_CHECKING:
    from traceanalyze.analyses.results import RankAnalysis
    from traceanalyze.model.table import Table


def device_work_tables(analysis: RankAnalysis) -> list[Table]:
    """Tables of a rank with device events."""
    work, steps = analysis.device_work, analysis.steps
    if isinstance(work, NotMeasured):
        return _memory(analysis)
    return [
        groups_table(work.groups),
        kernels_table(work.kernels),
        kernel_types_table(work.types),
        collectives_table(work.collectives),
        copies_table(work.copies),
        summary_table(work.summary),
        overlaps_table(work.overlaps),
        utilisation_table(work.utilisation, steps),
        low_use_table(work.utilisation, steps),
        durations_table(work.durations, (work.summary.short_kernels, work.summary.kernels)),
        configurations_table(work.configurations),
        sequences_table(work.sequences, steps),
        op_rates_table(work.ops),
        step_launches_table(work.step_launches, steps),
        annotations_table(work.annotations),
        *_memory(analysis),
    ]


def _memory(analysis: RankAnalysis) -> list[Table]:
    trace = analysis.trace
    return memory_tables(analysis.memory, analysis.steps, trace.module_memory, trace.process_memory)
