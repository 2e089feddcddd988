"""The operators that matter most, step by step (definitions §9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.analyses.operators import added, counted_events
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.analyses.results_host import OperatorSteps
from traceanalyze.analyses.step_launches import step_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context
    from traceanalyze.analyses.operators import OperatorSums

MOST = 20
"""Operators that are shown step by step."""


def operator_steps(context: Context, sums: OperatorSums) -> tuple[OperatorSteps, ...] | NotMeasured:
    """Calls and own times in every step of the operators with most device time, then host time."""
    nested, events, steps = context.op_nest, context.trace.events, context.steps
    if len(nested) == 0:
        return NotMeasured("no_host_ops")
    if len(steps) < 2:
        return NotMeasured("single_step")
    calls, _, own, _, device, *_ = sums.by_name
    top = np.lexsort((-own, -device))
    top = top[(calls[top] > 0) | (device[top] > 0)][:MOST]
    code = events.name[sums.name_row[top]]
    place = np.full(int(events.name.max()) + 1, -1)
    place[code] = np.arange(len(top))
    of = place[events.name[nested.row]]

    def table(op: NDArray[np.int64], step: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum by operator and step."""
        kept = (of[op] >= 0) & (step >= 0)
        key = of[op[kept]] * len(steps) + step[kept]
        return added(key, values[kept], len(top) * len(steps)).reshape(len(top), len(steps))

    every, began = np.arange(len(nested)), step_of(steps, nested.start)
    op, step, time = _device_pieces(context)
    columns = (table(every, began, np.ones_like(every)), table(every, began, nested.own), table(op, step, time))
    names = [context.trace.strings.text(each) for each in code.tolist()]
    return tuple(OperatorSteps(*row) for row in zip(names, *columns, strict=True))


def _device_pieces(context: Context) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Operator, step and time of each device event that has an operator; one that runs on into a next step is cut."""
    event, _ = counted_events(context)
    event = event[context.event_op[event] >= 0]
    runs = intervals.Intervals(context.device.start[event], context.device.end[event])
    # Of the two only the windows need to be in order, and they are.
    pieces = intervals.overlaps(runs, intervals.Intervals(context.steps.start, context.steps.end))
    return context.event_op[event[pieces.first]], pieces.second, pieces.end - pieces.start
