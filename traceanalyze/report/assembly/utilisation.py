"""Tables of device use over time: every step in equal chunks, and stretches with little use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model.table import Column, Kind, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results import Steps
    from traceanalyze.analyses.results_use import Utilisation

_PLACE = (Column("step", Kind.TEXT), Column("at_ns", Kind.DURATION), Column("start_ns", Kind.DURATION, machine=True))
_USE = (Column("length_ns", Kind.DURATION), Column("busy_share", Kind.SHARE))
_CHUNKS = (
    *_PLACE,
    Column("chunk", Kind.COUNT),
    *_USE,
    Column("compute_share", Kind.SHARE),
    Column("communication_share", Kind.SHARE),
)


def utilisation_table(use: Utilisation, steps: Steps) -> Table:
    """Busy share chunk by chunk."""
    labels, begins = step_labels(steps.name), steps.start.tolist()
    chunks = use.chunks
    columns = (chunks.step, chunks.start, chunks.end, chunks.number, chunks.busy, chunks.compute, chunks.comm)
    rows = tuple(
        (
            labels[step],
            start - begins[step],
            start,
            number + 1,
            end - start,
            *(part / (end - start) for part in parts),
        )
        for step, start, end, number, *parts in zip(*(column.tolist() for column in columns), strict=True)
    )
    return table_of_rows("utilisation", _CHUNKS, rows, bar="busy_share", ranked=True, detail=True)


def low_use_table(use: Utilisation, steps: Steps) -> Table:
    """Stretches of chunks with little use, longest first."""
    labels, begins = step_labels(steps.name), steps.start.tolist()
    rows = tuple(
        (labels[item.step], item.start - begins[item.step], item.start, item.length, item.busy / item.length)
        for item in use.low
    )
    return table_of_rows("low_utilisation", (*_PLACE, *_USE), rows, ranked=True, detail=True)
