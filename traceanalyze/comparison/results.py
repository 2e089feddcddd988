"""What a comparison returns: two sides, the exact make-up of the difference, and the tables of every section.

Times are int64 ns summed over the steps a side was analysed over (`SideInfo.count`); per-step numbers are these sums
divided by that count when shown, so that parts sum to the whole exactly. None means that the side has no such thing,
`NotMeasured` that its profile cannot tell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from traceanalyze.model.patterns import by_identity
from traceanalyze.model.table import NotMeasured, Table, Value

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
    """only, asked, decides (it works longest) or same (as on the other side)."""
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
    work_number: int
    """Pieces of work inside the steps that compute, copy or fill, on the device compared."""
    resolution_ns: int
    level: str | None
    """Ascend profiler level."""
    times: tuple[int, ...] = ()
    """Of each step that counts."""
    cycle: int = 1
    """In how many steps long and short ones alternate, 1 where they do not."""
    kernel_span: int | None = 0
    """From the first to the last work of the device in the steps that count; None where the recording lacks some.

    Copies and fills do not count on an NPU, nor where categories of events have capitals, as with msprof-analyze.
    """
    copied: int | None = 0
    """Of this time copies that neither compute nor communication hides; None where that is."""
    waited: int | None = None
    """Time of communication that is waiting for other ranks, by the recordings of all of them; None without these."""
    unrecorded: tuple[int, ...] | None = None
    """Other members of the process groups of its collectives of which there is no recording; None if not known."""
    slowest: int | None = None
    """The rank that works longest, where the other side's is compared and is another one."""

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


class Pair(NamedTuple):
    """A row of a section: exact sums, counts and names of each side, None where a side has no such thing."""

    shared: Mapping[str, Value]
    """Cells that say what the row is, by column."""
    base: Mapping[str, Any] | None
    """By column, without the name of the side."""
    candidate: Mapping[str, Any] | None


Pairs = Sequence[Pair] | NotMeasured


class Caveat(NamedTuple):
    """Something that makes a section less comparable."""

    key: str
    """Key of the sentence: one of `caveats.CAVEATS`, or a central one."""
    values: tuple[tuple[str, int | float | str], ...] = ()


@by_identity
class Comparison(NamedTuple):
    """Everything this version says about two sides."""

    base: SideInfo
    candidate: SideInfo
    parts: tuple[Part, ...]
    tables: Mapping[str, Table]
    """Of the sections that were compared, by key, in reading order."""
    caveats: tuple[Caveat, ...]

    def __repr__(self) -> str:
        """Short, whatever the tables hold."""
        return f"<comparison of {self.base.path[:900]} and {self.candidate.path[:900]}>"
