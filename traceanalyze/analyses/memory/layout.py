"""Follows the exact layout of memory through the history: which block had which size, and which holes there were.

The history tells requested bytes only; the size of a block follows from the hole it was put into and the allocator's
rule of splitting. At the dump the layout must equal the file's, which is checked.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.memory.holes import (
    GROWTH,
    RELEASE,
    Domain,
    Free,
    Holes,
    Range,
    domain_of_event,
    domain_of_segment,
    past_segments,
)
from traceanalyze.analyses.memory.lifetimes import BEFORE, Lifetimes
from traceanalyze.analyses.memory.rounding import SMALL, Rules
from traceanalyze.model.snapshot import Action, SnapshotDevice, State


class Growth(NamedTuple):
    """A moment at which the allocator took memory from the device."""

    event: int
    call: int
    free: Free
    """What the domain had free just before."""


class Layout(NamedTuple):
    """Result of following; arrays are aligned with `Lifetimes`."""

    size: NDArray[np.int64]
    """Block bytes, at least."""
    slack: NDArray[np.int64]
    """Bytes that the block may have had beyond that (blocks allocated before the history, freed in it)."""
    growths: tuple[Growth, ...]
    watched: dict[int, tuple[Free, ...]]
    """Free memory of every domain just before the watched events."""
    final: tuple[Free, ...]
    unplaced: int
    """Allocations at an address where nothing was free."""
    exact: bool
    """Whether the layout at the dump is that of the file, every block at its place and of its size."""


def follow(device: SnapshotDevice, lives: Lifetimes, rules: Rules, watch: frozenset[int] = frozenset()) -> Layout:
    """Walk through the history.

    Args:
        device: The allocator.
        lives: Its blocks, from `lifetimes`.
        rules: How it rounds and splits.
        watch: Events at which to note the free memory of all domains.
    """
    ranges, inconsistent = past_segments(device)
    holes = Holes()
    size, slack = _early_sizes(device, lives, rules, ranges)
    _fill(holes, ranges, lives, size)
    walk = _Walk(device, lives, rules, holes, size)
    walk.run(watch)
    exact = inconsistent == 0 and walk.unplaced == 0 and _is_exact(device, lives, size)
    return Layout(size, slack, tuple(walk.growths), walk.watched, holes.all(), walk.unplaced, exact)


def _early_sizes(
    device: SnapshotDevice, lives: Lifetimes, rules: Rules, ranges: list[Range]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sizes of the blocks allocated before the history: the file's, or the least that the request needs.

    A block that is freed in the history may have owned the gap behind it, if that was too small to be split off.
    """
    size = np.zeros(len(lives), np.int64)
    slack = np.zeros(len(lives), np.int64)
    early = np.flatnonzero(lives.begin == BEFORE)
    known = early[lives.block[early] >= 0]
    size[known] = device.blocks.size[lives.block[known]]
    guessed = early[lives.block[early] < 0]
    size[guessed] = [rules.rounded(requested) for requested in lives.requested[guessed].tolist()]
    if len(guessed) == 0 or not ranges:
        return size, slack
    starts, fine = np.sort(lives.address[early]), {item.domain for item in ranges if item.expandable}
    range_start = np.array([item.start for item in ranges], np.int64)
    for row in guessed.tolist():
        end = int(lives.address[row] + size[row])
        at = int(np.searchsorted(range_start, lives.address[row], "right")) - 1
        if at < 0 or end > ranges[at].end:
            continue
        follower = int(np.searchsorted(starts, end, "left"))
        limit = min(ranges[at].end, int(starts[follower]) if follower < len(starts) else ranges[at].end)
        rest = limit - end
        is_fine = ranges[at].domain in fine or not ranges[at].domain.large
        if rest > 0 and not rules.splits(int(size[row]), rest, fine=is_fine):
            slack[row] = rest
    return size, slack


def _fill(holes: Holes, ranges: list[Range], lives: Lifetimes, size: NDArray[np.int64]) -> None:
    """Holes before the first event: the segments without the blocks in them."""
    early = np.flatnonzero(lives.begin == BEFORE)
    early = early[np.argsort(lives.address[early], kind="stable")]
    start, end = lives.address[early], lives.address[early] + size[early]
    for item in ranges:
        if not item.expandable:
            holes.borders.update((item.start, item.end))
        first, last = np.searchsorted(start, (item.start, item.end)).tolist()
        at = item.start
        for left, right in zip(start[first:last].tolist(), end[first:last].tolist(), strict=True):
            if left > at:
                holes.add(item.domain, at, left)
            at = max(at, right)
        if at < item.end:
            holes.add(item.domain, at, item.end)


