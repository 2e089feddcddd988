"""All tables of one rank, each from the analysis that computes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.communication.collectives import collectives
from traceanalyze.analyses.communication.vendor import vendor_tables
from traceanalyze.analyses.host.annotations import device_annotations, host_annotations
from traceanalyze.analyses.host.call_paths import call_paths
from traceanalyze.analyses.host.modules import modules
from traceanalyze.analyses.host.op_kernels import op_kernels
from traceanalyze.analyses.host.operators import operator_steps, operators, operators_by_shape
from traceanalyze.analyses.host.source_lines import source_lines
from traceanalyze.analyses.idle.gap_table import gap_table
from traceanalyze.analyses.idle.gc_pauses import gc_pauses
from traceanalyze.analyses.idle.launches import launches, runtime_calls, step_launches
from traceanalyze.analyses.idle.syncs import sync_points
from traceanalyze.analyses.kernels.copies import copies
from traceanalyze.analyses.kernels.events import classification
from traceanalyze.analyses.kernels.kernels import configurations, durations, kernel_groups, kernel_types, kernels
from traceanalyze.analyses.kernels.op_work import op_rates
from traceanalyze.analyses.kernels.sequences import kernel_sequences
from traceanalyze.analyses.kernels.use import device_summary, overlaps, utilisation
from traceanalyze.analyses.memory.recorded import memory_tables
from traceanalyze.analyses.steps.critical_path import critical_path_tables
from traceanalyze.analyses.steps.inference import inference
from traceanalyze.analyses.steps.partition import device_spans
from traceanalyze.analyses.steps.phases import phases

if TYPE_CHECKING:
    from traceanalyze.analyses.context import Context
    from traceanalyze.model.table import Table


def device_tables(context: Context) -> list[Table]:
    """Device work inside the analysed windows from every side."""
    summary, sent = device_summary(context), collectives(context)
    return [
        kernel_groups(context),
        kernels(context),
        kernel_types(context),
        sent,
        copies(context),
        summary,
        overlaps(context),
        *utilisation(context),
        durations(context, summary),
        configurations(context),
        kernel_sequences(context),
        op_rates(context),
        step_launches(context),
        device_annotations(context),
        *memory_tables(context),
        *vendor_tables(context.trace, sent),
    ]


def tables_of(context: Context) -> dict[str, Table]:
    """Tables of the rank by key, in reading order."""
    tables: list[Table] = []
    if len(context.device):
        tables += [sync_points(context), gap_table(context), launches(context), runtime_calls(context)]
        tables += critical_path_tables(context)
    if context.step_track >= 0:
        by_phase, by_step = phases(context)
        tables += [
            operators(context),
            by_phase,
            modules(context),
            operators_by_shape(context),
            op_kernels(context),
            source_lines(context),
            by_step,
            operator_steps(context),
            host_annotations(context),
        ]
    tables += [*inference(context), gc_pauses(context), call_paths(context)]
    if len(context.device):
        spans = device_spans(context.device, {device: context.class_sets(device) for device in context.devices})
        tables += [*device_tables(context), spans, classification(context.trace, context.device)]
    else:
        tables += memory_tables(context)
    return {table.key: table for table in tables}
