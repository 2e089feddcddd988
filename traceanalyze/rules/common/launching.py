"""How far the host is from keeping the device busy, for the rules about dispatch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.model.vocabulary import Cause
from traceanalyze.rules.facts import DISPATCH
from traceanalyze.rules.finding import intervals_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.rules.facts import Facts

PYTHON_NS = 1_000_000
"""Stretches of Python shorter than this lie between operators, and belong to launching; longer ones are work."""


@dataclass(frozen=True, slots=True)
class Launching:
    """How the host kept up in the windows."""

    share: float
    """Idle time in dispatch and host operators over the step (`launch_bound_share`, definitions §6)."""
    late: float
    """Gaps that ended with work launched during them, over all gaps."""
    depth: float | None
    """Median queue depth; None where the clocks disagree."""
    spans: NDArray[np.int64]
    """(n, 2) idle time in which the host was on its way to the next launch: dispatch, operators, Python in between."""
    gap: NDArray[np.int64]
    """Which of `Context.gaps` each of them lies in."""

    def bound(self, share: float, late: float) -> bool:
        """Whether the host cannot keep the queue filled."""
        empty = self.depth is not None and self.depth <= 1
        return self.share >= share and (self.late >= late or empty)


def launching(facts: Facts) -> Launching:
    """The host's part in the idle time of a rank."""
    context, pieces = facts.context, facts.pieces
    gaps = context.gaps
    seen = np.unique(pieces.gap)
    late = (gaps.call >= 0) & (gaps.launch_start >= gaps.start)
    short = (pieces.cause == Cause.UNTRACED) & (pieces.end - pieces.start < PYTHON_NS)
    chosen = (np.isin(pieces.cause, (*DISPATCH, Cause.HOST_OP)) | short) & (gaps.launch_end > gaps.start)[pieces.gap]
    known = facts.analysis.launches
    return Launching(
        facts.share(facts.idle_mean(*DISPATCH, Cause.HOST_OP)),
        float(late[seen].mean()) if len(seen) else 0.0,
        None if isinstance(known, NotMeasured) else known.queue_depth_p50,
        intervals_of(pieces.start[chosen], pieces.end[chosen]),
        pieces.gap[chosen],
    )


def underused(facts: Facts, busy: float, other: float) -> float | None:
    """Busy share of the step where it is below `busy` and data, sync, peers and unknown work explain less than `other`.

    None where the device is busy enough, or idle for these reasons.
    """
    parts = facts.analysis.partitions[0]
    share = facts.window.share(facts.window.sum(parts.busy))
    idle = facts.mean(facts.window.sum(parts.idle))
    explained = facts.idle_mean(Cause.DATA_LOADING, Cause.SYNC, Cause.PEER_WAIT, Cause.UNTRACED)
    return None if share >= busy or explained >= other * idle else share