class _Walk:
    """The pass over the events; plain Python, because each event depends on all before it."""

    def __init__(
        self, device: SnapshotDevice, lives: Lifetimes, rules: Rules, holes: Holes, size: NDArray[np.int64]
    ) -> None:
        self.device, self.lives, self.rules, self.holes, self.size = device, lives, rules, holes, size
        self.domain_of: list[Domain | None] = self._known_domains()
        self.growths: list[Growth] = []
        self.watched: dict[int, tuple[Free, ...]] = {}
        self.unplaced = 0
        self._expandable = bool(device.segments.expandable.any()) or Action.SEGMENT_MAP in device.history.action

    def _known_domains(self) -> list[Domain | None]:
        """Of blocks in segments of the dump; others become known when they are placed."""
        segments, address = self.device.segments, self.lives.address
        domains = [domain_of_segment(self.device, index) for index in range(len(segments))]
        at = np.searchsorted(segments.address, address, "right") - 1
        inside = (at >= 0) & (address < (segments.address + segments.size)[at]) if len(segments) else at >= 0
        return [domains[i] if ok else None for i, ok in zip(at.tolist(), inside.tolist(), strict=True)]

    def run(self, watch: frozenset[int]) -> None:
        """Follow all events; `watched` is what was free just before some of them."""
        history, lives = self.device.history, self.lives
        begun = {event: row for row, event in enumerate(lives.begin.tolist()) if event != BEFORE}
        ended = {event: row for row, event in enumerate(lives.end.tolist()) if event < len(history)}
        action, address = history.action.tolist(), history.address.tolist()
        stream, requested = history.stream.tolist(), history.size.tolist()
        changes, alloc = {*map(int, GROWTH), *map(int, RELEASE)}, int(Action.ALLOC)
        early = np.flatnonzero(lives.begin == BEFORE)
        sizes: dict[int, int] = dict(zip(early.tolist(), self.size[early].tolist(), strict=True))
        for event, what in enumerate(action):
            if event in watch:
                self.watched[event] = self.holes.all()
            if what == alloc:
                row = begun[event]
                sizes[row] = self._place(row, address[event], requested[event], stream[event])
            elif event in ended:
                row = ended[event]
                domain = self.domain_of[row]
                if domain is not None and row in sizes:
                    self.holes.add(domain, address[event], address[event] + sizes[row])
            elif what in changes:
                self._resize(event, what, address[event], address[event] + requested[event])
        self.size[list(sizes)] = list(sizes.values())

    def _place(self, row: int, address: int, requested: int, stream: int) -> int:
        """Put a block into the hole at its address; its size."""
        needed = self.rules.rounded(requested)
        likely = self.domain_of[row] or Domain(0, stream, needed > SMALL)
        found = self.holes.find(likely, address, inside=self._expandable)
        if found is None or found[2] < address + needed:
            self.unplaced += 1
            self.domain_of[row] = likely
            return needed
        domain, start, end = found
        self.domain_of[row] = domain
        fine = not domain.large or self._expandable
        used = needed if self.rules.splits(needed, end - address - needed, fine=fine) else end - address
        self.holes.take(domain, start, end, address, address + used)
        return used

    def _resize(self, event: int, what: int, start: int, end: int) -> None:
        """Memory is taken from the device or given back to it."""
        if what in RELEASE:
            self.unplaced += not self.holes.remove(start, end)
            if what == Action.SEGMENT_FREE:
                self.holes.borders.discard(start)
            return
        domain = domain_of_event(self.device, event)
        call = int(self.device.history.call[event])
        if not self.growths or self.growths[-1].call != call or call < 0 or self.growths[-1].free.domain != domain:
            self.growths.append(Growth(event, call, self.holes.free(domain)))
        if what == Action.SEGMENT_ALLOC:
            self.holes.borders.update((start, end))
        self.holes.add(domain, start, end)


def _is_exact(device: SnapshotDevice, lives: Lifetimes, size: NDArray[np.int64]) -> bool:
    """Whether every block alive at the dump has the size that the file states."""
    live = np.flatnonzero(lives.end == len(device.history))
    blocks = device.blocks
    if (lives.block[live] < 0).any() or len(live) != int((blocks.state != State.INACTIVE).sum()):
        return False
    return bool((blocks.size[lives.block[live]] == size[live]).all())
