"""Free ranges inside segments, by domain; the state that the layout follower walks through."""

from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from traceanalyze.analyses.memory.rounding import SMALL_SEGMENT
from traceanalyze.model.snapshot import Action, SnapshotDevice


class Domain(NamedTuple):
    """What cannot serve each other's requests: a pool, a stream, small or large blocks."""

    pool: int
    stream: int
    large: bool


class Free(NamedTuple):
    """Free memory of one domain at one moment."""

    domain: Domain
    bytes: int
    holes: int
    largest: int


class Holes:
    """Free ranges of all domains. Neighbours merge, but not over the border of a segment."""

    def __init__(self) -> None:
        self._end: dict[Domain, dict[int, int]] = {}
        self._start: dict[Domain, dict[int, int]] = {}
        self._bytes: dict[Domain, int] = {}
        self.borders: set[int] = set()
        """Addresses at which a segment begins that does not continue the one before it."""

    def add(self, domain: Domain, start: int, end: int) -> None:
        """A range becomes free."""
        ends = self._end.setdefault(domain, {})
        starts = self._start.setdefault(domain, {})
        self._bytes[domain] = self._bytes.get(domain, 0) + end - start
        if end in ends and end not in self.borders:
            last = ends.pop(end)
            del starts[last]
            end = last
        if start in starts and start not in self.borders:
            first = starts.pop(start)
            del ends[first]
            start = first
        ends[start] = end
        starts[end] = start

    def find(self, likely: Domain, address: int, *, inside: bool) -> tuple[Domain, int, int] | None:
        """The hole that begins at an address, or (`inside`) contains it; the likely domain comes first."""
        ends = self._end.get(likely)
        if ends is not None and address in ends:
            return likely, address, ends[address]
        for domain, others in self._end.items():
            if address in others:
                return domain, address, others[address]
        return self._containing(address) if inside else None

    def _containing(self, address: int) -> tuple[Domain, int, int] | None:
        for domain, ends in self._end.items():
            ordered = sorted(ends)
            at = bisect_right(ordered, address) - 1
            if at >= 0 and ends[ordered[at]] > address:
                return domain, ordered[at], ends[ordered[at]]
        return None

    def take(self, domain: Domain, start: int, end: int, used_start: int, used_end: int) -> None:
        """Part of a hole is used; what is left on both sides stays free."""
        ends, starts = self._end[domain], self._start[domain]
        del ends[start], starts[end]
        self._bytes[domain] -= used_end - used_start
        if start < used_start:
            ends[start], starts[used_start] = used_start, start
        if used_end < end:
            ends[used_end], starts[end] = end, used_end

    def remove(self, start: int, end: int) -> bool:
        """A range is given back to the device; False if it was not free as a whole."""
        found = self.find(Domain(0, 0, large=False), start, inside=True)
        if found is None or found[2] < end:
            return False
        self.take(*found, start, end)
        return True

    def free(self, domain: Domain) -> Free:
        """Free memory of a domain now."""
        ends = self._end.get(domain, {})
        largest = max((end - start for start, end in ends.items()), default=0)
        return Free(domain, self._bytes.get(domain, 0), len(ends), largest)

    def all(self) -> tuple[Free, ...]:
        """Free memory of every domain that has some."""
        return tuple(self.free(domain) for domain, amount in self._bytes.items() if amount)


GROWTH = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)
RELEASE = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)


class Range(NamedTuple):
    """One segment, or one mapped run of an expandable one."""

    start: int
    end: int
    expandable: bool
    domain: Domain


def domain_of_event(device: SnapshotDevice, event: int) -> Domain:
    """Domain of the memory that an event grows or releases."""
    history = device.history
    address, size = int(history.address[event]), int(history.size[event])
    segments = device.segments
    at = int(np.searchsorted(segments.address, address, "right")) - 1
    if at >= 0 and address < int(segments.address[at]) + int(segments.size[at]):
        return domain_of_segment(device, at)
    pool = 0 if history.pool is None else max(int(history.pool[event]), 0)
    return Domain(pool, int(history.stream[event]), size > SMALL_SEGMENT)


def domain_of_segment(device: SnapshotDevice, index: int) -> Domain:
    """Domain of a segment of the dump."""
    segments = device.segments
    return Domain(int(segments.pool[index]), int(segments.stream[index]), bool(segments.large[index]))


def past_segments(device: SnapshotDevice, event: int = 0) -> tuple[list[Range], int]:
    """Segments just before an event in order of address: what the history did from there on undone, newest first.

    Also how many events contradict that: growth whose range is not there, and releases of what is still there.
    """
    segments, history = device.segments, device.history
    columns = segments.address.tolist(), segments.size.tolist(), segments.expandable.tolist()
    ranges = {
        start: Range(start, start + size, expandable, domain_of_segment(device, index))
        for index, (start, size, expandable) in enumerate(zip(*columns, strict=True))
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
    return [ranges[start] for start in starts], wrong


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
