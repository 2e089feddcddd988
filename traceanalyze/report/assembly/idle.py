"""Why the device was idle: causes per step, and the longest idle intervals (definitions §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.model.vocabulary import Cause
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results import IdleCauses
    from traceanalyze.analyses.steps.window import Window

_CAUSES = (
    Column("cause", Kind.TERM),
    Column("mean_ns", Kind.DURATION),
    Column("share", Kind.SHARE),
    Column("share_of_idle", Kind.SHARE),
    Column("sum_ns", Kind.DURATION, machine=True),
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
