"""Operators of both sides: device time by canonical name, and matched calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.operators import counted_events
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.analyses.results_host import OUTSIDE_OPS, UNLINKED
from traceanalyze.compare.calls import calls_of
from traceanalyze.compare.canonical_ops import fused_names
from traceanalyze.compare.op_sides import OpSides, without_operator
from traceanalyze.compare.pairing import paired
from traceanalyze.compare.results import OperatorPair, OperatorTotal

if TYPE_CHECKING:
    from traceanalyze.analyses.context import Context
    from traceanalyze.compare.canonical_ops import Fused
    from traceanalyze.compare.options import CompareOptions

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
