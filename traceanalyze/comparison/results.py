"""What a comparison returns: two sides, the exact make-up of the difference, and the rows of every section.

Times are int64 ns summed over the steps a side was analysed over (`SideInfo.count`); per-step numbers are these sums
divided by that count when shown, so that parts sum to the whole exactly. None means that the side has no such thing,
`NotMeasured` that its profile cannot tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen
from traceanalyze.model.table import NotMeasured

if TYPE_CHECKING:
    from traceanalyze.model.kernel_classes import KernelGroup

Time = int | NotMeasured


@frozen
class SideInfo:
    """One of the two sides: what was measured and what was chosen of it."""

    path: str
    vendor: str
    """cuda, rocm, ascend, cpu or unknown."""
    device_name: str | None
    rank: int | None
    ranks: int
    """Ranks in the run."""
    rank_choice: str
    """only, asked, decides (its step takes longest) or same (the rank of the other side)."""
    steps: tuple[str, ...]
    """Labels of the steps that count."""
    step_choice: str
    """asked, complete (all complete steps, their mean), median or whole_trace."""
    step_time: int
    """Sum over the steps that count."""
    median_step: int
    left_out: int
    """Steps recorded but not counted."""
    device_time: int
    """Sum of durations of all device events inside the steps, on all devices."""
    linked_time: int
    """Of it, with a launch record or a known operator."""
    resolution_ns: int
    level: str | None
    """Ascend profiler level."""

    @property
    def count(self) -> int:
        """Number of steps that count."""
        return len(self.steps)


@frozen
class Part:
    """One exclusive part of the step on both sides; all parts sum to the step time of each side, exactly."""

    key: str
    """compute, communication, memory_ops, or the name of an idle cause (data_loading, sync, peer_wait,
    dispatch_launch, …, untraced), or of causes that only one side can tell apart (idle, outside_calls); without a
    device data_loading, sync, peer_wait, api, host_op, untraced."""
    base: Time
    candidate: Time


@frozen
class Overall:
    """One row of the overall table; `level` 0 rows before `step` sum to it, deeper rows to the row above them.

    Device rows hold exclusive time: at each instant one event counts, compute before communication before copies and
    of several of one class the one that started first. Hence classes sum to the union.
    """

    key: str
    """compute, matmul, attention_forward, …, vector_work, communication, group, comm_wait, comm_transfer, memory_ops,
    h2d, …, fill, free, data_loading, sync, dispatch, …, step, device_span, peak_allocated, peak_reserved,
    peak_recorded, peak_process."""
    level: int
    kind: str
    """duration, bytes, or rate (bytes a second)."""
    base: Time
    candidate: Time
    base_count: int | None
    """Device events behind the time; None where counting makes no sense."""
    candidate_count: int | None
    name: str | None = None
    """Of rows named by the profile: a process group, a link class."""


@frozen
class Contribution:
    """One reason for the difference; the rows of one `part` sum to that part on both sides, exactly."""

    part: str
    """Key of the `Part` it belongs to."""
    what: str
    """operator, kernels (work by what it is for, where the operator is not known or not comparable), collective, copy,
    next_op (idle before work of this operator), data_loading or rest."""
    name: str
    base: int
    """Exclusive device time, or idle time."""
    candidate: int
    base_count: int
    """Device events (of idle: gaps) behind it."""
    candidate_count: int
    module: str | None = None
    """Module path, when both sides recorded modules and the row lies in one."""
    frame: str | None = None
    """User source line of the candidate, else of the base."""


@frozen
class Measured:
    """Device time of one side of a row."""

    name: str
    """As this side calls it."""
    count: int
    total: int
    longest: int
    shortest: int


@frozen
class OperatorTotal:
    """One canonical operator and direction: a row of OperatorCompareStatistic. Rows sum to all device time."""

    name: str
    """Canonical name, `(backward)` appended where it runs in the backward pass."""
    base_names: tuple[str, ...]
    candidate_names: tuple[str, ...]
    shapes: str | None
    """Only when operators are matched by shape."""
    base_time: int
    """Device self time, sum of durations."""
    candidate_time: int
    base_count: int
    """Calls."""
    candidate_count: int


@frozen
class OpSide:
    """One operator call of one side."""

    name: str
    shapes: str | None
    dtypes: str | None
    kernels: tuple[tuple[str, int], ...]
    """Device events it launched with everything inside it: name and ns."""
    device_time: int
    start: int
    frame: str | None = None


@frozen
class OperatorPair:
    """Two matched calls, or one without a partner: a row of OperatorCompare, in order of time."""

    base: OpSide | None
    candidate: OpSide | None


@frozen
class ModuleSide:
    """One module (or one operator inside it) of one side."""

    calls: int | None
    """None where the profile does not tell: of modules in the backward pass, and known by their operators only."""
    device_self: int
    device_total: int
    kernels: tuple[tuple[str, int], ...]
    frame: str | None = None


@frozen
class ModulePair:
    """A module, or one operator of it: a row of ModuleCompareStatistic. `op` None stands for the module's total."""

    path: str
    name: str
    """Class of the module."""
    level: int
    """Depth in the tree, 0 for the outermost."""
    backward: bool
    op: str | None
    base: ModuleSide | None
    candidate: ModuleSide | None


