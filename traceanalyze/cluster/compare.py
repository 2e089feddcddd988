"""All ranks of a run side by side, from the summary of each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.cluster.clocks import clock_offsets
from traceanalyze.cluster.exposed_wait import exposed_waits
from traceanalyze.cluster.groups import missing_ranks
from traceanalyze.cluster.imbalance import imbalance
from traceanalyze.cluster.links import links
from traceanalyze.cluster.match import common_steps, matched
from traceanalyze.cluster.results import Cluster
from traceanalyze.cluster.stragglers import stragglers
from traceanalyze.cluster.waits import collective_waits, rank_waits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.cluster.results import RankSummary


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
