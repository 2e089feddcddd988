"""Host and device time by operator, and by operator and shapes (definitions §9)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import COUNT, DEVICE_TIME, group
from traceanalyze.analyses.host.computes import for_recording
from traceanalyze.analyses.host.frames import stack_frames, user_frames
from traceanalyze.analyses.idle.launches import step_of
from traceanalyze.analyses.kernels.work import DEVICES, device_work, on_devices
from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model import calltree, intervals
from traceanalyze.model.columns import Rows
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, declare, sentences

_SAY = sentences(broken_nesting="Cut short, as one that began inside lasts longer: {count} run(s) of operators.")

UNLINKED = "<unlinked>"
"""In place of an operator: device events without a launch record."""
OUTSIDE_OPS = "<outside operators>"
"""In place of an operator: device events launched while no operator ran."""
Work = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Device events, and their time inside the windows."""

_TIMES = (
    Column("device_self_ns", Kind.DURATION, "device time of what the operator launched itself", heading="device"),
    Column("device_share", Kind.SHARE, "part of the time of all device events", heading="share"),
    Column(
        "device_total_ns",
        Kind.DURATION,
        "with operators inside; an operator inside another run of itself counts once",
        heading="device with inner",
        minor=True,
    ),
    Column("host_self_ns", Kind.DURATION, "host time without operators inside", heading="host"),
    Column("host_total_ns", Kind.DURATION, "host time with all that is inside", heading="host with inner", minor=True),
    Column(
        "api_ns",
        Kind.DURATION,
        "host time in runtime calls made by the operator itself",
        heading="runtime calls",
        minor=True,
    ),
    Column("calls", Kind.COUNT, "calls that begin in the analysed steps"),
    Column("launched", Kind.COUNT, "device events launched by the operator itself", minor=True),
    Column("frame", Kind.NAME, "innermost Python frame, when stacks were recorded", heading="Python frame", minor=True),
)
_OP = Column("op", Kind.NAME, "innermost operator around the call", heading="operator")
_OPERATORS = declare("operators", "Operators by {by} (sum over the analysed steps)", _OP, *_TIMES, ranked=True)
_SHAPES = declare(
    "operator_shapes",
    "Operators by shapes (sum over the analysed steps)",
    _OP,
    Column("shapes", Kind.NAME, "shapes of its tensors"),
    *_TIMES,
    ranked=True,
    detail=True,
)
_STEPS = declare(
    "operator_steps",
    "Operators step by step (those with most {by})",
    Column(
        "op",
        Kind.NAME,
        "one of the 20 operators with most device time (without a device, host time)",
        heading="operator",
    ),
    Column("step", Kind.TEXT, "number of the step, or its name"),
    Column("calls", Kind.COUNT, "runs that begin in the step"),
    Column("host_self_ns", Kind.DURATION, "host time of these runs without operators inside", heading="host"),
    Column(
        "device_self_ns",
        Kind.DURATION,
        "device time, inside the step, of what the operator launched itself",
        heading="device",
    ),
    detail=True,
)


class OperatorSums(NamedTuple):
    """Numbers of `Operator` in its order, by (name, shapes) and by name."""

    shape_row: Rows
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
    rows = group(context.op_names, events.numbers("shapes", nested.row, -1))
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


def _launched(context: Context) -> tuple[Rows, NDArray[np.int64]]:
    """Place of the operator of each device event that has one, and the time of the event inside the windows."""
    event, time = counted_events(context)
    op = context.event_op[event]
    return op[op >= 0], time[op >= 0]


def counted_events(context: Context) -> tuple[Rows, NDArray[np.int64]]:
    """Device events inside the windows, and their time there."""
    if len(context.device) == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return context.once(device_work).event, context.once(device_work).time


def _called(context: Context) -> tuple[Rows, NDArray[np.int64]]:
    """Place of the operator around each outermost runtime call of the windows, and the time in the call."""
    calls, op = context.calls, context.call_op
    outer = np.flatnonzero(calls.outermost & (op >= 0) & intervals.contains(context.host_windows, calls.start))
    return op[outer], (calls.end - calls.start)[outer]


