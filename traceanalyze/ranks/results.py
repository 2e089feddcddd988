"""The ranks of one run: what the comparison needs of each, and what it returns.

Times int64 ns, on the clock of the rank they are about.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import Phrase, listed, ranges
from traceanalyze.model.patterns import dataclass
from traceanalyze.model.table import NotMeasured

MANY = 64
"""Ranks up to which each is analysed in full, and shown by itself."""
AT_ONCE = 32
"""Members of a group that are looked at together."""
NONE = np.zeros(0, np.int64)
PHASES = ("compute", "memory_ops", "data_loading", "dispatch", "sync", "device_gap", "untraced", "gc", "pause")
"""What can make a rank late. All but the last two are exclusive parts of its step; `gc` is the idle time in recorded
pauses of the garbage collector, `pause` the time in which its host stands still at the same place of every step."""


@dataclass(frozen=True, eq=False)
class RankCollectives:
    """Collectives of one rank in the order in which its program asked for them; columns of equal length.

    All but `start` and `end` are in as few bytes as they need: thousands of ranks are kept. Nothing else tells times on
    its own, so that what is computed has room.
    """

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
    event: NDArray[np.int64] = field(default_factory=lambda: NONE)
    """Position of each in `Context.device`."""

    def __len__(self) -> int:
        return len(self.group)


class Moved(NamedTuple):
    """How long the sends and receives of one rank move data: columns of one length."""

    row: NDArray[np.int64]
    """In its collectives, ascending."""
    time: NDArray[np.int64]
    """ns."""
    exact: NDArray[np.bool_]
    """By its pair; else at most so long."""


class Partners(NamedTuple):
    """The other ends of the sends and receives of one rank that its recording tells: columns of one length.

    Of a batch each; in order of `row`.
    """

    row: NDArray[np.int64] = NONE
    """Position in the rank's collectives."""
    rank: NDArray[np.int64] = NONE
    """Of the run, or where its profiler counts so (HCCL) inside the group."""
    kind: NDArray[np.int64] = NONE
    """Position in `model.collectives.TYPES`: send, recv, or send_recv where the direction is not told."""
    bytes: NDArray[np.int64] = NONE
    """-1 where not recorded."""


Members: TypeAlias = "tuple[int, ...] | range"
"""Ranks of a group. Those at even distances are a range: every rank of thousands knows the groups of thousands."""


def members_of(ranks: Iterable[int]) -> Members:
    """Equal for equal ranks."""
    found = tuple(ranks)
    even = range(found[0], found[-1] + 1, found[1] - found[0]) if len(found) > 2 and found[0] < found[1] else ()
    return even if isinstance(even, range) and len(even) == len(found) and tuple(even) == found else found


class Group(NamedTuple):
    """A process group as one rank knows it."""

    label: str
    """Its ranks (`0-7`) or its name; empty where nothing tells."""
    ranks: Members
    """Empty where unknown."""
    size: int
    """0 where unknown; never more than what is proven."""


@dataclasses.dataclass(frozen=True)
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
    unsized: int = 0
    """Transfers whose size is not recorded; they count in none of these."""

    @property
    def rate(self) -> float:
        """Bytes a nanosecond; 0 where durations are not recorded."""
        return self.bytes / self.time if self.time else 0.0


class KernelTimes(NamedTuple):
    """Kernels of one rank by shape and launch configuration, where nothing else ran beside them: columns of one length.

    They are sent between processes, and kept for thousands of ranks.
    """

    names: tuple[str, ...] = ()
    what: tuple[str, ...] = ()
    """Shapes and grid: equal where the work is the same."""
    runs: NDArray[np.int64] = NONE
    time: NDArray[np.int64] = NONE
    """Sum."""
    median: NDArray[np.int64] = NONE


class OfName(NamedTuple):
    """Durations of one name, ns."""

    calls: int
    total: int
    square: float
    points: NDArray[np.int64]
    """In order, see `Times`."""


