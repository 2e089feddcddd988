"""What the profile says of its own steps, beside our numbers (definitions §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.report.model import Column, Kind, Message, Table

if TYPE_CHECKING:
    from traceanalyze.model.trace import VendorNumbers, VendorStep

_STEPS = (
    Column("step", Kind.TEXT),
    Column("compute_ns", Kind.DURATION),
    Column("communication_ns", Kind.DURATION),
    Column("communication_total_ns", Kind.DURATION),
    Column("free_ns", Kind.DURATION),
    Column("stage_ns", Kind.DURATION),
    Column("bubble_ns", Kind.DURATION, minor=True),
    Column("preparing_ns", Kind.DURATION),
)


def vendor_tables(numbers: VendorNumbers | None) -> list[Table]:
    """The profile's own step times, if it has any; they go into none of our numbers."""
    if numbers is None:
        return []
    note = Message("vendor_source", (("source", Kind.TEXT, numbers.source),))
    return [Table("vendor_steps", _STEPS, tuple(map(_row, numbers.steps)), detail=True, notes=(note,))]


def _row(step: VendorStep) -> tuple[str | int | NotMeasured, ...]:
    times = (
        step.computing,
        step.not_overlapped,
        step.communication,
        step.free,
        step.stage,
        step.bubble,
        step.preparing,
    )
    missing = NotMeasured("vendor_does_not_say")
    return (missing if step.step is None else str(step.step), *(missing if time is None else time for time in times))
