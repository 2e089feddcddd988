"""Operators of both sides: device time by canonical name, and matched calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.frames import locate
from traceanalyze.analyses.host.nesting import nest_rows
from traceanalyze.analyses.host.operators import OUTSIDE_OPS, UNLINKED, added, counted_events
from traceanalyze.comparison.align import paired
from traceanalyze.comparison.calls import Calls, calls_of, compact
from traceanalyze.comparison.canonical_ops import Fused, fused_names
from traceanalyze.comparison.collectives import common_labels, plain_api
from traceanalyze.comparison.names import BACKWARD_SUFFIX, canonical, names_backward
from traceanalyze.comparison.pairs import (
    AVG_RATIO,
    CHANGE_SHARE,
    MATCH,
    OP,
    PLACE,
    SELF_DIFF,
    SHAPES,
    SUMS,
    TOTAL_DIFF,
    TOTAL_RATIO,
    PerStep,
    both,
    diff,
    minor,
    ratio,
    section,
)
from traceanalyze.comparison.results import Pair, Pairs
from traceanalyze.comparison.side import CompareOptions
from traceanalyze.model import calltree
from traceanalyze.model.classify import is_data_loading, is_step_marker
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value, Word
from traceanalyze.model.vocabulary import EventKind

Work = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Device events, and their time inside the windows."""

_Cells = dict[str, Any]
"""What a row says of one side."""


def without_operator(context: Context) -> dict[str, Work]:
    """Device events in the windows whose launch lies in no operator, or is not known; only what there is."""
    event, time = counted_events(context)
    alone, linked = context.event_op[event] < 0, context.link[event] >= 0
    parts = ((UNLINKED, alone & ~linked), (OUTSIDE_OPS, alone & linked))
    return {name: (event[member], time[member]) for name, member in parts if member.any()}


class OpSides:
    """What rows say of one side's calls."""

    def __init__(self, calls: Calls, owner: NDArray[np.int64]) -> None:
        self._calls, self._context = calls, calls.context
        of = owner[calls.event_unit]
        order = np.argsort(of, kind="stable")
        self._event, self._time = (column[order] for column in calls.events)
        self._bound = np.searchsorted(of[order], np.arange(len(owner) + 1))
        self._without = without_operator(calls.context)

    def busy(self, place: int) -> bool:
        """Whether a call has device work; none (-1) has not."""
        return place >= 0 and bool(self._bound[place] < self._bound[place + 1])

    def of(self, places: Sequence[int]) -> list[_Cells | None]:
        """The calls at some places, None for each -1."""
        context = self._context
        place = np.array(places, np.int64)
        row = context.op_nest.row[np.maximum(place, 0)]
        text = context.trace.strings.text
        shapes, dtypes = (context.trace.events.numbers(field, row).tolist() for field in ("shapes", "dtypes"))
        known = np.maximum(place, 0)
        _, _, frames = locate(context, self._calls.track[known], context.op_nest.start[known])
        return [
            None
            if at < 0
            else {
                "op": self._name(at),
                "shapes": compact(text(shape)) if shape >= 0 else None,
                "dtypes": compact(text(dtype)) if dtype >= 0 else None,
                "kernels": self._kernels(slice(int(self._bound[at]), int(self._bound[at + 1]))),
                "device_ns": int(self._time[self._bound[at] : self._bound[at + 1]].sum()),
                "start_ns": int(context.op_nest.start[at]),
                "frame": frame,
            }
            for at, shape, dtype, frame in zip(places, shapes, dtypes, frames, strict=True)
        ]

    def _name(self, place: int) -> str:
        """Name as recorded; of operators that stand for a fused one those that launched work, in order."""
        events, text = self._context.trace.events, self._context.trace.strings.text
        if not self._calls.grouped[place]:
            return text(int(events.name[self._context.op_nest.row[place]]))
        launched = self._context.event_op[self._event[self._bound[place] : self._bound[place + 1]]]
        parts = dict.fromkeys(launched[np.argsort(launched, kind="stable")].tolist())
        return " + ".join(text(int(events.name[self._context.op_nest.row[part]])) for part in parts)

    def _kernels(self, mine: slice) -> tuple[tuple[str, int], ...]:
        """Device events in order of start."""
        names = self._context.device.name[self._event[mine]].tolist()
        text = self._context.trace.strings.text
        return tuple((text(name), time) for name, time in zip(names, self._time[mine].tolist(), strict=True))

    def together(self, name: str, places: NDArray[np.int64]) -> _Cells | None:
        """Several calls as one; None if they have no device work."""
        mine = np.concatenate(
            [np.zeros(0, np.int64), *(np.arange(self._bound[at], self._bound[at + 1]) for at in places.tolist())]
        )
        return self._sum(name, (self._event[mine], self._time[mine])) if len(mine) else None

    def alone(self, name: str) -> _Cells | None:
        """Work of no operator, see `without_operator`."""
        work = self._without.get(name)
        return None if work is None else self._sum(name, work)

    def _sum(self, name: str, work: Work) -> _Cells:
        """Work as one row, its kernels summed by name, most time first."""
        event, time = work
        return {
            "op": name,
            "shapes": None,
            "dtypes": None,
            "kernels": summed_kernels(self._context, event, time),
            "device_ns": int(time.sum()),
            "start_ns": int(self._context.device.start[event].min()),
            "frame": None,
        }


