"""Operators of both sides: device time by canonical name, and matched calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.frames import locate
from traceanalyze.analyses.host.nesting import nest_rows
from traceanalyze.analyses.host.operators import OUTSIDE_OPS, UNLINKED, added, counted_events
from traceanalyze.analyses.kernels.work import argument
from traceanalyze.comparison.align import paired
from traceanalyze.comparison.calls import calls_of, compact
from traceanalyze.comparison.canonical_ops import fused_names
from traceanalyze.comparison.collectives import common_labels, plain_api
from traceanalyze.comparison.names import BACKWARD_SUFFIX, canonical, names_backward
from traceanalyze.comparison.results import ApiPair, ApiSide, OperatorPair, OperatorTotal, OpSide
from traceanalyze.model import calltree
from traceanalyze.model.classify import is_data_loading, is_step_marker
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import EventKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context
    from traceanalyze.comparison.calls import Calls

    Work = tuple[NDArray[np.int64], NDArray[np.int64]]
    """Device events, and their time inside the windows."""
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from traceanalyze.comparison.canonical_ops import Fused
    from traceanalyze.comparison.side import CompareOptions


def without_operator(context: Context) -> dict[str, Work]:
    """Device events in the windows whose launch lies in no operator, or is not known; only what there is."""
    event, time = counted_events(context)
    alone, linked = context.event_op[event] < 0, context.link[event] >= 0
    parts = ((UNLINKED, alone & ~linked), (OUTSIDE_OPS, alone & linked))
    return {name: (event[member], time[member]) for name, member in parts if member.any()}


class OpSides:
    """Makes the results of one side's calls."""

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

    def of(self, places: Sequence[int]) -> list[OpSide | None]:
        """The calls at some places, None for each -1."""
        context = self._context
        place = np.array(places, np.int64)
        row = context.op_nest.row[np.maximum(place, 0)]
        text = context.trace.strings.text
        shapes, dtypes = (argument(context, field, row).tolist() for field in ("shapes", "dtypes"))
        frames = frames_at(
            context, self._calls.track[np.maximum(place, 0)], context.op_nest.start[np.maximum(place, 0)]
        )
        return [
            None
            if at < 0
            else OpSide(
                name=self._name(at),
                shapes=compact(text(shape)) if shape >= 0 else None,
                dtypes=compact(text(dtype)) if dtype >= 0 else None,
                kernels=self._kernels(slice(int(self._bound[at]), int(self._bound[at + 1]))),
                device_time=int(self._time[self._bound[at] : self._bound[at + 1]].sum()),
                start=int(context.op_nest.start[at]),
                frame=frame,
            )
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

    def together(self, name: str, places: NDArray[np.int64]) -> OpSide | None:
        """Several calls as one; None if they have no device work."""
        mine = np.concatenate(
            [np.zeros(0, np.int64), *(np.arange(self._bound[at], self._bound[at + 1]) for at in places.tolist())]
        )
        return self._sum(name, (self._event[mine], self._time[mine])) if len(mine) else None

    def alone(self, name: str) -> OpSide | None:
        """Work of no operator, see `without_operator`."""
        work = self._without.get(name)
        return None if work is None else self._sum(name, work)

    def _sum(self, name: str, work: Work) -> OpSide:
        """Work as one row, its kernels summed by name, most time first."""
        event, time = work
        kernels = summed_kernels(self._context, event, time)
        start = int(self._context.device.start[event].min())
        return OpSide(name, None, None, kernels, int(time.sum()), start)


def summed_kernels(context: Context, event: NDArray[np.int64], time: NDArray[np.int64]) -> tuple[tuple[str, int], ...]:
    """Time of device events by name, most first."""
    rows = group(context.device.name[event])
    names = [context.trace.strings.text(int(code)) for code in context.device.name[event[rows.first]].tolist()]
    return tuple(sorted(zip(names, rows.sum(time).tolist(), strict=True), key=lambda item: (-item[1], item[0])))


def frames_at(context: Context, track: NDArray[np.int32], t: NDArray[np.int64]) -> list[str | None]:
    """User source line of a thread at an instant each; threads below 0 are unknown."""
    found: list[str | None] = [None] * len(t)
    lanes = group(track)
    for lane, first in enumerate(lanes.first.tolist()):
        mine = np.flatnonzero(lanes.of == lane)
        if track[first] >= 0:
            _, _, frames = locate(context, int(track[first]), t[mine])
            for at, frame in zip(mine.tolist(), frames, strict=True):
                found[at] = frame
    return found


EXTRA_STEPS = "<steps without a partner>"
"""Stands for the calls of steps that the other side does not have as many of."""


class _Total(NamedTuple):
    names: tuple[str, ...]
    time: int
    calls: int


_Totals = dict[tuple[str, str], _Total]
"""By canonical name with direction, and shapes (empty without)."""


def operator_totals(
    base: Context, candidate: Context, options: CompareOptions
) -> tuple[OperatorTotal, ...] | NotMeasured:
    """Device time by the operator that launched it, largest change per step first.

    Each device event inside the steps counts once, for the innermost operator around its launch; calls are those that
    launched some. Events whose launch lies in no operator, or is not known, have rows of their own. So the times of a
    side sum to all its device time, exactly. NotMeasured if a side has no operators.
    """
    if min(len(base.op_nest), len(candidate.op_nest)) == 0:
        return NotMeasured("no_host_ops")
    fused = fused_names(base, candidate, options)
    old, new = (_totals(context, options, fused) for context in (base, candidate))
    nothing = _Total((), 0, 0)
    rows = []
    for key in old | new:
        one, other = old.get(key, nothing), new.get(key, nothing)
        shapes = key[1] if options.use_input_shape else None
        rows.append(OperatorTotal(key[0], one.names, other.names, shapes, one.time, other.time, one.calls, other.calls))
    steps = len(base.steps), len(candidate.steps)
    rows.sort(
        key=lambda row: (-abs(row.candidate_time * steps[0] - row.base_time * steps[1]), row.name, row.shapes or "")
    )
    return tuple(rows)


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
        calls.key(int(whole[first])): _Total(tuple(sorted(own)), total, number)
        for first, own, total, number in zip(
            rows.first.tolist(), names, rows.sum(time[known]).tolist(), count.tolist(), strict=True
        )
    }
    for name, alone in without_operator(context).items():
        found[name, ""] = _Total((name,), int(alone[1].sum()), len(alone[0]))
    return found


