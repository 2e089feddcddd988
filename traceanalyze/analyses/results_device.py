"""What the analyses of device work return. Times are int64 ns, clipped to the analysed windows unless said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen
from traceanalyze.model.table import NotMeasured

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from traceanalyze.analyses.results_use import KernelSequence, MemoryCurve, Utilisation
    from traceanalyze.model.kernel_classes import KernelGroup, TensorCore
    from traceanalyze.model.vocabulary import Phase

Count = int | NotMeasured
Measure = float | NotMeasured


@frozen
class Spread:
    """Times of some events: how many, their sum, shortest and longest."""

    count: int
    total: int
    shortest: int
    longest: int

    @property
    def mean(self) -> int:
        """Mean time, rounded to the nearest nanosecond."""
        return (2 * self.total + self.count) // (2 * self.count) if self.count else 0


@frozen
class Kernel:
    """Device events of one name and group: kernels, copies and fills."""

    name: str
    group: KernelGroup
    time: Spread
    tensor_core: TensorCore
    occupancy: Measure
    """Mean estimated occupancy, weighted by time; fraction of the warps that fit."""
    blocks_per_sm: Measure
    """Mean weighted by time."""
    op: str | None
    """Operator that launched the first of them."""
    ops: int
    """Distinct operators that launched them."""
    no_op: int
    """Of `time.total`, what no recorded operator launched."""


@frozen
class KernelType:
    """Kernels of one operator type on one kind of core, as a kernel table names them (Ascend)."""

    op_type: str
    core: str | NotMeasured
    """AI_CORE, AI_VECTOR_CORE, MIX_AIC, MIX_AIV, AI_CPU, DSA_SQE"""
    group: KernelGroup
    time: Spread
    cube_utilisation: Measure
    """Mean weighted by time, as fraction."""
    cube_share: Measure
    """Time in which the matrix unit worked over the duration."""
    vector_share: Measure
    """The same of the vector unit."""


@frozen
class KernelGroupTime:
    """Device time of one group. Totals of all groups sum to the sum of all durations, exactly."""

    group: KernelGroup
    count: int
    total: int
    no_op: int
    """Of `total`, what no recorded operator launched."""
    tensor_core: int
    """Of `total`, kernels that use matrix units by their name."""


@frozen
class LaunchConfiguration:
    """Kernels of one name launched by one operator with one grid and block."""

    name: str
    op: str | None
    grid: str
    block: str
    registers: Count
    shared_memory: Count
    time: Spread


@frozen
class DurationBucket:
    """Kernels whose whole duration lies in `[low, high)`; the last bucket has no upper end."""

    low: int
    high: int | None
    count: int
    total: int


@frozen
class Overlap:
    """Time of the headline device in exactly this combination of activities; combinations are disjoint."""

    compute: bool
    comm: bool
    mem: bool
    time: int


@frozen
class DeviceSummary:
    """Kernel-side ratios of the headline device over the analysed windows (definitions §13)."""

    gpu_utilisation: Measure
    sm_efficiency: Measure
    occupancy: Measure
    tensor_core_share: Measure
    """Share of compute kernel time in kernels known to use matrix units."""
    tensor_core_unknown: Measure
    """Share in kernels whose name does not tell."""
    short_kernels: int
    """Kernels shorter than `SHORT_KERNEL_NS`."""
    kernels: int
    short_time: int
    kernel_time: int


@frozen
class Copies:
    """Copies of one direction and host memory kind, or fills."""

    direction: str
    """h2d, d2h, d2d, p2p, h2h, unknown, fill"""
    memory: str | None
    """pageable, pinned, device; None where the profile does not say."""
    time: Spread
    bytes: Count
    bandwidth: Measure
    """GB/s (10⁹ bytes) over the events with both a size and a duration."""
    blocking: int
    """Copies whose call held the host up."""


@frozen
class Collective:
    """Collectives of one group, type, element type and size on this rank (definitions §12)."""

    group: str | NotMeasured
    kind: str
    """Canonical type: all_reduce, all_gather …"""
    dtype: str | NotMeasured
    bytes: Count
    """Size S of one of them."""
    ranks: Count
    time: Spread
    exposed: int
    """Time outside compute; when several run at once it counts for the one that started first, so that the rows sum to
    the exposed communication of the partition."""
    overlapped: int
    """Time under compute, of each by itself."""
    algbw: Measure
    """GB/s; over the time of transfer where it is recorded, else the duration, which includes waiting for others."""
    busbw: Measure
    transfer: Count
    """Of `time`, in which any plane moved data."""
    wait: Count
    """The rest of `time`: waiting for other ranks, and what is between the transfers."""
    exposed_wait: Count
    """Of `exposed`, what is waiting; the rest is transfer."""
    waited_for: Count
    """Rank that the longest wait was for: of the whole run where the group's ranks are known, else inside the group."""


