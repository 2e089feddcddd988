"""Follows the exact layout of memory through the history: which block had which size, and which holes there were.

The history tells requested bytes only; the size of a block follows from the hole it was put into and the allocator's
rule of splitting. At the dump the layout must equal the file's, which is checked. A history that cannot be followed
costs the exact layout and nothing else.
"""

import ctypes
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.memory.caching import ALIGN, SMALL, Domain, NativeRules, Rules, native_rules, rounded
from traceanalyze.analyses.memory.holes import GROWTH, RELEASE, Free, Holes, Past, free_at_dump, past_segments
from traceanalyze.analyses.memory.lifetimes import BEFORE, Lifetimes
from traceanalyze.model import native
from traceanalyze.model.snapshot import Action, SnapshotDevice, State


class Growth(NamedTuple):
    """A moment at which the allocator took memory from the device."""

    event: int
    call: int
    free: Free
    """What the domain had free just before."""


class LostWay(NamedTuple):
    """Why the layout could not be followed to that of the dump."""

    key: str
    """segments: growth and release do not lead to those of the dump; before: what lived before the history lies outside
    of them or overlaps; place: an allocation where nothing was free; release: memory in use was given back; sizes:
    blocks at the dump have another size."""
    number: int
    """The event of `place` and `release`, else how many."""


class Layout(NamedTuple):
    """Result of following; arrays are aligned with `Lifetimes`."""

    size: NDArray[np.int64]
    """Block bytes, at least."""
    slack: NDArray[np.int64]
    """Bytes that the block may have had beyond that (blocks allocated before the history, freed in it)."""
    pool: NDArray[np.int32]
    """Index into `SnapshotDevice.pools`."""
    growths: tuple[Growth, ...]
    watched: dict[int, tuple[Free, ...]]
    """Free memory of every domain just before the watched events, and (at the number of events) at the dump."""
    past: Past
    """The segments before the first event."""
    lost: LostWay | None
    """None: every block at the dump is at its place and of its size. Else `size` is what the request needs at least,
    but for blocks of the dump, `growths` is empty, and of `watched` only the dump is known."""


class _LostError(Exception):
    """The history cannot be followed."""


def follow(device: SnapshotDevice, lives: Lifetimes, rules: Rules, watch: frozenset[int] = frozenset()) -> Layout:
    """Walk through the history, natively where the library is there.

    Args:
        device: The allocator.
        lives: Its blocks, from `lifetimes`.
        rules: How it rounds and splits.
        watch: Events at which to note the free memory of all domains.
    """
    past, at_dump = past_segments(device, rules), {len(device.history): free_at_dump(device)}
    library = _library()
    try:
        early = _Early(device, lives, rules, past)
        walk = _walk_twin if library is None else _walk
        size, pool, growths, watched = walk(device, lives, rules, early, watch)
        _check(device, lives, size)
    except _LostError as error:
        size, known = rounded(rules, lives.requested), lives.block >= 0
        size[known] = device.blocks.size[lives.block[known]]
        return Layout(size, np.zeros_like(size), np.zeros(len(size), np.int32), (), at_dump, past, error.args[0])
    return Layout(size, early.slack, pool, growths, watched | at_dump, past, None)