def operators(context: Context) -> Table:
    """Operators by name, most device time first, then host time; device time without an operator has rows as well.

    The device times of their own thus add up to all device time.
    """
    device = len(context.device) > 0
    if len(context.op_nest) == 0:
        return for_recording(_OPERATORS.missing("no_host_ops", detail=True), device=device)
    sums, broken = context.once(operator_sums), context.op_nest.broken
    found = _filled(
        context,
        _OPERATORS,
        sums.name_row,
        sums.by_name,
        [(name, int(time.sum()), len(event)) for name, (event, time) in unattributed(context).items()],
    )
    notes = (Message(_SAY["broken_nesting"], (("count", Kind.COUNT, broken),)),) if broken else ()
    return for_recording(replace(found, notes=notes), device=device)


def shapes_recorded(context: Context) -> bool:
    """Whether operators say which shapes they were given."""
    column = context.trace.events.fields.get("shapes")
    return column is not None and len(column.row) > 0


def operators_by_shape(context: Context) -> Table:
    """Operators by name and the shapes they were given, in the same order."""
    device = len(context.device) > 0
    if len(context.op_nest) == 0:
        return for_recording(_SHAPES.missing("no_host_ops"), device=device)
    if not shapes_recorded(context):
        return for_recording(_SHAPES.missing("no_shapes"), device=device)
    sums = context.once(operator_sums)
    return for_recording(_filled(context, _SHAPES, sums.shape_row, sums.by_shape), device=device)


def _filled(
    context: Context,
    table: Table,
    first: NDArray[np.int64],
    columns: tuple[NDArray[np.int64], ...],
    others: Sequence[tuple[str, int, int]] = (),
) -> Table:
    """Those groups that did anything in the windows; then device time and events of what stands in for an operator."""
    calls, *_, device_total, _ = columns
    shown = np.flatnonzero((calls > 0) | (device_total > 0))
    row, text, whole = first[shown], context.trace.strings.text, int(counted_events(context)[1].sum())
    names = [text(code) for code in context.trace.events.name[row].tolist()]
    keys = {"op": [*names, *(name for name, _, _ in others)]}
    if "shapes" in table.keys:
        # The text of code 0 is empty.
        keys["shapes"] = [text(code) for code in context.trace.events.numbers("shapes", row, 0).tolist()]
    spent, launches = (np.array([each[at] for each in others], np.int64) for at in (1, 2))
    calls, host_total, own, api, device, device_total, launched = (column[shown] for column in columns)
    device, device_total = np.concatenate((device, spent)), np.concatenate((device_total, spent))
    # What stands in for an operator was never called.
    never = [None] * len(others)
    return table.fill(
        **keys,
        device_self_ns=device,
        device_share=device / max(whole, 1),
        device_total_ns=device_total,
        host_self_ns=[*own.tolist(), *never],
        host_total_ns=[*host_total.tolist(), *never],
        api_ns=[*api.tolist(), *never],
        calls=[*calls.tolist(), *never],
        launched=np.concatenate((launched, launches)),
        frame=[*_frames(context, row), *never],
    ).sort("-device_self_ns", "-host_self_ns", *keys)


def _frames(context: Context, row: NDArray[np.int64]) -> list[str | None]:
    """Innermost user frame of operator runs."""
    events, frames = context.trace.events, context.once(user_frames)
    return frames.at(events.track[row], events.ts[row]) if frames.recorded else stack_frames(context.trace, row)


def unattributed(context: Context) -> dict[str, Work]:
    """Device events in the windows whose launch lies in no operator, or is not known; only what there is."""
    event, time = counted_events(context)
    alone, linked = context.event_op[event] < 0, context.link[event] >= 0
    parts = ((UNLINKED, alone & ~linked), (OUTSIDE_OPS, alone & linked))
    return {name: (event[member], time[member]) for name, member in parts if member.any()}


MOST = 20
"""Operators that are shown step by step."""


