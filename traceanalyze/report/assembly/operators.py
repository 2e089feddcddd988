"""Operators by name and by shapes, and the kernels they launch (definitions §9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table
from traceanalyze.report.assembly.host_columns import columns_of, ranked_by
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results import Steps
    from traceanalyze.analyses.results_host import Operator, OperatorSteps
    from traceanalyze.model.table import Row

_DEVICE = (
    Column("device_self_ns", Kind.DURATION),
    Column("device_share", Kind.SHARE),
    Column("device_total_ns", Kind.DURATION, minor=True),
)
_HOST = (
    Column("host_self_ns", Kind.DURATION),
    Column("host_total_ns", Kind.DURATION, minor=True),
    Column("api_ns", Kind.DURATION, minor=True),
)
_COUNTS = (Column("calls", Kind.COUNT), Column("launched", Kind.COUNT, minor=True))
_FRAME = Column("frame", Kind.NAME, minor=True)
_OPERATOR_STEPS = (
    Column("op", Kind.NAME),
    Column("step", Kind.TEXT),
    Column("calls", Kind.COUNT),
    Column("host_self_ns", Kind.DURATION),
    Column("device_self_ns", Kind.DURATION),
)


def operators_table(operators: tuple[Operator, ...] | NotMeasured, device_time: int | None, *, broken: int) -> Table:
    """Operators by name; `broken` of their runs do not nest properly."""
    device = device_time is not None
    columns = columns_of((Column("op", Kind.NAME), *_DEVICE, *_HOST, *_COUNTS, _FRAME), device=device)
    by = ranked_by(device=device)
    if isinstance(operators, NotMeasured):
        return table_of_rows("operators", columns, operators, detail=True, title_values=by)
    rows = tuple((row.name, *_numbers(row, device_time)) for row in operators)
    notes = (Message("broken_nesting", (("count", Kind.COUNT, broken),)),) if broken else ()
    return table_of_rows("operators", columns, rows, ranked=True, notes=notes, title_values=by)


def shapes_table(operators: tuple[Operator, ...] | NotMeasured, device_time: int | None) -> Table:
    """Operators by name and shapes."""
    every = (Column("op", Kind.NAME), Column("shapes", Kind.NAME), *_DEVICE, *_HOST, *_COUNTS, _FRAME)
    columns = columns_of(every, device=device_time is not None)
    if isinstance(operators, NotMeasured):
        return table_of_rows("operator_shapes", columns, operators, detail=True)
    rows = tuple((row.name, row.shapes, *_numbers(row, device_time)) for row in operators)
    return table_of_rows("operator_shapes", columns, rows, ranked=True, detail=True)


def _numbers(row: Operator, device_time: int | None) -> Row:
    """Values of all columns but the keys; what stands in for an operator was never called."""
    missing = NotMeasured("no_device_events")
    device: Row = (missing, missing, missing)
    if device_time is not None:
        share = row.device_self / device_time if device_time else 0.0
        device = (row.device_self, share, row.device_total)
    host: Row = (row.host_self, row.host_total, row.api_time, row.calls)
    if row.name.startswith("<"):
        host = (None, None, None, None)
    return (*device, *host, row.launched, row.frame)


def operator_steps_table(operators: tuple[OperatorSteps, ...] | NotMeasured, steps: Steps, *, device: bool) -> Table:
    """The operators that matter most in every step."""
    columns, by = columns_of(_OPERATOR_STEPS, device=device), ranked_by(device=device)
    if isinstance(operators, NotMeasured):
        return table_of_rows("operator_steps", columns, operators, detail=True, title_values=by)
    missing = NotMeasured("no_device_events")
    labels = step_labels(steps.name)
    rows = tuple(
        (row.name, label, calls, host, time if device else missing)
        for row in operators
        for label, calls, host, time in zip(
            labels, row.calls.tolist(), row.host_self.tolist(), row.device_self.tolist(), strict=True
        )
    )
    return table_of_rows("operator_steps", columns, rows, detail=True, title_values=by)