def summed_kernels(context: Context, event: NDArray[np.int64], time: NDArray[np.int64]) -> tuple[tuple[str, int], ...]:
    """Time of device events by name, most first."""
    rows = group(context.device.name[event])
    names = [context.trace.strings.text(int(code)) for code in context.device.name[event[rows.first]].tolist()]
    return tuple(sorted(zip(names, rows.sum(time).tolist(), strict=True), key=lambda item: (-item[1], item[0])))


EXTRA_STEPS = "<steps without a partner>"
"""Stands for the calls of steps that the other side does not have as many of."""


_Totals = dict[tuple[str, str], _Cells]
"""By canonical name with direction, and shapes (empty without)."""
OPERATORS = section(
    "operator_compare_statistic",
    "Operators (per step)",
    replace(PLACE, alias="Top"),
    replace(OP, alias="Operator Name"),
    *both(device_ns="{side} Device Duration(ms)", calls="{side} Operator Number"),
    diff(alias="Diff Duration(ms)"),
    ratio(),
    CHANGE_SHARE,
    MATCH,
    *minor(SHAPES, *both(op="")),
    *SUMS,
    by="device_ns",
)


def operators_table(pairs: Pairs, per: PerStep) -> Table:
    """Operators by what they change; the rows sum to all device time."""
    table = OPERATORS.fill(pairs, per)
    if isinstance(pairs, NotMeasured):
        return table
    base = sum(pair.base["device_ns"] for pair in pairs if pair.base)
    known = per.amounts(base, sum(pair.candidate["device_ns"] for pair in pairs if pair.candidate))
    keys = ("diff_ns", "ratio", "base_sum_ns", "candidate_sum_ns")
    shown: dict[str, Value] = {"op": Word("all_work"), "base_device_ns": known["base_time_ns"]}
    shown |= {"candidate_device_ns": known["candidate_time_ns"], **{key: known[key] for key in keys}}
    return replace(table, totals=shown)


def operator_totals(base: Context, candidate: Context, options: CompareOptions) -> Pairs:
    """Device time by the operator that launched it.

    Each device event inside the steps counts once, for the innermost operator around its launch; calls are those that
    launched some. Events whose launch lies in no operator, or is not known, have rows of their own. So the times of a
    side sum to all its device time, exactly. NotMeasured if a side has no operators.
    """
    if min(len(base.op_nest), len(candidate.op_nest)) == 0:
        return NotMeasured("no_host_ops")
    fused = fused_names(base, candidate, options)
    old, new = (_totals(context, options, fused) for context in (base, candidate))
    return [
        Pair({"op": key[0], "shapes": key[1] if options.use_input_shape else None}, old.get(key), new.get(key))
        for key in sorted(old | new)
    ]


def _totals(context: Context, options: CompareOptions, fused: Fused) -> _Totals:
    event, time = counted_events(context)
    op = context.event_op[event]
    known = np.flatnonzero(op >= 0)
    calls = calls_of(context, options, fused)
    raw = context.trace.events.name[context.op_nest.row[op[known]]]
    whole = calls.ops.whole[op[known]]
    rows = group(calls.tokens[whole])
    units = group(rows.of, calls.ops.unit[whole])
    count = np.bincount(rows.of[units.first], minlength=len(rows))
    names: list[list[str]] = [[] for _ in range(len(rows))]
    for first in group(rows.of, raw).first.tolist():
        names[rows.of[first]].append(context.trace.strings.text(int(raw[first])))
    found = {
        calls.key(int(whole[first])): _total(own, total, number)
        for first, own, total, number in zip(
            rows.first.tolist(), names, rows.sum(time[known]).tolist(), count.tolist(), strict=True
        )
    }
    for name, alone in without_operator(context).items():
        found[name, ""] = _total([name], int(alone[1].sum()), len(alone[0]))
    return {key: total for key, total in found.items() if total["calls"] or total["device_ns"]}


def _total(names: Sequence[str], time: int, calls: int) -> _Cells:
    return {"op": ", ".join(sorted(names)), "device_ns": time, "calls": calls}


_SIDES_OF_CALL = tuple(
    replace(column, meaning=f"{column.side}: device time of all kernels launched in the call")
    if column.key.endswith("device_ns")
    else column
    for column in both(
        op="Operator Name",
        shapes="Input Shape",
        dtypes="Input Type",
        kernels="Kernel Details",
        device_ns="Device Duration(us)",
    )
)
CALLS = section(
    "operator_compare",
    "Operators call by call",
    Column("order", Kind.COUNT, "order in time", alias="Order Id"),
    *_SIDES_OF_CALL,
    diff(alias="Diff Duration(us)"),
    ratio(),
    CHANGE_SHARE,
    PLACE,
    MATCH,
    *both(start_ns=""),
    *minor(*both(frame="")),
    by="device_ns",
    detail=True,
    per_call=True,
)


