"""All tables about what the host did and made the device do, in reading order (definitions §§9–11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.report.assembly.annotations import host_annotations_table
from traceanalyze.report.assembly.host_columns import columns_of, ranked_by
from traceanalyze.report.assembly.operators import (
    operator_steps_table,
    operators_table,
    shapes_table,
)
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results import RankAnalysis, Steps
    from traceanalyze.analyses.results_host import Module, PhaseTime, SourceLine
    from traceanalyze.analyses.steps.window import Window

_PHASES = (
    Column("phase", Kind.TERM),
    Column("device_ns", Kind.DURATION),
    Column("device_step_share", Kind.SHARE),
    Column("host_ns", Kind.DURATION),
    Column("device_events", Kind.COUNT, minor=True),
)
_STEP_PHASES = (
    Column("step", Kind.TEXT),
    Column("phase", Kind.TERM),
    Column("device_ns", Kind.DURATION),
    Column("host_ns", Kind.DURATION),
)
_MODULES = (
    Column("module", Kind.NAME),
    Column("module_class", Kind.NAME, minor=True),
    Column("calls", Kind.COUNT),
    Column("forward_self_ns", Kind.DURATION),
    Column("backward_self_ns", Kind.DURATION),
    Column("forward_total_ns", Kind.DURATION),
    Column("backward_total_ns", Kind.DURATION),
    Column("host_self_ns", Kind.DURATION, minor=True),
    Column("host_total_ns", Kind.DURATION, minor=True),
)
_LINES = (
    Column("line", Kind.NAME),
    Column("calls", Kind.COUNT),
    Column("host_self_ns", Kind.DURATION),
    Column("with_library_ns", Kind.DURATION),
    Column("host_total_ns", Kind.DURATION),
    Column("device_idle_ns", Kind.DURATION),
)


def host_work_tables(analysis: RankAnalysis, window: Window) -> list[Table]:
    """Tables of a rank with host events."""
    work = analysis.host_work
    if isinstance(work, NotMeasured):
        return []
    return [
        operators_table(work.operators, work.device_time, broken=work.broken),
        phases_table(work.phases, window, device=work.device_time is not None),
        modules_table(work.modules, device=work.device_time is not None),
        shapes_table(work.shapes, work.device_time),
        analysis.tables["op_kernels"],
        lines_table(work.lines, device=work.device_time is not None),
        step_phases_table(work.phases, analysis.steps, device=work.device_time is not None),
        operator_steps_table(work.op_steps, analysis.steps, device=work.device_time is not None),
        host_annotations_table(work.annotations, device=work.device_time is not None),
    ]


def phases_table(phases: tuple[PhaseTime, ...] | NotMeasured, window: Window, *, device: bool) -> Table:
    """Mean step by phase; phases overlap, and some are part of others."""
    if isinstance(phases, NotMeasured):
        return table_of_rows("phases", _PHASES, phases, detail=True)
    missing = NotMeasured("no_device_events")
    rows = tuple(
        (
            f"phase_{row.phase.name.lower()}",
            window.mean(window.sum(row.device)) if device else missing,
            window.share(window.sum(row.device)) if device else missing,
            window.mean(window.sum(row.host)),
            row.events,
        )
        for row in phases
    )
    columns = columns_of(_PHASES, device=device)
    return table_of_rows("phases", columns, rows, title_values=(("steps", Kind.COUNT, window.count),))


def step_phases_table(phases: tuple[PhaseTime, ...] | NotMeasured, steps: Steps, *, device: bool) -> Table:
    """Every phase of every step."""
    if isinstance(phases, NotMeasured):
        return table_of_rows("step_phases", _STEP_PHASES, phases, detail=True)
    missing = NotMeasured("no_device_events")
    rows = tuple(
        (
            label,
            f"phase_{row.phase.name.lower()}",
            int(row.device[index]) if device else missing,
            int(row.host[index]),
        )
        for index, label in enumerate(step_labels(steps.name))
        for row in phases
    )
    return table_of_rows("step_phases", _STEP_PHASES, rows, detail=True)


def modules_table(modules: tuple[Module, ...] | NotMeasured, *, device: bool) -> Table:
    """Modules of the model, most time of their own first; not measured by most recordings."""
    columns, by = columns_of(_MODULES, device=device), ranked_by(device=device)
    if isinstance(modules, NotMeasured):
        return table_of_rows("modules", columns, modules, title_values=by)
    missing = NotMeasured("no_device_events")
    rows = []
    for row in modules:
        times = (row.forward_self, row.backward_self, row.forward_total, row.backward_total)
        known = times if device else (missing,) * 4
        rows.append((row.path, row.name, row.calls, *known, row.host_self, row.host_total))
    return table_of_rows("modules", columns, tuple(rows), ranked=True, title_values=by)


def lines_table(lines: tuple[SourceLine, ...] | NotMeasured, *, device: bool) -> Table:
    """The user's own Python functions by host time."""
    if isinstance(lines, NotMeasured):
        return table_of_rows("source_lines", _LINES, lines, detail=True)
    missing = NotMeasured("no_device_events")
    rows = tuple(
        (row.name, row.calls, row.host_self, row.host_own, row.host_total, row.idle if device else missing)
        for row in lines
    )
    return table_of_rows("source_lines", _LINES, rows, ranked=True, detail=True)
