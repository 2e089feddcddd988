"""What the comparison of the ranks of one run returns. Times int64 ns, on the clock of the rank they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen
from traceanalyze.ranks.one_rank import PHASES, Group, KernelTime, LinkTraffic, RankCollectives, RankSummary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from traceanalyze.model.table import NotMeasured

__all__ = [
    "PHASES",
    "ClockOffset",
    "Cluster",
    "CollectiveWait",
    "ExposedWaits",
    "Group",
    "Imbalance",
    "KernelTime",
    "Link",
    "LinkTraffic",
    "MatchedGroup",
    "RankCollectives",
    "RankSummary",
    "RankWait",
    "Stop",
    "Straggler",
]


@frozen
class Stop:
    """Where the ranks of a group no longer agree on what they do; the rest of the step is not matched."""

    group: str
    step: str
    index: int
    """Position of the first collective that does not fit, inside the group within the step."""
    what: str
    """`kind`, `bytes` or `count`."""
    left_out: int
    """Collectives of all ranks that were not matched."""


@frozen
class MatchedGroup:
    """Collectives of one group that ranks took part in together: (n,) columns and (n, members) tables."""

    group: str
    role: str | None
    """tensor, pipeline, data … where the name of the group says so."""
    members: tuple[int, ...]
    """Positions of the ranks in `Cluster.ranks`."""
    missing: tuple[int, ...]
    """Ranks of the group that were not recorded, as far as they are known."""
    complete: bool
    """All ranks of the group are known to be here."""
    kind: NDArray[np.int64]
    bytes: NDArray[np.int64]
    step: NDArray[np.int64]
    """Position in `Cluster.steps`."""
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    exposed: NDArray[np.int64]
    moved: NDArray[np.int64]
    synchronising: NDArray[np.bool_]
    """Whether no rank can be done before all have come, so that waiting is defined."""

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def duration(self) -> NDArray[np.int64]:
        """(n, members) ns."""
        return self.end - self.start

    @property
    def transfer(self) -> NDArray[np.int64]:
        """(n,) shortest duration (definitions §12); with ranks missing it is an upper bound."""
        return self.duration.min(axis=1) if len(self) else self.kind

    @property
    def wait(self) -> NDArray[np.int64]:
        """(n, members) the rest; with ranks missing a lower bound."""
        return self.duration - self.transfer[:, None]


@frozen
class CollectiveWait:
    """Collectives of one group, type and size that synchronise."""

    group: str
    role: str | None
    kind: str
    bytes: int | None
    count: int
    transfer: int | NotMeasured
    """Sum; an upper bound where `bound`."""
    wait: tuple[tuple[str, int | NotMeasured], ...]
    """Sum by rank; lower bounds where `bound`."""
    bound: bool
    missing: tuple[int, ...]


@frozen
class RankWait:
    """One rank over the steps that count."""

    label: str
    steps: int
    step_time: int
    """Sum."""
    wait: int | NotMeasured
    """Time in synchronising collectives beyond their transfer."""
    bound: bool
    collectives: int
    """Synchronising ones."""
    last: int
    """Of these, those in which nobody waited less."""
    recorded_wait: int | NotMeasured
    """Time in all its collectives in which no plane moved data, by its own recording of their tasks."""
    waited_for: int | NotMeasured
    """Rank (inside the group, unless the ranks of the group are known) that most of this was for."""
    point_to_point: int
    """Exposed time in send and receive: where a pipeline is recorded, its bubbles."""


@frozen
class ExposedWaits:
    """Waiting for other ranks in collectives that nothing hides (`cluster.exposed_wait`)."""

    by_step: NDArray[np.int64]
    """(ranks, steps) ns of each rank in each common step."""
    bound: bool
    """Ranks are missing, or may be: a lower bound."""

    @property
    def mean(self) -> NDArray[np.int64]:
        """(ranks,) ns a step."""
        found: NDArray[np.int64] = self.by_step.sum(axis=1) // self.by_step.shape[1]
        return found


@frozen
class Straggler:
    """A rank that makes groups wait, again and again (definitions §12)."""

    group: str
    """In which it makes others wait most."""
    position: int
    """In `Cluster.ranks`."""
    label: str
    wait: int
    """Mean wait of the other ranks of that group, ns a step."""
    exposed: int
    """Of it what nothing hides; where several ranks are late, its part of what they cost together."""
    share: float
    """Of their mean step."""
    last: float
    """Share of the collectives in which it was the last."""
    steps_last: int
    steps: int
    phase: str | None
    """Of `PHASES`, that by which it exceeds the others most; None where none does."""
    excess: int
    """By how much, ns a step."""


@frozen
class Imbalance:
    """(max - mean) / mean over ranks of one quantity (definitions §12)."""

    what: str
    """`compute`, or `compute_and_host` with data loading and host work."""
    mean: float
    """Over steps."""
    worst: float
    worst_step: str
    highest: str
    """Rank that has most, over all steps."""
    lowest: str
    high: int
    low: int
    """Their means, ns a step."""
    steps: int
    excess: int = 0
    """Mean over steps of (max - mean): what equal work could save at most, ns a step."""
    gain: int | NotMeasured | None = None
    """Of it what the ranks spend waiting with nothing beside it, ns a step."""


@frozen
class ClockOffset:
    """By how much a rank's clock is ahead of the reference's."""

    label: str
    reference: str
    offset: int
    residual: int
    """Median absolute deviation of the differences."""
    count: int
    """Collectives it is estimated from."""
    skew: int | NotMeasured
    """Median arrival after the first rank, offsets taken out."""


@frozen
class Link:
    """Two ranks and the kind of link between them, over all recordings."""

    source: int
    target: int
    link: str
    count: int
    bytes: int
    time: int
    slow: float | None
    """How far its bandwidth is below the median of the other links of its kind; None where not below."""
    recordings: int = 1
    """Ranks that recorded transfers over it."""


@frozen
class Cluster:
    """All ranks of a run side by side."""

    ranks: tuple[RankSummary, ...]
    steps: tuple[str, ...]
    """Steps that all ranks recorded completely."""
    rows: NDArray[np.int64]
    """(ranks, steps) row of each in the rank's own steps."""
    missing: tuple[int, ...]
    """Ranks of the run that were not recorded."""
    groups: tuple[MatchedGroup, ...]
    stops: tuple[Stop, ...]
    outside: int
    """Collectives of all ranks that belong to none of these steps."""
    collectives: tuple[CollectiveWait, ...] | NotMeasured
    waits: tuple[RankWait, ...]
    exposed_waits: ExposedWaits | NotMeasured
    stragglers: tuple[Straggler, ...] | NotMeasured
    imbalance: tuple[Imbalance, ...] | NotMeasured
    clocks: tuple[ClockOffset, ...] | NotMeasured
    links: tuple[Link, ...] | NotMeasured

    @property
    def missing_ranks(self) -> tuple[int, ...]:
        """Ranks of the run or of one of its groups that were not recorded, ascending."""
        return tuple(sorted({*self.missing, *(rank for group in self.groups for rank in group.missing)}))

    def part(self, key: str) -> NDArray[np.int64] | None:
        """(ranks, steps) ns of one part; None where some rank cannot tell it."""
        import numpy as np

        if any(key not in rank.parts for rank in self.ranks):
            return None
        return np.stack([rank.parts[key][rows] for rank, rows in zip(self.ranks, self.rows, strict=True)])

    @property
    def step_time(self) -> NDArray[np.int64]:
        """(ranks, steps) ns."""
        import numpy as np

        return np.stack([rank.step_time[rows] for rank, rows in zip(self.ranks, self.rows, strict=True)])

    @property
    def own_time(self) -> tuple[int | None, ...]:
        """Mean step of each rank without what it waits for others in collectives, ns; None where that is not known."""
        from traceanalyze.model.table import NotMeasured

        waited = self.exposed_waits
        if isinstance(waited, NotMeasured):
            return (None,) * len(self.ranks)
        return tuple((self.step_time.sum(axis=1) // len(self.steps) - waited.mean).tolist())
