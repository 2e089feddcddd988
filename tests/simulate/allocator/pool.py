"""PyTorch's caching allocator, simulated: rounding, best fit, splitting, growth, release, retries, expandable segments.

Written from the allocator's documented rules, independently of the product's follower, so that each checks the other.
Every block carries its true size; `truth` keeps the exact state after each event.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

KIB, MIB = 1 << 10, 1 << 20
SMALL_LIMIT = MIB
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB
LARGE_LIMIT = 10 * MIB
VIRTUAL = 1 << 40
"""Address space set aside for each expandable segment."""

Frames = list[dict[str, Any]]


class OutOfMemoryError(Exception):
    """The simulated device is full."""


@dataclass(eq=False)
class Block:
    address: int
    size: int
    segment: Segment
    requested: int = 0
    state: str = "inactive"
    frames: Frames | None = None


@dataclass(eq=False)
class Segment:
    address: int
    size: int
    stream: int
    small: bool
    expandable: bool
    frames: Frames | None
    blocks: list[Block] = field(default_factory=list)
    known: list[Block] | None = None
    """What is free, as long as nothing changes."""

    @property
    def free(self) -> list[Block]:
        if self.known is None:
            self.known = [block for block in self.blocks if block.state == "inactive"]
        return self.known


@dataclass(frozen=True)
class State:
    """Bytes just after an event."""

    requested: int
    allocated: int
    reserved: int


@dataclass
class Allocator:
    capacity: int = 1 << 40
    expandable: bool = False
    pad: int = 0
    outside: int = 0
    """Device memory that others hold."""
    step_us: int = 10
    segments: list[Segment] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    truth: list[State] = field(default_factory=list)
    holes: list[dict[tuple[int, bool], tuple[int, int]]] = field(default_factory=list)
    """Just before each event: free bytes and largest hole by (stream, large)."""
    notes: list[dict[str, Any]] = field(default_factory=list)
    now: int = 1_700_000_000_000_000
    next_address: int = 1 << 36
    live: dict[int, Block] = field(default_factory=dict)
    requested: int = 0
    """Bytes the program asked for, of all that is live."""
    held: int = 0
    """Bytes of their blocks."""

    # What the program does

    def malloc(self, size: int, frames: Frames | None = None, stream: int = 0) -> int:
        """Address of a new block."""
        need = max(512, -(-(size + self.pad) // 512) * 512)
        small = need <= SMALL_LIMIT
        block = self._best_fit(need, stream, small) or self._grow(need, size, stream, small, frames)
        self._look()
        self._split(block, need)
        block.state, block.requested, block.frames, block.segment.known = "active_allocated", size, frames, None
        self.live[block.address] = block
        self.requested += size
        self.held += block.size
        self._record("alloc", block.address, size, stream, frames, looked=True)
        return block.address

    def free(self, address: int, frames: Frames | None = None) -> None:
        """Give a block back."""
        block = self.live.pop(address)
        self.requested -= block.requested
        self.held -= block.size
        self._record("free_requested", address, block.requested, block.segment.stream, frames, state_first=True)
        self._look()
        block.state = "inactive"
        size = block.requested
        block.frames = block.segment.known = None
        self._merge(block)
        self._record("free_completed", address, size, block.segment.stream, frames, looked=True)

    def empty_cache(self, frames: Frames | None = None) -> int:
        """Give everything unused back to the device; bytes released."""
        return sum(self._release(segment, frames) for segment in list(self.segments))

    def note(self, name: str, stage: str = "START") -> None:
        """A user annotation begins or ends."""
        self.notes.append({"stage": stage, "name": name, "device": 0, "time_us": self.now})

    # Totals

    @property
    def reserved(self) -> int:
        return sum(segment.size for segment in self.segments)

    def free_of(self, stream: int, small: bool) -> list[Block]:
        return [
            block
            for segment in self.segments
            if (segment.stream, segment.small) == (stream, small)
            for block in segment.free
        ]

    # How it does it

    def _best_fit(self, need: int, stream: int, small: bool) -> Block | None:
        fitting = [block for block in self.free_of(stream, small) if block.size >= need]
        return min(fitting, key=lambda block: (block.size, block.address), default=None)

    def _grow(self, need: int, size: int, stream: int, small: bool, frames: Frames | None) -> Block:
        for attempt in (0, 1):
            block = (
                self._map(need, stream, small, frames) if self.expandable else self._new(need, stream, small, frames)
            )
            if block is not None:
                return block
            if attempt == 0:
                self.empty_cache(frames)
        self._record("oom", None, need, stream, frames, device_free=self._device_free())
        raise OutOfMemoryError(size)

    def _device_free(self) -> int:
        return self.capacity - self.outside - self.reserved

    def _new(self, need: int, stream: int, small: bool, frames: Frames | None) -> Block | None:
        size = (
            SMALL_SEGMENT
            if small
            else LARGE_SEGMENT
            if need < LARGE_LIMIT
            else -(-need // SMALL_SEGMENT) * SMALL_SEGMENT
        )
        if size > self._device_free():
            return None
        self._look()
        segment = Segment(self._address(size), size, stream, small, False, frames)
        block = Block(segment.address, size, segment)
        segment.blocks.append(block)
        self.segments.append(segment)
        self._record("segment_alloc", segment.address, size, stream, frames, looked=True)
        return block

    def _map(self, need: int, stream: int, small: bool, frames: Frames | None) -> Block | None:
        granule = SMALL_SEGMENT if small else LARGE_SEGMENT
        same = [one for one in self.segments if (one.stream, one.small) == (stream, small)]
        last = max(same, key=lambda one: one.address, default=None)
        tail = last.blocks[-1] if last is not None and last.blocks and last.blocks[-1].state == "inactive" else None
        missing = need - (tail.size if tail is not None else 0)
        size = -(-missing // granule) * granule
        if size > self._device_free():
            return None
        self._look()
        if last is None:
            last = Segment(self._address(VIRTUAL), 0, stream, small, True, frames)
            self.segments.append(last)
        start = last.address + last.size
        last.size += size
        if tail is None:
            tail = Block(start, 0, last)
            last.blocks.append(tail)
        tail.size += size
        last.known = None
        self._record("segment_map", start, size, stream, frames, looked=True)
        return tail

    def _address(self, size: int) -> int:
        address = self.next_address
        self.next_address += -(-size // SMALL_SEGMENT) * SMALL_SEGMENT + SMALL_SEGMENT
        return address

    def _split(self, block: Block, need: int) -> None:
        rest = block.size - need
        fine = block.segment.small or self.expandable
        if rest < 512 if fine else rest <= SMALL_LIMIT:
            return
        block.size = need
        blocks = block.segment.blocks
        blocks.insert(blocks.index(block) + 1, Block(block.address + need, rest, block.segment))

    def _merge(self, block: Block) -> None:
        blocks = block.segment.blocks
        at = blocks.index(block)
        if at + 1 < len(blocks) and blocks[at + 1].state == "inactive":
            block.size += blocks.pop(at + 1).size
        if at > 0 and blocks[at - 1].state == "inactive":
            blocks[at - 1].size += block.size
            blocks.pop(at)

    def _release(self, segment: Segment, frames: Frames | None) -> int:
        """Give a segment back; of an expandable one its free granules at the end."""
        last = segment.blocks[-1]
        if segment.expandable:
            granule = SMALL_SEGMENT if segment.small else LARGE_SEGMENT
            size = last.size // granule * granule if last.state == "inactive" else 0
            if size == 0:
                return 0
            self._look()
            segment.size -= size
            last.size -= size
            if last.size == 0:
                segment.blocks.remove(last)
                segment.known = None
            if segment.size == 0:
                self.segments.remove(segment)
            start = segment.address + segment.size
            self._record("segment_unmap", start, size, segment.stream, frames, looked=True)
            return size
        if len(segment.blocks) > 1 or last.state != "inactive":
            return 0
        self._look()
        self.segments.remove(segment)
        self._record("segment_free", segment.address, segment.size, segment.stream, frames, looked=True)
        return segment.size

    # What is written down

    def _look(self) -> None:
        free: dict[tuple[int, bool], tuple[int, int]] = {}
        for segment in self.segments:
            total, largest = free.setdefault(key := (segment.stream, not segment.small), (0, 0))
            if segment.free:
                sizes = [block.size for block in segment.free]
                free[key] = (total + sum(sizes), max(largest, *sizes))
        self.holes.append(free)

    def _record(
        self,
        action: str,
        address: int | None,
        size: int,
        stream: int,
        frames: Frames | None,
        *,
        device_free: int | None = None,
        looked: bool = False,
        state_first: bool = False,
    ) -> None:
        self.now += self.step_us
        event: dict[str, Any] = {"action": action, "size": size, "stream": stream, "time_us": self.now}
        if address is not None:
            event["addr"] = address
        if device_free is not None:
            event["device_free"] = device_free
        if frames is not None:
            event["frames"] = frames
        if not looked:
            self._look()
        self.events.append(event)
        # A block whose end is only asked for is live no more and still counts.
        asked, of_block = (size, self._size_at(address)) if state_first else (0, 0)
        self.truth.append(State(self.requested + asked, self.held + of_block, self.reserved))

    def _size_at(self, address: int | None) -> int:
        return next(b.size for s in self.segments for b in s.blocks if b.address == address)
