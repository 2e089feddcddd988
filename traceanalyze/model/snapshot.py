"""An allocator snapshot as columns: what was allocated at the dump, and the history that led to it.

Bytes are int64. Three quantities are kept apart everywhere: *requested* bytes (what the program asked for), *block*
bytes (what the allocator set aside for it: `allocated`), and *reserved* bytes (segments taken from the device).
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.patterns import dataclass


class Action(IntEnum):
    """What an event of the history does; the values of both vendors."""

    ALLOC = 0
    FREE_REQUESTED = 1
    FREE_COMPLETED = 2
    SEGMENT_ALLOC = 3
    SEGMENT_FREE = 4
    SEGMENT_MAP = 5
    SEGMENT_UNMAP = 6
    SNAPSHOT = 7
    OOM = 8
    NOTE = 9
    """user_defined and annotate: marks without bytes."""
    UNKNOWN = 10
    """Counted, without effect."""


class State(IntEnum):
    """State of a block at the dump."""

    INACTIVE = 0
    ACTIVE = 1
    PENDING_FREE = 2
    """Freed by the program, still used by another stream."""


class Frame(NamedTuple):
    """One line of a call stack; `line` is 0 for C++ frames."""

    name: str
    filename: str
    line: int


class Stacks(NamedTuple):
    """Distinct call stacks; a column `stack` holds indices into `stacks`, -1 where none was recorded.

    `call` columns hold an id of the frames *object*: equal ids mean one malloc call (a retry frees and grows under one
    id). After JSON the identity is lost and `call` is the stack.
    """

    frames: tuple[Frame, ...]
    stacks: tuple[tuple[int, ...], ...]
    """Indices into `frames`, innermost first."""


@dataclass(frozen=True, eq=False)
class Segments:
    """Memory taken from the device, at the dump; sorted by address."""

    address: NDArray[np.int64]
    size: NDArray[np.int64]
    allocated: NDArray[np.int64]
    active: NDArray[np.int64]
    requested: NDArray[np.int64]
    """As the file states them; -1 where it does not."""
    stream: NDArray[np.int64]
    pool: NDArray[np.int32]
    """Index into `SnapshotDevice.pools`."""
    large: NDArray[np.bool_]
    expandable: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.address)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Pieces of the segments at the dump, in order of address; they tile the segments of a real file."""

    segment: NDArray[np.int32]
    address: NDArray[np.int64]
    size: NDArray[np.int64]
    requested: NDArray[np.int64]
    """Stale for inactive blocks: never to be summed over them."""
    state: NDArray[np.uint8]
    stack: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.address)


@dataclass(frozen=True, eq=False)
class History:
    """Events before the dump, oldest first: a suffix of what happened, as the ring buffer forgets."""

    action: NDArray[np.uint8]
    address: NDArray[np.int64]
    size: NDArray[np.int64]
    """Requested bytes of blocks, segment bytes of segments; of an OOM the bytes asked for."""
    stream: NDArray[np.int64]
    time: NDArray[np.int64] | None
    """ns since 1970; None where the file has no times (torch ≤ 2.1, NPU)."""
    stack: NDArray[np.int32]
    call: NDArray[np.int32]
    device_free: Mapping[int, int] = field(default_factory=dict)
    """Event index of an OOM → bytes the device still had."""
    pool: NDArray[np.int32] | None = None
    """Index into `SnapshotDevice.pools`, -1 unknown; None before torch 2.12."""
    unknown: Mapping[str, int] = field(default_factory=dict)
    """Actions this version does not know, and how many."""
    told: NDArray[np.int32] | None = None
    """Index into `texts`; None where the file has neither (torch < 2.8)."""
    texts: tuple[tuple[str, str], ...] = ()
    """What the program said of it (`user_metadata`), and what torch.compile was compiling; empty where nothing."""

    def __len__(self) -> int:
        return len(self.action)

    @property
    def clock(self) -> NDArray[np.int64] | None:
        """Times in the order of the events, to find a time's place by: the recorder's clock may have gone back."""
        return None if self.time is None else np.maximum.accumulate(self.time)


class Annotations(NamedTuple):
    """User ranges (`Optimizer.step#…`, `ProfilerStep#…`) by their begin and end marks, in file order."""

    start: NDArray[np.bool_]
    name: tuple[str, ...]
    time: NDArray[np.int64]
    """ns since 1970"""


class SnapshotDevice(NamedTuple):
    """One device's allocator."""

    id: int
    segments: Segments
    blocks: Blocks
    history: History
    pools: tuple[tuple[int, int], ...] = ((0, 0),)
    """Private pool ids; (0, 0) is the default pool."""


class ProcessStatistics(NamedTuple):
    """What `torch.cuda.memory_stats()` said: of the whole process, whatever the history still holds. None: not told."""

    path: str
    retries: int | None
    failed_requests: int | None
    peak_block_bytes: int | None
    peak_reserved_memory: int | None
    peak_requested_bytes: int | None
    peak_inactive_bytes: int | None
    """Free pieces of split blocks."""


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """One snapshot file."""

    path: str
    vendor: str
    """cuda, npu or xpu"""
    devices: tuple[SnapshotDevice, ...]
    stacks: Stacks
    settings: Mapping[str, object]
    """Allocator configuration at the dump; empty where the file does not say."""
    annotations: Annotations | None = None
    statistics: ProcessStatistics | None = None
    overflowed: bool | None = None
    """Whether the ring buffer forgot events; None before torch 2.12."""
    notes: tuple[str, ...] = ()


CATEGORIES = (
    *("parameter", "optimizer_state", "input", "temporary"),
    *("activation", "gradient", "autograd_detail", "unknown"),
)
"""In the order of the file, which is torch's own."""


class MemoryTimeline(NamedTuple):
    """One exported timeline. Tensor bytes: not what the allocator calls allocated, and no device is named."""

    path: str
    time: NDArray[np.int64]
    """ns, ascending; what existed before has the first time."""
    bytes: NDArray[np.int64]
    """(times, categories) after each change."""
    rows: int
    """Rows of the file."""