class Times(NamedTuple):
    """Durations of one rank by name, ns: columns of one length."""

    names: tuple[str, ...]
    calls: NDArray[np.int64]
    total: NDArray[np.int64]
    square: NDArray[np.float64]
    """Sum of the squares."""
    points: NDArray[np.int64]
    """(names, points) durations in order, from the shortest to the longest: all of them, or so many at equal distances
    of their places; of fewer calls than points the rest is 0."""
    left: int
    """Time of names that are not kept."""

    def of(self, row: int) -> OfName:
        """Those of one row."""
        calls = int(self.calls[row])
        return OfName(calls, int(self.total[row]), float(self.square[row]), self.points[row, :calls])


class Experts(NamedTuple):
    """Products of one rank that are grouped by expert."""

    calls: int | None
    """None where the work of its device was not recorded."""
    tokens: int | None
    """Rows of what they multiply; None where shapes were not recorded."""


class Stages(NamedTuple):
    """What one rank did in its last steps, piece by piece: columns of one length, in order of time."""

    step: NDArray[np.int64] = NONE
    """Row in its steps."""
    part: NDArray[np.int64] = NONE
    """Position in `pipeline.PARTS`."""
    start: NDArray[np.int64] = NONE
    """Absolute, on its own clock; so is `end`."""
    end: NDArray[np.int64] = NONE
    busy: NDArray[np.int64] = NONE
    """Time in which its kernels run."""
    number: NDArray[np.int64] = NONE
    """Of its kind in the step, or the micro-batch that its annotation tells; -1 where nothing is computed."""
    collective: NDArray[np.int64] = NONE
    """Row in the rank's collectives that a send or receive is, -1 for else."""


class Ran(NamedTuple):
    """What one rank ran inside its analysed steps."""

    operators: Times
    """Work of its headline device that computes, by type of operator (Ascend), else by what launched it."""
    calls: Times
    """Calls of the runtime."""
    clock: float | None
    """Of its cores, MHz, mean weighted by time; None where the profile does not tell."""
    experts: Experts
    stages: Stages = Stages()
    """Of a pipeline; empty where it sends to no single rank."""


@dataclass(frozen=True, eq=False)
class RankSummary:
    """All that the comparison needs of one rank: small, and fit to be sent between processes."""

    rank: int | None
    label: str
    world_size: int | None
    steps: tuple[str, ...]
    """Names of the steps."""
    marked: bool
    """False: the one window is the whole trace."""
    counted: NDArray[np.bool_]
    """Steps that are in sums and means."""
    step_time: NDArray[np.int64]
    parts: Mapping[str, NDArray[Any]]
    """By step: `communication`, `peer_wait` and `PHASES`, but those that the recording cannot tell; in as few bytes as
    they need, see `part`."""
    groups: tuple[Group, ...]
    collectives: RankCollectives
    links: tuple[LinkTraffic, ...]
    group_names: Mapping[str, Members]
    """Process groups that the header lists."""
    host: str | None = None
    """Name of the machine."""
    device: str = ""
    """Name of the headline device; empty where the profile does not tell it."""
    recorded: Mapping[str, str] = field(default_factory=dict)
    """What was recorded: option → value."""
    environment: Mapping[str, str] | None = None
    """Variables of the libraries that should be equal on all ranks; None where the profile states none."""
    kernels: KernelTimes = field(default_factory=KernelTimes)
    """Kernels that take most time."""
    partners: Partners = Partners()
    inside: bool = False
    """Whether `partners` are numbered inside the group."""
    networked: frozenset[str] | None = None
    """Labels of the groups whose tasks went over a network; None where tasks are not recorded."""
    ran: Ran | None = None
    """What it ran; None where that was not summed up."""
    host_computes: bool = False
    """Whether its host alone computed: no device is missing in the recording."""
    started: int = 0
    """Complete steps of the start of the run, which do not count."""

    def part(self, key: str) -> NDArray[np.int64]:
        """One of the parts, in numbers that leave room for what is computed of them."""
        return self.parts[key].astype(np.int64)

    def of_rank(self, rank: int | None) -> RankSummary:
        """The same as the rank that the run made of it."""
        label = "" if rank is None else str(rank)
        return self if (self.rank, self.label) == (rank, label) else replace(self, rank=rank, label=label)


@dataclasses.dataclass(frozen=True)
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