@frozen
class StepLaunches:
    """Launch delay and queue depth by step; arrays over steps, NaN where a step has no launches (definitions §6)."""

    late: NDArray[np.int64]
    delay_p50: NDArray[np.float64]
    delay_p90: NDArray[np.float64]
    depth_p50: NDArray[np.float64]
    depth_p90: NDArray[np.float64]


@frozen
class OpWork:
    """What the calls of one operator with one set of shapes achieved."""

    op: str
    shapes: str
    dtype: str
    group: KernelGroup
    calls: int
    time: int
    """Device time of what these calls launched themselves."""
    flop: Count
    """Of all calls."""
    bytes: Count
    tflops: Measure
    bandwidth: Measure
    """GB/s"""
    intensity: Measure
    """FLOP per byte."""
    bound: str | NotMeasured
    """compute or memory: what the roofline says limits it."""
    roofline_share: Measure
    """Time at the device's peak over the time taken."""


@frozen
class DeviceMemory:
    """Allocator records of one device over the whole recording."""

    kind: str
    """host or device"""
    device: int
    records: int
    allocated: int
    """Bytes of all allocations."""
    freed: int
    peak_allocated: Count
    peak_reserved: Count
    relative_peak: int
    """Highest sum of recorded allocations minus frees; what was allocated before recording is missing from it."""
    step_peaks: tuple[int | None, ...]
    """Highest `Total Allocated` (else the running sum) during each step's host time; None without a record so far."""
    curve: MemoryCurve


@frozen
class AllocatorCall:
    """Runtime calls that allocate or free device memory, begun inside the analysed windows."""

    name: str
    implicit_sync: bool
    time: Spread


@frozen
class DeviceAnnotation:
    """Ranges of one user annotation on the device."""

    name: str
    time: Spread


@frozen
class DeviceWork:
    """Everything about what ran on the devices; most time first where there are rows."""

    kernels: tuple[Kernel, ...]
    groups: tuple[KernelGroupTime, ...]
    types: tuple[KernelType, ...] | NotMeasured
    configurations: tuple[LaunchConfiguration, ...] | NotMeasured
    durations: tuple[DurationBucket, ...]
    overlaps: tuple[Overlap, ...]
    summary: DeviceSummary
    copies: tuple[Copies, ...] | NotMeasured
    collectives: tuple[Collective, ...] | NotMeasured
    step_launches: StepLaunches | NotMeasured
    ops: tuple[OpWork, ...] | NotMeasured
    annotations: tuple[DeviceAnnotation, ...] | NotMeasured
    utilisation: Utilisation
    sequences: tuple[KernelSequence, ...]


@frozen
class AllocatorSite:
    """Calls that allocate or free device memory, by the operator that made them; begun inside the analysed windows."""

    op: str | None
    module: str | None
    """Path of the module around the first of them, if modules were recorded."""
    phase: Phase | None
    """Of the first of them; None where nothing tells phases."""
    call: str
    time: Spread
    idle: int
    """Device idle time that lies inside these calls and has them as its cause."""


@frozen
class MemoryPeak:
    """Where in the program the highest recorded value was reached."""

    device: int
    bytes: int
    step: str | None
    """Name of the step, None between or outside of steps."""
    phase: Phase | None
    op: str | None
    module: str | None


@frozen
class Memory:
    """Allocator records and calls."""

    devices: tuple[DeviceMemory, ...] | NotMeasured
    calls: tuple[AllocatorCall, ...] | NotMeasured
    sites: tuple[AllocatorSite, ...] | NotMeasured
    """Most idle time first."""
    peaks: tuple[MemoryPeak, ...] | NotMeasured
    """One an accelerator."""
