"""Requests that could not have a free block because it was too large for them (MEM106)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.allocator.results_patterns import OversizedBlocks
from traceanalyze.analyses.results import NotMeasured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.analyses.allocator.layout import Layout
    from traceanalyze.analyses.allocator.results_calls import DeviceCalls
    from traceanalyze.analyses.allocator.sites import Site
    from traceanalyze.model.snapshot import History, Snapshot

WINDOW = 20 << 20
"""A block above max_split_size goes whole to a request that is at most so much smaller (max_non_split_rounding_mb)."""


def oversized_blocks(
    snapshot: Snapshot, history: History, calls: DeviceCalls, layout: Layout, sites: Sequence[Site]
) -> OversizedBlocks | NotMeasured:
    """Growths for requests above `max_split_size` while a block larger by more than 20 MiB was free."""
    if len(history) <= 1:
        return NotMeasured("no_memory_history")
    none = OversizedBlocks("", 0, 0, 0, 0)
    limit = snapshot.settings.get("max_split_size")
    # Without a limit every free block is split, and growth means that none was large enough.
    if type(limit) is not int or limit <= 0 or not len(calls) or not layout.growths:
        return none
    event = np.array([one.event for one in layout.growths], np.int64)
    hole = np.array([one.free.largest for one in layout.growths], np.int64)
    row = np.searchsorted(calls.first, event, "right") - 1
    request = np.where((row >= 0) & (event <= calls.last[row]), calls.request[row], 0)
    failed = np.flatnonzero((request >= limit) & (hole >= request + WINDOW))
    if len(failed) == 0:
        return none
    worst = failed[int(request[failed].argmax())]
    return OversizedBlocks(
        line=sites[int(history.stack[event[worst]])].line,
        growths=len(failed),
        request=int(request[worst]),
        unused=int(hole[worst]),
        # One call may take several pieces of memory.
        grown=int(calls.grown[np.unique(row[failed])].sum()),
    )
