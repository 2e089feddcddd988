"""What a post-mortem is made of: ranks of recordings with their findings, and what snapshots tell about memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

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
