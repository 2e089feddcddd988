"""Operators of both sides: device time by canonical name, and matched calls."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.frames import locate
from traceanalyze.analyses.host.operators import OUTSIDE_OPS, UNLINKED, counted_events, unattributed
from traceanalyze.analyses.steps.phases import launch_places
from traceanalyze.comparison import columns
from traceanalyze.comparison.align import fused_names, paired
from traceanalyze.comparison.calls import Calls, calls_of, described
from traceanalyze.comparison.canonical_ops import Fused
from traceanalyze.comparison.pairs import PerStep, section
from traceanalyze.comparison.results import Pair, Pairs
from traceanalyze.comparison.side import CompareOptions, lost_collectives, work_unknown
from traceanalyze.model.columns import Rows
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value, Word
from traceanalyze.model.vocabulary import DeviceClass

_Cells = dict[str, Any]
"""What a row says of one side."""


class OpSides:
    """What rows say of one side's calls."""

    def __init__(self, calls: Calls, owner: NDArray[np.int64]) -> None:
        self._calls, self._context = calls, calls.context
        of = owner[calls.event_unit]
        order = np.argsort(of, kind="stable")
        self._event, self._time = (column[order] for column in calls.events)
        self._bound = np.searchsorted(of[order], np.arange(len(owner) + 1)).tolist()

    def busy(self, place: int) -> bool:
        """Whether a call has device work; none (-1) has not."""
        return place >= 0 and self._bound[place] < self._bound[place + 1]

    def of(self, places: Sequence[int]) -> list[_Cells | None]:
        """The calls at some places, None for each -1."""
        nested = self._context.op_nest
        place = np.maximum(np.array(places, np.int64), 0)
        shapes, dtypes = (described(self._context, field, nested.row[place]) for field in ("shapes", "dtypes"))
        frames = locate(self._context, self._calls.track[place], nested.start[place])[2]
        strings, time = self._context.trace.strings, self._time.tolist()
        called, kernel = strings.each(self._context.trace.events.name[nested.row[place]]), self._kernels
        cells: list[_Cells | None] = []
        for at, name, shape, dtype, frame in zip(places, called, shapes, dtypes, frames, strict=True):
            if at < 0:
                cells.append(None)
                continue
            own = slice(self._bound[at], self._bound[at + 1])
            times = time[own]
            kernels = tuple(zip(kernel[own], times, strict=True))
            call = {
                "op": self._parts(own) if self._calls.grouped[at] else name,
                "shapes": shape,
                "dtypes": dtype,
                "frame": frame,
                "kernels": kernels,
            }
            cells.append(call | {"device_ns": sum(times), "start_ns": int(nested.start[at])})
        return cells

    @cached_property
    def _kernels(self) -> list[str]:
        """Name of each device event."""
        return self._context.trace.strings.each(self._context.device.name[self._event])

    def _parts(self, own: slice) -> str:
        """Names of operators that stand for a fused one: those that launched work, in order."""
        events, text = self._context.trace.events, self._context.trace.strings.text
        launched = np.unique(self._context.event_op[self._event[own]])
        return " + ".join(text(int(events.name[self._context.op_nest.row[part]])) for part in launched)

    def together(self, name: str, places: NDArray[np.int64]) -> _Cells | None:
        """Several calls as one; None if they have no device work."""
        own = [np.arange(self._bound[at], self._bound[at + 1]) for at in places.tolist() if self.busy(at)]
        return self._sum(name, self._event[np.concatenate(own)], self._time[np.concatenate(own)]) if own else None

    def alone(self, name: str) -> _Cells | None:
        """Work of no operator, see `unattributed`."""
        work = unattributed(self._context).get(name)
        return None if work is None else self._sum(name, *work)

    def _sum(self, name: str, event: NDArray[np.int64], time: NDArray[np.int64]) -> _Cells:
        """Work as one row, its kernels summed by name, most time first."""
        start, unknown = int(self._context.device.start[event].min()), dict.fromkeys(("shapes", "dtypes", "frame"))
        kernels = summed_kernels(self._context, event, time)[0]
        return {"op": name, **unknown, "kernels": kernels, "device_ns": int(time.sum()), "start_ns": start}


