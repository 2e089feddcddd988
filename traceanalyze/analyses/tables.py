"""All tables of one rank, each from the analysis that computes it."""

from __future__ import annotations

from traceanalyze.analyses.communication.collectives import collectives
from traceanalyze.analyses.communication.vendor import vendor_tables
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.annotations import device_annotations, host_annotations
from traceanalyze.analyses.host.call_paths import call_paths
from traceanalyze.analyses.host.modules import modules
from traceanalyze.analyses.host.op_kernels import op_kernels
from traceanalyze.analyses.host.operators import operator_steps, operators, operators_by_shape
from traceanalyze.analyses.host.source_lines import source_lines
from traceanalyze.analyses.idle.gap_table import gap_table
from traceanalyze.analyses.idle.gc_pauses import gc_pauses
from traceanalyze.analyses.idle.idle import idle_causes, idle_tables
from traceanalyze.analyses.idle.launches import launches, runtime_calls, step_launches
from traceanalyze.analyses.idle.syncs import sync_points
from traceanalyze.analyses.kernels.copies import copies
from traceanalyze.analyses.kernels.kernels import (
    classification,
    configurations,
    durations,
    kernel_groups,
    kernel_types,
    kernels,
)
from traceanalyze.analyses.kernels.op_work import op_rates
from traceanalyze.analyses.kernels.sequences import kernel_sequences
from traceanalyze.analyses.kernels.use import device_summary, overlaps, utilisation
from traceanalyze.analyses.memory.recorded import memory_tables
from traceanalyze.analyses.steps.critical_path import critical_path_tables
from traceanalyze.analyses.steps.inference import inference
from traceanalyze.analyses.steps.phases import phases
from traceanalyze.analyses.steps.split import (
    device_parts,
    device_spans,
    devices,
    host_split_tables,
    overlap_notes,
    partitions,
    split,
    step_tables,
    totals,
)
from traceanalyze.analyses.steps.window import window_of
from traceanalyze.model.table import Table
from traceanalyze.model.vocabulary import Mode


def device_tables(context: Context, sent: Table) -> list[Table]:
    """Device work inside the analysed windows from every side; `sent` are its collectives."""
    summary = device_summary(context)
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
    ]


def tables_of(context: Context) -> list[Table]:
    """Tables of the rank in reading order."""
    if len(context.device):
        return _with_device(context)
    return [*host_split_tables(context), *host_tables(context), *memory_tables(context)]


def _with_device(context: Context) -> list[Table]:
    steps, window, each = context.steps, window_of(context.steps), context.once(partitions)
    idle = context.once(idle_causes)
    parts, (causes, step_causes) = device_parts(each[0], idle), idle_tables(steps, idle)
    sent, worked = collectives(context), totals(each[0], window)
    return [
        split(parts, window, marked=context.mode == Mode.STEPS, notes=overlap_notes(worked)),
        worked,
        causes,
        sync_points(context),
        gap_table(context),
        launches(context),
        runtime_calls(context),
        *critical_path_tables(context),
        *host_tables(context),
        *device_tables(context, sent),
        devices(each, context.trace.devices, window),
        *step_tables(steps, parts),
        step_causes,
        device_spans(context),
        *vendor_tables(context.trace, sent),
        classification(context),
    ]


def host_tables(context: Context) -> list[Table]:
    """Host work inside the analysed windows from every side."""
    tables: list[Table] = []
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
    return [*tables, *inference(context), context.once(gc_pauses), call_paths(context)]
