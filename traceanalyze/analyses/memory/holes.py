"""Free ranges inside segments, by domain; the state that the layout follower walks through."""

from bisect import bisect_right
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.memory.caching import LARGE_SEGMENT, SMALL, SMALL_SEGMENT, Domain, Rules
from traceanalyze.model.snapshot import Action, History, SnapshotDevice, State


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
        self._first: set[int] = set()
        self._last: set[int] = set()

    def enclose(self, start: int, end: int) -> None:
        """A segment that stands alone is there: nothing in it merges with what lies beside it."""
        self._first.add(start)
        self._last.add(end)

    def disclose(self, start: int, end: int) -> None:
        """It is gone; segments beside it keep their borders."""
        self._first.discard(start)
        self._last.discard(end)

    def add(self, domain: Domain, start: int, end: int) -> None:
        """A range becomes free."""
        ends = self._end.setdefault(domain, {})
        starts = self._start.setdefault(domain, {})
        self._bytes[domain] = self._bytes.get(domain, 0) + end - start
        if end in ends and end not in self._first and end not in self._last:
            last = ends.pop(end)
            del starts[last]
            end = last
        if start in starts and start not in self._first and start not in self._last:
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
            start = max((start for start in ends if start <= address), default=address)
            if ends.get(start, address) > address:
                return domain, start, ends[start]
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

    def remove(self, domain: Domain, start: int, end: int) -> bool:
        """A range is given back to the device; False if it was not free as a whole."""
        found = self.find(domain, start, inside=True)
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


def free_at_dump(device: SnapshotDevice) -> tuple[Free, ...]:
    """Free memory of every domain that has some, as the file states it."""
    blocks = device.blocks
    sizes: dict[Domain, list[int]] = {}
    free = np.flatnonzero(blocks.state == State.INACTIVE)
    for segment, size in zip(blocks.segment[free].tolist(), blocks.size[free].tolist(), strict=True):
        sizes.setdefault(domain_of_segment(device, segment), []).append(size)
    return tuple(Free(domain, sum(known), len(known), max(known)) for domain, known in sizes.items())


GROWTH = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)
RELEASE = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)


def is_any(action: NDArray[np.uint8], kinds: Collection[Action]) -> NDArray[np.bool_]:
    """Which events do one of these."""
    known = np.zeros(256, np.bool_)
    known[list(kinds)] = True
    found: NDArray[np.bool_] = known[action]
    return found


class Range(NamedTuple):
    """One segment, or one mapped run of an expandable one."""

    start: int
    end: int
    expandable: bool
    domain: Domain


class Past(NamedTuple):
    """The segments of an earlier moment."""

    ranges: list[Range]
    """In order of address."""
    wrong: int
    """Events that contradict the dump: growth whose range is not there, and releases of what is still there."""
    domain: dict[int, Domain]
    """Of the memory that each later event took or gave back: an address belongs to one domain only for a time."""


def domain_of_segment(device: SnapshotDevice, index: int) -> Domain:
    """Domain of a segment of the dump."""
    segments = device.segments
    return Domain(int(segments.pool[index]), int(segments.stream[index]), bool(segments.large[index]))


def past_segments(device: SnapshotDevice, rules: Rules, event: int = 0) -> Past:
    """Segments just before an event: what the history did from there on undone, newest first."""
    segments, history = device.segments, device.history
    columns = segments.address.tolist(), segments.size.tolist(), segments.expandable.tolist()
    ranges = {
        start: Range(start, start + size, expandable, domain_of_segment(device, index))
        for index, (start, size, expandable) in enumerate(zip(*columns, strict=True))
    }
    starts = sorted(ranges)
    order = np.argsort(segments.address, kind="stable")
    overlaps = segments.address[order[1:]] < (segments.address + segments.size)[order[:-1]]
    wrong, domains = int(overlaps.sum()), dict[int, Domain]()
    changes = np.flatnonzero(is_any(history.action, (*GROWTH, *RELEASE)))
    changes = changes[changes >= event][::-1]
    releases = changes[is_any(history.action[changes], RELEASE)]
    of_blocks = np.flatnonzero(is_any(history.action, _OF_BLOCKS)) if len(releases) else releases
    of_blocks = of_blocks[np.argsort(history.address[of_blocks], kind="stable")]
    start, address = history.address[changes], history.address[of_blocks]
    inside = np.searchsorted(address, start), np.searchsorted(address, start + history.size[changes])
    for change, first, last in zip(changes.tolist(), *map(np.ndarray.tolist, inside), strict=True):
        begin = int(history.address[change])
        end = begin + int(history.size[change])
        if begin == end:
            found = None
        elif history.action[change] in GROWTH:
            found = _cut(ranges, starts, begin, end)
        else:
            domain = _own_domain(history, rules, change, of_blocks[first:last])
            mapped = history.action[change] == Action.SEGMENT_UNMAP
            found = _put(ranges, starts, Range(begin, end, mapped, domain))
        if found is None:
            wrong += 1
        else:
            domains[change] = found
    return Past([ranges[start] for start in starts], wrong, domains)


_OF_BLOCKS = (Action.ALLOC, Action.FREE_REQUESTED, Action.FREE_COMPLETED)


def _own_domain(history: History, rules: Rules, change: int, inside: NDArray[np.int64]) -> Domain:
    """Domain of memory taken or given back, by the event, and by the last block that lay in it until then."""
    size = int(history.size[change])
    known = inside[inside < change]
    if len(known):
        large = rules.rounded(int(history.size[known.max()])) > SMALL
    elif history.action[change] in (Action.SEGMENT_MAP, Action.SEGMENT_UNMAP):
        large = size % LARGE_SEGMENT == 0
    else:
        large = size > SMALL_SEGMENT
    pool = 0 if history.pool is None else max(int(history.pool[change]), 0)
    return Domain(pool, int(history.stream[change]), large)


def _cut(ranges: dict[int, Range], starts: list[int], start: int, end: int) -> Domain | None:
    """Take a range away: its domain; None if it is not there as a whole."""
    at = bisect_right(starts, start) - 1
    if at < 0 or ranges[starts[at]].end < end:
        return None
    old = ranges.pop(starts.pop(at))
    for left, right in ((end, old.end), (old.start, start)):
        if left < right:
            ranges[left] = Range(left, right, old.expandable, old.domain)
            starts.insert(at, left)
    return old.domain


def _put(ranges: dict[int, Range], starts: list[int], new: Range) -> Domain | None:
    """Add a range, joined with expandable neighbours and of their domain: its domain; None if something is there."""
    at = bisect_right(starts, new.start)
    before = ranges[starts[at - 1]] if at else None
    after = ranges[starts[at]] if at < len(starts) else None
    if (before is not None and before.end > new.start) or (after is not None and after.start < new.end):
        return None
    start, end, domain = new.start, new.end, new.domain
    if new.expandable and after is not None and after.expandable and after.start == end:
        end, domain = after.end, after.domain
        del ranges[starts.pop(at)]
    if new.expandable and before is not None and before.expandable and before.end == start:
        start, domain = before.start, before.domain
        del ranges[starts.pop(at - 1)]
        at -= 1
    ranges[start] = Range(start, end, new.expandable, domain)
    starts.insert(at, start)
    return domain
