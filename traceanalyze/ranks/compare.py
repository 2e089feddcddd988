"""All ranks of a run side by side, from the summary of each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.model.table import NotMeasured
from traceanalyze.ranks.links import links
from traceanalyze.ranks.match import clock_offsets, common_steps, matched, missing_ranks
from traceanalyze.ranks.results import Cluster, Imbalance
from traceanalyze.ranks.stragglers import stragglers
from traceanalyze.ranks.waits import by_durations, collective_waits, exposed_waits, rank_waits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.ranks.results import MatchedGroup, RankSummary


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


def compare_ranks(summaries: Sequence[RankSummary]) -> Cluster:
    """Compare the ranks of one run.

    Args:
        summaries: one a rank, in the order of the report.
    """
    ranks = tuple(replace(one, label=one.label or f"?{index}") for index, one in enumerate(summaries))
    steps, rows = common_steps(ranks)
    groups, stops, outside = matched(ranks, steps, rows)
    missing = missing_ranks(ranks)
    return Cluster(
        ranks=ranks,
        steps=steps,
        rows=rows,
        missing=missing,
        groups=groups,
        stops=stops,
        outside=outside,
        collectives=collective_waits(ranks, groups),
        waits=rank_waits(ranks, groups, rows),
        exposed_waits=exposed_waits(ranks, groups, rows, missing),
        stragglers=stragglers(ranks, groups, rows),
        imbalance=imbalance(ranks, steps, rows, groups),
        clocks=clock_offsets(ranks, groups),
        links=links(ranks),
    )


EVEN = 1.02
"""Ratio of two times of ranks up to which they count as equal."""


def longest(step_times: Sequence[int]) -> int:
    """Position of the rank with the longest mean step; the first of equals."""
    return max(range(len(step_times)), key=step_times.__getitem__)


def leading(step_times: Sequence[int], own: Sequence[int | None]) -> int:
    """Position of the rank with the longest step, or of one that takes longer without waiting for others.

    Args:
        step_times: Mean step of each rank, ns.
        own: The same without the time in which it only waits for others; None where that is not known.
    """
    slowest = longest(step_times)
    known = [time for time in own if time is not None]
    if len(known) < len(step_times) or max(known) <= EVEN * known[slowest]:
        return slowest
    return known.index(max(known))
