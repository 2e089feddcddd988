"""What a post-mortem is made of, ranks of recordings with their findings and what snapshots say, and what it finds."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.memory.findings import MemoryFinding
from traceanalyze.model.patterns import dataclass
from traceanalyze.ranks.results import leading
from traceanalyze.rules.facts import Facts
from traceanalyze.rules.finding import Finding, FindingKey, NotApplicable, Severity

Costs: TypeAlias = Mapping[FindingKey, NDArray[np.int64]]
"""What each finding of a rank takes in each of its steps: all that is kept of the intervals behind it."""


def costs_of(findings: Iterable[Finding], facts: Facts) -> Costs:
    """Ns in each of the windows, of the findings that are tied to points in time."""
    return {one.key: facts.by_step(one.intervals) for one in findings if one.intervals is not None}


@dataclass(frozen=True, eq=False)
class RankPart:
    """One rank of one recording. Its windows are the complete steps, or the whole trace."""

    label: str
    steps: tuple[str, ...]
    """What the windows are called."""
    step_times: NDArray[np.int64]
    """Ns of each window."""
    own: int | None
    """Mean window without the time in which it waits for other ranks, ns; None where that is not known."""
    needs: int | None = None
    """What decides which rank the others wait for: `own`, or what stands for it where ranks are missing."""
    findings: tuple[Finding, ...] = ()
    costs: tuple[NDArray[np.int64] | None, ...] = ()
    """Of each finding the ns it takes in each window; None where it is not tied to points in time."""
    not_evaluated: tuple[NotApplicable, ...] = ()
    marked: bool = True
    """Whether the windows are steps."""
    whole: bool = True
    """Its recording is not cut short and does not end before those of the others: it counts in means of the ranks."""
    judged: bool = True
    """False for one of many ranks that was analysed in summary only, without rules."""

    @property
    def step_time(self) -> int:
        """Mean window, ns."""
        return round(float(self.step_times.mean())) if len(self.step_times) else 0


class CommonSteps(NamedTuple):
    """Steps that all ranks recorded completely."""

    steps: tuple[str, ...]
    step_times: NDArray[np.int64]
    """Mean of the ranks, ns."""


class RecordingPart(NamedTuple):
    """Ranks that were recorded together."""

    ranks: tuple[RankPart, ...]
    about_ranks: tuple[Finding, ...] = ()
    """About the ranks side by side."""
    about_ranks_not_evaluated: tuple[NotApplicable, ...] = ()
    about_ranks_costs: tuple[NDArray[np.int64] | None, ...] = ()
    """Of each of `about_ranks` the ns it takes in each of the common steps; None where that is not known."""
    common: CommonSteps | None = None
    whole: bool = True
    """No file of it is cut short."""
    waits_known: bool = True
    """How long its ranks wait for others in collectives is measured, and no bound."""

    @property
    def marked(self) -> bool:
        """Whether its windows are steps."""
        return all(rank.marked for rank in self.ranks)

    @property
    def step_time(self) -> int:
        """Mean window of the ranks that were recorded wholly, of all where none was, ns."""
        ranks = whole_ranks(self.ranks)
        return sum(rank.step_time for rank in ranks) // max(len(ranks), 1)

    @property
    def step(self) -> int:
        """Mean window of the rank that decides how long it is, ns: what shares are of."""
        return self.ranks[decider(self.ranks)].step_time if self.ranks else 0


def comparable(recordings: Sequence[RecordingPart]) -> tuple[int, ...]:
    """Positions of recordings that can be held against each other: whole ones of the same ranks, the most there are.

    Where none is whole, those of most ranks as they are.
    """
    if not recordings:
        return ()
    best = max(recordings, key=lambda one: (one.whole, len(one.ranks)))
    labels = {rank.label for rank in best.ranks}
    return tuple(
        at
        for at, one in enumerate(recordings)
        if one.whole == best.whole and {rank.label for rank in one.ranks} == labels
    )


class Trouble(NamedTuple):
    """What a snapshot says about one device's memory."""

    finding: MemoryFinding
    rank: str
    """Label; empty where it is not known."""
    file: int
    """Position of the snapshot."""


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Each once; numbers by their value, before other names."""
    return tuple(sorted(set(labels), key=lambda label: (0, int(label), "") if label.isdecimal() else (1, 0, label)))


def decider(ranks: Sequence[RankPart]) -> int:
    """Position of the rank that decides how long the step is."""
    shown = [rank.whole and rank.judged for rank in ranks]
    return leading([rank.step_time for rank in ranks], [rank.own for rank in ranks], shown)


def whole_ranks(ranks: Sequence[RankPart]) -> list[RankPart]:
    """Those that count in means of the ranks; all where none was recorded wholly."""
    return [rank for rank in ranks if rank.whole] or list(ranks)


def run_gain(ranks: Sequence[RankPart], savings: Mapping[str, int]) -> int:
    """By how much the step of the run gets shorter, ns.

    Ranks wait for each other, so the step is as long as the most time that any rank needs without waiting: what is
    saved on another rank is waited for instead. Of many ranks those that were judged stand for all. Where nothing tells
    what they need, the step of the run is that of its longest rank. `savings` are ns a step, by label of the ranks that
    save something.
    """
    ranks = [rank for rank in whole_ranks(ranks) if rank.judged] or whole_ranks(ranks)
    known = [rank.own if rank.needs is None else rank.needs for rank in ranks]
    own = [rank.step_time if each is None else each for each, rank in zip(known, ranks, strict=True)]
    left = [time - savings.get(rank.label, 0) for time, rank in zip(own, ranks, strict=True)]
    return max(max(own) - max(left), 0)


@dataclasses.dataclass(frozen=True)
class Onset:
    """In which of the recorded steps something is there."""

    kind: str
    """every, from, until, some; unknown where it is not tied to points in time."""
    step: str = ""
    """First step of `from`, last one of `until`."""
    recording: int = 0
    """The recording which that step is in."""
    affected: int = 0
    steps: int = 0
    """Steps in which it was looked for."""


@dataclasses.dataclass(frozen=True)
class Cause:
    """One thing that cost the run time or memory, on whichever ranks and in whichever recordings.

    Times are ns a step, those of the recording in which it costs most.
    """

    finding: Finding | None
    """That of the rank on which it saves most; None where only a snapshot tells."""
    severity: Severity
    """The largest of all ranks, but no more than what the run gains is worth."""
    ranks: tuple[str, ...]
    """Labels of those it holds on; of a finding about a rank, of that rank."""
    evaluated: int
    """How many ranks it was looked for on."""
    recording: int
    rank: str = ""
    """Label of the rank whose finding is shown; empty for one about the run."""
    gain: int | None = None
    """What the run's step gains without it: its slowest rank counts, waiting for others left out."""
    cost: int | None = None
    """What it costs the rank that it costs most, where no saving was measured."""
    largest: int | None = None
    """Largest saving of a rank."""
    mean: int | None = None
    """Mean saving over all ranks it was looked for on."""
    low: int | None = None
    """Least of the gain; None where its findings have no range."""
    bound: int | None = None
    """Most of the gain; the largest of a rank where no saving was measured."""
    total: int | None = None
    """Sum of the savings over all ranks, windows and recordings, ns."""
    share: float | None = None
    """Gain over the mean step of that recording; the cost over it where no saving was measured."""
    onset: Onset = Onset("unknown")
    gains: tuple[int | None, ...] = ()
    """Gain in each recording; None where it could not be judged, 0 where it was not found."""
    trouble: Trouble | None = None
    """What a snapshot tells."""
    about_ranks: bool = False
    """About the ranks side by side, not about one of them."""
    part_of: int | None = None
    """Position of the cause that is about the same time and gains more: the two must not be added."""
    because: int | None = None
    """Position of the cause that explains this one."""

    @property
    def worth(self) -> int:
        """What it is ranked by, ns a step: the gain; where no saving was measured, the cost."""
        return (self.cost if self.gain is None else self.gain) or 0


class NotEvaluated(NamedTuple):
    """Rules that could not be judged for one reason."""

    reason: str
    rules: tuple[str, ...]
    ranks: tuple[str, ...]
    """Labels of the ranks this holds for."""


class Growth(NamedTuple):
    """A cause that costs notably more from one recording on than in any before it."""

    cause: int
    """Position."""
    recording: int
    before: int
    """Most it cost until then; 0: it was not there."""
    after: int


class Postmortem(NamedTuple):
    """All of it."""

    recordings: tuple[RecordingPart, ...]
    """In the order of time."""
    causes: tuple[Cause, ...]
    """What limited the run first."""
    capture: tuple[Cause, ...]
    """About the recordings themselves."""
    not_evaluated: tuple[NotEvaluated, ...]
    growths: tuple[Growth, ...]
    decider: tuple[int, int] | None
    """Recording and position of the rank that decides how long the step is; None without recordings."""
    rules: int
    """How many rules were run."""
