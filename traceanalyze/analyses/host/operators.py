"""Host and device time by operator, and by operator and shapes (definitions §9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.frames import user_frame_of_stack, user_frames
from traceanalyze.analyses.idle.launches import step_of
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.results_host import OUTSIDE_OPS, UNLINKED, Operator, OperatorSteps
from traceanalyze.frozen import frozen
from traceanalyze.model import calltree, intervals
from traceanalyze.model.table import NotMeasured

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context


@frozen
class OperatorSums:
    """Numbers of `Operator` in its order, by (name, shapes) and by name."""

    shape_row: NDArray[np.int64]
    """Row of the first run of each group."""
    by_shape: tuple[NDArray[np.int64], ...]
    name_row: NDArray[np.int64]
    by_name: tuple[NDArray[np.int64], ...]


def added(index: NDArray[Any], values: NDArray[Any], size: int) -> NDArray[np.int64]:
    """Sum of whole numbers by index; exact, as long as sums stay below 2^53 ns, which is 104 days."""
    return np.bincount(index, values, size).astype(np.int64)


def operator_sums(context: Context) -> OperatorSums:
    """Times of the operators, in one pass over their runs."""
    nested, events = context.op_nest, context.trace.events
    rows = group(events.name[nested.row], _shapes(context)[nested.row])
    shape_row, of, size = nested.row[rows.first], rows.of, len(rows)
    named = group(events.name[shape_row])
    counted = nested.begun_in(context.host_windows)
    op, time = _launched(context)
    before = np.concatenate(([0], np.cumsum(added(op, time, len(nested)))))
    duration, below = events.dur[nested.row] * counted, before[nested.stop] - before[:-1]
    caller, spent = _called(context)

    def totals(key: NDArray[np.int64], keys: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Host and device time of runs that are not inside a run of the same key."""
        outer = calltree.outermost(nested.stop, key.astype(np.int32), keys)
        return added(key, duration * outer, keys), added(key, below * outer, keys)

    calls, launched = added(of, counted, size), np.bincount(of[op], minlength=size)
    own, api = added(of, nested.own * counted, size), added(of[caller], spent, size)
    device = added(of[op], time, size)
    host_total, device_total = totals(of, size)
    by_shape = (calls, host_total, own, api, device, device_total, launched)
    if len(named) < size:
        host_total, device_total = totals(named.of[of], len(named))
    calls, own, api, device, launched = (named.sum(column) for column in (calls, own, api, device, launched))
    name_row = np.full(len(named), np.iinfo(np.int64).max)
    np.minimum.at(name_row, named.of, shape_row)
    return OperatorSums(shape_row, by_shape, name_row, (calls, host_total, own, api, device, device_total, launched))


def _shapes(context: Context) -> NDArray[np.int32]:
    """Code of the shapes of each event, -1 where there are none."""
    shapes = np.full(len(context.trace.events), -1, np.int32)
    column = context.trace.events.fields.get("shapes")
    if column is not None:
        shapes[column.row] = column.value
    return shapes


def _launched(context: Context) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Place of the operator of each device event that has one, and the time of the event inside the windows."""
    event, time = counted_events(context)
    op = context.event_op[event]
    return op[op >= 0], time[op >= 0]


def counted_events(context: Context) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Device events inside the windows, and their time there."""
    if len(context.device) == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return context.once(device_work).event, context.once(device_work).time


def _called(context: Context) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Place of the operator around each outermost runtime call of the windows, and the time in the call."""
    calls, op = context.calls, context.call_op
    mine = np.flatnonzero(calls.outermost & (op >= 0) & intervals.contains(context.host_windows, calls.start))
    return op[mine], (calls.end - calls.start)[mine]


def operators(context: Context, sums: OperatorSums) -> tuple[Operator, ...] | NotMeasured:
    """Operators by name, most device time first, then host time; device time without an operator has rows as well."""
    if len(context.op_nest) == 0:
        return NotMeasured("no_host_ops")
    table = _table(context, sums.name_row, sums.by_name, shapes=False)
    table += [row for row in _without_operator(context) if row.launched]
    return tuple(sorted(table, key=_rank))


def operators_by_shape(context: Context, sums: OperatorSums) -> tuple[Operator, ...] | NotMeasured:
    """Operators by name and the shapes they were given, in the same order."""
    column = context.trace.events.fields.get("shapes")
    if len(context.op_nest) == 0:
        return NotMeasured("no_host_ops")
    if column is None or len(column.row) == 0:
        return NotMeasured("no_shapes")
    return tuple(sorted(_table(context, sums.shape_row, sums.by_shape, shapes=True), key=_rank))


def _rank(row: Operator) -> tuple[int, int, str, str]:
    return -row.device_self, -row.host_self, row.name, row.shapes or ""


def _table(
    context: Context, first: NDArray[np.int64], columns: tuple[NDArray[np.int64], ...], *, shapes: bool
) -> list[Operator]:
    """Rows of those groups that did anything in the windows."""
    calls, *_, device_total, _ = columns
    shown = np.flatnonzero((calls > 0) | (device_total > 0))
    row, text = first[shown], context.trace.strings.text
    texts: list[str | None] = [None] * len(row)
    if shapes:
        texts = [text(code) if code >= 0 else "" for code in _shapes(context)[row].tolist()]
    names = [text(code) for code in context.trace.events.name[row].tolist()]
    numbers = zip(*(column[shown].tolist() for column in columns), strict=True)
    return [
        Operator(name, given, frame, *values)
        for name, given, frame, values in zip(names, texts, _frames(context, row), numbers, strict=True)
    ]


def _frames(context: Context, row: NDArray[np.int64]) -> list[str | None]:
    """Innermost user frame of operator runs."""
    events, strings = context.trace.events, context.trace.strings
    found: list[str | None] = [None] * len(row)
    if context.once(user_frames).recorded:
        tracks = group(events.track[row])
        for lane, first in enumerate(tracks.first.tolist()):
            mine = np.flatnonzero(tracks.of == lane)
            frames = context.once(user_frames).at(int(events.track[row[first]]), events.ts[row[mine]])
            for place, frame in zip(mine.tolist(), frames, strict=True):
                found[place] = frame
        return found
    stack = events.fields.get("stack")
    if stack is not None:
        codes = stack.take(row, 0).tolist()
        known = {code: user_frame_of_stack(strings.text(code)) for code in set(codes)}
        found = [known[code] for code in codes]
    return found


def _without_operator(context: Context) -> tuple[Operator, ...]:
    """Rows for device events that were launched outside of all operators, or by nobody knows whom."""
    event, time = counted_events(context)
    alone, linked = context.event_op[event] < 0, context.link[event] >= 0
    rows = []
    for name, member in ((UNLINKED, alone & ~linked), (OUTSIDE_OPS, alone & linked)):
        total, count = int(time[member].sum()), int(member.sum())
        rows.append(Operator(name, None, None, 0, 0, 0, 0, total, total, count))
    return tuple(rows)


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
