"""Traffic between pairs of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.ranks.results import Cluster

_COLUMNS = (
    Column("link", Kind.TEXT),
    Column("source_rank", Kind.COUNT),
    Column("target_rank", Kind.COUNT),
    Column("transfers", Kind.COUNT),
    Column("bytes", Kind.BYTES),
    Column("time_ns", Kind.DURATION),
    Column("bandwidth", Kind.NUMBER),
    Column("below_usual", Kind.SHARE),
)


def links_table(cluster: Cluster) -> Table:
    """One row a pair of ranks and kind of link, the slowest of each kind first."""
    if isinstance(cluster.links, NotMeasured):
        return table_of_rows("links", _COLUMNS, cluster.links, detail=True)
    rows = tuple(
        (
            one.link,
            one.source,
            one.target,
            one.count,
            one.bytes,
            one.time,
            one.bytes / one.time if one.time else NotMeasured("no_duration"),
            one.slow,
        )
        for one in cluster.links
    )
    return table_of_rows("links", _COLUMNS, rows, detail=True)
