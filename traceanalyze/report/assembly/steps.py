"""Per-step rows and the statistics over steps (definitions §3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.steps.window import median, step_labels
from traceanalyze.model.table import Column, Kind, Layout, NotMeasured, Table
from traceanalyze.model.vocabulary import Cause
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results import IdleCauses, Steps
    from traceanalyze.analyses.steps.window import Window
    from traceanalyze.model.table import Row
    from traceanalyze.report.assembly.split import Part

_STATISTICS = (
    Column("steps", Kind.COUNT),
    Column("complete_steps", Kind.COUNT),
    Column("mean_ns", Kind.DURATION),
    Column("median_ns", Kind.DURATION),
    Column("min_ns", Kind.DURATION),
    Column("max_ns", Kind.DURATION),
    Column("between_steps_ns", Kind.DURATION, minor=True),
    Column("lead_in_ns", Kind.DURATION, minor=True),
)


def steps_table(steps: Steps, parts: tuple[Part, ...], window: Window) -> Table:
    """One row a step, with its time by headline part; the means of the steps that count below."""
    columns = (
        Column("step", Kind.TEXT),
        Column("time_ns", Kind.DURATION),
        *(Column(f"{part.key}_ns", Kind.DURATION) for part in parts),
        Column("complete", Kind.FLAG),
        Column("start_ns", Kind.DURATION, machine=True),
        Column("device_events", Kind.COUNT, minor=True),
    )
    labels = step_labels(steps.name)

    def row(index: int) -> Row:
        return (
            labels[index],
            int(steps.end[index] - steps.start[index]),
            *(part.missing or int(part.time[index]) for part in parts),
            bool(steps.complete[index]),
            int(steps.start[index]),
            int(steps.owned[index]),
        )

    rows = tuple(row(index) for index in range(len(steps)))
    means = tuple(part.missing or window.mean(window.sum(part.time)) for part in parts)
    total: Row | None = ("mean", window.mean(window.total), *means, None, None, None) if len(rows) > 1 else None
    return table_of_rows("steps", columns, rows, total=total, worst="time_ns", detail=len(rows) == 1)


def statistics_table(steps: Steps, window: Window) -> Table:
    """Mean, median and range of the step times that count."""
    times = [int(steps.end[row] - steps.start[row]) for row in window.rows]
    if not times:
        return table_of_rows("step_statistics", _STATISTICS, NotMeasured("no_steps"), detail=True)
    row = (
        len(steps),
        sum(bool(flag) for flag in steps.complete),
        window.mean(window.total),
        median(times),
        min(times),
        max(times),
        steps.between_steps,
        steps.lead_in,
    )
    return table_of_rows("step_statistics", _STATISTICS, (row,), layout=Layout.RECORD, detail=True)


def step_causes_table(steps: Steps, idle: IdleCauses | NotMeasured) -> Table:
    """Idle time of every step by cause."""
    columns = (Column("step", Kind.TEXT), *(Column(f"{cause.key}_ns", Kind.DURATION) for cause in Cause))
    if isinstance(idle, NotMeasured):
        return table_of_rows("step_idle_causes", columns, idle, detail=True)
    rows: list[Row] = []
    for row, label in enumerate(step_labels(steps.name)):
        rows.append((label, *(idle.missing.get(cause) or int(idle.by_step[row, cause]) for cause in Cause)))
    return table_of_rows("step_idle_causes", columns, tuple(rows), detail=True)