def summed_kernels(
    context: Context, event: Rows, time: NDArray[np.int64], of: NDArray[np.int64] | None = None
) -> list[tuple[tuple[str, int], ...]]:
    """Time of device events by name, most first: one list for each row that `of` names, or one of all."""
    name, row = context.device.name[event], np.zeros(len(event), np.int64) if of is None else of
    rows = group(row, name)
    found: list[list[tuple[str, int]]] = [[] for _ in range(int(row.max(initial=0)) + 1)]
    for first, total in zip(rows.first.tolist(), rows.sum(time).tolist(), strict=True):
        found[row[first]].append((context.trace.strings.text(int(name[first])), total))
    return [tuple(sorted(kernels, key=lambda item: (-item[1], item[0]))) for kernels in found]


def longest(of: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.int64]:
    """Place of the longest piece of each row, of equals the first."""
    order = np.lexsort((np.arange(len(of)), -time, of))
    return order[np.unique(of[order], return_index=True)[1]]


def frames_of_longest(
    context: Context,
    of: NDArray[np.int64],
    event: Rows,
    time: NDArray[np.int64],
    line: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
) -> list[str | None]:
    """User source line that launched the longest piece of each row; of equals the first. Events below 0 are none.

    Pieces with a thread (from 0 on) and a time of their own in `line` are looked up there.
    """
    chosen = longest(of, time)
    track, t = (np.append(each, -1)[event[chosen]] for each in launch_places(context))
    if line is not None:
        own, at = line[0][chosen], line[1][chosen]
        track, t = np.where(own >= 0, own, track), np.where(own >= 0, at, t)
    return locate(context, track, t)[2]


EXTRA_STEPS = "<steps without a partner>"
"""Stands for the calls of steps that the other side does not have as many of."""


_Totals = dict[tuple[str, str], _Cells]
"""By canonical name with direction, and shapes (empty without)."""
OPERATORS = section(
    "operator_compare_statistic",
    "Operators (per step)",
    replace(columns.PLACE, alias="Top"),
    replace(columns.OP, alias="Operator Name"),
    *columns.both(device_ns="{side} Device Duration(ms)", calls="{side} Operator Number"),
    columns.diff(alias="Diff Duration(ms)"),
    columns.ratio(),
    columns.CHANGE_SHARE,
    columns.MATCH,
    *columns.minor(columns.SHAPES, *columns.both(op="")),
    *columns.SUMS,
    by="device_ns",
)


def operators_table(pairs: Pairs, per: PerStep) -> Table:
    """Operators by what they change; the rows sum to all device time."""
    table = OPERATORS.fill(pairs, per)
    if isinstance(pairs, NotMeasured):
        return table
    sides = [[side["device_ns"] for side in each if side] for each in zip(*(pair[1:] for pair in pairs), strict=True)]
    known = per.amounts(
        *(next((time for time in each if isinstance(time, NotMeasured)), None) or sum(each) for each in sides)
    )
    keys = ("diff_ns", "ratio", "base_sum_ns", "candidate_sum_ns")
    shown: dict[str, Value] = {"op": Word("all_work"), "base_device_ns": known["base_time_ns"]}
    shown |= {"candidate_device_ns": known["candidate_time_ns"], **{key: known[key] for key in keys}}
    return replace(table, totals=shown)


def operator_totals(base: Context, candidate: Context, options: CompareOptions) -> Pairs:
    """Device time by the operator that launched it.

    Each device event inside the steps counts once, for the innermost operator around its launch; calls are those that
    launched some. Events whose launch lies in no operator, or is not known, have rows of their own. So the times of a
    side sum to all its device time, exactly. NotMeasured if a side has no operators, or lacks its device events.
    """
    if why := _unknown(base, candidate):
        return why
    fused = fused_names(base, candidate, options)
    old, new = (_totals(context, options, fused) for context in (base, candidate))
    rows = [(key, [side.get(key) for side in (old, new)]) for key in sorted(old | new)]
    return [
        Pair(
            {"op": key[0], "shapes": key[1] if options.use_input_shape else None},
            *lost_collectives((base, candidate), sides, any(cells and cells["sent"] for cells in sides)),
        )
        for key, sides in rows
    ]