def operator_pairs(
    base: Context, candidate: Context, options: CompareOptions
) -> tuple[OperatorPair, ...] | NotMeasured:
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
    pairs = [
        OperatorPair(one, other)
        for one, other in zip(old.of([row[0] for row in shown]), new.of([row[1] for row in shown]), strict=True)
    ]
    extra = OperatorPair(old.together(EXTRA_STEPS, found.left[0]), new.together(EXTRA_STEPS, found.left[1]))
    rest = [extra, *(OperatorPair(old.alone(name), new.alone(name)) for name in (UNLINKED, OUTSIDE_OPS))]
    return (*pairs, *(pair for pair in rest if pair.base or pair.candidate))


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


def api_pairs(base: Context, candidate: Context, options: CompareOptions) -> tuple[ApiPair, ...] | NotMeasured:
    """Calls begun in the steps by name, largest change of their own time per step first.

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
    rows = [ApiPair(name, old.get(name), new.get(name)) for name in old | new]
    steps = len(base.steps), len(candidate.steps)
    rows.sort(key=lambda row: (-abs(_own(row.candidate) * steps[0] - _own(row.base) * steps[1]), row.name))
    return tuple(rows)


def _own(side: ApiSide | None) -> int:
    return 0 if side is None else side.own


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


def _sums(side: _Host, label: Mapping[str, str]) -> dict[str, ApiSide]:
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
        name: ApiSide(number, time, alone)
        for name, number, time, alone in zip(position, count, total, own, strict=True)
        if number
    }
