"""Free ranges inside segments, by domain; the state that the layout follower walks through."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple


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
        """The hole that begins at an address, or (`inside`) contains it; the likely domain is asked first."""
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

    def free_bytes(self, domain: Domain) -> int:
        """Sum of a domain's holes; cheap."""
        return self._bytes.get(domain, 0)

    def all(self) -> tuple[Free, ...]:
        """Free memory of every domain that has some."""
        return tuple(self.free(domain) for domain, amount in self._bytes.items() if amount)
