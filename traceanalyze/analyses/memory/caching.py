"""PyTorch's caching allocator: how it turns requests into blocks and takes memory from the device, and a model of it.

The model does what the allocator would do with a sequence of requests under other settings or on another device.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model import native
from traceanalyze.model.snapshot import Action, Snapshot, State

ALIGN = 512
"""Smallest block, and what blocks are rounded to."""
SMALL = 1 << 20
"""Blocks up to this size live in the small pool; a large block keeps a remainder up to this size."""
SMALL_SEGMENT = 2 << 20
LARGE_SEGMENT = 20 << 20
"""Of blocks below `_LARGE`; expandable segments of large blocks grow by as much."""
_LARGE = 10 << 20
_OVERSIZE = 20 << 20
"""A block that must not be split goes to requests that are less than this smaller (max_non_split_rounding_mb)."""
_ALIGNED, _ALIGNS = 16 << 10, 2 << 20
"""On NPUs blocks from the latter size on begin at multiples of the former in expandable segments."""
_SPACE = 1 << 50
"""Addresses set aside for an expandable segment: more than any device has."""
_PADS = {"cuda": (0, 32), "npu": (32, 0)}
"""Bytes added to each request, the likely first: NPU kernels read past the end of their inputs."""
_MB = 1 << 20


class Rules(NamedTuple):
    """What decides the size of a block."""

    pad: int
    max_split: int | None
    """Larger blocks are never split; None: no such limit."""
    divisions: tuple[int, ...]
    """Rounding to parts of powers of two, by log2 of the size in MiB; empty: off."""
    expandable: bool = False
    """Segments grow and shrink by mapping memory; then large blocks are split like small ones."""
    oversize: int = _OVERSIZE
    collect: float = 0.0
    """Of the memory fraction, beyond which unused segments go back before the allocator grows; 0: never."""

    def rounded(self, requested: int) -> int:
        """Size that a request needs."""
        size = requested + self.pad
        if size <= ALIGN:
            return ALIGN
        if self.divisions:
            index = min(max(size // _MB, 1).bit_length() - 1, len(self.divisions) - 1)
            divisions = self.divisions[index]
            if divisions > 1 and size > ALIGN * divisions:
                return _next_division(size, divisions)
        return -(-size // ALIGN) * ALIGN

    def splits(self, size: int, rest: int, *, large: bool) -> bool:
        """Whether a hole that leaves `rest` is split for a block of this size."""
        if self.expandable or not large:
            return rest >= ALIGN
        return rest > SMALL and (self.max_split is None or size < self.max_split)

    def segment(self, size: int, *, large: bool) -> int:
        """Bytes taken from the device for a block, where segments do not expand."""
        if not large:
            return SMALL_SEGMENT
        return LARGE_SEGMENT if size < _LARGE else -(-size // SMALL_SEGMENT) * SMALL_SEGMENT


def rules(snapshot: Snapshot) -> Rules:
    """The rules of a snapshot: its settings as far as it has them, the padding by what fits its live blocks."""
    limit = snapshot.settings.get("max_split_size")
    powers = snapshot.settings.get("roundup_power2_divisions")
    return Rules(
        pad=_pad(snapshot),
        max_split=limit if isinstance(limit, int) and limit > 0 else None,
        divisions=_divisions(powers if isinstance(powers, dict) else {}),
        expandable=snapshot.settings.get("expandable_segments") is True
        or any(
            device.segments.expandable.any() or (device.history.action == Action.SEGMENT_MAP).any()
            for device in snapshot.devices
        ),
    )


def rounded(rules: Rules, requested: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sizes that requests need."""
    sizes, of = np.unique(requested, return_inverse=True)
    return np.array([rules.rounded(size) for size in sizes.tolist()], np.int64)[of.reshape(-1)]


class NativeRules(ctypes.Structure):
    """`Rules` as the library reads them."""

    _fields_ = [
        *((number, ctypes.c_int64) for number in ("pad", "max_split", "oversize")),
        ("collect", ctypes.c_double),
        *native.pointers("divisions"),
        ("division_count", ctypes.c_uint64),
        *((flag, ctypes.c_uint32) for flag in ("expandable", "aligned")),
    ]


def native_rules(rules: Rules, *, aligned: bool = False) -> NativeRules:
    """Rules for the library; settings of a file may be any numbers."""
    parts = np.array([min(max(each, 0), _SPACE) for each in rules.divisions], np.int64)
    return native.given(
        NativeRules,
        {"divisions": parts},
        pad=rules.pad,
        max_split=-1 if rules.max_split is None else min(rules.max_split, _SPACE),
        oversize=rules.oversize,
        collect=rules.collect,
        division_count=len(parts),
        expandable=rules.expandable,
        aligned=aligned,
    )


