"""User annotations on the host, and the device work launched inside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results_host import Annotation
    from traceanalyze.model.table import Row

_ANNOTATIONS = (
    Column("name", Kind.NAME),
    Column("calls", Kind.COUNT),
    Column("device_time_ns", Kind.DURATION),
    Column("kernels", Kind.COUNT),
    Column("host_time_ns", Kind.DURATION),
    Column("mean_event_ns", Kind.DURATION),
    Column("min_ns", Kind.DURATION, minor=True),
    Column("max_ns", Kind.DURATION, minor=True),
)


def host_annotations_table(annotations: tuple[Annotation, ...] | NotMeasured, *, device: bool) -> Table:
    """Annotations by name."""
    if isinstance(annotations, NotMeasured):
        return table_of_rows("annotations", _ANNOTATIONS, annotations, detail=True)
    rows = tuple(_row(item, device=device) for item in annotations)
    return table_of_rows("annotations", _ANNOTATIONS, rows, ranked=True, detail=True)


def _row(item: Annotation, *, device: bool) -> Row:
    """One that began before the analysed steps has work in them, but no host time."""
    missing = NotMeasured("no_device_events")
    work: Row = (item.device_time, item.kernels) if device else (missing, missing)
    time = item.host
    each: Row = (time.mean, time.shortest, time.longest) if time.count else (None, None, None)
    return (item.name, item.calls, *work, time.total, *each)