def operator_pairs(base: Context, candidate: Context, options: CompareOptions) -> Pairs:
    """Calls of both sides matched by the call tree, in order of time; those without device work are left out.

    Matched are the outermost operators of each step (see `levels.top_level`) by canonical name and direction, and by
    shapes if the options say so. Work of no operator, and steps that only one side has, have one row each: so the
    times of a side sum to all its device time. NotMeasured if a side has no operators.
    """
    if min(len(base.op_nest), len(candidate.op_nest)) == 0:
        return NotMeasured("no_host_ops")
    calls, found = paired(base, candidate, options)
    old, new = (OpSides(side, level.owner) for side, level in zip(calls, found.levels, strict=True))
    shown = [(one, other) for one, other in found.rows if old.busy(one) or new.busy(other)]
    pairs = list(zip(old.of([row[0] for row in shown]), new.of([row[1] for row in shown]), strict=True))
    rest = [(old.together(EXTRA_STEPS, found.left[0]), new.together(EXTRA_STEPS, found.left[1]))]
    rest += [(old.alone(name), new.alone(name)) for name in (UNLINKED, OUTSIDE_OPS)]
    pairs += [sides for sides in rest if any(sides)]
    return [Pair({"order": order}, *sides) for order, sides in enumerate(pairs, start=1)]


DATA_LOADER = "enumerate(DataLoader)"
"""Stands for the waiting for every kind of data loader."""


class _Host(NamedTuple):
    """Host calls of one side by name code."""

    names: list[str]
    of: NDArray[np.int64]
    """Position in `names` of each call."""
    stop: NDArray[np.int32]
    time: NDArray[np.int64]
    own: NDArray[np.int64]
    counted: NDArray[np.bool_]


APIS = section(
    "api_compare",
    "Host operators and runtime calls (per step)",
    replace(PLACE, alias="Order Id"),
    Column("api", Kind.NAME, "operator or runtime call", heading="call", alias="api name"),
    *both(total_ns="Total Duration(ms)", self_ns="Self Time(ms)", avg_ns="Avg Duration(ms)", calls="Calls"),
    TOTAL_RATIO,
    ratio("self_ratio", "Diff Self Ratio", meaning="candidate over base, time in itself"),
    AVG_RATIO,
    ratio("calls_ratio", "Diff Calls Ratio", meaning="candidate over base, calls per step"),
    TOTAL_DIFF,
    SELF_DIFF,
    CHANGE_SHARE,
    MATCH,
    by="self_ns",
    of="total_ns",
)


def api_pairs(base: Context, candidate: Context, options: CompareOptions) -> Pairs:
    """Calls begun in the steps by name.

    Times are sums over threads. A call's own time is what lies in none of the calls inside it on its thread, so it is
    never negative and the rows of a side sum to its host time. Of calls inside calls of the same name only the outer
    one counts in the total. Names are matched as recorded; else as canonical operators, and as runtime calls without
    the vendor's prefix. All data loaders are one row. NotMeasured if neither side has host calls.
    """
    sides = [_host(context) for context in (base, candidate)]
    if not any(side.names for side in sides):
        return NotMeasured("no_host_ops")

    def operator(name: str) -> str:
        return canonical(name, options) + (BACKWARD_SUFFIX if names_backward(name) else "")

    label = common_labels(sides[0].names, sides[1].names, (plain_api, True), (operator, True))
    mapped = {name: options.op_name_map.get(own, own) for name, own in label.items()}
    old, new = (_sums(side, mapped) for side in sides)
    return [Pair({"api": name}, old.get(name), new.get(name)) for name in sorted(old | new)]


def _host(context: Context) -> _Host:
    """All calls of all threads, without step markers, which are no calls."""
    classify, strings = context.options.classify, context.trace.strings
    rows = np.flatnonzero(np.isin(context.kind, (EventKind.HOST_OP, EventKind.ANNOTATION, EventKind.API)))
    marker = strings.lookup(context.trace.events.name[rows], lambda text: is_step_marker(text, classify))
    nested = nest_rows(context.trace, rows[marker == 0], context.kind)
    code = context.trace.events.name[nested.row]
    found = group(code)
    names = [strings.text(int(code[first])) for first in found.first.tolist()]
    names = [DATA_LOADER if is_data_loading(name, classify) else name for name in names]
    time = context.trace.events.dur[nested.row]
    return _Host(names, found.of, nested.stop, time, nested.own, nested.begun_in(context.host_windows))


def _sums(side: _Host, label: Mapping[str, str]) -> dict[str, _Cells]:
    position = {name: index for index, name in enumerate(dict.fromkeys(label[name] for name in side.names))}
    if not position:
        return {}
    of = np.array([position[label[name]] for name in side.names], np.int64)[side.of]
    size = len(position)
    outer = calltree.outermost(side.stop, of.astype(np.int32), size)
    count = added(of, side.counted, size).tolist()
    total = added(of, side.time * (side.counted & outer), size).tolist()
    own = added(of, side.own * side.counted, size).tolist()
    return {
        name: {"calls": number, "total_ns": time, "self_ns": alone}
        for name, number, time, alone in zip(position, count, total, own, strict=True)
        if number
    }
