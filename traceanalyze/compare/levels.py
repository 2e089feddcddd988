"""Operators as a program calls them: the outermost ones of each thread, looking through what only wraps others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import calltree
from traceanalyze.analyses.operators import added, counted_events
from traceanalyze.compare.names import is_wrapper, names_backward
from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context


@frozen
class Level:
    """Calls that do not own each other's work; each device event with an operator belongs to exactly one."""

    owner: NDArray[np.int64]
    """For each place of `context.op_nest` the call of this level it belongs to."""
    whole: NDArray[np.bool_]
    """Calls that own everything inside them; other members of the level own what they launch themselves."""

    @property
    def member(self) -> NDArray[np.bool_]:
        """Whether a place is a call of this level."""
        found: NDArray[np.bool_] = self.owner == np.arange(len(self.owner))
        return found


def top_level(context: Context) -> Level:
    """Outermost operators, looking through autograd nodes, modules and functions that record themselves.

    A wrapper that launches work itself is a call too, with only that work.
    """
    names = context.trace.events.name[context.op_nest.row]
    return _level(context.op_nest.stop, context.trace.strings.lookup(names, is_wrapper).astype(np.bool_))


def opened(stop: NDArray[np.int32], level: Level, calls: NDArray[np.int64]) -> Level:
    """The level below: some whole calls give way to the calls right inside them, the other calls stay.

    Args:
        stop: of `context.op_nest`.
        level: the level above.
        calls: places of the calls that are looked through; they keep the work that they launch themselves.
    """
    through = np.zeros(len(stop), np.bool_)
    through[calls] = True
    below = through[level.owner] & ~level.member
    return _level(stop, ~((level.whole & ~through) | below))


def accountable(context: Context, fused: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each place of `context.op_nest` the call for which its work counts.

    What an operator runs under names without a library is the vendor's way of running it: records of CANN's launches
    (`aclnnMul` inside `aten::mul`), `record_param_comms` inside `c10d::allreduce_`. And everything inside a fused
    operator is part of it, also where a backend composes it of others. All other calls count for themselves.

    Args:
        context: one side.
        fused: which calls are fused operators.
    """
    nested, strings = context.op_nest, context.trace.strings
    names = context.trace.events.name[nested.row]
    plain = strings.lookup(names, lambda text: "::" not in text and not names_backward(text)).astype(np.bool_)
    of = np.arange(len(nested))
    while True:
        up = np.flatnonzero(plain[of] & (nested.parent[of] >= 0))
        if len(up) == 0:
            break
        of[up] = nested.parent[of[up]]
    wrapper = strings.lookup(names, is_wrapper).astype(np.bool_)
    of = np.where(wrapper[of], np.arange(len(nested)), of)
    level = _level(nested.stop, ~fused)
    return np.where(level.whole[level.owner], level.owner, of)


def _level(stop: NDArray[np.int32], through: NDArray[np.bool_]) -> Level:
    """The outermost of the places that are not looked through, and all others outside of these."""
    size = len(stop)
    place = np.arange(size)
    whole = ~through & calltree.outermost(stop, through.astype(np.int32), 2)
    edge = np.zeros(size + 1, np.int64)
    edge[:-1] += whole
    np.add.at(edge, stop[whole], -1)
    covered = np.cumsum(edge[:-1]) > 0
    return Level(np.where(covered, np.maximum.accumulate(np.where(whole, place, 0)), place), whole)


def device_time(context: Context) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Time (ns) and number of the device events in the windows that each operator launched itself."""
    event, time = counted_events(context)
    op = context.event_op[event]
    size = len(context.op_nest)
    known = op >= 0
    return added(op[known], time[known], size), np.bincount(op[known], minlength=size)
