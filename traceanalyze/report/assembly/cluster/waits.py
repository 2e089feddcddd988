"""Who waits for whom: by rank, and by group, type and size of collective."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.model.table import Row
    from traceanalyze.ranks.results import Cluster, RankWait

_RANKS = (
    Column("rank", Kind.TEXT),
    Column("step_ns", Kind.DURATION),
    Column("wait_ns", Kind.DURATION),
    Column("share", Kind.SHARE),
    Column("times_last", Kind.COUNT),
    Column("matched", Kind.COUNT, minor=True),
    Column("straggler", Kind.FLAG),
    Column("late_because", Kind.TERM),
    Column("excess_ns", Kind.DURATION),
    Column("recorded_wait_ns", Kind.DURATION, minor=True),
    Column("waited_for", Kind.COUNT, minor=True),
    Column("point_to_point_ns", Kind.DURATION, minor=True),
)
_TOLD = "recorded_wait_ns"
_COLLECTIVES = (
    Column("group", Kind.NAME),
    Column("role", Kind.TERM, minor=True),
    Column("collective", Kind.TEXT),
    Column("bytes", Kind.BYTES),
    Column("count", Kind.COUNT),
    Column("rank", Kind.TEXT),
    Column("transfer_ns", Kind.DURATION),
    Column("wait_ns", Kind.DURATION),
    Column("is_bound", Kind.FLAG, minor=True),
)


def waits_table(cluster: Cluster) -> Table:
    """One row a rank, ns a step over the steps that all ranks recorded."""
    if not cluster.steps:
        return table_of_rows("rank_waits", _RANKS, NotMeasured("no_common_steps"))
    found = () if isinstance(cluster.stragglers, NotMeasured) else cluster.stragglers
    late = {one.label: one for one in reversed(found)}

    def row(one: RankWait) -> Row:
        straggler = late.get(one.label)
        wait = one.wait
        return (
            one.label,
            _mean(one.step_time, one.steps),
            _per_step(wait, one.steps),
            wait if isinstance(wait, NotMeasured) else wait / one.step_time if one.step_time else 0.0,
            wait if isinstance(wait, NotMeasured) else one.last,
            one.collectives,
            cluster.stragglers if isinstance(cluster.stragglers, NotMeasured) else straggler is not None,
            None if straggler is None or straggler.phase is None else straggler.phase,
            None if straggler is None or straggler.phase is None else straggler.excess,
            _per_step(one.recorded_wait, one.steps),
            one.waited_for,
            _mean(one.point_to_point, one.steps),
        )

    notes = tuple(_notes(cluster)) if any(one.bound for one in cluster.waits) else ()
    # Where waits are but lower bounds, what the tasks of the collectives tell is the better answer.
    columns = tuple(replace(one, minor=one.minor and not (notes and one.key == _TOLD)) for one in _RANKS)
    table = table_of_rows(
        "rank_waits", columns, tuple(map(row, cluster.waits)), worst="wait_ns", bar="share", notes=notes
    )
    return _without(table, _unused(cluster))


def _unused(cluster: Cluster) -> set[str]:
    """Columns that are about what these recordings do not have at all."""
    recorded = any(not isinstance(one.recorded_wait, NotMeasured) for one in cluster.waits)
    between = any(one.point_to_point for one in cluster.waits)
    return {
        *(() if recorded else ("recorded_wait_ns", "waited_for")),
        *(() if between else ("point_to_point_ns",)),
    }


def _without(table: Table, keys: set[str]) -> Table:
    kept = [index for index, column in enumerate(table.columns) if column.key not in keys]
    return replace(table, columns=tuple(table.columns[index] for index in kept))


def collectives_table(cluster: Cluster) -> Table:
    """One row for each kind of collective and rank: sums over the steps that all ranks recorded."""
    if isinstance(cluster.collectives, NotMeasured):
        return table_of_rows(
            "collective_waits", _COLLECTIVES, cluster.collectives, detail=True, notes=tuple(_stops(cluster))
        )
    rows = tuple(
        (
            one.group or NotMeasured("no_collective_metadata"),
            None if one.role is None else f"role_{one.role}",
            one.kind,
            one.bytes if one.bytes is not None else NotMeasured("no_collective_metadata"),
            one.count,
            label,
            one.transfer,
            wait,
            one.bound,
        )
        for one in cluster.collectives
        for label, wait in one.wait
    )
    notes = (*_notes(cluster), *_stops(cluster))
    return table_of_rows("collective_waits", _COLLECTIVES, rows, worst="wait_ns", detail=True, notes=notes)


def _notes(cluster: Cluster) -> Iterator[Message]:
    """What bounds the numbers."""
    if cluster.missing_ranks:
        listed = ", ".join(map(str, cluster.missing_ranks))
        yield Message("waits_bounded", (("ranks", Kind.TEXT, listed),))
    elif any(not group.complete for group in cluster.groups):
        yield Message("waits_perhaps_bounded")


def _stops(cluster: Cluster) -> Iterator[Message]:
    """What was not matched."""
    for what in ("kind", "bytes", "count"):
        stops = [stop for stop in cluster.stops if stop.what == what]
        if stops:
            steps = ", ".join(dict.fromkeys(stop.step for stop in stops[:5]))
            count = sum(stop.left_out for stop in stops)
            yield Message(f"matching_stopped_{what}", (("count", Kind.COUNT, count), ("steps", Kind.TEXT, steps)))
    if cluster.outside:
        yield Message("collectives_outside_steps", (("count", Kind.COUNT, cluster.outside),))


def _per_step(amount: int | NotMeasured, steps: int) -> int | NotMeasured:
    return amount if isinstance(amount, NotMeasured) else _mean(amount, steps)


def _mean(amount: int, steps: int) -> int:
    return (2 * amount + steps) // (2 * steps) if steps else 0
