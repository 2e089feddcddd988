"""Tables of the critical path: what it is spent on, and the kernels, operators and calls on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.results_path import PathKind
from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.report.assembly.kernels import part
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results_path import CriticalPath
    from traceanalyze.analyses.steps.window import Window

PATH_TERMS = {
    PathKind.COMPUTE: "compute",
    PathKind.COMM: "communication",
    PathKind.MEM: "memory_ops",
    PathKind.DEVICE_GAP: "device_gap",
    PathKind.DEVICE_DEPENDENCY: "device_dependency",
    PathKind.LAUNCH_LATENCY: "dispatch_latency",
    PathKind.DATA_LOADING: "data_loading",
    PathKind.PEER_WAIT: "peer_wait",
    PathKind.RUNTIME_CALL: "host_api",
    PathKind.HOST_OP: "host_op",
    PathKind.UNTRACED: "untraced",
}
_PARTS = (
    Column("part", Kind.TERM),
    Column("mean_ns", Kind.DURATION),
    Column("share", Kind.SHARE),
    Column("sum_ns", Kind.DURATION, machine=True),
)
_PLACES = (
    Column("part", Kind.TERM),
    Column("name", Kind.NAME),
    Column("time_ns", Kind.DURATION),
    Column("share", Kind.SHARE),
    Column("count", Kind.COUNT),
    Column("max_ns", Kind.DURATION, scale="event"),
)


def critical_path_tables(path: CriticalPath | NotMeasured, window: Window) -> list[Table]:
    """The path by kind of work, and by name."""
    if isinstance(path, NotMeasured):
        # That it is refused, and why, is for every view.
        return [
            table_of_rows("critical_path", _PARTS, path),
            table_of_rows("critical_path_work", _PLACES, path, detail=True),
        ]
    return [_parts_table(path, window), _places_table(path)]


def _parts_table(path: CriticalPath, window: Window) -> Table:
    """Mean over the complete steps; the rows sum to the step time."""
    sums = [(PATH_TERMS[kind], window.sum(path.by_step[:, kind])) for kind in PathKind]
    rows = tuple((key, window.mean(amount), window.share(amount), amount) for key, amount in sums)
    whole = sum(amount for _, amount in sums)
    return table_of_rows(
        "critical_path",
        _PARTS,
        rows,
        total=("step", window.mean(whole), window.share(whole), whole),
        bar="share",
        skip_zero="sum_ns",
        detail=True,
        title_values=(("steps", Kind.COUNT, window.count),),
    )


def _places_table(path: CriticalPath) -> Table:
    """Sums over the analysed steps; what has no name is one row of its kind."""
    whole = int(path.by_step.sum())
    rows = tuple(
        (PATH_TERMS[place.kind], place.name, place.time, part(place.time, whole), place.count, place.longest)
        for place in path.places
    )
    return table_of_rows("critical_path_work", _PLACES, rows, ranked=True, detail=True)
