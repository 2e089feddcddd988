"""What findings take of a program, so that none of it is claimed twice.

Findings that state a change are told apart by what they change: each keeps what none before it does away with, however
much of its gain another cause hides. Those that state only time are left the time that nothing before them saves.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model import intervals
from traceanalyze.model.columns import occurs
from traceanalyze.model.intervals import EMPTY, Intervals
from traceanalyze.replay.parts import last_part
from traceanalyze.replay.replay import Change, together
from traceanalyze.rules.common.replay import launching
from traceanalyze.rules.facts import Facts
from traceanalyze.rules.finding import Evidence, Finding, intervals_of
from traceanalyze.rules.pricing import Price, gaps_of


class Claims:
    """What the findings so far take."""

    def __init__(self, facts: Facts) -> None:
        self._facts, self._gaps = facts, gaps_of(facts)
        self._idle = facts.idle_time if facts.context.devices else EMPTY
        self._left = np.zeros(len(self._gaps), np.int64)
        if facts.context.devices:
            np.add.at(self._left, facts.pieces.gap, facts.pieces.end - facts.pieces.start)
        self._time, self._change = EMPTY, Change()

    def rest(self, one: Finding) -> tuple[Finding, float]:
        """What they leave of another finding, and which part of it that is; a cost alone is told as it is left."""
        if one.change is not None:
            change, part = _without(one.change, self._change, len(self._facts.context.device))
            return replace(one, change=change, bound=None if one.bound is None else round(one.bound * part)), part
        if one.intervals is None:
            return one, 1.0
        span = self._facts.clip(one.intervals)
        free = intervals.subtract(span, self._time)
        free = intervals.union(*self._split(free, self._left))
        part = intervals.total(free) / max(intervals.total(span), 1)
        numbers = {name: getattr(one, name) for name in ("saving", "cost", "low", "bound")}
        cut = {name: round(value * part) for name, value in numbers.items() if value is not None}
        if one.saving is None and one.cost is not None:
            one = replace(one, evidence=tuple(_restated(each, one.cost, cut["cost"]) for each in one.evidence))
        return replace(one, intervals=intervals_of(*free), **cut), part

    def take(self, price: Price) -> None:
        """Keep from all that follow what this one changes, and of its idle time as much as would be gone."""
        one = price.finding
        if one.change is not None:
            self._change = together(self._change, one.change)
        if one.change is not None and one.draws != "compute" and len(one.change.host.start) and len(one.change.events):
            # What it leaves of the work of launching these is no part of other findings. One about kernels alone names
            # what launches them, as far as it goes.
            self._change = together(self._change, Change(launching(self._facts, one.change.events)))
        # What no event ends would not be gone of anything.
        gone = np.where(self._gaps.event >= 0, price.gone, self._left) if one.change is not None else self._left
        self._time = intervals.union(self._time, *self._split(price.spans, gone))
        self._left = np.maximum(self._left - price.gone, 0)

    def _split(self, spans: Intervals, most: NDArray[np.int64]) -> tuple[Intervals, Intervals]:
        """What of a set is no idle time, and its idle time, shortened to so much of each gap."""
        own = intervals.intersect(spans, self._idle)
        if not len(own.start):
            return spans, own
        # Nearly all findings about idle time are about nothing else.
        whole = intervals.total(own) == intervals.total(spans)
        other = EMPTY if whole else intervals.subtract(spans, self._idle)
        at = np.maximum(intervals.passed(self._gaps.start, own.start) - 1, 0)
        held = np.zeros(len(self._gaps), np.int64)
        np.add.at(held, at, own.end - own.start)
        if (held <= most).all():
            return other, own
        return other, last_part(own, np.minimum(1.0, most / np.maximum(held, 1))[at])


def _restated(one: Evidence, cost: int, left: int) -> Evidence:
    """Evidence that states the cost, with what is left of it."""
    return one._replace(value=left) if one.kind == "DURATION" and one.value == cost else one


def _without(change: Change, other: Change, events: int) -> tuple[Change, float]:
    """A change less what another one has done, and the part of it that this is."""
    taken = np.zeros(events, np.bool_)
    taken[other.events[other.shorter > 0]] = True
    left = np.where(taken[change.events], 0, change.shorter)
    host = intervals.subtract(change.host, other.host)
    rest = change._replace(
        host=host,
        threads={
            track: intervals.subtract(span, intervals.union(other.host, other.threads.get(track, EMPTY)))
            for track, span in change.threads.items()
        },
        calls=change.calls[~occurs(change.calls, other.calls)],
        shorter=left,
        batches=max(0.0, change.batches - other.batches),
    )
    whole = _amount(change)
    return rest, _amount(rest) / whole if whole else 1.0


def _amount(change: Change) -> int:
    """Time that it takes out, and one for each call that no longer waits."""
    spans = (change.host, *change.threads.values())
    return sum(map(intervals.total, spans)) + int(change.shorter.sum()) + len(change.calls) + bool(change.batches)
