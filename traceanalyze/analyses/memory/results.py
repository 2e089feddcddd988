"""What the analysis of one device's allocator returns. Events are indices into the history, -1 for before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from traceanalyze.analyses.memory.holes import Free
    from traceanalyze.analyses.memory.results_calls import DeviceCalls
    from traceanalyze.analyses.memory.results_patterns import GrowingSizes, OversizedBlocks, SmallBlocks, Truncation
    from traceanalyze.model.table import NotMeasured


@frozen
class Holder:
    """Live blocks of one category and source line at one moment."""

    category: str
    """See `composition.CATEGORIES`."""
    line: str
    library: str | None
    path: str | None
    blocks: int
    requested: int
    allocated: int
    """Block bytes."""
    oldest: int
    """Event at which the oldest of them was allocated, -1 for before the history."""


@frozen
class Moment:
    """The allocator at one moment."""

    kind: str
    """peak, reserved_peak, oom or dump"""
    event: int
    time: int | None
    """ns since 1970"""
    step: str | None
    ranges: tuple[str, ...]
    """User annotations around it, outermost first."""
    requested: int
    allocated: int
    """Block bytes, at least."""
    allocated_most: int
    """At most: some blocks allocated before the history may have been larger than their request needs."""
    reserved: int
    free: tuple[Free, ...]
    """Inside segments, by domain."""
    holders: tuple[Holder, ...]
    """Most block bytes first; they sum to `allocated`."""


@frozen
class SelfCheck:
    """Whether history and dump of the file agree; nothing is concluded from a file that contradicts itself."""

    blocks_tile: bool
    """Blocks fill their segments without gap or overlap."""
    sums_agree: bool
    """The sizes that segments state are those of their blocks."""
    segments_follow: bool
    """The history's growth and release lead to the segments of the dump."""
    layout_exact: bool
    """Every block of the dump has the place and size that following the history gives."""
    baseline: bool
    """What was there before the history is not negative, and is what its blocks sum to."""
    disorder: int
    """Events that contradict each other."""
    mismatched: int
    """Blocks that the history leaves alive and the dump does not know."""
    unplaced: int
    unknown_events: int

    @property
    def reconciled(self) -> bool:
        """Everything agrees."""
        shape = self.blocks_tile and self.sums_agree and self.segments_follow
        return shape and self.layout_exact and self.baseline and not (self.disorder or self.mismatched)


@frozen
class ReleaseRun:
    """Segments given back to the device in one go (detector D1)."""

    event: int
    last: int
    bytes: int
    kind: str
    """retry, failed_retry, empty_cache, gc or unknown"""
    reacquired: int
    """Bytes taken from the device again before the next run, at most what was released."""
    line: str
    cost: int | None
    """Of retries: ns from the event before to the allocation that needed it, an upper bound; None without times."""


@frozen
class Churn:
    """Memory released and taken again, over and over (D3)."""

    released: int
    recycled: int
    cycles: int
    """Runs followed by re-acquisition of at least 5 % of the reserved peak."""
    ratio: float
    """Recycled bytes over the reserved peak."""
    kind: str
    """The kind of run that released most."""
    flagged: bool


@frozen
class Pinner:
    """Live blocks of one line that keep otherwise free segments from being reused whole."""

    line: str
    blocks: int
    bytes: int
    held: int
    """Free bytes in the segments they keep."""


@frozen
class Fragmentation:
    """Growth although enough was free, but in pieces (D4)."""

    share: float
    """Largest share of reserved memory that was free in the domain at such a growth."""
    event: int
    request: int
    free: int
    largest_hole: int
    growths: int
    """Growths of this kind."""
    all_growths: int
    avoidable: int
    """Bytes taken from the device by them, at most what was not in blocks at the reserved peak."""
    line: str
    pinners: tuple[Pinner, ...]
    level: str
    """none, info, warn or critical"""


@frozen
class OutOfMemory:
    """One failed request (D5)."""

    event: int
    request: int
    free: int
    """In the domain of the request."""
    largest_hole: int
    elsewhere: int
    """Largest hole of any other domain."""
    device_free: int | None
    kind: str
    """isolation, fragmentation, split, other_processes, capacity or unknown"""
    line: str


@frozen
class Leak:
    """Blocks of one line that every step leaves behind (D6)."""

    line: str
    library: str | None
    per_step: int
    """Median requested bytes that a step leaves."""
    steps: int
    total: int
    confidence: str
    """likely (at least five steps) or suspected"""


@frozen
class Spike:
    """Short-lived blocks at the peak (D7)."""

    share: float
    bytes: int
    line: str
    flagged: bool


@frozen
class HeldGradients:
    """Gradients still alive while the next forward pass reaches its peak (D12)."""

    bytes: int
    share: float
    step: str
    flagged: bool


@frozen
class StepMemory:
    """One step of the history."""

    name: str
    first: int
    """Event at which it begins; it lasts until the next one begins."""
    peak_requested: int
    floor_requested: int
    peak_reserved: int
    allocations: int


@frozen
class Group:
    """Blocks of one category and source line."""

    category: str
    """See `composition.CATEGORIES`."""
    line: str
    stack: tuple[str, ...]
    """The user's frames of its largest block, innermost first."""


@frozen
class Groups:
    """Who held the memory over time."""

    event: NDArray[np.int64]
    """Points: the events whose values draw the curves."""
    group: tuple[Group, ...]
    """Those with most bytes at any point; most bytes over all points first."""
    bytes: NDArray[np.int64]
    """Groups × points, block bytes after the event; the last row is all other blocks, so each column sums to
    `AllocatorAnalysis.allocated`."""
    blocks: NDArray[np.int64]
    """Number of live blocks, likewise."""


@frozen
class AllocatorAnalysis:
    """Everything this version says about one device of a snapshot."""

    device: int
    events: int
    live_blocks: int
    segments: int
    requested: NDArray[np.int64]
    """After each event; so are the next three."""
    allocated: NDArray[np.int64]
    reserved: NDArray[np.int64]
    time: NDArray[np.int64] | None
    base: tuple[int, int, int]
    """Requested, block and reserved bytes before the first event."""
    check: SelfCheck
    moments: tuple[Moment, ...]
    """Peak first, then reserved peak, out-of-memory events, dump."""
    steps: tuple[StepMemory, ...] | NotMeasured
    step_source: str
    """annotations, anchors or empty"""
    runs: tuple[ReleaseRun, ...]
    calls: DeviceCalls
    marks: tuple[tuple[str, int], ...]
    """Begins of the annotated steps: name and ns since 1970; empty where the steps are not annotated."""
    churn: Churn | NotMeasured
    fragmentation: Fragmentation | NotMeasured
    ooms: tuple[OutOfMemory, ...]
    leaks: tuple[Leak, ...] | NotMeasured
    spike: Spike | NotMeasured
    gradients: HeldGradients | NotMeasured
    rounding_waste: float
    """Block bytes beyond the requested ones at the dump, over the requested."""
    capacity: int | None
    """Bytes the device has, where known."""
    near_limit: bool | None
    settings: tuple[str, ...]
    """Keys of configuration remarks (D11)."""
    growing: GrowingSizes | NotMeasured
    oversized: OversizedBlocks | NotMeasured
    small: SmallBlocks | NotMeasured
    truncation: Truncation
    groups: Groups | NotMeasured
    """Parts of `allocated` by who holds them, at the points that draw the curves."""
