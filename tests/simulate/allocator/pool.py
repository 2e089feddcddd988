"""PyTorch's caching allocator, simulated: rounding, best fit, splitting, growth, release, retries, expandable segments.

Written from the allocator's documented rules, independently of the product's follower, so that each checks the other.
Every block carries its true size; `truth` and `holes` keep the exact state around each event.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

KIB, MIB = 1 << 10, 1 << 20
SMALL_LIMIT = MIB
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB
LARGE_LIMIT = 10 * MIB
OVERSIZE = 20 * MIB
"""A block above `max_split` goes whole to requests that are less than this smaller."""
VIRTUAL = 1 << 40
"""Address space set aside for each expandable segment."""
ALIGNED = 16 * KIB
FIRST_ADDRESS = 1 << 36

Frames = list[dict[str, Any]]
Pool = tuple[int, int]
DEFAULT: Pool = (0, 0)
Domain = tuple[Pool, int, bool]
"""Pool, stream, and whether blocks are large: what cannot serve each other."""


class OutOfMemoryError(Exception):
    """The simulated device is full."""


@dataclass(eq=False)
class Block:
    address: int
    size: int
    segment: Segment
    requested: int = 0
    state: str = "inactive"
    """active_allocated, active_pending_free, inactive, or unmapped: address space of an expandable segment"""
    frames: Frames | None = None

    @property
    def end(self) -> int:
        return self.address + self.size


@dataclass(eq=False)
class Segment:
    address: int
    size: int
    """Bytes taken from the device."""
    stream: int
    small: bool
    expandable: bool
    frames: Frames | None
    pool: Pool = DEFAULT
    blocks: list[Block] = field(default_factory=list)
    known: list[Block] | None = None
    """What is free, as long as nothing changes."""

    @property
    def free(self) -> list[Block]:
        if self.known is None:
            self.known = [block for block in self.blocks if block.state == "inactive"]
        return self.known

    @property
    def domain(self) -> Domain:
        return self.pool, self.stream, not self.small


@dataclass(frozen=True)
class State:
    """Bytes just after an event."""

    requested: int
    allocated: int
    reserved: int


@dataclass(frozen=True)
class Free:
    """Free memory of one domain."""

    bytes: int
    holes: int
    largest: int


@dataclass
class Allocator:
    capacity: int = 1 << 40
    expandable: bool = False
    pad: int = 0
    outside: int = 0
    """Device memory that others hold."""
    step_us: int = 10
    reuse: bool = False
    """The device hands out addresses again, lowest first and without gaps."""
    aligned: bool = False
    """As on NPUs, blocks of 2 MiB and more in expandable segments begin at multiples of 16 KiB."""
    max_split: int | None = None
    """Blocks of this size and more are not split; None: no limit."""
    segments: list[Segment] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    truth: list[State] = field(default_factory=list)
    holes: list[dict[Domain, Free]] = field(default_factory=list)
    """Just before each event, of each domain that has segments."""
    notes: list[dict[str, Any]] = field(default_factory=list)
    now: int = 1_700_000_000_000_000
    next_address: int = FIRST_ADDRESS
    live: dict[int, Block] = field(default_factory=dict)
    pending: list[Block] = field(default_factory=list)
    """Freed by the program, still used by another stream."""
    given_up: set[Pool] = field(default_factory=set)
    """Private pools whose graphs are gone: what is free in them may go back to the device."""
    requested: int = 0
    """Bytes the program asked for, of all that is live."""
    held: int = 0
    """Bytes of their blocks."""

    # What the program does

    def malloc(self, size: int, frames: Frames | None = None, stream: int = 0, pool: Pool = DEFAULT) -> int:
        """Address of a new block."""
        while self.pending:
            self._complete(self.pending.pop(0), frames)
        need = max(512, -(-(size + self.pad) // 512) * 512)
        domain = pool, stream, need > SMALL_LIMIT
        block = self._best_fit(need, domain) or self._grow(need, size, domain, frames)
        self._look()
        block = self._split(block, need)
        block.state, block.requested, block.frames, block.segment.known = "active_allocated", size, frames, None
        self.live[block.address] = block
        self.requested += size
        self.held += block.size
        self._record("alloc", block.address, size, domain, frames, looked=True)
        return block.address

    def free(self, address: int, frames: Frames | None = None, *, late: bool = False) -> None:
        """Give a block back; `late`: another stream still uses it, until the next allocation."""
        block = self.live.pop(address)
        self._record("free_requested", address, block.requested, block.segment.domain, frames)
        if late:
            block.state = "active_pending_free"
            self.pending.append(block)
        else:
            self._complete(block, frames)

    def empty_cache(self, frames: Frames | None = None) -> int:
        """Give everything unused back to the device; bytes released."""
        kept = [one for one in self.segments if one.pool == DEFAULT or one.pool in self.given_up]
        return sum(self._release(segment, frames) for segment in kept)

    def note(self, name: str, stage: str = "START") -> None:
        """A user annotation begins or ends."""
        self.notes.append({"stage": stage, "name": name, "device": 0, "time_us": self.now})

    # Totals

    @property
    def reserved(self) -> int:
        return sum(segment.size for segment in self.segments)

    # How it does it

    def _complete(self, block: Block, frames: Frames | None) -> None:
        self._look()
        size = block.requested
        self.requested -= size
        self.held -= block.size
        block.state = "inactive"
        block.frames = block.segment.known = None
        self._merge(block)
        self._record("free_completed", block.address, size, block.segment.domain, frames, looked=True)

    def _best_fit(self, need: int, domain: Domain) -> Block | None:
        fitting = [
            block
            for segment in self.segments
            if segment.domain == domain
            for block in segment.free
            if block.size - self._skipped(block, need) >= need
        ]
        if self.expandable and fitting and fitting[0].segment.expandable:
            # A block at the growing end of its segment counts as all that it may become, as long as the next is less.
            fitting.sort(key=lambda block: (block.size, block.address))
            sizes = [self._grown(block) for block in fitting]
            return next(
                block for at, block in enumerate(fitting) if at + 1 == len(fitting) or sizes[at + 1] >= sizes[at]
            )
        best = min(fitting, key=lambda block: (block.size, block.address), default=None)
        if best is None or self.max_split is None:
            return best
        oversized = best.size >= self.max_split if need < self.max_split else best.size >= need + OVERSIZE
        return None if oversized else best

    def _grown(self, block: Block) -> int:
        following = [one for one in block.segment.blocks if one.address == block.end and one.state == "unmapped"]
        return block.size + sum(one.size for one in following)

    def _skipped(self, block: Block, need: int) -> int:
        """Bytes in front of an aligned block."""
        return -block.address % ALIGNED if self.aligned and block.segment.expandable and need >= 2 * MIB else 0

    def _grow(self, need: int, size: int, domain: Domain, frames: Frames | None) -> Block:
        # Pools of graphs have no expandable segments.
        take = self._map if self.expandable and domain[0] == DEFAULT else self._new
        for attempt in (0, 1):
            block = take(need, domain, frames)
            if block is not None:
                return block
            if attempt == 0:
                block = self._trade_oversized(need, domain, frames) and take(need, domain, frames)
                if block:
                    return block
                self.empty_cache(frames)
        self._record("oom", None, need, domain, frames, device_free=self._device_free())
        raise OutOfMemoryError(size)

    def _trade_oversized(self, need: int, domain: Domain, frames: Frames | None) -> bool:
        """On a full device blocks that are never split go first: one large enough, else the largest until they are."""
        if self.max_split is None:
            return False
        least, released = max(need, self.max_split), 0
        free = [one for segment in self.segments if segment.domain == domain for one in segment.free]
        free.sort(key=lambda block: (block.size, block.address))
        enough = [block for block in free if block.size >= least]
        for block in enough[:1] or free[::-1]:
            if released < least and block.size >= self.max_split:
                released += self._release(block.segment, frames)
        return released >= least

    def _device_free(self) -> int:
        return self.capacity - self.outside - self.reserved

    def _new(self, need: int, domain: Domain, frames: Frames | None) -> Block | None:
        pool, stream, large = domain
        size = (
            SMALL_SEGMENT
            if not large
            else LARGE_SEGMENT
            if need < LARGE_LIMIT
            else -(-need // SMALL_SEGMENT) * SMALL_SEGMENT
        )
        if size > self._device_free():
            return None
        self._look()
        segment = Segment(self._address(size), size, stream, not large, False, frames, pool)
        block = Block(segment.address, size, segment)
        segment.blocks.append(block)
        self.segments.append(segment)
        self._record("segment_alloc", segment.address, size, domain, frames, looked=True)
        return block

    def _map(self, need: int, domain: Domain, frames: Frames | None) -> Block | None:
        """The lowest place of the segment where free and unmapped memory has room enough, mapped as far as needed."""
        pool, stream, large = domain
        same = [one for one in self.segments if one.domain == domain and one.expandable]
        if same:
            (segment,) = same
        else:
            segment = Segment(self._address(VIRTUAL), 0, stream, not large, True, frames, pool)
            segment.blocks.append(Block(segment.address, VIRTUAL, segment, state="unmapped"))
        for at, first in enumerate(segment.blocks):
            room, last = 0, at
            while last < len(segment.blocks) and segment.blocks[last].state in {"inactive", "unmapped"}:
                room += segment.blocks[last].size
                last += 1
            if room - self._skipped(first, need) >= need:
                break
        granule = LARGE_SEGMENT if large else SMALL_SEGMENT
        until = first.address + self._skipped(first, need) + need
        pieces = [
            (block.address, min(-(-(until - block.address) // granule) * granule, block.size))
            for block in segment.blocks[at:last]
            if block.state == "unmapped" and block.address < until
        ]
        if sum(size for _, size in pieces) > self._device_free():
            return None
        if not same:
            self.segments.append(segment)
        for start, size in pieces:
            self._look()
            block = self._map_piece(segment, start, size)
            self._record("segment_map", start, size, domain, frames, looked=True)
        return block

    def _map_piece(self, segment: Segment, start: int, size: int) -> Block:
        at = next(index for index, one in enumerate(segment.blocks) if one.address == start)
        block = segment.blocks[at]
        if size < block.size:
            segment.blocks.insert(at + 1, Block(start + size, block.size - size, segment, state="unmapped"))
        block.size, block.state, segment.known = size, "inactive", None
        segment.size += size
        return self._merge(block)

    def _address(self, size: int) -> int:
        if self.reuse:
            address = FIRST_ADDRESS
            for one in sorted(self.segments, key=lambda one: one.address):
                if one.address - address >= size:
                    break
                address = one.address + (VIRTUAL if one.expandable else one.size)
            return address
        address = self.next_address
        self.next_address += -(-size // SMALL_SEGMENT) * SMALL_SEGMENT + SMALL_SEGMENT
        return address

    def _split(self, block: Block, need: int) -> Block:
        blocks, skipped = block.segment.blocks, self._skipped(block, need)
        if skipped:
            tail = Block(block.address + skipped, block.size - skipped, block.segment)
            block.size = skipped
            blocks.insert(blocks.index(block) + 1, tail)
            block = tail
        rest = block.size - need
        if block.segment.small or self.expandable:
            splits = rest >= 512
        else:
            splits = rest > SMALL_LIMIT and (self.max_split is None or need < self.max_split)
        if splits:
            block.size = need
            blocks.insert(blocks.index(block) + 1, Block(block.address + need, rest, block.segment))
        return block

    def _merge(self, block: Block) -> Block:
        """Join a block with neighbours of its state."""
        blocks = block.segment.blocks
        at = blocks.index(block)
        if at + 1 < len(blocks) and blocks[at + 1].state == block.state:
            block.size += blocks.pop(at + 1).size
        if at > 0 and blocks[at - 1].state == block.state:
            blocks[at - 1].size += block.size
            blocks.pop(at)
            return blocks[at - 1]
        return block

    def _release(self, segment: Segment, frames: Frames | None) -> int:
        """Give a segment back, if it is free as a whole; of an expandable one all granules that are."""
        if segment.expandable:
            return sum(self._unmap(block, frames) for block in list(segment.free))
        if len(segment.blocks) > 1 or segment.blocks[0].state != "inactive":
            return 0
        self._look()
        self.segments.remove(segment)
        self._record("segment_free", segment.address, segment.size, segment.domain, frames, looked=True)
        return segment.size

    def _unmap(self, block: Block, frames: Frames | None) -> int:
        segment = block.segment
        granule = SMALL_SEGMENT if segment.small else LARGE_SEGMENT
        start = segment.address - (segment.address - block.address) // granule * granule
        size = (block.end - start) // granule * granule
        if size <= 0:
            return 0
        self._look()
        at = segment.blocks.index(block)
        gone = Block(start, size, segment, state="unmapped")
        parts = [Block(block.address, start - block.address, segment), gone]
        parts.append(Block(gone.end, block.end - gone.end, segment))
        segment.blocks[at : at + 1] = [part for part in parts if part.size]
        segment.known = None
        segment.size -= size
        self._merge(gone)
        if segment.size == 0:
            self.segments.remove(segment)
        self._record("segment_unmap", start, size, segment.domain, frames, looked=True)
        return size

    # What is written down

    def _look(self) -> None:
        """Write down what is free just before an event."""
        sizes: dict[Domain, list[int]] = {}
        for segment in self.segments:
            sizes.setdefault(segment.domain, []).extend(block.size for block in segment.free)
        self.holes.append({key: Free(sum(one), len(one), max(one, default=0)) for key, one in sizes.items()})

    def _record(
        self,
        action: str,
        address: int | None,
        size: int,
        domain: Domain,
        frames: Frames | None,
        *,
        device_free: int | None = None,
        looked: bool = False,
    ) -> None:
        self.now += self.step_us
        event: dict[str, Any] = {"action": action, "size": size, "stream": domain[1], "time_us": self.now}
        event["pool_id"] = domain[0]
        if address is not None:
            event["addr"] = address
        if device_free is not None:
            event["device_free"] = device_free
        if frames is not None:
            event["frames"] = frames
        if not looked:
            self._look()
        self.events.append(event)
        self.truth.append(State(self.requested, self.held, self.reserved))
