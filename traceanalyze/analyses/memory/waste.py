"""Requests that could not have a free block because it was too large for them (MEM106)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.memory.composition import live_at
from traceanalyze.analyses.memory.results_patterns import OversizedBlocks, SmallBlocks
from traceanalyze.analyses.memory.rounding import SMALL
from traceanalyze.model.table import NotMeasured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.analyses.memory.composition import Curve
    from traceanalyze.analyses.memory.layout import Layout
    from traceanalyze.analyses.memory.lifetimes import Lifetimes
    from traceanalyze.analyses.memory.results_calls import DeviceCalls
    from traceanalyze.analyses.memory.sites import Site
    from traceanalyze.model.snapshot import History, Snapshot, SnapshotDevice

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


COUNT, SHARE, AGE = 1000, 0.30, 0.90
"""Blocks, their share of the live ones, and the share of the history they live (rules specification, own)."""
HELD = 0.01
"""Free bytes that they keep, of the reserved peak; own, as the avoidable bytes of fragmentation (D4)."""


def small_blocks(
    device: SnapshotDevice,
    lives: Lifetimes,
    layout: Layout,
    curves: tuple[Curve, Curve],
    sites: Sequence[Site],
) -> SmallBlocks | NotMeasured:
    """The small long-lived blocks of the peak, and what they alone keep reserved.

    Args:
        device: The allocator.
        lives: Its blocks.
        layout: Sizes of the blocks.
        curves: Requested and reserved bytes.
        sites: Of the stacks.
    """
    count = len(device.history)
    if count <= 1:
        return NotMeasured("no_memory_history")
    active, reserved = curves
    live = live_at(lives, active.peak[1])
    age = np.minimum(lives.end[live], count) - np.maximum(lives.begin[live], 0)
    small = (layout.size[live] < SMALL) & (age > AGE * count)
    chosen = live[small]
    if len(chosen) == 0:
        return SmallBlocks(0, 0.0, 0, 0, "", flagged=False)
    segments = device.segments
    # Of segments given back since then nothing is said.
    place = np.searchsorted(segments.address, lives.address[live], "right") - 1
    known = place >= 0
    known[known] = lives.address[live[known]] < (segments.address + segments.size)[place[known]]

    def used(member: NDArray[np.bool_]) -> NDArray[np.int64]:
        out = np.zeros(len(segments), np.int64)
        np.add.at(out, place[member & known], layout.size[live[member & known]])
        return out

    theirs = used(small)
    alone = (theirs > 0) & (used(~small) == 0)
    held = int((segments.size - theirs)[alone].sum())
    lines = np.bincount(lives.stack[chosen] + 1)
    stack = int(lines.argmax()) - 1
    share = len(chosen) / len(live)
    return SmallBlocks(
        count=len(chosen),
        share=share,
        segments=int(alone.sum()),
        held=held,
        line=sites[stack].line if stack >= 0 else "",
        flagged=len(chosen) >= COUNT and share >= SHARE and held >= HELD * reserved.peak[0],
    )
