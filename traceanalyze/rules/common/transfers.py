"""Tasks of the collectives of the windows that move data between devices, where the profile records them (Ascend)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.collective_parts import MOVES
from traceanalyze.analyses.work import argument
from traceanalyze.rules.finding import intervals_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.rules.facts import Facts


@dataclass(frozen=True, slots=True)
class Transfers:
    """One row a task; times int64 ns."""

    start: NDArray[np.int64]
    time: NDArray[np.int64]
    size: NDArray[np.int64]
    """Bytes; negative where not recorded."""
    network: NDArray[np.bool_]
    """Over a network (RDMA, RoCE)."""
    inside: NDArray[np.bool_]
    """On the device itself, not to another one."""

    def __len__(self) -> int:
        return len(self.start)

    def longest(self, chosen: NDArray[np.bool_]) -> tuple[int, int]:
        """Start and end of the longest of some tasks, of which there must be one."""
        at = int(np.argmax(np.where(chosen, self.time, -1)))
        return int(self.start[at]), int(self.start[at] + self.time[at])

    def spans(self, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """(n, 2) intervals of some tasks."""
        return intervals_of(self.start[chosen], (self.start + self.time)[chosen])


def transfers(facts: Facts) -> Transfers | None:
    """The tasks of a rank, None where none are recorded; use with `Facts.once`."""
    trace = facts.context.trace
    column = trace.events.fields.get("part_of")
    if column is None or not len(column.row):
        return None
    row = column.row.astype(np.int64)
    names = trace.strings.lookup(trace.events.name[row], lambda text: MOVES.match(text) is not None)
    row = row[names.astype(np.bool_) & facts.inside(trace.events.ts[row])]
    source, target = (argument(facts.context, name, row) for name in ("src_rank", "dst_rank"))
    return Transfers(
        start=trace.events.ts[row],
        time=trace.events.dur[row],
        size=argument(facts.context, "bytes", row),
        network=_says(facts, row, "RDMA") | _says(facts, row, "ROCE"),
        inside=_says(facts, row, "ON_CHIP") | _says(facts, row, "LOCAL") | ((source == target) & (source >= 0)),
    )


def _says(facts: Facts, row: NDArray[np.int64], word: str) -> NDArray[np.bool_]:
    """Whether the kind of link or of transport of each task has a word in it."""
    found = np.zeros(len(row), np.bool_)
    for name in ("link_type", "transport"):
        code = argument(facts.context, name, row)
        known = code >= 0
        found[known] |= facts.context.trace.strings.lookup(
            code[known].astype(np.int32), lambda text: word in text.upper()
        ).astype(np.bool_)
    return found
