"""Prefill, decode and the steady state of a language model's inference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, Layout, Message, NotMeasured, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results_host_more import Distribution, Inference, SteadyState
    from traceanalyze.model.table import Row

_PHASES = (
    Column("phase", Kind.TERM),
    Column("iterations", Kind.COUNT),
    Column("iteration_share", Kind.SHARE),
    Column("iteration_sum_ns", Kind.DURATION, scale="sum"),
    Column("iteration_mean_ns", Kind.DURATION),
    Column("iteration_p50_ns", Kind.DURATION, minor=True),
    Column("iteration_p90_ns", Kind.DURATION),
    Column("busy_sum_ns", Kind.DURATION, scale="sum", minor=True),
    Column("busy_mean_ns", Kind.DURATION),
    Column("busy_p50_ns", Kind.DURATION, minor=True),
    Column("busy_p90_ns", Kind.DURATION, minor=True),
    Column("host_sum_ns", Kind.DURATION, scale="sum", minor=True),
    Column("host_mean_ns", Kind.DURATION),
    Column("host_p50_ns", Kind.DURATION, minor=True),
    Column("host_p90_ns", Kind.DURATION, minor=True),
)
_STEADY = (
    Column("phase", Kind.TERM),
    Column("iterations", Kind.COUNT),
    Column("start_ns", Kind.DURATION, scale="at"),
    Column("end_ns", Kind.DURATION, scale="at"),
    Column("iteration_mean_ns", Kind.DURATION),
    Column("requests", Kind.COUNT),
    Column("tokens", Kind.COUNT),
    Column("tokens_per_second", Kind.NUMBER),
)


def inference_tables(found: Inference | NotMeasured) -> list[Table]:
    """Iterations by phase, and the steady state."""
    if isinstance(found, NotMeasured):
        return [
            table_of_rows("inference_phases", _PHASES, found, detail=True),
            table_of_rows("steady_state", _STEADY, found, detail=True),
        ]
    everything = sum(each.time.total for each in found.phases)
    rows = tuple(
        (
            _term(each.phase.name),
            each.count,
            each.time.total / everything if everything else 0.0,
            *_columns(each.time),
            *_columns(each.busy),
            *_columns(each.host),
        )
        for each in found.phases
    )
    notes = (Message("inference_left_out", (("count", Kind.COUNT, found.left_out),)),) if found.left_out else ()
    return [table_of_rows("inference_phases", _PHASES, rows, notes=notes), _steady_table(found.steady)]


def _columns(times: Distribution | NotMeasured) -> Row:
    return (times,) * 4 if isinstance(times, NotMeasured) else (times.total, times.mean, times.p50, times.p90)


def _steady_table(steady: SteadyState | NotMeasured) -> Table:
    if isinstance(steady, NotMeasured):
        return table_of_rows("steady_state", _STEADY, steady)
    span, count = steady.end - steady.start, steady.iterations
    rate: float | NotMeasured = NotMeasured("no_duration")
    if isinstance(steady.tokens, NotMeasured):
        rate = steady.tokens
    elif span:
        rate = steady.tokens / span * 1e9
    row = (
        _term(steady.phase.name),
        count,
        steady.start,
        steady.end,
        (2 * steady.time + count) // (2 * count),
        steady.requests,
        steady.tokens,
        rate,
    )
    return table_of_rows("steady_state", _STEADY, (row,), layout=Layout.RECORD)


def _term(name: str) -> str:
    return f"inference_{name.lower()}"
