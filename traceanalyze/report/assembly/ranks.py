"""Tables and sentences over all ranks of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen
from traceanalyze.model.table import Column, Kind, Layout, Message, Table
from traceanalyze.ranks.compare import EVEN, leading, longest
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.analyses.steps.window import Window
    from traceanalyze.model.trace import Origin, Trace
    from traceanalyze.report.assembly.split import Part

EQUAL = 1.001
"""Up to which even the digits shown are the same, or nearly."""

_FILES = (
    Column("rank", Kind.COUNT),
    Column("path", Kind.NAME),
    Column("file_bytes", Kind.BYTES),
    Column("text_bytes", Kind.BYTES),
    Column("events", Kind.COUNT),
    Column("host", Kind.TEXT),
    Column("rank_source", Kind.TEXT),
    Column("world_size", Kind.COUNT),
    Column("backend", Kind.TEXT),
    Column("devices", Kind.TEXT),
    Column("profiler_options", Kind.TEXT),
    Column("versions", Kind.TEXT),
    Column("resolution_ns", Kind.DURATION, scale="clock"),
    Column("base_ns", Kind.COUNT, machine=True),
)


@frozen
class RankRow:
    """What the comparison of ranks needs of one of them."""

    label: str
    rank: int | None
    parts: tuple[Part, ...]
    window: Window

    @property
    def mean(self) -> int:
        """Mean step time, ns."""
        return self.window.mean(self.window.total)


def rank_label(origin: Origin, index: int) -> str:
    """The rank, or the position of its file when the profile does not tell."""
    return str(origin.rank) if origin.rank is not None else f"?{index}"


def files_table(traces: tuple[Trace, ...]) -> Table:
    """Where each recording came from and what it says about itself."""
    rows = tuple(
        (
            trace.origin.rank,
            trace.origin.path,
            trace.origin.size_bytes,
            trace.origin.text_bytes,
            sum(trace.read.phases.values()),
            trace.origin.host,
            trace.origin.rank_source,
            trace.origin.world_size,
            trace.origin.backend,
            _device_names(trace),
            ", ".join(name for name, on in trace.options.items() if on),
            ", ".join(f"{name} {version}" for name, version in trace.versions.items()),
            trace.resolution_ns,
            trace.base_ns,
        )
        for trace in traces
    )
    return table_of_rows("files", _FILES, rows, layout=Layout.RECORD, detail=True)


def _device_names(trace: Trace) -> str:
    """Distinct device names with how many there are of each."""
    names = [device.name for device in trace.devices]
    counted = ((names.count(name), name) for name in dict.fromkeys(names))
    return ", ".join(f"{count} × {name}" if count > 1 else name for count, name in counted)


def ranks_table(rows: tuple[RankRow, ...]) -> Table:
    """One row a rank: mean step and its headline parts as shares, so that the odd one out is seen."""
    keys = tuple(dict.fromkeys(part.key for row in rows for part in row.parts))
    columns = (
        Column("rank", Kind.TEXT),
        Column("steps", Kind.COUNT, minor=True),
        Column("step_ns", Kind.DURATION),
        *(Column(f"{key}_share", Kind.SHARE) for key in keys),
    )
    table = []
    for row in rows:
        shares = {part.key: part.missing or row.window.share(row.window.sum(part.time)) for part in row.parts}
        table.append((row.label, row.window.count, row.mean, *(shares.get(key) for key in keys)))
    return table_of_rows("ranks", columns, tuple(table), worst="step_ns")


def leading_sentence(labels: Sequence[str], times: Sequence[int], own: Sequence[int | None]) -> tuple[Message, ...]:
    """Why not the rank with the longest step is told about; nothing where it is.

    Args:
        labels: Of the ranks.
        times: Their mean steps, ns.
        own: The same without waiting for others; None where that is not known.
    """
    lead, slowest = leading(times, own), longest(times)
    if lead == slowest:
        return ()
    values = (
        ("rank", Kind.TEXT, labels[lead]),
        ("own", Kind.DURATION, own[lead]),
        ("longest", Kind.TEXT, labels[slowest]),
        ("wait", Kind.DURATION, times[slowest] - (own[slowest] or 0)),
    )
    return (Message("leading_rank", values),)


def ranks_sentence(rows: tuple[RankRow, ...]) -> Message:
    """Which rank is slowest and by how much, or that they are even."""
    means = [row.mean for row in rows]
    worst = longest(means)
    values = (
        ("rank", Kind.TEXT, rows[worst].label),
        ("ranks", Kind.COUNT, len(rows)),
        ("time", Kind.DURATION, means[worst]),
        ("fastest", Kind.DURATION, min(means)),
        ("excess", Kind.SHARE, means[worst] / min(means) - 1 if min(means) else 0.0),
    )
    if means[worst] > EVEN * min(means):
        return Message("ranks_uneven", values)
    return Message("ranks_even" if means[worst] > EQUAL * min(means) else "ranks_equal", values)
