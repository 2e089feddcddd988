"""Pauses of Python's garbage collector, recorded or suspected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results import Steps
    from traceanalyze.analyses.results_host_more import GcPauses

_PAUSES = (
    Column("step", Kind.TEXT),
    Column("start_ns", Kind.DURATION, scale="at"),
    Column("length_ns", Kind.DURATION),
    Column("idle_ns", Kind.DURATION),
    Column("evidence", Kind.TERM),
    Column("thread", Kind.NAME, minor=True),
)


def gc_pauses_table(found: GcPauses | NotMeasured, steps: Steps) -> Table:
    """Pauses in order of time; what was looked at is said even where there are none."""
    if isinstance(found, NotMeasured):
        return table_of_rows("gc_pauses", _PAUSES, found, detail=True)
    labels, missing = step_labels(steps.name), NotMeasured("no_device_events")
    rows = tuple(
        (
            None if pause.step is None else labels[pause.step],
            pause.start,
            pause.length,
            missing if pause.idle is None else pause.idle,
            f"gc_{pause.evidence}",
            pause.thread,
        )
        for pause in found.pauses
    )
    return table_of_rows("gc_pauses", _PAUSES, rows, worst="length_ns", notes=tuple(_notes(found)), detail=not rows)


def _notes(found: GcPauses) -> list[Message]:
    notes = [] if found.source == "events" else [Message(f"gc_source_{found.source}")]
    lengths = [pause.length for pause in found.pauses]
    if lengths:
        idle = [pause.idle for pause in found.pauses if pause.idle is not None]
        values = (
            ("count", Kind.COUNT, len(lengths)),
            ("total", Kind.DURATION, sum(lengths)),
            ("longest", Kind.DURATION, max(lengths)),
            ("idle", Kind.DURATION, sum(idle)),
        )
        what = "recorded" if found.source == "events" else "suspected"
        notes.append(Message(f"gc_{what}_sum" if idle else "gc_host_sum", values))
    if found.short:
        short = (("count", Kind.COUNT, found.short), ("total", Kind.DURATION, found.short_time))
        notes.append(Message("gc_short", short))
    return notes
