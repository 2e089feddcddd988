"""What the host did for the device: sync points, launches, runtime calls (definitions §§6, 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, Layout, NotMeasured, Table
from traceanalyze.model.vocabulary import SyncKind
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results import Launches, SyncSite

_SYNCS = (
    Column("op", Kind.NAME),
    Column("call", Kind.NAME),
    Column("kind", Kind.TERM, minor=True),
    Column("count", Kind.COUNT),
    Column("blocked_ns", Kind.DURATION),
    Column("idle_caused_ns", Kind.DURATION),
    Column("data_dependent", Kind.FLAG, minor=True),
    Column("frame", Kind.NAME, minor=True),
)
_LAUNCHES = (
    Column("linked", Kind.COUNT),
    Column("unlinked", Kind.COUNT, minor=True),
    Column("unlinked_ns", Kind.DURATION, scale="unlinked", minor=True),
    Column("late", Kind.COUNT),
    Column("late_share", Kind.SHARE),
    Column("delay_p50_ns", Kind.DURATION, scale="delay"),
    Column("delay_p90_ns", Kind.DURATION, scale="delay"),
    Column("queue_depth_p50", Kind.NUMBER),
    Column("queue_depth_p90", Kind.NUMBER),
    Column("idle_queue_empty", Kind.SHARE),
    Column("queue_full_ns", Kind.DURATION, scale="full", minor=True),
    Column("negative_latency", Kind.COUNT, minor=True),
)
_CALLS = (
    Column("call", Kind.NAME),
    Column("kind", Kind.TERM),
    Column("count", Kind.COUNT),
    Column("sum_ns", Kind.DURATION),
    Column("mean_call_ns", Kind.DURATION, scale="call"),
)


def syncs_table(syncs: tuple[SyncSite, ...] | NotMeasured) -> Table:
    """Places where the host waits for the device, costliest first; sums over the analysed steps."""
    if isinstance(syncs, NotMeasured):
        return table_of_rows("sync_points", _SYNCS, syncs)
    rows = tuple(
        (
            site.op,
            site.call or None,
            f"sync_{site.kind.name.lower()}",
            site.count,
            NotMeasured("no_cann_calls") if site.blocked is None else site.blocked,
            _unknown(site) if site.idle_caused is None else site.idle_caused,
            site.data_dependent,
            site.frame,
        )
        for site in syncs
    )
    return table_of_rows("sync_points", _SYNCS, rows, ranked=True)


def _unknown(site: SyncSite) -> NotMeasured:
    return NotMeasured("terminal_sync" if site.kind != SyncKind.SUSPECTED else "no_cann_calls")


def launches_table(launches: Launches | NotMeasured) -> Table:
    """How device work was launched, as one record."""
    if isinstance(launches, NotMeasured):
        return table_of_rows("launches", _LAUNCHES, launches)
    no_launches = NotMeasured("no_linked_launches")
    row = (
        launches.linked,
        launches.unlinked,
        launches.unlinked_time,
        launches.late,
        launches.late / launches.linked if launches.linked else no_launches,
        *(
            no_launches if value is None else value
            for value in (
                launches.delay_p50,
                launches.delay_p90,
                launches.queue_depth_p50,
                launches.queue_depth_p90,
                launches.idle_queue_empty,
            )
        ),
        launches.queue_full,
        launches.negative_latency,
    )
    return table_of_rows("launches", _LAUNCHES, (row,), layout=Layout.RECORD)


def calls_table(launches: Launches | NotMeasured) -> Table:
    """Host time in runtime calls by name, costliest first."""
    if isinstance(launches, NotMeasured):
        return table_of_rows("runtime_calls", _CALLS, launches, detail=True)
    ordered = sorted(launches.calls, key=lambda call: (-call.duration, call.name))
    rows = tuple(
        (call.name, f"api_{call.kind}", call.count, call.duration, call.duration // call.count if call.count else 0)
        for call in ordered
    )
    return table_of_rows("runtime_calls", _CALLS, rows, ranked=True, detail=True)
