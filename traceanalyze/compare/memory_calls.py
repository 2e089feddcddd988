"""Device memory that matched calls of both sides allocate, call by call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.analyses.results_host import OUTSIDE_OPS
from traceanalyze.analyses.work import argument
from traceanalyze.compare.allocations import UNKNOWN, allocations
from traceanalyze.compare.calls import compact
from traceanalyze.compare.pairing import paired
from traceanalyze.compare.results import MemoryCall, MemoryCallPair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context
    from traceanalyze.compare.allocations import Allocations
    from traceanalyze.compare.calls import Calls
    from traceanalyze.compare.options import CompareOptions

OTHER_CALLS = "<other calls>"
"""Stands for calls that are not matched one by one: those that only wrap others, and steps without a partner."""
_OUTSIDE = -1


def memory_call_pairs(
    base: Context, candidate: Context, options: CompareOptions
) -> tuple[MemoryCallPair, ...] | NotMeasured:
    """Allocations of matched calls (see `operators.operator_pairs`), in order of time; calls with none are left out.

    What other calls allocated, and what was allocated in none, are rows at the end: so each allocation in the steps
    counts once. NotMeasured if a side has no records of its allocator, or no operators.
    """
    found = allocations(base), allocations(candidate)
    if found[0] is None or found[1] is None:
        return NotMeasured("no_memory_records")
    if min(len(base.op_nest), len(candidate.op_nest)) == 0:
        return NotMeasured("no_host_ops")
    calls, pairing = paired(base, candidate, options)
    sides = [
        _Side(one, made, level.owner)
        for one, made, level in zip(calls, (found[0], found[1]), pairing.levels, strict=True)
    ]
    pairs = [MemoryCallPair(sides[0].call(place), sides[1].call(other)) for place, other in pairing.rows]
    pairs += [MemoryCallPair(*(side.rest(name) for side in sides)) for name in (OTHER_CALLS, OUTSIDE_OPS)]
    return tuple(pair for pair in pairs if pair.base or pair.candidate)


class _Side:
    """Allocations of one side by call; those handed out are crossed off."""

    def __init__(self, calls: Calls, made: Allocations, owner: NDArray[np.int64]) -> None:
        self._context, self._made = calls.context, made
        of = np.full(len(made.op), _OUTSIDE, np.int64)
        known = made.op >= 0
        of[known] = owner[calls.ops.unit[made.op[known]]]
        self._left: dict[int, list[int]] = {}
        for index, place in enumerate(of.tolist()):
            self._left.setdefault(place, []).append(index)

    def call(self, place: int) -> MemoryCall | None:
        """What one call allocated; None if nothing, or if there is no call (-1)."""
        mine = self._left.pop(place, None) if place >= 0 else None
        if mine is None:
            return None
        row = self._context.op_nest.row[place : place + 1]
        text = self._context.trace.strings.text
        name = text(int(self._context.trace.events.name[row[0]]))
        shapes, dtypes = (int(argument(self._context, field, row)[0]) for field in ("shapes", "dtypes"))
        given = (compact(text(code)) if code >= 0 else None for code in (shapes, dtypes))
        return self._result(name, mine, *given)

    def rest(self, name: str) -> MemoryCall | None:
        """What was allocated in other calls, or in none."""
        wanted = [place for place in self._left if (place == _OUTSIDE) == (name == OUTSIDE_OPS)]
        mine = sorted(index for place in wanted for index in self._left.pop(place))
        return self._result(name, mine, None, None) if mine else None

    def _result(self, name: str, mine: Sequence[int], shapes: str | None, dtypes: str | None) -> MemoryCall:
        sizes, lived = (column[mine].tolist() for column in (self._made.bytes, self._made.lived))
        each = tuple((size, None if time == UNKNOWN else time) for size, time in zip(sizes, lived, strict=True))
        return MemoryCall(name, shapes, dtypes, each, sum(sizes))