class _Early:
    """Blocks allocated before the history: their segments, sizes, and what is free between them.

    The file tells the size of those alive at the dump. The others have at least what the request needs, and perhaps the
    gap behind them, where that was too small to be split off: then up to 1 MiB. No block or hole of the large pools is
    so small, so that a gap up to this size is the block's; in a larger one the first allocation while the block lives
    tells where it ends, because allocations begin where a hole does.
    """

    def __init__(self, device: SnapshotDevice, lives: Lifetimes, rules: Rules, past: Past) -> None:
        if past.wrong:
            raise _LostError(LostWay("segments", past.wrong))
        self.past = past
        early = np.flatnonzero(lives.begin == BEFORE)
        self.rows = early = early[np.argsort(lives.address[early], kind="stable")]
        self.start = lives.address[early]
        self.size, self.slack = np.zeros(len(early), np.int64), np.zeros(len(lives), np.int64)
        known = lives.block[early] >= 0
        self.size[known] = device.blocks.size[lives.block[early[known]]]
        self.size[~known] = rounded(rules, lives.requested[early[~known]])
        self.bounds = np.array([(one.start, one.end) for one in past.ranges], np.int64).reshape(-1, 2)
        self.range = np.searchsorted(self.bounds[:, 0], self.start, "right") - 1
        border = np.append(self.bounds[:, 1], 0)[self.range]
        limit = np.minimum(np.append(self.start, np.iinfo(np.int64).max)[1:], border)
        gap = limit - self.start - self.size
        # Addresses from 2^63 on are negative here, so that what lies in no segment is not told by its gap.
        if (outside := (self.range < 0) | (gap < 0)).any():
            raise _LostError(LostWay("before", int(outside.sum())))
        if rules.expandable or known.all():
            return
        large = np.array([one.domain.large for one in past.ranges], np.bool_)[self.range]
        open_ = np.flatnonzero(~known & large & (gap > 0))
        split = gap[open_] > SMALL
        if rules.max_split is not None:
            split &= self.size[open_] < rules.max_split
        self.size[open_[~split]] += gap[open_[~split]]
        self._bound(lives, open_[split], gap)

    def _bound(self, lives: Lifetimes, unsure: NDArray[np.int64], gap: NDArray[np.int64]) -> None:
        """Sizes of blocks before gaps that may be partly theirs: exact where an allocation tells, else an interval."""
        begun = np.flatnonzero(lives.begin != BEFORE)
        begun = begun[np.argsort(lives.address[begun], kind="stable")]
        ends = self.start + self.size
        first = np.searchsorted(lives.address[begun], ends[unsure])
        last = np.searchsorted(lives.address[begun], ends[unsure] + SMALL, "right")
        for at, left, right in zip(unsure.tolist(), first.tolist(), last.tolist(), strict=True):
            row, behind = self.rows[at], begun[left:right]
            behind = behind[lives.begin[behind] < lives.end[row]]
            if len(behind):
                self.size[at] += lives.address[behind[lives.begin[behind].argmin()]] - ends[at]
            else:
                self.slack[row] = min(SMALL, int(gap[at]) - SMALL - ALIGN)

    def holes(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Start, end and range of what is free before the first event: the segments without the blocks in them."""
        first = np.searchsorted(self.start, self.bounds[:, 0])
        after = np.append(first[1:], len(self.start))[: len(first)]
        # From the start of a segment or the end of a block in it to the next block, or to the end of the segment.
        start = np.insert(self.start + self.size, first, self.bounds[:, 0])
        end = np.insert(self.start, after, self.bounds[:, 1])
        of = np.insert(self.range, first, np.arange(len(first)))
        some = start < end
        return start[some], end[some], of[some]


_Walked = tuple[NDArray[np.int64], NDArray[np.int32], tuple[Growth, ...], dict[int, tuple[Free, ...]]]
"""Of a `Layout`: size, pool, growths, watched."""


class _History(ctypes.Structure):
    _fields_ = [*native.pointers("action", "address", "size", "call"), ("events", ctypes.c_uint64)]


class _Layout(ctypes.Structure):
    _fields_ = [
        *native.pointers("end"),
        *((number, ctypes.c_uint64) for number in ("blocks", "early")),
        *native.pointers("large"),
        ("domains", ctypes.c_uint64),
        *native.pointers("hole_start", "hole_end", "hole_domain"),
        ("holes", ctypes.c_uint64),
        *native.pointers("alone_start", "alone_end"),
        ("alone", ctypes.c_uint64),
        *native.pointers("change_domain", "watch"),
        ("watched", ctypes.c_uint64),
        *native.pointers("size", "domain"),
        *((rows, native.Array) for rows in ("growths", "free")),
        ("lost_event", ctypes.c_uint64),
        ("lost", ctypes.c_uint32),
    ]


_LOST = ("", "place", "release")


@cache
def _library() -> ctypes.CDLL | None:
    library = native.library()
    if library is not None:
        library.trace_follow.argtypes = tuple(map(ctypes.POINTER, (_History, NativeRules, _Layout)))
    return library


def _walk(device: SnapshotDevice, lives: Lifetimes, rules: Rules, early: _Early, watch: frozenset[int]) -> _Walked:
    history, past, library = device.history, early.past, _library()
    assert library is not None
    changes = [past.domain[event] for event in sorted(past.domain)]
    domains = list(dict.fromkeys((*(one.domain for one in past.ranges), *changes)))
    number = {domain: at for at, domain in enumerate(domains)}
    of_range = np.array([number[one.domain] for one in past.ranges], np.int32)
    start, end, of = early.holes()
    alone = early.bounds[np.array([not one.expandable for one in past.ranges], np.bool_)]
    size, domain = np.zeros(len(lives), np.int64), np.zeros(len(lives), np.int32)
    size[early.rows], domain[early.rows] = early.size, of_range[early.range]
    watched = np.array(sorted(event for event in watch if 0 <= event < len(history)), np.int64)
    columns = {
        "end": lives.end,
        "large": np.array([one.large for one in domains], np.bool_),
        "hole_start": start,
        "hole_end": end,
        "hole_domain": of_range[of],
        "alone_start": alone[:, 0],
        "alone_end": alone[:, 1],
        "change_domain": np.array([number[one] for one in changes], np.int32),
        "watch": watched,
        "size": size,
        "domain": domain,
    }
    counts = {"blocks": len(lives), "early": len(early.rows), "domains": len(domains), "holes": len(start)}
    layout = native.given(_Layout, columns, **counts, alone=len(alone), watched=len(watched))
    events = {name: getattr(history, name) for name in ("action", "address", "size", "call")}
    given = native.given(_History, events, events=len(history)), native_rules(rules), layout
    if library.trace_follow(*map(ctypes.byref, given)):
        raise MemoryError("no memory left for the layout of blocks")
    grown, free = (native.owned(rows, np.int64, width=5).tolist() for rows in (layout.growths, layout.free))
    if layout.lost:
        raise _LostError(LostWay(_LOST[layout.lost], layout.lost_event))
    growths = tuple(Growth(event, int(history.call[event]), Free(domains[at], *told)) for event, at, *told in grown)
    found: dict[int, tuple[Free, ...]] = dict.fromkeys(watched.tolist(), ())
    for event, at, *told in free:
        found[event] += (Free(domains[at], *told),)
    return size, np.array([one.pool for one in domains] or [0], np.int32)[domain], growths, found


def _walk_twin(device: SnapshotDevice, lives: Lifetimes, rules: Rules, early: _Early, watch: frozenset[int]) -> _Walked:
    """The same in Python: slow, and the specification of the native function."""
    walk = _Walk(device, lives, rules, early)
    walk.run(watch)
    return walk.size, walk.pool, tuple(walk.growths), walk.watched


class _Walk:
    """The pass over the events, each of which depends on all before it."""

    def __init__(self, device: SnapshotDevice, lives: Lifetimes, rules: Rules, early: _Early) -> None:
        self.device, self.lives, self.rules, self.past = device, lives, rules, early.past
        self.holes = Holes()
        for one in early.past.ranges:
            if not one.expandable:
                self.holes.enclose(one.start, one.end)
        of_range = [one.domain for one in early.past.ranges]
        for start, end, of in zip(*(each.tolist() for each in early.holes()), strict=True):
            self.holes.add(of_range[of], start, end)
        self.size, self.pool = np.zeros(len(lives), np.int64), np.zeros(len(lives), np.int32)
        self.size[early.rows] = early.size
        self.pool[early.rows] = np.array([one.pool for one in of_range], np.int32)[early.range]
        # What each live block takes, by its row: domain and end.
        ends, domains = (early.start + early.size).tolist(), [of_range[at] for at in early.range.tolist()]
        self.live = dict(zip(early.rows.tolist(), zip(domains, ends, strict=True), strict=True))
        self.growths: list[Growth] = []
        self.watched: dict[int, tuple[Free, ...]] = {}

    def run(self, watch: frozenset[int]) -> None:
        """Follow all events; `watched` is what was free just before some of them."""
        history, lives, holes, live = self.device.history, self.lives, self.holes, self.live
        begun = {event: row for row, event in enumerate(lives.begin.tolist()) if event != BEFORE}
        ended = {event: row for row, event in enumerate(lives.end.tolist()) if event < len(history)}
        action, address = history.action.tolist(), history.address.tolist()
        stream, requested = history.stream.tolist(), history.size.tolist()
        changes, alloc = {*map(int, GROWTH), *map(int, RELEASE)}, int(Action.ALLOC)
        sizes: dict[int, tuple[int, int]] = {}
        for event, what in enumerate(action):
            if event in watch:
                self.watched[event] = holes.all()
            if what == alloc:
                row, start = begun[event], address[event]
                domain, end = self._place(event, start, requested[event], stream[event])
                live[row], sizes[row] = (domain, end), (end - start, domain.pool)
            elif event in ended:
                domain, end = live.pop(ended[event])
                holes.add(domain, address[event], end)
            elif what in changes:
                self._resize(event, what, address[event], address[event] + requested[event])
        rows = list(sizes)
        self.size[rows], self.pool[rows] = np.array(list(sizes.values()), np.int64).reshape(-1, 2).T

    def _place(self, event: int, address: int, requested: int, stream: int) -> tuple[Domain, int]:
        """Put a block into the hole at its address; its domain and its end."""
        rules, needed = self.rules, self.rules.rounded(requested)
        # On NPUs large blocks of expandable segments begin at rounded addresses inside of a hole.
        found = self.holes.find(Domain(0, stream, needed > SMALL), address, inside=rules.expandable)
        if found is None or found[2] < address + needed:
            raise _LostError(LostWay("place", event))
        domain, start, end = found
        if rules.splits(needed, end - address - needed, large=domain.large):
            self.holes.take(domain, start, end, address, address + needed)
            return domain, address + needed
        self.holes.take(domain, start, end, address, end)
        return domain, end

    def _resize(self, event: int, what: int, start: int, end: int) -> None:
        """Memory is taken from the device or given back to it."""
        domain, alone = self.past.domain[event], what in (Action.SEGMENT_ALLOC, Action.SEGMENT_FREE)
        if what in RELEASE:
            if not self.holes.remove(domain, start, end):
                raise _LostError(LostWay("release", event))
            if alone:
                self.holes.disclose(start, end)
            return
        call = int(self.device.history.call[event])
        if not self.growths or self.growths[-1].call != call or call < 0 or self.growths[-1].free.domain != domain:
            self.growths.append(Growth(event, call, self.holes.free(domain)))
        if alone:
            self.holes.enclose(start, end)
        self.holes.add(domain, start, end)


def _check(device: SnapshotDevice, lives: Lifetimes, size: NDArray[np.int64]) -> None:
    """Every block alive at the dump must have the size that the file states."""
    live = np.flatnonzero(lives.end == len(device.history))
    blocks = device.blocks
    missing = abs(len(live) - int((blocks.state != State.INACTIVE).sum())) + int((lives.block[live] < 0).sum())
    wrong = missing or int((blocks.size[lives.block[live]] != size[live]).sum())
    if wrong:
        raise _LostError(LostWay("sizes", wrong))