@dataclass(frozen=True, eq=False)
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
    row: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    """Position of each in the collectives of its rank."""

    def __len__(self) -> int:
        return len(self.kind)

    def parts(self) -> Iterator[slice]:
        """Columns of some members at a time: a table of all of them would take a third of what is kept of the ranks."""
        return (slice(at, at + AT_ONCE) for at in range(0, len(self.members), AT_ONCE))

    @cached_property
    def transfer(self) -> NDArray[np.int64]:
        """(n,) shortest duration (definitions §12); with ranks missing it is an upper bound."""
        each = [(self.end[:, part] - self.start[:, part]).min(axis=1) for part in self.parts()]
        return np.asarray(np.min(each, axis=0), np.int64)

    def wait(self, part: int | slice) -> NDArray[np.int64]:
        """What one member (n,) or some (n, members) take longer than that; with ranks missing a lower bound."""
        found: NDArray[np.int64] = (self.end.T[part] - self.start.T[part] - self.transfer).T
        return found

    def exposed_wait(self, part: int | slice) -> NDArray[np.int64]:
        """How much of it has nothing beside it at least: none of the transfer is hidden."""
        wait = self.wait(part)
        return np.clip((self.exposed.T[part] - self.transfer).T, 0, wait, out=wait)

    def by_step(self, values: Callable[[slice], NDArray[Any]], steps: int) -> NDArray[np.int64]:
        """(steps, members) sums of tables of some members over the collectives that synchronise, step by step."""
        found = np.zeros((steps, len(self.members)), np.int64)
        step = self.step[self.synchronising]
        first = np.flatnonzero(np.diff(step, prepend=-1))
        for part in self.parts() if len(first) else ():
            sums = np.add.reduceat(values(part)[self.synchronising], first, axis=0, dtype=np.int64)
            found[step[first], part] = sums
        return found


def columns_of(groups: Sequence[MatchedGroup]) -> dict[int, list[tuple[int, int]]]:
    """By position of a rank its groups, by their places, and its column in each."""
    found: dict[int, list[tuple[int, int]]] = {}
    for at, one in enumerate(groups):
        for column, rank in enumerate(one.members):
            found.setdefault(rank, []).append((at, column))
    return found


class ExposedWaits(NamedTuple):
    """Waiting for other ranks in communication that nothing hides (`ranks.waits`, `ranks.sends`)."""

    by_step: NDArray[np.int64]
    """(ranks, steps) ns of each rank in each common step."""
    bound: bool
    """Ranks are missing, or may be, or the other end of a send or receive is not known: a lower bound."""
    by_tasks: bool = False
    """From the tasks of each rank's own collectives (Ascend): also what they wait for ranks that were not recorded."""
    perhaps: NDArray[np.int64] = NONE
    """(ranks,) ns a step of sends and receives that may be waiting, too; of collectives `waits_for_absent` tells."""

    @property
    def mean(self) -> NDArray[np.int64]:
        """(ranks,) ns a step."""
        found: NDArray[np.int64] = self.by_step.sum(axis=1) // self.by_step.shape[1]
        return found


class Straggler(NamedTuple):
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


EVEN = 1.02
"""Ratio of two times of ranks up to which they count as equal."""


def leading(step_times: Sequence[int], own: Sequence[int | None], whole: Sequence[bool] = ()) -> int:
    """Position of the rank that works longest: by its `own` step, without waiting for others, else by its step.

    Of recordings that are not `whole` none, unless all are so.
    """
    counted = [at for at, one in enumerate(whole) if one] or list(range(len(step_times)))
    known = {at: time for at in counted if (time := own[at]) is not None}
    if len(known) < len(counted):
        return max(counted, key=step_times.__getitem__)
    return max(counted, key=lambda at: (known[at], step_times[at], -at))


MOST_SPANS = 12
"""More of them say less than how many numbers there are."""


def spans(labels: Sequence[str]) -> str:
    """`0-3,5`: numbers in a row are joined, and of many pieces the first and the last are named."""
    numbers = [int(label) for label in labels if label.isdecimal()]
    breaks = [0, *(at for at, (a, b) in enumerate(pairwise(numbers), 1) if b != a + 1), len(numbers)]
    rows = [numbers[start:stop] for start, stop in pairwise(breaks) if stop > start]
    parts = [f"{row[0]}-{row[-1]}" if len(row) > 1 else str(row[0]) for row in rows]
    parts = list(labels) if len(numbers) < len(labels) else parts
    if len(parts) > MOST_SPANS:
        return f"{','.join(parts[: MOST_SPANS // 2])},…,{parts[-1]} ({len(labels)})"
    return ",".join(parts)


