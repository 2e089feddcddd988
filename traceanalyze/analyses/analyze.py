"""All analyses of one rank, in the order they depend on each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.communication.collectives import collectives
from traceanalyze.analyses.communication.vendor import vendor_tables
from traceanalyze.analyses.filtering import context_of
from traceanalyze.analyses.host.annotations import device_annotations, host_annotations
from traceanalyze.analyses.host.call_paths import call_paths
from traceanalyze.analyses.host.modules import modules
from traceanalyze.analyses.host.op_kernels import op_kernels
from traceanalyze.analyses.host.operators import operator_steps, operators, operators_by_shape
from traceanalyze.analyses.host.source_lines import source_lines
from traceanalyze.analyses.host.split import host_split
from traceanalyze.analyses.idle import idle
from traceanalyze.analyses.idle.gap_table import gap_table
from traceanalyze.analyses.idle.gc_pauses import gc_pauses
from traceanalyze.analyses.idle.host_state import host_states
from traceanalyze.analyses.idle.idle import idle_pieces
from traceanalyze.analyses.idle.launches import launches, runtime_calls, step_launches
from traceanalyze.analyses.idle.syncs import sync_points
from traceanalyze.analyses.kernels.copies import copies
from traceanalyze.analyses.kernels.events import classification
from traceanalyze.analyses.kernels.kernels import configurations, durations, kernel_groups, kernel_types, kernels
from traceanalyze.analyses.kernels.op_work import op_rates
from traceanalyze.analyses.kernels.sequences import kernel_sequences
from traceanalyze.analyses.kernels.use import device_summary, overlaps, utilisation
from traceanalyze.analyses.memory.recorded import memory_tables
from traceanalyze.analyses.options import Options
from traceanalyze.analyses.quality.quality import quality
from traceanalyze.analyses.results import HostSplit, IdleCauses, RankAnalysis
from traceanalyze.analyses.steps.critical_path import critical_path_tables
from traceanalyze.analyses.steps.inference import inference
from traceanalyze.analyses.steps.partition import device_spans, partition
from traceanalyze.analyses.steps.phases import phases
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import NEED_CALLS, NEED_HOST_OPS, NEED_RUNTIME, Cause, Mode

if TYPE_CHECKING:
    from traceanalyze.analyses.context import Context
    from traceanalyze.model.table import Table
    from traceanalyze.model.trace import Trace


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
        tables += [*device_tables(context), device_spans(context), classification(context)]
    else:
        tables += memory_tables(context)
    return {table.key: table for table in tables}


def analyze_trace(trace: Trace, options: Options | None = None) -> RankAnalysis:
    """Where one rank's step time went.

    Args:
        trace: a trace as a reader returns it.
        options: user's classification rules and selections.

    Returns:
        Tables and checks; what the profile cannot give is `NotMeasured` with its reason.
    """
    return analyze_context(context_of(trace, options or Options()))


def analyze_context(context: Context) -> RankAnalysis:
    """The same, for those who go on with the derived tables."""
    if context.mode in {Mode.HOST_ONLY, Mode.EMPTY}:
        return _without_device(context)
    steps = context.steps
    return RankAnalysis(
        trace=context.trace,
        mode=context.mode,
        steps=steps,
        device=context.devices[0],
        partitions=tuple(
            partition(context.device, d, context.class_sets(d), steps.start, steps.end) for d in context.devices
        ),
        idle=idle_causes(context),
        host=_host(context),
        checks=quality(context),
        tables=tables_of(context),
    )


def _without_device(context: Context) -> RankAnalysis:
    return RankAnalysis(
        trace=context.trace,
        mode=context.mode,
        steps=context.steps,
        device=None,
        partitions=(),
        idle=NotMeasured("no_device_events"),
        host=_host(context),
        checks=quality(context),
        tables=tables_of(context),
    )


def _host(context: Context) -> HostSplit | NotMeasured:
    if context.step_track < 0:
        return NotMeasured("no_host_events")
    return host_split(context.once(host_states, context.step_track, True), context.steps.start, context.steps.end)


def idle_causes(context: Context) -> IdleCauses:
    """Idle time of the headline device by step and cause."""
    steps = context.steps
    cut, step = idle.clipped(context.once(idle_pieces), steps.start, steps.end)
    return IdleCauses(idle.by_step(cut, step, len(steps)), _unseen_causes(context))


def _unseen_causes(context: Context) -> dict[Cause, NotMeasured]:
    """Causes of idle time that need what was not recorded."""
    missing: dict[Cause, NotMeasured] = {}
    if len(context.calls) == 0:
        missing |= dict.fromkeys(NEED_CALLS, NotMeasured("no_api"))
    elif context.queue_only:
        missing |= dict.fromkeys(NEED_RUNTIME, NotMeasured("no_cann_calls"))
    if len(context.host_rows) == 0:
        missing |= dict.fromkeys(NEED_HOST_OPS, NotMeasured("no_host_ops"))
    return missing
