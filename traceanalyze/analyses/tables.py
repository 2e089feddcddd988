"""All tables of one rank, each from the analysis that computes it.

What is not `full` is for a short view: without the tables that only a full report shows and that no rule reads, unless
they say what to record.
"""

from collections.abc import Iterator
from dataclasses import replace

from traceanalyze.analyses.communication.collectives import collectives
from traceanalyze.analyses.communication.vendor import vendor_tables
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.annotations import device_annotations, host_annotations
from traceanalyze.analyses.host.call_paths import call_paths, source_lines
from traceanalyze.analyses.host.modules import module_classes, modules
from traceanalyze.analyses.host.operators import (
    op_kernels,
    operator_steps,
    operators,
    operators_by_shape,
    shapes_recorded,
)
from traceanalyze.analyses.idle.gap_table import gap_table
from traceanalyze.analyses.idle.gc_pauses import gc_pauses
from traceanalyze.analyses.idle.idle import idle_causes, idle_tables
from traceanalyze.analyses.idle.launches import launches, runtime_calls, step_launches
from traceanalyze.analyses.idle.syncs import sync_points
from traceanalyze.analyses.kernels import kernels
from traceanalyze.analyses.kernels.copies import copies
from traceanalyze.analyses.kernels.op_work import op_rates
from traceanalyze.analyses.kernels.sequences import kernel_sequences
from traceanalyze.analyses.kernels.use import device_summary, overlaps, utilisation
from traceanalyze.analyses.memory.recorded import memory_tables, peak_tables
from traceanalyze.analyses.steps import split
from traceanalyze.analyses.steps.critical_path import critical_path_tables, path_lacks
from traceanalyze.analyses.steps.inference import inference
from traceanalyze.analyses.steps.phases import backward_only, phases
from traceanalyze.analyses.steps.window import window_of
from traceanalyze.model.table import Kind, Message, Table, sentences
from traceanalyze.model.vocabulary import Mode


def device_tables(context: Context, sent: Table, *, full: bool = True) -> Iterator[Table]:
    """Device work inside the analysed windows from every side; `sent` are its collectives.

    Of sums alone there are no kernels.
    """
    if context.trace.origin.form == "sums":
        yield from memory_tables(context)
        return
    yield kernels.kernel_groups(context)
    yield kernels.kernels(context)
    yield kernels.kernel_types(context)
    yield sent
    yield copies(context)
    if full:
        summary = device_summary(context)
        yield summary
        yield overlaps(context)
        yield from utilisation(context)
        yield kernels.durations(context, summary)
        yield kernels.configurations(context)
        yield kernel_sequences(context)
    yield op_rates(context)
    if full:
        yield step_launches(context)
        yield device_annotations(context)
    yield from memory_tables(context)


_SAY = sentences(
    of_one_device="Of device {device} alone, which is busy longest.", of_devices="Of all {count} devices together."
)
_OF_ONE = (
    "split totals idle_causes sync_points gaps phases step_phases steps step_statistics step_idle_causes critical_path "
    "critical_path_work launches device_summary device_overlap utilisation low_utilisation kernel_sequences "
    "inference_phases steady_state gc_pauses"
)
"""Tables about the headline device."""
_OF_ALL = (
    "operators module_classes modules operator_shapes op_kernels source_lines operator_steps call_paths kernel_groups "
    "kernels kernel_types kernel_durations kernel_configurations collectives copies op_rates step_launches"
)
"""Tables that sum over devices."""


def _told_apart(context: Context, tables: Iterator[Table]) -> Iterator[Table]:
    """Of several devices with a note whose each table is."""
    one = Message(_SAY["of_one_device"], (("device", Kind.COUNT, context.devices[0]),))
    every = Message(_SAY["of_devices"], (("count", Kind.COUNT, len(context.devices)),))
    notes = dict.fromkeys(_OF_ONE.split(), one) | dict.fromkeys(_OF_ALL.split(), every)
    for table in tables:
        told = table.key in notes and table.rows
        yield replace(table, notes=(*table.notes, notes[table.key])) if told else table


def tables_of(context: Context, *, full: bool = True) -> list[Table]:
    """Tables of the rank in reading order; of several devices each says whose it is."""
    if len(context.device):
        tables = _with_device(context, full=full)
        backward = context.once(backward_only)
        several = len(context.devices) > 1
        return [table.directed(backward) for table in (_told_apart(context, tables) if several else tables)]
    return [*split.host_split_tables(context), *host_tables(context, full=full), *memory_tables(context)]


def rule_tables(context: Context) -> list[Table]:
    """Of a rank that is not shown: where its step time went, and what rules and its verdict read."""
    if not len(context.device):
        return tables_of(context, full=False)
    by_phase = phases(context)[:1] if context.step_track >= 0 else ()
    work = () if context.trace.origin.form == "sums" else (kernels.kernel_types(context), op_rates(context))
    tables = split_table(context), *by_phase, *inference(context), context.once(gc_pauses), *work
    return [*tables, *peak_tables(context)]


def split_table(context: Context) -> Table:
    """Where the step time went, alone."""
    if not len(context.device):
        return split.host_split_tables(context)[0]
    partition = context.once(split.partitions)[0]
    parts, window = (
        split.device_parts(partition, context.once(idle_causes), context.unmeasured),
        window_of(context.steps),
    )
    return split.split(
        parts, window, marked=context.mode == Mode.STEPS, notes=split.overlap_notes(split.totals(partition, window))
    )


def _with_device(context: Context, *, full: bool) -> Iterator[Table]:
    steps, window, each = context.steps, window_of(context.steps), context.once(split.partitions)
    idle = context.once(idle_causes)
    parts, (causes, step_causes) = (split.device_parts(each[0], idle, context.unmeasured), idle_tables(steps, idle))
    sent, worked = collectives(context), split.totals(each[0], window)
    yield split.split(parts, window, marked=context.mode == Mode.STEPS, notes=split.overlap_notes(worked))
    yield worked
    yield causes
    yield sync_points(context)
    yield gap_table(context)
    yield launches(context)
    yield runtime_calls(context)
    if full or context.once(path_lacks) is not None:
        yield from critical_path_tables(context)
    yield from host_tables(context, full=full)
    yield from device_tables(context, sent, full=full)
    yield split.devices(each, context.trace, window)
    yield from split.step_tables(steps, parts)
    yield step_causes
    if full:
        yield split.device_spans(context)
    yield from vendor_tables(context.trace, sent)
    if full:
        yield kernels.classification(context)


def host_tables(context: Context, *, full: bool = True) -> Iterator[Table]:
    """Host work inside the analysed windows from every side."""
    if context.step_track >= 0:
        by_phase, by_step = phases(context)
        yield operators(context)
        yield by_phase
        yield module_classes(context)
        if full:
            yield context.once(modules)
        if full or not shapes_recorded(context):
            yield operators_by_shape(context)
        if full:
            yield op_kernels(context)
        yield source_lines(context)
        yield by_step
        if full:
            yield operator_steps(context)
            yield host_annotations(context)
    yield from inference(context)
    yield context.once(gc_pauses)
    if full:
        yield call_paths(context)