@frozen
class CollectivePair:
    """Collectives of one type, group and size; `calls` in order are matched by their index."""

    kind: str
    group: str
    """Ranks or name of the group, as the base calls it, else the candidate."""
    bytes: int | None
    base: Measured | None
    candidate: Measured | None
    base_wait: Time
    candidate_wait: Time
    base_transfer: Time
    candidate_transfer: Time
    base_exposed: int
    candidate_exposed: int


@frozen
class KernelPair:
    """Kernels of one name (or family, where names cannot match) and shapes: a row of KernelCompare."""

    name: str
    group: KernelGroup
    shapes: str | None
    core: str | None
    """Accelerator core type of an NPU kernel."""
    base: Measured | None
    candidate: Measured | None


@frozen
class ApiSide:
    """One host call of one side."""

    count: int
    total: int
    own: int
    """Not in calls inside."""


@frozen
class ApiPair:
    """Host operators and runtime calls by name: a row of ApiCompare."""

    name: str
    base: ApiSide | None
    candidate: ApiSide | None


@frozen
class MemorySide:
    """What one operator allocated on the device on one side."""

    count: int
    """Allocations."""
    bytes: int
    duration: int | None
    """How long they lived in sum; None when frees are not recorded."""


@frozen
class MemoryPair:
    """Device memory allocated by one operator: a row of MemoryCompareStatistic."""

    name: str
    base: MemorySide | None
    candidate: MemorySide | None


@frozen
class MemoryCall:
    """What one call of an operator allocated on the device, on one side."""

    name: str
    shapes: str | None
    dtypes: str | None
    allocations: tuple[tuple[int, int | None], ...]
    """Bytes of each, and how long it lived, ns; None where it was not freed while recording."""
    bytes: int


@frozen
class MemoryCallPair:
    """Allocations of two matched calls, or of one without a partner: a row of MemoryCompare, in order of time."""

    base: MemoryCall | None
    candidate: MemoryCall | None


@frozen
class Unmatched:
    """Work without a partner: counted, never lost."""

    section: str
    """operators, modules, collectives, kernels"""
    side: str
    """base or candidate"""
    count: int
    time: int
    of_time: int
    """All device time of the section on that side."""


@frozen
class Caveat:
    """Something that makes a section less comparable."""

    key: str
    """Key of the sentence, see `locales/en/sentences.py`."""
    values: tuple[tuple[str, int | float | str], ...] = ()


@frozen
class Comparison:
    """Everything this version says about two sides. Sections that were not asked for are None."""

    base: SideInfo
    candidate: SideInfo
    parts: tuple[Part, ...]
    contributions: tuple[Contribution, ...]
    """Largest absolute change per step first."""
    overall: tuple[Overall, ...] | None
    operators: tuple[OperatorTotal, ...] | NotMeasured | None
    operator_pairs: tuple[OperatorPair, ...] | NotMeasured | None
    modules: tuple[ModulePair, ...] | NotMeasured | None
    collectives: tuple[CollectivePair, ...] | NotMeasured | None
    kernels: tuple[KernelPair, ...] | NotMeasured | None
    kernel_types: tuple[KernelPair, ...] | NotMeasured | None
    apis: tuple[ApiPair, ...] | NotMeasured | None
    memory: tuple[MemoryPair, ...] | NotMeasured | None
    unmatched: tuple[Unmatched, ...]
    caveats: tuple[Caveat, ...]
    memory_calls: tuple[MemoryCallPair, ...] | NotMeasured | None = None
