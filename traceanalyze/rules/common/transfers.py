"""Tasks of the collectives of the windows that move data between devices, where the profile records them (Ascend)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.collective_parts import MOVES
from traceanalyze.analyses.task_links import NETWORK, ON_DEVICE, went_over
from traceanalyze.analyses.work import argument
from traceanalyze.frozen import frozen
from traceanalyze.rules.finding import intervals_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.rules.facts import Facts


@frozen
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
        network=went_over(facts.context, row, NETWORK),
        inside=went_over(facts.context, row, ON_DEVICE) | ((source == target) & (source >= 0)),
    )
