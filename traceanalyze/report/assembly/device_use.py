"""Tables of how the device was used: ratios, kinds of work at the same time, copies, annotations, launches by step."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model.table import Column, Kind, Layout, NotMeasured, Table
from traceanalyze.report.assembly.kernels import SPREAD, part, spread_cells
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results import Steps
    from traceanalyze.analyses.results_device import Copies, DeviceAnnotation, DeviceSummary, Overlap, StepLaunches
    from traceanalyze.model.table import Value

_SUMMARY = (
    Column("gpu_utilisation", Kind.SHARE),
    Column("sm_efficiency", Kind.SHARE),
    Column("occupancy", Kind.SHARE),
    Column("tensor_core_share", Kind.SHARE),
    Column("tensor_core_unknown", Kind.SHARE),
    Column("kernels", Kind.COUNT),
    Column("short_kernels", Kind.COUNT),
    Column("short_kernels_ns", Kind.DURATION),
)
_OVERLAPS = (
    Column("running", Kind.TERM),
    Column("wall_ns", Kind.DURATION),
    Column("share", Kind.SHARE),
)
_COPIES = (
    Column("direction", Kind.TERM),
    Column("memory_kind", Kind.TERM),
    *SPREAD,
    Column("bytes", Kind.BYTES),
    Column("bandwidth", Kind.NUMBER),
    Column("blocking", Kind.COUNT),
)
_ANNOTATIONS = (Column("name", Kind.NAME), *(column for column in SPREAD if column.key != "share"))
_STEP_LAUNCHES = (
    Column("step", Kind.TEXT),
    Column("late_launches", Kind.COUNT),
    Column("wait_p50_ns", Kind.DURATION, scale="wait"),
    Column("wait_p90_ns", Kind.DURATION, scale="wait"),
    Column("depth_p50", Kind.NUMBER),
    Column("depth_p90", Kind.NUMBER),
)


def summary_table(summary: DeviceSummary) -> Table:
    """Ratios of the headline device, as one record."""
    row = (
        summary.gpu_utilisation,
        summary.sm_efficiency,
        summary.occupancy,
        summary.tensor_core_share,
        summary.tensor_core_unknown,
        summary.kernels,
        summary.short_kernels,
        summary.short_time,
    )
    return table_of_rows("device_summary", _SUMMARY, (row,), layout=Layout.RECORD, detail=True)


def overlaps_table(overlaps: tuple[Overlap, ...]) -> Table:
    """Wall time of each combination of work; the rows sum to the analysed steps."""
    whole = sum(row.time for row in overlaps)
    rows = tuple((_running(row), row.time, part(row.time, whole)) for row in overlaps)
    return table_of_rows("device_overlap", _OVERLAPS, rows, skip_zero="wall_ns", detail=True)


def _running(row: Overlap) -> str:
    parts = (("compute", row.compute), ("communication", row.comm), ("memory_ops", row.mem))
    return "running_" + ("_and_".join(key for key, runs in parts if runs) or "nothing")


def copies_table(copies: tuple[Copies, ...] | NotMeasured) -> Table:
    """Copies by direction and memory, and fills."""
    if isinstance(copies, NotMeasured):
        return table_of_rows("copies", _COPIES, copies, detail=True)
    whole = sum(item.time.total for item in copies)
    rows = tuple(
        (
            f"copy_{item.direction}",
            _memory_kind(item),
            *spread_cells(item.time, whole),
            item.bytes,
            item.bandwidth,
            item.blocking,
        )
        for item in copies
    )
    return table_of_rows("copies", _COPIES, rows, ranked=True)


def _memory_kind(item: Copies) -> Value:
    if item.memory is not None:
        return f"memory_{item.memory}"
    return None if item.direction == "fill" else NotMeasured("no_memory_kind")


def annotations_table(annotations: tuple[DeviceAnnotation, ...] | NotMeasured) -> Table:
    """User annotations on the device."""
    if isinstance(annotations, NotMeasured):
        return table_of_rows("device_annotations", _ANNOTATIONS, annotations, detail=True)
    rows = tuple(
        (item.name, item.time.count, item.time.total, item.time.mean, item.time.shortest, item.time.longest)
        for item in annotations
    )
    return table_of_rows("device_annotations", _ANNOTATIONS, rows, ranked=True, detail=True)


def step_launches_table(launches: StepLaunches | NotMeasured, steps: Steps) -> Table:
    """Launch delay and queue depth of every step."""
    if isinstance(launches, NotMeasured):
        return table_of_rows("step_launches", _STEP_LAUNCHES, launches, detail=True)
    rows = tuple(
        (
            label,
            int(launches.late[index]),
            *(
                NotMeasured("no_linked_launches") if isnan(column[index]) else int(column[index])
                for column in (launches.delay_p50, launches.delay_p90)
            ),
            *(
                NotMeasured("no_linked_launches") if isnan(column[index]) else float(column[index])
                for column in (launches.depth_p50, launches.depth_p90)
            ),
        )
        for index, label in enumerate(step_labels(steps.name))
    )
    return table_of_rows("step_launches", _STEP_LAUNCHES, rows, detail=True)
