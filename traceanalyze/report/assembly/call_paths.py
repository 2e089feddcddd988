"""Call paths: what the flame graph is drawn from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.report.assembly.host_columns import columns_of, ranked_by
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results_host_more import CallPath

_PATHS = (
    Column("call_path", Kind.NAME),
    Column("device_self_ns", Kind.DURATION),
    Column("device_share", Kind.SHARE),
    Column("host_self_ns", Kind.DURATION),
    Column("calls", Kind.COUNT),
    Column("device_total_ns", Kind.DURATION, minor=True),
    Column("host_total_ns", Kind.DURATION, minor=True),
    Column("launched", Kind.COUNT, minor=True),
)


def call_paths_table(paths: tuple[CallPath, ...] | NotMeasured, *, device: bool) -> Table:
    """Call paths; the device times of their own sum to all device time."""
    columns, by = columns_of(_PATHS, device=device), ranked_by(device=device)
    if isinstance(paths, NotMeasured):
        return table_of_rows("call_paths", columns, paths, detail=True, title_values=by)
    whole = sum(row.device_self for row in paths)
    missing = NotMeasured("no_device_events")
    rows = tuple(
        (
            row.path,
            row.device_self if device else missing,
            (row.device_self / whole if whole else 0.0) if device else missing,
            row.host_self,
            row.calls,
            row.device_total if device else missing,
            row.host_total,
            row.launched if device else missing,
        )
        for row in paths
    )
    return table_of_rows("call_paths", columns, rows, ranked=True, detail=True, title_values=by)
