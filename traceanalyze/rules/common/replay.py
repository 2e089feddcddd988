"""What one rank would gain by a change, as rules state it and the replay answers it (`traceanalyze.replay`)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.nesting import Nest
from traceanalyze.model import calltree, intervals
from traceanalyze.model.columns import Rows, distinct
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.patterns import regex
from traceanalyze.replay.device import BETWEEN_KERNELS_NS
from traceanalyze.replay.longest import NEVER
from traceanalyze.replay.parts import last_part
from traceanalyze.replay.replay import Change, amount, counted_windows, replay, same
from traceanalyze.rules.rule import Facts

MOST_PYTHON_NS = 50_000
"""Between two operators Python takes less on its way from one to the next; what takes longer is work of its own."""
_MANY = 8
"""So many operators for each event are not looked at all at once."""
_STAYS = regex(r"AccumulateGrad$")
"""Operators that have work of their own, though they launch nothing but what hooks on them do, as DDP's."""


class Gain(NamedTuple):
    """What would be saved."""

    saving: int
    """ns a step."""
    steps: NDArray[np.int64]
    """By how much each of the windows would be shorter, ns."""
    idle: Intervals | None
    """The idle time that would be gone, the end of gaps, also outside the analysed windows; None where nobody asked."""


def gained(facts: Facts, change: Change, idle: Callable[[int], bool] = lambda _: True) -> Gain:
    """What the windows would gain by a change; idle time only where it is asked for of such a saving."""
    known = facts.once(_answers)
    for asked, answer in known:
        if same(asked, change) and (answer.idle is not None or not idle(answer.saving)):
            return answer
    if amount(change):
        again = replay(facts.context, change)
        saving = facts.mean(again.saving)
        gain = Gain(saving, again.shorter[again.counted], again.idle if idle(saving) else None)
    else:
        # Without a change everything comes back as it was recorded.
        gain = Gain(0, np.zeros(int(facts.context.once(counted_windows).sum()), np.int64), intervals.EMPTY)
    known.append((change, gain))
    return gain


def saved(facts: Facts, change: Change) -> int:
    """The same in ns a step alone."""
    return gained(facts, change, lambda _: False).saving


def _answers(_facts: Facts) -> list[tuple[Change, Gain]]:
    """What was asked of a rank, and answered: rules and prices of findings ask the same more than once."""
    return []


def without(facts: Facts, event: Rows, part: float = 1.0) -> Change:
    """Device events that are not there, or so many less of them, and as much less host time to launch them."""
    return _fewer(facts, event, part, part)._replace(host=last_part(launching(facts, event), part))


def into_few(facts: Facts, event: NDArray[np.int64], part: float) -> Change:
    """Device events that few others do the work of, in so much less time."""
    return _fewer(facts, event, part, 1.0)


def _fewer(facts: Facts, event: NDArray[np.int64], time: float, number: float) -> Change:
    length = (facts.context.device.end - facts.context.device.start)[event]
    return Change(events=event, shorter=np.round(length * time + BETWEEN_KERNELS_NS * number).astype(np.int64))


def launching(facts: Facts, event: NDArray[np.int64]) -> Intervals:
    """Host time that only some device events need: operators that launch nothing else, and other calls."""
    context = facts.context
    nest, chosen = context.op_nest, np.zeros(len(context.device), np.bool_)
    chosen[event] = True
    own, others = np.flatnonzero(chosen), np.flatnonzero(~chosen)
    asked = np.zeros(len(context.calls) + 1, np.bool_)
    # No call is -1, the place after the last one.
    asked[context.issued_by[own]] = True
    asked[context.issued_by[others]] = False
    call = np.flatnonzero(asked[:-1])
    found = [intervals.merge(context.calls.start[call], context.calls.end[call])] if len(call) else []
    if len(nest):
        only = _only(nest, context.event_op[own], context.once(launched_inside))
        only = only[~context.trace.strings.matches(context.op_names[only], _STAYS.search)]
        found.append(intervals.merge(nest.start[only] - context.once(_called)[only], nest.end[only]))
    return intervals.union(intervals.EMPTY, *found)


def launched_inside(context: Context) -> NDArray[np.int32]:
    """How many device events each operator launched, with all inside it; use with `Context.once`."""
    return calltree.inside(context.op_nest.stop, context.event_op)


def _only(nest: Nest, op: Rows, every: NDArray[np.int32]) -> NDArray[np.int64]:
    """Operators that launch some events, by the operators of these, and no other ones."""
    if _MANY * len(op) > len(nest):
        inside = calltree.inside(nest.stop, op)
        return np.flatnonzero((inside == every) & (inside > 0))
    op, found = np.sort(op[op >= 0], kind="stable"), [op[:0]]
    each = distinct(op)
    # Where one launches something else, so do those around it.
    while len(each := each[np.searchsorted(op, nest.stop[each]) - np.searchsorted(op, each) == every[each]]):
        found.append(each)
        each = distinct(nest.parent[each])
        each = each[each >= 0]
    return np.concatenate(found)


def _called(context: Context) -> NDArray[np.int32]:
    """How long the program was on its way to each operator, ns: from the end of what was before it in its function on.

    That is an operator, or a call of the runtime by the function itself.
    """
    nest, calls = context.op_nest, context.calls
    # What follows all that is inside an operator is the next one of the same function, if it has the same parent.
    parent, stop = np.append(nest.parent, nest.parent[:1]), nest.stop.astype(np.intp)
    parent[nest.bounds] = -2  # The first one of a thread follows none.
    first = np.flatnonzero(parent[stop] == nest.parent)
    before = nest.start.copy()
    before[stop[first]] = nest.end[first]
    for track in distinct(calls.track).tolist():
        low, high = np.searchsorted(calls.track, np.array((track, track + 1), calls.track.dtype)).tolist()
        own, done = nest.of(track), np.maximum.accumulate(np.append(NEVER, calls.end[low:high]))
        at = intervals.passed(calls.start[low:high], nest.start[own] - 1)
        np.maximum(before[own], done.take(at), out=before[own])
    before = nest.start - before
    before[(before >= MOST_PYTHON_NS) | (before < 0)] = 0
    return before.astype(np.int32)
