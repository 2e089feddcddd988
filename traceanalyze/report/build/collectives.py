"""Table of the collectives of one rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.report.model import Column, Kind, Message, Table

if TYPE_CHECKING:
    from traceanalyze.analyses.results_device import Collective

_COLLECTIVES = (
    Column("collective", Kind.TEXT),
    Column("group", Kind.TEXT),
    Column("ranks", Kind.COUNT, minor=True),
    Column("dtype", Kind.TEXT, minor=True),
    Column("size_bytes", Kind.BYTES),
    Column("count", Kind.COUNT),
    Column("device_time_ns", Kind.DURATION),
    Column("mean_event_ns", Kind.DURATION, scale="event", minor=True),
    Column("min_ns", Kind.DURATION, scale="event", minor=True),
    Column("max_ns", Kind.DURATION, scale="event", minor=True),
    Column("exposed_ns", Kind.DURATION),
    Column("overlapped_ns", Kind.DURATION),
    Column("algbw", Kind.NUMBER, minor=True),
    Column("busbw", Kind.NUMBER),
)


def collectives_table(collectives: tuple[Collective, ...] | NotMeasured) -> Table:
    """Collectives by group, type, element type and size; exposed times sum to the exposed communication."""
    if isinstance(collectives, NotMeasured):
        return Table("collectives", _COLLECTIVES, collectives, detail=True)
    rows = tuple(
        (
            item.kind,
            item.group,
            item.ranks,
            item.dtype,
            item.bytes,
            item.time.count,
            item.time.total,
            item.time.mean,
            item.time.shortest,
            item.time.longest,
            item.exposed,
            item.overlapped,
            item.algbw,
            item.busbw,
        )
        for item in collectives
    )
    measured = any(not isinstance(item.algbw, NotMeasured) for item in collectives)
    return Table(
        "collectives", _COLLECTIVES, rows, ranked=True, notes=(Message("bandwidth_waits"),) if measured else ()
    )
