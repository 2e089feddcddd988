"""Growth of the reserve although enough was free, but in pieces too small.

Judged where the allocator had to grow, never at the dump: there most of the reserve is free in healthy programs, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.memory.columns import BLOCK_BYTES, BLOCKS, LINE
from traceanalyze.analyses.memory.composition import first_of_line, live_at
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.holes import GROWTH, past_segments
from traceanalyze.analyses.memory.layout import Growth
from traceanalyze.analyses.memory.rounding import Rules
from traceanalyze.model.snapshot import Action, History
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, declare

INFO, WARN = 0.10, 0.20
"""Share of the reserve that was free in the domain (own; so are the next two)."""
AVOIDABLE = 0.01
"""Of the capacity, that fragmentation must have cost to be a warning."""
ASSUMED_CAPACITY = 1 << 30
"""In place of an unknown capacity; then nothing is more than information."""
MOST_PINNERS = 5
PINNERS = declare(
    "pinners",
    "Who keeps free segments from being used whole",
    LINE,
    BLOCKS,
    BLOCK_BYTES,
    Column(
        "held_bytes",
        Kind.MEMORY,
        "free bytes in the segments these blocks keep, shared out by their bytes",
        heading="holds back",
    ),
    detail=True,
)


class Fragmentation(NamedTuple):
    """Growth although enough was free, but in pieces."""

    share: float
    """Largest share of reserved memory that was free in the domain at such a growth."""
    request: int
    free: int
    largest_hole: int
    growths: int
    """Growths of this kind."""
    avoidable: int
    """Bytes taken from the device by them, at most what was not in blocks at the reserved peak."""
    line: str
    pinners: Table
    """Who was in the way, most bytes held back first."""
    level: str
    """none, info, warn or critical"""

    @property
    def pinner(self) -> str:
        """Line of those most in the way; where nobody is, that of the request."""
        return next((str(line) for line in self.pinners.column("source_line")), self.line)


def fragmentation(device: Device, *, pressed: bool) -> Fragmentation | NotMeasured:
    """The worst growth of this kind, what all of them took, and who was in the way.

    Args:
        device: The allocator.
        pressed: A retry or a failed request happened, so that every byte counted.
    """
    history, reserved = device.history, device.reserved
    if device.events <= 1:
        return NotMeasured("no_memory_history")
    found = [
        (growth.free.bytes / max(reserved.at(growth.event - 1), 1), growth, request)
        for growth in device.layout.growths
        if (request := _request(history, growth, device.rules)) is not None
        and growth.free.bytes >= request > growth.free.largest
    ]
    if not found:
        none = PINNERS.fill(**dict.fromkeys(PINNERS.keys, ()))
        return Fragmentation(0.0, 0, 0, 0, 0, 0, "", none, "none")
    share, growth, request = max(found, key=lambda one: one[0])
    # Of all that they took at most what no block used when the reserve was largest.
    peak, event = reserved.peak
    avoidable = min(sum(_taken(history, each) for _, each, _ in found), max(peak - device.blocks.at(event), 0))
    level = _level(share, avoidable, device.capacity, peak, pressed=pressed)
    free, line, pinners = growth.free, device.line(growth.event), _pinners(device, growth)
    return Fragmentation(share, request, free.bytes, free.largest, len(found), avoidable, line, pinners, level)


def _request(history: History, growth: Growth, rules: Rules) -> int | None:
    """Bytes needed by the allocation that the growth was for: the next one of the same call, else the next at all."""
    after = np.flatnonzero(history.action[growth.event : growth.event + 4096] == Action.ALLOC)
    if len(after) == 0:
        return None
    return rules.rounded(int(history.size[growth.event + int(after[0])]))


def _taken(history: History, growth: Growth) -> int:
    """Bytes taken from the device in one growth, which may be of several mapped pieces."""
    total, event = 0, growth.event
    while event < len(history) and history.action[event] in GROWTH:
        total += int(history.size[event])
        event += 1
    return total


def _pinners(device: Device, growth: Growth) -> Table:
    """Lines of the blocks in those segments of the domain that were free for the larger part."""
    lives, layout, sites = device.lives, device.layout, device.sites
    ranges = [one for one in past_segments(device.device, growth.event)[0] if one.domain == growth.free.domain]
    start, end = np.array([(one.start, one.end) for one in ranges], np.int64).reshape(-1, 2).T
    live = live_at(lives, growth.event - 1)
    at = np.searchsorted(start, lives.address[live], "right") - 1
    inside = (at >= 0) & (lives.address[live] < end[at]) if ranges else np.zeros(len(live), np.bool_)
    live, at = live[inside], at[inside]
    used = np.bincount(at, layout.size[live], minlength=len(ranges)).astype(np.int64)
    held = (end - start) - used
    loose = (held > used) & (used > 0)
    live, at = live[loose[at]], at[loose[at]]
    line = first_of_line(sites)[lives.stack[live]]
    rows, size = group(line), layout.size[live]
    # What a segment holds back is shared out over its blocks by their bytes; products may exceed 64 bits.
    shares = held[at].astype(object) * size // used[at]
    found = PINNERS.fill(
        source_line=[sites[one].line for one in line[rows.first].tolist()],
        blocks=rows.count(),
        block_bytes=rows.sum(size),
        held_bytes=rows.sum(shares.astype(np.int64)),
    ).sort("-held_bytes", "source_line")
    return found.take(np.arange(min(len(found), MOST_PINNERS)))


def _level(share: float, avoidable: int, capacity: int | None, peak: int, *, pressed: bool) -> str:
    if share < INFO or avoidable < AVOIDABLE * (capacity or ASSUMED_CAPACITY):
        return "none"
    if share < WARN or capacity is None:
        return "critical" if pressed and share >= WARN else "info"
    return "critical" if pressed or peak >= 0.9 * capacity else "warn"