def _divisions(powers: Mapping[object, object]) -> tuple[int, ...]:
    values = [value for value in powers.values() if isinstance(value, int)]
    return tuple(values) if any(value > 1 for value in values) else ()


def _pad(snapshot: Snapshot) -> int:
    """The padding under which most live blocks have just the size that their request rounds to."""
    blocks = [device.blocks for device in snapshot.devices]
    size = np.concatenate([one.size[one.state != State.INACTIVE] for one in blocks] or [np.zeros(0, np.int64)])
    requested = np.concatenate(
        [one.requested[one.state != State.INACTIVE] for one in blocks] or [np.zeros(0, np.int64)]
    )

    def fitting(pad: int) -> int:
        needed: NDArray[np.int64] = -(-np.maximum(requested + pad, 1) // ALIGN) * ALIGN
        return int((needed == size).sum())

    return max(_PADS.get(snapshot.vendor, _PADS["cuda"]), key=fitting)


def _next_division(size: int, divisions: int) -> int:
    """The next multiple of a power of two divided into `divisions` parts."""
    floor = 1 << (size.bit_length() - 1)
    if floor == size:
        return size
    part = floor >> (divisions.bit_length() - 1)
    return -(-size // part) * part if part else floor << 1


class Domain(NamedTuple):
    """What cannot serve each other's requests: a pool, a stream, small or large blocks."""

    pool: int
    stream: int
    large: bool


def granule(domain: Domain) -> int:
    """Bytes by which its expandable segments grow and shrink."""
    return LARGE_SEGMENT if domain.large else SMALL_SEGMENT


FREE, USED, UNMAPPED = range(3)


class Block:
    """A piece of a segment; its neighbours are those at its borders, None at the segment's."""

    __slots__ = ("address", "after", "base", "before", "born", "domain", "number", "size", "state")

    def __init__(self, domain: Domain, address: int, size: int, state: int, base: int | None, number: int) -> None:
        self.domain, self.address, self.size, self.state = domain, address, size, state
        self.base = base
        """Begin of its expandable segment; None: it is in another kind of segment."""
        self.number, self.born = number, 0
        self.before: Block | None = None
        self.after: Block | None = None


class Piece(NamedTuple):
    """A block of a segment that is there at the beginning; `name` is what the caller calls it, None: it is free."""

    start: int
    end: int
    name: int | None


_Entry = tuple[int, int, int, Block]
"""In order of size, then address; the number makes each differ."""


class Allocator:
    """The allocator of one device.

    Args:
        rules: Its settings.
        aligned: It is an NPU's.
        places: Addresses of segments by their size, those to use first at the end: among blocks of one size the lowest
            is taken, so that a replay needs them.
    """

    def __init__(self, rules: Rules, *, aligned: bool = False, places: dict[int, list[int]] | None = None) -> None:
        self.rules, self.aligned, self._places = rules, aligned, places or {}
        self.limit: int | None = None
        """Bytes that it may take from the device; None: any number."""
        self.reserved = self.grown = self.retries = 0
        """Bytes taken from the device now; how often it grew; how often it found the device full."""
        self._free: dict[Domain, list[_Entry]] = {}
        self._unmapped: dict[Domain, list[Block]] = {}
        self._next, self._number, self._calls = _SPACE, 0, 0
        self._rounded: dict[int, int] = {}

    def malloc(self, requested: int, pool: int, stream: int) -> Block | None:
        """A block for a request; None: the device is full."""
        need = self._rounded.get(requested)
        if need is None:
            need = self._rounded[requested] = self.rules.rounded(requested)
        domain, collects = Domain(pool, stream, need > SMALL), self.rules.collect > 0 and self.limit is not None
        self._calls += collects and domain.large
        block = self._fitting(domain, need)
        if block is None and collects:
            self._collect()
        if block is None:
            block = self._grow(domain, need)
        if block is None:
            self.retries += 1
            if self.rules.max_split is not None and self._give_oversized(domain, need):
                block = self._grow(domain, need)
        if block is None:
            self.empty_cache((0,))
            block = self._grow(domain, need)
        return None if block is None else self._split(block, need)

    def beyond(self, requested: int, pool: int, stream: int) -> Block:
        """A block for a request, whatever the limit."""
        limit, self.limit = self.limit, None
        block = self.malloc(requested, pool, stream)
        assert block is not None
        self.limit = limit
        return block

    def free(self, block: Block) -> None:
        """The program gives a block back."""
        block.state = FREE
        self._put(self._merged(block))

    def empty_cache(self, pools: Collection[int]) -> None:
        """Whole free segments of the pools go back to the device; of expandable ones all free granules."""
        for domain, free in self._free.items():
            if domain.pool in pools:
                for *_, block in list(free):
                    self._give_back(block)

    # What is there at the beginning

    def adopt(self, domain: Domain, pieces: Iterable[Piece], *, base: int | None = None) -> dict[int, Block]:
        """A segment as it is, in order of address, with the blocks in use by their names.

        In an expandable one, which begins at `base`, what lies between the pieces is not mapped.
        """
        used: dict[int, Block] = {}
        last, end = None, base or 0
        for start, until, name in pieces:
            if base is not None and start > end:
                last = self._behind(last, Block(domain, end, start - end, UNMAPPED, base, self._new_number()))
            block = Block(domain, start, until - start, FREE if name is None else USED, base, self._new_number())
            last, end = self._behind(last, block), until
            self.reserved += block.size
            if name is None:
                self._put(block)
            else:
                used[name] = block
        if base is not None:
            self._behind(last, Block(domain, end, _SPACE, UNMAPPED, base, self._new_number()))
        return used

    def reserve(self, domain: Domain, size: int) -> None:
        """Take so many bytes more that nobody uses, whatever the limit."""
        limit, self.limit = self.limit, None
        each = granule(domain) if self.rules.expandable or not domain.large else size
        for _ in range(-(-size // each) if size > 0 else 0):
            if self.rules.expandable and domain.pool == 0:
                block = self._map_piece(self._unmapped_of(domain)[-1], each)
            else:
                block = self._grow(domain, each)
            if block is not None:
                self._put(block)
        self.limit = limit

    # How it does it

    def _fitting(self, domain: Domain, need: int) -> Block | None:
        """The smallest free block that is large enough, taken out of the free ones."""
        free = self._free.get(domain)
        at = bisect_left(free, (need,)) if free else 0
        if not free or at == len(free):
            return None
        block, rules = free[at][3], self.rules
        if block.base is not None:
            # One that can grow counts as large as it can become, so that the growing end is kept for the last.
            while at + 1 < len(free) and (
                _room(free[at + 1][3]) < _room(block) or block.size - self._skipped(block, need) < need
            ):
                at += 1
                block = free[at][3]
            if block.size - self._skipped(block, need) < need:
                return None
        limit = rules.max_split
        if limit is not None and (block.size >= limit if need < limit else block.size >= need + rules.oversize):
            return None
        del free[at]
        return block

    def _skipped(self, block: Block, need: int) -> int:
        """Bytes left free before a block that begins at a rounded address."""
        expands = block.base is not None
        return -block.address % _ALIGNED if self.aligned and expands and need >= _ALIGNS else 0

    def _grow(self, domain: Domain, need: int) -> Block | None:
        """A free block of new memory, in no list; None: the device has too little."""
        if self.rules.expandable and domain.pool == 0:
            return self._map(domain, need)
        size = self.rules.segment(need, large=domain.large)
        if self.limit is not None and self.reserved + size > self.limit:
            return None
        known = self._places.get(size)
        address = known.pop() if known else self._next
        self._next += 0 if known else size
        self.reserved += size
        self.grown += 1
        return Block(domain, address, size, FREE, None, self._new_number())

    def _map(self, domain: Domain, need: int) -> Block | None:
        """Free and unmapped memory in a row at the lowest address where it suffices, mapped as far as needed."""
        block = next(one for one in self._unmapped_of(domain) if self._suffices(one, need))
        if block.before is not None and block.before.state == FREE:
            block = block.before
        need += self._skipped(block, need)
        if block.state == UNMAPPED:
            found = self._map_piece(block, min(block.size, need))
        else:
            self._take(block)
            found = block
        while found is not None and found.size < need:
            following = found.after
            assert following is not None
            self._put(found)
            found = self._map_piece(following, min(need - found.size, following.size))
        return found

    def _unmapped_of(self, domain: Domain) -> list[Block]:
        """What is not mapped of the domain's expandable segments; the last has room for everything."""
        if not self._unmapped.get(domain):
            self.adopt(domain, (), base=self._next)
            self._next += 2 * _SPACE
        return self._unmapped[domain]

    def _suffices(self, first: Block, need: int) -> bool:
        block: Block | None = first.before if first.before is not None and first.before.state == FREE else first
        assert block is not None
        need += self._skipped(block, need)
        while block is not None and block.state != USED and need > 0:
            need -= block.size
            block = block.after
        return need <= 0

    def _map_piece(self, block: Block, size: int) -> Block | None:
        """Map the begin of unmapped memory, joined with the free memory beside it and in no list."""
        each = granule(block.domain)
        size = min(-(-size // each) * each, block.size)
        if self.limit is not None and self.reserved + size > self.limit:
            return None
        self._unmapped[block.domain].remove(block)
        if size < block.size:
            self._cut(block, size, UNMAPPED)
        block.state = FREE
        self.reserved += size
        self.grown += 1
        return self._merged(block)

    def _split(self, block: Block, need: int) -> Block:
        """The part of a free block that a request gets; the others stay free."""
        skipped = self._skipped(block, need)
        if skipped:
            rest = self._cut(block, skipped, FREE)
            self._put(block)
            block = rest
        if self.rules.splits(need, block.size - need, large=block.domain.large):
            self._put(self._cut(block, need, FREE))
        block.state = USED
        return block

    def _cut(self, block: Block, size: int, state: int) -> Block:
        """Shorten a block to a size; the rest as a block of its own."""
        rest = Block(block.domain, block.address + size, block.size - size, state, block.base, self._new_number())
        block.size = size
        following = block.after
        self._behind(block, rest)
        rest.after = following
        if following is not None:
            following.before = rest
        return rest

    def _merged(self, block: Block) -> Block:
        """A free block that is in no list with the free ones beside it; in no list."""
        before, after = block.before, block.after
        if after is not None and after.state == FREE:
            self._take(after)
            self._join(block, after)
        if before is not None and before.state == FREE:
            self._take(before)
            self._join(before, block)
            return before
        return block

    @staticmethod
    def _join(block: Block, after: Block) -> None:
        block.size += after.size
        block.after = after.after
        if after.after is not None:
            after.after.before = block

    def _behind(self, block: Block | None, new: Block) -> Block:
        new.before = block
        if block is not None:
            block.after = new
        if new.state == UNMAPPED:
            insort(self._unmapped.setdefault(new.domain, []), new, key=_address)
        return new

    def _put(self, block: Block) -> None:
        block.born = self._calls
        free = self._free.setdefault(block.domain, [])
        insort(free, (block.size, block.address, block.number, block))

    def _take(self, block: Block) -> None:
        free = self._free[block.domain]
        del free[bisect_left(free, (block.size, block.address, block.number))]

    def _new_number(self) -> int:
        self._number += 1
        return self._number

    # What goes back to the device

    def _give_back(self, block: Block) -> int:
        """A free block that is a whole segment; of an expandable one its granules. Bytes given back."""
        if block.base is None:
            if block.before is not None or block.after is not None:
                return 0
            self._take(block)
            self.reserved -= block.size
            return block.size
        each = granule(block.domain)
        skipped = (block.base - block.address) % each
        size = (block.size - skipped) // each * each
        if size <= 0:
            return 0
        self._take(block)
        if skipped:
            gone = self._cut(block, skipped, FREE)
            self._put(block)
            block = gone
        if size < block.size:
            self._put(self._cut(block, size, FREE))
        self._unmap(block)
        return size

    def _unmap(self, block: Block) -> None:
        """A whole free block, which is in no list, becomes address space again."""
        unmapped = self._unmapped.setdefault(block.domain, [])
        self.reserved -= block.size
        block.state, before, after = UNMAPPED, block.before, block.after
        if after is not None and after.state == UNMAPPED:
            unmapped.remove(after)
            self._join(block, after)
        if before is not None and before.state == UNMAPPED:
            self._join(before, block)
            block = before
        else:
            insort(unmapped, block, key=_address)
        if block.before is None and block.after is None:
            unmapped.remove(block)

    def _give_oversized(self, domain: Domain, need: int) -> bool:
        """Give back blocks that must not be split: one that suffices, else from the largest on until they do."""
        free, least = self._free.get(domain, []), max(need, self.rules.max_split or 0)
        at = bisect_left(free, (least,))
        if at < len(free):
            return self._give_back(free[at][3]) > 0
        released = 0
        for size, *_, block in free[::-1]:
            if released >= least or size < (self.rules.max_split or 0):
                break
            released += self._give_back(block)
        return released >= least

    def _collect(self) -> None:
        """Give back large segments that were free for longest, until so much is below the threshold."""
        assert self.limit is not None
        wanted = self.reserved - int(self.rules.collect * self.limit)
        while wanted > 0:
            whole = [
                entry[3]
                for domain, free in self._free.items()
                for entry in free
                if domain.pool == 0
                and domain.large
                and entry[3].base is None
                and not (entry[3].before or entry[3].after)
            ]
            # At least as old as the mean.
            total = sum(self._calls - block.born for block in whole)
            old = [block for block in whole if (self._calls - block.born) * len(whole) >= total]
            for block in old:
                wanted -= self._give_back(block) if wanted > 0 else 0
            if not old:
                return


def _address(block: Block) -> int:
    return block.address


def _room(block: Block) -> int:
    """Bytes that a free block can become, where unmapped memory follows."""
    return block.size + (block.after.size if block.after is not None and block.after.state == UNMAPPED else 0)
