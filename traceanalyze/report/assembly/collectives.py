"""Table of the collectives of one rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table
from traceanalyze.report.model import table_of_rows

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


_PARTS = (
    Column("wait_ns", Kind.DURATION),
    Column("exposed_wait_ns", Kind.DURATION, minor=True),
    Column("transfer_ns", Kind.DURATION),
    Column("waited_for", Kind.COUNT),
)
"""Where the profile records what collectives consist of."""


def collectives_table(collectives: tuple[Collective, ...] | NotMeasured) -> Table:
    """Collectives by group, type, element type and size; exposed times sum to the exposed communication."""
    if isinstance(collectives, NotMeasured):
        return table_of_rows("collectives", _COLLECTIVES, collectives, detail=True)
    split = any(not isinstance(item.transfer, NotMeasured) for item in collectives)
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
            *((item.wait, item.exposed_wait, item.transfer, item.waited_for) if split else ()),
            item.algbw,
            item.busbw,
        )
        for item in collectives
    )
    columns = (*_COLLECTIVES[:-2], *_PARTS, *_COLLECTIVES[-2:]) if split else _COLLECTIVES
    return table_of_rows("collectives", columns, rows, ranked=True, notes=_notes(collectives))


def _notes(collectives: tuple[Collective, ...]) -> tuple[Message, ...]:
    """How much of the exposed time is waiting, where that is known of all; else that bandwidths include waiting."""
    waits = [item.exposed_wait for item in collectives if not isinstance(item.exposed_wait, NotMeasured)]
    if len(waits) == len(collectives):
        exposed = sum(item.exposed for item in collectives)
        values = (
            ("exposed", Kind.DURATION, exposed),
            ("wait", Kind.DURATION, sum(waits)),
            ("transfer", Kind.DURATION, exposed - sum(waits)),
        )
        return (Message("exposed_wait", values),)
    measured = any(not isinstance(item.algbw, NotMeasured) for item in collectives)
    return (Message("bandwidth_waits"),) if measured else ()
