"""What a comparison returns: two sides, the exact make-up of the difference, and the rows of every section.

Times are int64 ns summed over the steps a side was analysed over (`SideInfo.count`); per-step numbers are these sums
divided by that count when shown, so that parts sum to the whole exactly. None means that the side has no such thing,
`NotMeasured` that its profile cannot tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from traceanalyze.model.table import NotMeasured, Value

Time = int | NotMeasured


@dataclass(frozen=True)
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


class Part(NamedTuple):
    """One exclusive part of the step on both sides; all parts sum to the step time of each side, exactly."""

    key: str
    """compute, communication, memory_ops, or the name of an idle cause (data_loading, sync, peer_wait,
    dispatch_launch, …, untraced), or of causes that only one side can tell apart (idle, outside_calls); without a
    device data_loading, sync, peer_wait, api, host_op, untraced."""
    base: Time
    candidate: Time


class Overall(NamedTuple):
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


class Contribution(NamedTuple):
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


class Pair(NamedTuple):
    """A row of a section: exact sums, counts and names of each side, None where a side has no such thing."""

    shared: Mapping[str, Value]
    """Cells that say what the row is, by column."""
    base: Mapping[str, Any] | None
    """By column, without the name of the side."""
    candidate: Mapping[str, Any] | None


Pairs = Sequence[Pair] | NotMeasured


@dataclass(frozen=True)
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


class Caveat(NamedTuple):
    """Something that makes a section less comparable."""

    key: str
    """Key of the sentence, see `locales/en/sentences.py`."""
    values: tuple[tuple[str, int | float | str], ...] = ()


class Comparison(NamedTuple):
    """Everything this version says about two sides. Sections that were not asked for are None."""

    base: SideInfo
    candidate: SideInfo
    parts: tuple[Part, ...]
    contributions: tuple[Contribution, ...]
    """Largest absolute change per step first."""
    overall: tuple[Overall, ...] | None
    operators: Pairs | None
    """Rows sum to all device time."""
    operator_pairs: Pairs | None
    """Matched calls in order of time."""
    modules: Pairs | None
    collectives: Pairs | None
    kernels: Pairs | None
    kernel_types: Pairs | None
    apis: Pairs | None
    memory: Pairs | None
    unmatched: tuple[Unmatched, ...]
    caveats: tuple[Caveat, ...]
    memory_calls: Pairs | None = None
    """Allocations of matched calls, in order of time."""
