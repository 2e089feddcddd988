"""The segments at an earlier moment: those of the dump with the history's growth and release undone."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.allocator.holes import Domain
from traceanalyze.analyses.allocator.rounding import SMALL_SEGMENT
from traceanalyze.frozen import frozen
from traceanalyze.model.snapshot import Action

if TYPE_CHECKING:
    from traceanalyze.model.snapshot import SnapshotDevice

GROWTH = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)
RELEASE = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)


@frozen
class Range:
    """One segment, or one mapped run of an expandable one."""

    start: int
    end: int
    expandable: bool
    domain: Domain


@frozen
class PastSegments:
    """In order of address."""

    ranges: tuple[Range, ...]
    inconsistent: int
    """Events of growth whose range is not there to be undone, and releases of what is still there."""


def domain_of_event(device: SnapshotDevice, event: int) -> Domain:
    """Domain of the memory that an event grows or releases."""
    history = device.history
    address, size = int(history.address[event]), int(history.size[event])
    segments = device.segments
    at = int(np.searchsorted(segments.address, address, "right")) - 1
    pool = 0 if history.pool is None else max(int(history.pool[event]), 0)
    if at >= 0 and address < int(segments.address[at]) + int(segments.size[at]):
        return domain_of_segment(device, at)
    return Domain(pool, int(history.stream[event]), size > SMALL_SEGMENT)


def domain_of_segment(device: SnapshotDevice, index: int) -> Domain:
    """Domain of a segment of the dump."""
    segments = device.segments
    return Domain(int(segments.pool[index]), int(segments.stream[index]), bool(segments.large[index]))


def past_segments(device: SnapshotDevice, event: int = 0) -> PastSegments:
    """Segments just before an event: what the history did to them from there on undone, newest event first."""
    segments, history = device.segments, device.history
    ranges = {
        int(start): Range(int(start), int(start + size), bool(expandable), domain_of_segment(device, index))
        for index, (start, size, expandable) in enumerate(
            zip(segments.address, segments.size, segments.expandable, strict=True)
        )
    }
    starts = sorted(ranges)
    wrong = 0
    changes = np.flatnonzero(np.isin(history.action, (*GROWTH, *RELEASE)))
    for change in changes[changes >= event][::-1].tolist():
        start = int(history.address[change])
        end = start + int(history.size[change])
        if history.action[change] in GROWTH:
            wrong += not _cut(ranges, starts, start, end)
        else:
            mapped = history.action[change] == Action.SEGMENT_UNMAP
            wrong += not _put(ranges, starts, Range(start, end, mapped, domain_of_event(device, change)))
    return PastSegments(tuple(ranges[start] for start in starts), wrong)


def _cut(ranges: dict[int, Range], starts: list[int], start: int, end: int) -> bool:
    """Take a range away; False if it is not there as a whole."""
    at = bisect_right(starts, start) - 1
    if at < 0 or ranges[starts[at]].end < end:
        return False
    old = ranges.pop(starts.pop(at))
    for left, right in ((end, old.end), (old.start, start)):
        if left < right:
            ranges[left] = Range(left, right, old.expandable, old.domain)
            starts.insert(at, left)
    return True


def _put(ranges: dict[int, Range], starts: list[int], new: Range) -> bool:
    """Add a range, joined with expandable neighbours; False if something is there."""
    at = bisect_right(starts, new.start)
    before = ranges[starts[at - 1]] if at else None
    after = ranges[starts[at]] if at < len(starts) else None
    if (before is not None and before.end > new.start) or (after is not None and after.start < new.end):
        return False
    start, end = new.start, new.end
    if new.expandable and after is not None and after.expandable and after.start == end:
        end = after.end
        del ranges[starts.pop(at)]
    if new.expandable and before is not None and before.expandable and before.end == start:
        start = before.start
        del ranges[starts.pop(at - 1)]
        at -= 1
    ranges[start] = Range(start, end, new.expandable, new.domain)
    starts.insert(at, start)
    return True
