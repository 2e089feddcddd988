"""How fast each kind of link moved data: bytes over the time in which any transfer ran (Ascend, from HCCL's tasks)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.analyses.work import argument

if TYPE_CHECKING:
    from traceanalyze.compare.side import Side

_LOCAL = frozenset({"ON_CHIP", "LOCAL", "INVALID_TYPE", ""})
"""Not a way between devices."""


def link_rates(side: Side) -> dict[str, int] | None:
    """Bytes a second by kind of link (HCCS, RoCE, PCIe …) inside the steps; transfers run in parallel, so the union.

    None where the profile does not hold the tasks of collectives.
    """
    context, events = side.context, side.context.trace.events
    part = events.fields.get("part_of")
    if part is None:
        return None
    row = part.row.astype(np.int64)
    size, link = argument(context, "bytes", row), argument(context, "link_type", row)
    transport = argument(context, "transport", row)
    code = np.where(link >= 0, link, transport)
    windows = intervals.merge(context.steps.start, context.steps.end)
    moved = (size > 0) & (code >= 0) & intervals.contains(windows, events.ts[row])
    text = context.trace.strings.text
    found: dict[str, int] = {}
    for each in np.unique(code[moved]).tolist():
        if text(each) in _LOCAL:
            continue
        mine = row[moved & (code == each)]
        busy = intervals.total(intervals.merge(events.ts[mine], events.ts[mine] + events.dur[mine]))
        if busy:
            found[text(each)] = int(size[moved & (code == each)].sum()) * 10**9 // busy
    return found