def _unknown(base: Context, candidate: Context) -> NotMeasured | None:
    without = min(len(base.op_nest), len(candidate.op_nest)) == 0
    return NotMeasured("no_host_ops") if without else work_unknown(base, candidate)


def _totals(context: Context, options: CompareOptions, fused: Fused) -> _Totals:
    event, time = counted_events(context)
    op = context.event_op[event]
    known = np.flatnonzero(op >= 0)
    calls = calls_of(context, options, fused)
    raw = context.trace.events.name[context.op_nest.row[op[known]]]
    whole = calls.ops.whole[op[known]]
    rows = group(calls.tokens[whole])
    sent = rows.sum(time[known] * (context.device.klass[event[known]] != DeviceClass.COMM)) == 0
    units = group(rows.of, calls.ops.unit[whole])
    count = np.bincount(rows.of[units.first], minlength=len(rows))
    names: list[list[str]] = [[] for _ in range(len(rows))]
    for first in group(rows.of, raw).first.tolist():
        names[rows.of[first]].append(context.trace.strings.text(int(raw[first])))
    found = {
        calls.key(int(whole[first])): _total(own, total, number) | {"sent": bool(all_sent)}
        for first, own, total, number, all_sent in zip(
            rows.first.tolist(), names, rows.sum(time[known]).tolist(), count.tolist(), sent.tolist(), strict=True
        )
    }
    for name, alone in unattributed(context).items():
        found[name, ""] = _total([name], int(alone[1].sum()), len(alone[0]))
    return {key: total for key, total in found.items() if total["calls"] or total["device_ns"]}


def _total(names: Sequence[str], time: int, calls: int) -> _Cells:
    return {"op": ", ".join(sorted(names)), "device_ns": time, "calls": calls, "sent": False}


_SIDES_OF_CALL = tuple(
    replace(column, meaning=f"{column.side}: device time of all kernels launched in the call")
    if column.key.endswith("device_ns")
    else column
    for column in columns.both(
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
    columns.diff(alias="Diff Duration(us)"),
    columns.ratio(),
    columns.CHANGE_SHARE,
    columns.PLACE,
    columns.MATCH,
    *columns.both(start_ns=""),
    *columns.minor(*columns.both(frame="")),
    by="device_ns",
    detail=True,
    per_call=True,
)


def operator_pairs(base: Context, candidate: Context, options: CompareOptions) -> Pairs:
    """Calls of both sides matched by the call tree, in order of time; those without device work are left out.

    Matched are the outermost operators of each step (see `top_level`) by canonical name and direction, and by
    shapes if the options say so. Work of no operator, and steps that only one side has, have one row each: so the
    times of a side sum to all its device time. NotMeasured if a side has no operators, or lacks its device events.
    """
    if why := _unknown(base, candidate):
        return why
    calls, found = paired(base, candidate, options)
    old, new = (OpSides(side, level.owner) for side, level in zip(calls, found.levels, strict=True))
    shown = [(one, other) for one, other in found.rows if old.busy(one) or new.busy(other)]
    pairs = list(zip(old.of([row[0] for row in shown]), new.of([row[1] for row in shown]), strict=True))
    rest = [(old.together(EXTRA_STEPS, found.left[0]), new.together(EXTRA_STEPS, found.left[1]))]
    rest += [(old.alone(name), new.alone(name)) for name in (UNLINKED, OUTSIDE_OPS)]
    pairs += [sides for sides in rest if any(sides)]
    return [Pair({"order": order}, *sides) for order, sides in enumerate(pairs, start=1)]
