"""Tables and sentences over the ranks of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.report.assembly.cluster.clocks import clocks_table
from traceanalyze.report.assembly.cluster.links import links_table
from traceanalyze.report.assembly.cluster.sentences import straggler_sentences
from traceanalyze.report.assembly.cluster.steps import imbalance_table, steps_table
from traceanalyze.report.assembly.cluster.waits import collectives_table, waits_table

if TYPE_CHECKING:
    from traceanalyze.model.table import Table
    from traceanalyze.ranks.results import Cluster

__all__ = ["cluster_tables", "straggler_sentences"]


def cluster_tables(cluster: Cluster) -> tuple[Table, ...]:
    """All of them, the most telling first."""
    return (
        waits_table(cluster),
        collectives_table(cluster),
        imbalance_table(cluster),
        steps_table(cluster),
        clocks_table(cluster),
        links_table(cluster),
    )
