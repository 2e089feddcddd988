"""Operators of a program that computes on the host: those of the steps' thread outside its data loader, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.frozen import frozen
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.finding import intervals_of

if TYPE_CHECKING:
    import re

    from numpy.typing import NDArray

    from traceanalyze.intervals import Intervals
    from traceanalyze.rules.facts import Facts

RECORDING_NS = 600
"""What the profiler adds to each operator: own measurement, torch 2.13 with shapes: 0.4 to 0.7 µs."""

CALL_NS = 2_000
"""What an operator takes for hardly any work, recorded: own measurement, torch 2.13."""


@frozen
class HostOps:
    """Operators that begin in the windows, by start; parents before their children."""

    row: NDArray[np.int64]
    """Row in `Trace.events`."""
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    own: NDArray[np.int64]
    """Time in no other operator, ns."""
    leaf: NDArray[np.bool_]
    """Whether it calls no other operator."""
    name: NDArray[np.int32]
    """Code in `Trace.strings`."""

    def inside(self, ranges: Intervals) -> NDArray[np.bool_]:
        """Whether each begins in a set of ranges."""
        return intervals.contains(ranges, self.start)

    def spans(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> NDArray[np.int64]:
        """(n, 2) starts and ends."""
        return intervals_of(self.start[chosen], self.end[chosen])


def host_ops(facts: Facts) -> HostOps:
    """Operators of the steps' thread outside its data loader; use with `Facts.once`."""
    nest, track = facts.context.op_nest, facts.context.step_track
    mine = nest.of(track)
    counted = intervals.subtract(facts.windows, facts.context.data_loading(track))
    place = mine.start + np.flatnonzero(intervals.contains(counted, nest.start[mine]))
    return HostOps(
        row=nest.row[place],
        start=nest.start[place],
        end=nest.end[place],
        own=nest.own[place],
        leaf=nest.stop[place] == place + 1,
        name=facts.context.trace.events.name[nest.row[place]],
    )


def ranges(facts: Facts, name: re.Pattern[str]) -> Intervals:
    """When the steps' thread was in annotations with such a name, in the windows."""
    rows = facts.rows(EventKind.ANNOTATION, name)
    rows = rows[facts.context.trace.events.track[rows] == facts.context.step_track]
    return facts.clip(facts.spans(rows))


def matching(facts: Facts, ops: HostOps, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    """Operators with such a name (`search`)."""
    fits = facts.context.trace.strings.lookup(ops.name, lambda text: pattern.search(text) is not None)
    return fits.astype(np.bool_)


def calls_and_work(facts: Facts, ops: HostOps, inside: Intervals) -> tuple[int, int]:
    """Time in ranges of the steps' thread, ns a step: of calling operators, without what recording them adds; of work.

    Work is what operators take beyond `CALL_NS` themselves.
    """
    mine = ops.inside(inside)
    time = max(0, intervals.total(inside) - int(mine.sum()) * RECORDING_NS)
    work = min(time, int(np.maximum(ops.own[mine] - CALL_NS, 0).sum()))
    return facts.mean(time - work), facts.mean(work)
