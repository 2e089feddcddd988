"""What the run gains when something is gone from its ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.cluster.leading import leading

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traceanalyze.postmortem.parts import RankPart


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