def operator_steps(context: Context) -> Table:
    """Calls and own times in every step of the operators with most device time, then host time."""
    nested, events, steps = context.op_nest, context.trace.events, context.steps
    measured = len(context.device) > 0
    if len(nested) == 0:
        return for_recording(_STEPS.missing("no_host_ops"), device=measured)
    if len(steps) < 2:
        return for_recording(_STEPS.missing("single_step"), device=measured)
    sums = context.once(operator_sums)
    calls, _, own, _, device, *_ = sums.by_name
    top = np.lexsort((-own, -device))
    top = top[(calls[top] > 0) | (device[top] > 0)][:MOST]
    code = events.name[sums.name_row[top]]
    place = np.full(int(events.name.max()) + 1, -1)
    place[code] = np.arange(len(top))
    of = place[events.name[nested.row]]

    def by_step(op: NDArray[np.int64], step: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum by operator, and for each by step."""
        kept = (of[op] >= 0) & (step >= 0)
        return added(of[op[kept]] * len(steps) + step[kept], values[kept], len(top) * len(steps))

    every, began = np.arange(len(nested)), step_of(steps, nested.start)
    found = _STEPS.fill(
        op=[text for text in context.trace.strings.texts(code) for _ in range(len(steps))],
        step=step_labels(steps.name) * len(top),
        calls=by_step(every, began, np.ones_like(every)),
        host_self_ns=by_step(every, began, nested.own),
        device_self_ns=by_step(*_device_pieces(context)),
    )
    return for_recording(found, device=measured)


def _device_pieces(context: Context) -> tuple[Rows, NDArray[np.int64], NDArray[np.int64]]:
    """Operator, step and time of each device event that has an operator; one that runs on into a next step is cut."""
    event = np.flatnonzero(context.event_op >= 0)
    runs = intervals.Intervals(context.device.start[event], context.device.end[event])
    # Of the two only the windows need to be in order, and they are.
    pieces = intervals.overlaps(runs, intervals.Intervals(context.steps.start, context.steps.end))
    return context.event_op[event[pieces.first]], pieces.second, pieces.end - pieces.start


_OP_KERNELS = declare(
    "op_kernels",
    "Kernels by operator (sum over the analysed steps)",
    Column("op", Kind.NAME, "innermost operator around the call", heading="operator"),
    Column("kernel", Kind.KERNEL, "kernel, copy or fill that the operator launched"),
    DEVICES,
    COUNT,
    DEVICE_TIME,
    Column(
        "op_to_launch_ns",
        Kind.DURATION,
        "mean time from the start of the operator to its launch call",
        heading="operator to launch",
        scale="delay",
    ),
    Column(
        "launch_to_kernel_ns",
        Kind.DURATION,
        "mean time from the launch call's return to the start on the device",
        scale="delay",
    ),
    ranked=True,
    detail=True,
)


def op_kernels(context: Context) -> Table:
    """Launched device events by operator and kernel name, most device time first, and how long each stage took."""
    if len(context.device) == 0:
        return _OP_KERNELS.missing("no_device_events")
    work, device, nested = context.once(device_work), context.device, context.op_nest
    known = np.flatnonzero((context.link[work.event] >= 0) & (context.event_op[work.event] >= 0))
    if len(known) == 0:
        return _OP_KERNELS.missing("no_linked_launches")
    event = work.event[known]
    op = context.event_op[event]
    op_name = context.trace.events.name[nested.row[op]]
    pairs = group(op_name, device.name[event])
    count = pairs.count()
    launched, returned = context.launch_start[event], context.launch_end[event]
    to_kernel = pairs.sum(np.maximum(device.start[event] - returned, 0)) // count
    texts = context.trace.strings.texts
    return _OP_KERNELS.fill(
        op=list(texts(op_name[pairs.first])),
        kernel=list(texts(device.name[event][pairs.first])),
        devices=on_devices(context, pairs, device.device[event]),
        count=count,
        device_time_ns=pairs.sum(work.time[known]),
        op_to_launch_ns=pairs.sum(launched - nested.start[op]) // count,
        launch_to_kernel_ns=to_kernel if context.doubt is None else NotMeasured(context.doubt),
    ).sort("-device_time_ns", "op", "kernel")
