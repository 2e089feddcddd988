"""What the comparison of ranks needs of one of them. Times int64 ns, on the clock of that rank."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

PHASES = ("compute", "memory_ops", "data_loading", "dispatch", "sync", "device_gap", "untraced", "gc")
"""What can make a rank late. All but the last are exclusive parts of its step; `gc` is the idle time in recorded
pauses of the garbage collector and lies inside the others."""


@frozen
class RankCollectives:
    """Collectives of one rank in the order in which its program asked for them; columns of equal length."""

    group: NDArray[np.int64]
    """Position in `RankSummary.groups`."""
    kind: NDArray[np.int64]
    """Position in `model.collectives.TYPES`."""
    bytes: NDArray[np.int64]
    """-1 where not recorded."""
    step: NDArray[np.int64]
    """Row of the step whose marker asked for it; -1 for none."""
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    """Absolute (Unix) time, as the rank's own clock tells it; so is `start`."""
    exposed: NDArray[np.int64]
    """Time in which nothing but communication ran, each instant given to one collective (definitions §4)."""
    moved: NDArray[np.int64]
    """Time in which some plane moved data; -1 where the tasks are not recorded."""
    waited_for: NDArray[np.int64]
    """Rank inside the group that the longest wait of its tasks was for; -1 where not recorded."""

    def __len__(self) -> int:
        return len(self.group)


@frozen
class Group:
    """A process group as one rank knows it."""

    label: str
    """Its ranks (`0-7`) or its name; empty where nothing tells."""
    ranks: tuple[int, ...]
    """Empty where unknown."""
    size: int
    """0 where unknown; never more than what is proven."""


@frozen
class LinkTraffic:
    """Transfers between two ranks over one kind of link, as one rank recorded them."""

    source: int
    target: int
    """Ranks inside the group of the collective."""
    link: str
    count: int
    bytes: int
    time: int
    """Sum of the durations of the transfers."""


@frozen
class KernelTime:
    """A kernel of one rank with one shape and launch configuration, where nothing else ran beside it."""

    name: str
    what: str
    """Shapes and grid: equal where the work is the same."""
    count: int
    time: int
    """Sum."""
    median: int


@frozen
class RankSummary:
    """All that the comparison needs of one rank: small, and fit to be sent between processes."""

    rank: int | None
    label: str
    world_size: int | None
    steps: tuple[str, ...]
    """Names of the steps."""
    marked: bool
    """False: the one window is the whole trace."""
    complete: NDArray[np.bool_]
    step_time: NDArray[np.int64]
    parts: Mapping[str, NDArray[np.int64]]
    """By step: `communication`, and `PHASES` but those that the recording cannot tell."""
    groups: tuple[Group, ...]
    collectives: RankCollectives
    links: tuple[LinkTraffic, ...]
    group_names: Mapping[str, tuple[int, ...]]
    """Process groups that the header lists."""
    host: str | None = None
    """Name of the machine."""
    device: str = ""
    """Name of the headline device; empty where the profile does not tell it."""
    recorded: Mapping[str, str] = field(default_factory=dict)
    """What was recorded: option → value."""
    environment: Mapping[str, str] | None = None
    """Variables of the libraries that should be equal on all ranks; None where the profile states none."""
    kernels: tuple[KernelTime, ...] = ()
    """Kernels that take most time."""
    networked: frozenset[str] | None = None
    """Labels of the groups whose tasks went over a network; None where tasks are not recorded."""
    host_computes: bool = False
    """Whether its host alone computed: no device is missing in the recording."""

    def of_rank(self, rank: int | None) -> RankSummary:
        """The same as the rank that the run made of it."""
        return replace(self, rank=rank, label="" if rank is None else str(rank))
