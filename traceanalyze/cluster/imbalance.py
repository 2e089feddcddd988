"""How unevenly work is spread over the ranks (definitions §12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.cluster.exposed_wait import by_durations
from traceanalyze.cluster.results import Imbalance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.cluster.results import MatchedGroup, RankSummary

QUANTITIES = {"compute": ("compute",), "compute_and_host": ("compute", "dispatch", "data_loading")}


def imbalance(
    ranks: Sequence[RankSummary], steps: Sequence[str], rows: NDArray[np.int64], groups: Sequence[MatchedGroup] = ()
) -> tuple[Imbalance, ...] | NotMeasured:
    """(max - mean) / mean over ranks, by step and then over steps, of what all ranks recorded.

    Equal work for all would shorten a step by (max - mean) at most, and by no more than the ranks wait on average.
    """
    if rows.shape[1] == 0:
        return NotMeasured("no_common_steps")
    waited = _waited(groups, rows)
    found = []
    for what, parts in QUANTITIES.items():
        if any(part not in rank.parts for rank in ranks for part in parts):
            continue
        amount = np.stack(
            [
                sum((rank.parts[part][mine] for part in parts), np.zeros(len(mine), np.int64))
                for rank, mine in zip(ranks, rows, strict=True)
            ]
        )
        mean = amount.mean(axis=0)
        excess = amount.max(axis=0) - np.ceil(mean).astype(np.int64)
        over = np.where(mean > 0, (amount.max(axis=0) - mean) / np.maximum(mean, 1), 0.0)
        total = amount.sum(axis=1)
        high, low, count = int(total.argmax()), int(total.argmin()), len(steps)
        worst = int(over.argmax())
        found.append(
            Imbalance(
                what=what,
                mean=float(over.mean()),
                worst=float(over[worst]),
                worst_step=steps[worst],
                highest=ranks[high].label,
                lowest=ranks[low].label,
                high=int(total[high]) // count,
                low=int(total[low]) // count,
                steps=count,
                excess=int(excess.sum()) // count,
                gain=waited if isinstance(waited, NotMeasured) else int(np.minimum(excess, waited).sum()) // count,
            )
        )
    return tuple(found) or NotMeasured("no_device_events")


def _waited(groups: Sequence[MatchedGroup], rows: NDArray[np.int64]) -> NDArray[np.int64] | NotMeasured:
    """(steps,) mean exposed waiting of the ranks, of groups that are complete: equal work saves no more of it."""
    whole = [one for one in groups if one.complete and one.synchronising.any()]
    if not whole:
        return NotMeasured("ranks_missing" if groups else "no_matched_collectives")
    found: NDArray[np.int64] = by_durations(whole, rows).sum(axis=0) // len(rows)
    return found
