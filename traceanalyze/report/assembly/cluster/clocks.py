"""How far the clocks of the ranks are apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.ranks.results import Cluster

_COLUMNS = (
    Column("rank", Kind.TEXT),
    Column("offset_ns", Kind.CHANGE, scale="offset"),
    Column("residual_ns", Kind.DURATION, scale="residual"),
    Column("skew_ns", Kind.DURATION, scale="skew"),
    Column("matched", Kind.COUNT),
    Column("reference", Kind.TEXT, minor=True),
)


def clocks_table(cluster: Cluster) -> Table:
    """One row a rank that shares collectives with the reference."""
    if isinstance(cluster.clocks, NotMeasured):
        return table_of_rows("clock_offsets", _COLUMNS, cluster.clocks, detail=True)
    rows = tuple((one.label, one.offset, one.residual, one.skew, one.count, one.reference) for one in cluster.clocks)
    return table_of_rows("clock_offsets", _COLUMNS, rows, detail=True)
