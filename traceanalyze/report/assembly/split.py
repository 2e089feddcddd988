"""Where the step's time went: the headline split and the totals beside it (definitions §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table
from traceanalyze.model.vocabulary import BUSY_PARTS, HEADLINE, IDLE_PARTS
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from traceanalyze.analyses.results import HostSplit, IdleCauses, Partition
    from traceanalyze.analyses.steps.window import Window

_COLUMNS = (
    Column("part", Kind.TERM),
    Column("mean_ns", Kind.DURATION),
    Column("share", Kind.SHARE),
    Column("sum_ns", Kind.DURATION, machine=True),
)


@frozen
class Part:
    """A named part of each step, ns."""

    key: str
    time: NDArray[np.int64]
    missing: NotMeasured | None = None
    """Why the profile cannot give it; `time` is 0 then."""


def device_parts(partition: Partition, idle: IdleCauses | NotMeasured) -> tuple[Part, ...]:
    """The seven headline parts of every step; without idle causes, idle stays whole."""
    exposed = (partition.compute, partition.comm_exposed, partition.mem_exposed)
    busy = tuple(Part(key, time) for key, time in zip(BUSY_PARTS, exposed, strict=True))
    if isinstance(idle, NotMeasured):
        return (*busy, Part("idle", partition.idle))
    causes = idle.by_step
    named = tuple(
        # Host operators without the calls under them do not make dispatch measured: they stay in the rest.
        Part(key, 0 * partition.idle, why) if why else Part(key, causes[:, list(group)].sum(axis=1))
        for key, group in IDLE_PARTS.items()
        if key in HEADLINE
        for why in [idle.missing.get(group[0])]
    )
    return (*busy, *named, Part("idle", partition.idle - sum(part.time for part in named)))


def host_parts(host: HostSplit) -> tuple[Part, ...]:
    """Parts of a step when only the host was recorded."""
    return (
        Part("data_loading", host.data_loading),
        Part("host_sync", host.sync),
        Part("peer_wait", host.peer_wait),
        Part("host_api", host.api),
        Part("host_op", host.host_op),
        Part("untraced", host.untraced),
    )


def split_table(parts: tuple[Part, ...], window: Window, *, whole: str, notes: tuple[Message, ...] = ()) -> Table:
    """The split as a table: mean per step, share of the step, exact sum; `whole` is the term for all of it."""
    sums = [(part, window.sum(part.time)) for part in parts]
    return table_of_rows(
        "split",
        _COLUMNS,
        tuple(
            (part.key, *(part.missing or value for value in (window.mean(amount), window.share(amount), amount)))
            for part, amount in sums
        ),
        total=(whole, window.mean(window.total), window.share(window.total), window.total),
        bar="share",
        notes=notes,
        title_values=(("steps", Kind.COUNT, window.count),),
    )


_TOTALS = (
    Column("part", Kind.TERM),
    Column("total_ns", Kind.DURATION),
    Column("exposed_ns", Kind.DURATION),
    Column("overlapped_ns", Kind.DURATION),
    Column("overlap_ratio", Kind.SHARE),
    Column("device_time_ns", Kind.DURATION),
    Column("concurrency", Kind.RATIO),
)


def totals_table(partition: Partition, window: Window) -> Table:
    """Per step: how long each kind of work ran at all, and how much of it was hidden behind other work."""
    rows = []
    for key, total, exposed, spent in (
        ("compute", partition.compute, partition.compute, partition.compute_dur),
        ("communication", partition.comm_total, partition.comm_exposed, partition.comm_dur),
        ("memory_ops", partition.mem_total, partition.mem_exposed, partition.mem_dur),
        ("busy", partition.busy, partition.busy, partition.compute_dur + partition.comm_dur + partition.mem_dur),
    ):
        whole, alone, summed = window.sum(total), window.sum(exposed), window.sum(spent)
        hideable = key in {"communication", "memory_ops"}
        rows.append(
            (
                key,
                window.mean(whole),
                window.mean(alone) if hideable else None,
                window.mean(whole - alone) if hideable else None,
                _overlap(key, whole, alone) if hideable else None,
                window.mean(summed),
                summed / whole if whole else None,
            )
        )
    return table_of_rows(
        "totals", _TOTALS, tuple(rows), detail=True, title_values=(("steps", Kind.COUNT, window.count),)
    )


def _overlap(key: str, whole: int, alone: int) -> float | NotMeasured:
    return (whole - alone) / whole if whole else NotMeasured(f"no_{key}")


def overlap_notes(partition: Partition, window: Window) -> tuple[Message, ...]:
    """A sentence on communication and on copies, where there are any, as the split shows only their exposed part."""
    notes = []
    for key, total, exposed in (
        ("communication", partition.comm_total, partition.comm_exposed),
        ("memory_ops", partition.mem_total, partition.mem_exposed),
    ):
        whole, alone = window.sum(total), window.sum(exposed)
        if whole - alone > 0:
            hidden = (whole - alone) / whole
            values = (("total", Kind.DURATION, window.mean(whole)), ("hidden", Kind.SHARE, hidden))
            notes.append(Message(f"{key}_overlap", values))
    return tuple(notes)
