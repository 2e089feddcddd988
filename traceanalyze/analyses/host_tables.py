"""All tables about what the host of one rank did, and what it made the devices do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.host_annotations import host_annotations
from traceanalyze.analyses.modules import modules
from traceanalyze.analyses.op_kernels import op_kernels
from traceanalyze.analyses.operator_steps import operator_steps
from traceanalyze.analyses.operators import operator_sums, operators, operators_by_shape
from traceanalyze.analyses.phases import phases
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.analyses.results_host import HostWork
from traceanalyze.analyses.source_lines import source_lines

if TYPE_CHECKING:
    from traceanalyze.analyses.context import Context


def host_tables(context: Context) -> HostWork | NotMeasured:
    """Host work inside the analysed windows from every side."""
    if context.step_track < 0:
        return NotMeasured("no_host_events")
    sums = operator_sums(context)
    return HostWork(
        operators=operators(context, sums),
        shapes=operators_by_shape(context, sums),
        phases=phases(context, context.event_phases),
        modules=modules(context, context.event_phases),
        lines=source_lines(context),
        op_kernels=op_kernels(context),
        op_steps=operator_steps(context, sums),
        annotations=host_annotations(context),
        device_time=int(context.work.time.sum()) if len(context.device) else None,
        broken=context.op_nest.broken,
    )
