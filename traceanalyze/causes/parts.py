"""What a post-mortem is made of: ranks of recordings with their findings, and what snapshots tell about memory."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen
from traceanalyze.ranks.compare import leading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from traceanalyze.rules.finding import Finding, NotApplicable


@frozen
class RankPart:
    """One rank of one recording. Its windows are the complete steps, or the whole trace."""

    label: str
    steps: tuple[str, ...]
    """What the windows are called."""
    step_times: NDArray[np.int64]
    """Ns of each window."""
    own: int | None
    """Mean window without the time in which it waits for other ranks, ns; None where that is not known."""
    findings: tuple[Finding, ...] = ()
    costs: tuple[NDArray[np.int64] | None, ...] = ()
    """Of each finding the ns it takes in each window; None where it is not tied to points in time."""
    unjudged: tuple[NotApplicable, ...] = ()
    marked: bool = True
    """Whether the windows are steps."""

    @property
    def step_time(self) -> int:
        """Mean window, ns."""
        return round(float(self.step_times.mean())) if len(self.step_times) else 0


@frozen
class CommonSteps:
    """Steps that all ranks recorded completely."""

    steps: tuple[str, ...]
    step_times: NDArray[np.int64]
    """Mean of the ranks, ns."""


@frozen
class RecordingPart:
    """Ranks that were recorded together."""

    ranks: tuple[RankPart, ...]
    of_run: tuple[Finding, ...] = ()
    """About the ranks side by side."""
    of_run_unjudged: tuple[NotApplicable, ...] = ()
    of_run_costs: tuple[NDArray[np.int64] | None, ...] = ()
    """Of each of `of_run` the ns it takes in each of the common steps; None where that is not known."""
    common: CommonSteps | None = None
    whole: bool = True
    """No file of it is cut short."""

    @property
    def marked(self) -> bool:
        """Whether its windows are steps."""
        return all(rank.marked for rank in self.ranks)

    @property
    def step_time(self) -> int:
        """Mean window of all ranks, ns."""
        return sum(rank.step_time for rank in self.ranks) // max(len(self.ranks), 1)


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


@frozen
class Trouble:
    """What a snapshot tells about one device's memory."""

    key: str
    """What was found, as `traceanalyze memory` calls it."""
    severity: str
    """critical, warn or info"""
    amount: int | None
    """Bytes."""
    line: str
    """Source line."""
    rank: str
    """Label; empty where nothing tells."""
    place: tuple[int, int]
    """File and finding, for whoever words it."""


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Each once; numbers by their value, before other names."""
    return tuple(sorted(set(labels), key=lambda label: (0, int(label), "") if label.isdecimal() else (1, 0, label)))


def spans(labels: Sequence[str]) -> str:
    """`0-3,5`: numbers in a row are joined."""
    numbers = [int(label) for label in labels if label.isdecimal()]
    if len(numbers) < len(labels):
        return ",".join(labels)
    breaks = [0, *(at for at, (a, b) in enumerate(pairwise(numbers), 1) if b != a + 1), len(numbers)]
    parts = [numbers[start:stop] for start, stop in pairwise(breaks) if stop > start]
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def decider(ranks: Sequence[RankPart]) -> int:
    """Position of the rank that decides how long the step is."""
    return leading([rank.step_time for rank in ranks], [rank.own for rank in ranks])


def run_gain(ranks: Sequence[RankPart], savings: Mapping[str, int]) -> int:
    """By how much the step of the run gets shorter, ns.

    Ranks wait for each other, so the step is as long as the most time that any rank needs without waiting: what is
    saved on another rank is waited for instead. Where waiting is not known, the mean over all ranks.

    Args:
        ranks: All of the recording.
        savings: By label, of the ranks that save something; ns a step.
    """
    own = [rank.own for rank in ranks if rank.own is not None]
    if len(own) < len(ranks):
        return sum(savings.get(rank.label, 0) for rank in ranks) // max(len(ranks), 1)
    left = [time - savings.get(rank.label, 0) for time, rank in zip(own, ranks, strict=True)]
    return max(max(own) - max(left), 0)
