"""Why the device was idle: causes per step, and the longest idle intervals (definitions §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table
from traceanalyze.model.vocabulary import Cause
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results import Gap, IdleCauses, Steps
    from traceanalyze.analyses.steps.window import Window

_CAUSES = (
    Column("cause", Kind.TERM),
    Column("mean_ns", Kind.DURATION),
    Column("share", Kind.SHARE),
    Column("share_of_idle", Kind.SHARE),
    Column("sum_ns", Kind.DURATION, machine=True),
)
_GAPS = (
    Column("at_ns", Kind.DURATION, scale="at"),
    Column("length_ns", Kind.DURATION),
    Column("causes", Kind.BREAKDOWN),
    Column("trigger", Kind.TERM, minor=True),
    Column("next_event", Kind.NAME),
    Column("next_op", Kind.NAME, minor=True),
    Column("frame", Kind.NAME, minor=True),
)


def causes_table(idle: IdleCauses | NotMeasured, window: Window) -> Table:
    """Idle time by cause, in the order of definitions §5; the rows sum to the device's idle time."""
    if isinstance(idle, NotMeasured):
        return table_of_rows("idle_causes", _CAUSES, idle)
    sums = [(cause, window.sum(idle.by_step[:, cause])) for cause in Cause]
    idle_ns = sum(amount for _, amount in sums)

    def row(key: str, amount: int) -> tuple[str, int, float, float, int]:
        return key, window.mean(amount), window.share(amount), amount / idle_ns if idle_ns else 0.0, amount

    return table_of_rows(
        "idle_causes",
        _CAUSES,
        tuple(
            (cause.key, *[idle.missing[cause]] * 4) if cause in idle.missing else row(cause.key, amount)
            for cause, amount in sums
        ),
        total=row("idle_sum", idle_ns),
        bar="share",
        skip_zero="sum_ns",
        title_values=(("steps", Kind.COUNT, window.count),),
    )


def gaps_table(gaps: tuple[Gap, ...] | NotMeasured, count: int, steps: Steps) -> Table:
    """The longest idle intervals; `at_ns` counts from the start of the step."""
    # Which step it is goes without saying when there is one.
    columns = (Column("step", Kind.TEXT, machine=len(steps) == 1), *_GAPS)
    if isinstance(gaps, NotMeasured):
        return table_of_rows("gaps", columns, gaps)
    labels = step_labels(steps.name)
    rows = tuple(
        (
            labels[gap.step],
            gap.start - int(steps.start[gap.step]),
            gap.length,
            tuple((cause.key, amount) for cause, amount in gap.causes),
            gap.trigger.replace(" ", "_").replace("-", "_"),
            gap.next_event,
            gap.next_op,
            gap.frame,
        )
        for gap in gaps
    )
    kept = (("kept", Kind.COUNT, len(rows)), ("count", Kind.COUNT, count))
    notes = (Message("gaps_kept", kept),) if len(rows) < count else ()
    return table_of_rows("gaps", columns, rows, ranked=True, notes=notes)
