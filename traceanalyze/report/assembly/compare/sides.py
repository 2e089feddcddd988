"""What was compared with what: files, ranks, devices, steps and options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model.table import Column, Kind, Layout, Message, Table
from traceanalyze.report.assembly.compare.per_step import rounded
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from traceanalyze.comparison.results import Comparison, SideInfo
    from traceanalyze.model.table import Row

_STEPS_NAMED = 12
_SIDES = (
    Column("side", Kind.TERM),
    Column("path", Kind.NAME),
    Column("vendor", Kind.TEXT),
    Column("device_name", Kind.TEXT),
    Column("rank", Kind.COUNT),
    Column("ranks_in_run", Kind.COUNT),
    Column("rank_choice", Kind.TERM),
    Column("step_choice", Kind.TERM),
    Column("steps_compared", Kind.COUNT),
    Column("step_labels", Kind.TEXT),
    Column("steps_left_out", Kind.COUNT),
    Column("mean_step_ns", Kind.DURATION),
    Column("median_step_ns", Kind.DURATION),
    Column("device_work_ns", Kind.DURATION),
    Column("linked_share", Kind.SHARE),
    Column("resolution_ns", Kind.DURATION, scale="clock"),
    Column("profiler_level", Kind.TEXT),
)
_OPTIONS = (Column("option", Kind.TEXT), Column("option_value", Kind.NAME))


def side_sentence(side: SideInfo) -> tuple[Message, ...]:
    """One side in pieces: file, rank, device, step time, steps."""
    return tuple(_pieces(side))


def _pieces(side: SideInfo) -> Iterator[Message]:
    yield Message("side_path", (("path", Kind.NAME, side.path),))
    if side.rank is not None:
        key = "side_rank_decides" if side.rank_choice == "decides" else "side_rank" if side.ranks > 1 else "side_only"
        yield Message(key, (("rank", Kind.COUNT, side.rank), ("ranks", Kind.COUNT, side.ranks)))
    if side.device_name:
        yield Message("side_device", (("device", Kind.TEXT, side.device_name),))
    time = ("time", Kind.DURATION, mean_step(side))
    if side.step_choice == "whole_trace":
        yield Message("side_trace", (time,))
    elif side.count == 1:
        key = "side_step_median" if side.step_choice == "median" else "side_step"
        yield Message(key, (time, ("step", Kind.TEXT, "".join(step_labels(side.steps)))))
    else:
        counts = (("steps", Kind.COUNT, side.count), ("median", Kind.DURATION, side.median_step))
        yield Message("side_steps" if side.step_choice == "asked" else "side_steps_complete", (time, *counts))


def sides_table(comparison: Comparison) -> Table:
    """Everything about both sides, one record each."""
    rows = tuple(_row(key, side) for key, side in (("base", comparison.base), ("candidate", comparison.candidate)))
    return table_of_rows("compare_sides", _SIDES, rows, layout=Layout.RECORD, detail=True)


def options_table(options: Mapping[str, str]) -> Table:
    """Options in effect, as given."""
    return table_of_rows("compare_options", _OPTIONS, tuple(options.items()), detail=True)


def mean_step(side: SideInfo) -> int:
    """Mean time of the steps that count, ns."""
    return rounded(side.step_time, max(side.count, 1))


def _row(key: str, side: SideInfo) -> Row:
    labels = step_labels(side.steps)
    more = ", …" if len(labels) > _STEPS_NAMED else ""
    return (
        f"side_{key}",
        side.path,
        side.vendor,
        side.device_name,
        side.rank,
        side.ranks,
        f"rank_{side.rank_choice}",
        f"steps_{side.step_choice}",
        side.count,
        ", ".join(labels[:_STEPS_NAMED]) + more,
        side.left_out,
        mean_step(side),
        side.median_step,
        side.device_time,
        side.linked_time / side.device_time if side.device_time else None,
        side.resolution_ns,
        side.level,
    )