class Cluster(NamedTuple):
    """All ranks of a run side by side."""

    ranks: tuple[RankSummary, ...]
    steps: tuple[str, ...]
    """Steps that count on all ranks."""
    rows: NDArray[np.int64]
    """(ranks, steps) row of each in the rank's own steps."""
    missing: tuple[int, ...]
    """Ranks of the run that are not among these."""
    groups: tuple[MatchedGroup, ...]
    stops: tuple[Stop, ...]
    outside: int
    """Collectives of all ranks that belong to none of these steps."""
    exposed_waits: ExposedWaits | NotMeasured
    stragglers: tuple[Straggler, ...] | NotMeasured
    replayed: tuple[int, ...] = ()
    """Mean step of each rank in a replay in which it does not wait for others, ns; empty where none was possible."""
    places: tuple[int, ...] = ()
    """Position of each rank in the report: some cannot be compared."""
    between: ExposedWaits | None = None
    """That in sends and receives; None where there are none, or where they are all that is known, and not of all."""
    recorded: frozenset[int | None] = frozenset()
    """All ranks of the run that were, these and such as were not chosen, or are damaged."""

    @property
    def missing_ranks(self) -> tuple[int, ...]:
        """Ranks of the run or of one of its groups that are not among these, ascending."""
        return tuple(sorted({*self.missing, *(rank for group in self.groups for rank in group.missing)}))

    def absence(self, rank: int) -> Phrase:
        """What became of one of these."""
        return Phrase("left out") if rank in self.recorded else Phrase("not recorded")

    @property
    def absent(self) -> Phrase:
        """The same of all of them: `not recorded (0–2), left out (5)`."""
        found: dict[Phrase, list[int]] = {}
        for rank in self.missing_ranks:
            found.setdefault(self.absence(rank), []).append(rank)
        return listed(Phrase("{state} ({ranks})", state, ranges(of)) for state, of in found.items())

    def part(self, key: str) -> NDArray[np.int64] | None:
        """(ranks, steps) ns of one part; None where some rank cannot tell it."""
        if any(key not in rank.parts for rank in self.ranks):
            return None
        return np.stack([rank.part(key)[rows] for rank, rows in zip(self.ranks, self.rows, strict=True)])

    @property
    def step_time(self) -> NDArray[np.int64]:
        """(ranks, steps) ns."""
        return np.stack([rank.step_time[rows] for rank, rows in zip(self.ranks, self.rows, strict=True)])

    @property
    def waits(self) -> ExposedWaits | None:
        """Waiting for other ranks in collectives, else between stages of a pipeline; None where neither is known."""
        return self.between if isinstance(self.exposed_waits, NotMeasured) else self.exposed_waits

    @property
    def own_time(self) -> tuple[int | None, ...]:
        """Mean step of each rank without what it waits for others, ns; None where that is not known.

        In collectives, between stages of a pipeline, and on the host longer than any other rank. Without a replay at
        least: its host may have worked while the device waited.
        """
        waits, own, steps = self.waits, np.array(self.replayed, np.int64), max(len(self.steps), 1)
        peers = self.part("peer_wait")
        if not self.replayed:
            on_host = peers is not None and all(rank.host_computes for rank in self.ranks)
            if waits is None and not on_host:
                return (None,) * len(self.ranks)
            own = self.step_time.sum(axis=1) // steps - (0 if waits is None else waits.mean)
        if self.between is not None and self.between is not waits:
            own = np.maximum(own - self.between.mean, 0)
        if peers is not None:
            on_host = peers.sum(axis=1) // steps
            own -= on_host - on_host.min()
        return tuple(own.tolist())

    @property
    def lead(self) -> int:
        """Position of the rank that works longest."""
        return leading(self._means, self.own_time)

    @property
    def step(self) -> int:
        """Mean step of the rank that works longest, ns: what findings are measured by, as all numbers shown with it."""
        return self._means[self.lead]

    @property
    def _means(self) -> list[int]:
        found: list[int] = (self.step_time.sum(axis=1) // max(len(self.steps), 1)).tolist()
        return found
