"""How far the host is from keeping the device busy, for the rules about dispatch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.idle.idle import idle_gaps
from traceanalyze.analyses.idle.launches import median_depth
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import DISPATCH, Cause, EventKind
from traceanalyze.rules.rule import Facts, Finding, Options, Scope, intervals_of, measured, merged

PYTHON_NS = 1_000_000
"""Stretches of Python shorter than this lie between operators, and belong to launching; longer ones are work."""
LONG_NS, LONG_TIMES, MOST, PATTERN = 10_000_000, 100, 20, 3
"""A gap of so much, and of so many times the median gap, is no slow launching: libraries are loaded or kernels compiled
when they are first used, unless there are more than so many, or they come back in half of so many steps or more. So is
one in which a graph is captured."""
LATE_HOST = {"share": (0.10, "as HST101"), "late": (0.20, "as HST101")}
"""Options of rules that ask whether the host is late."""
_BEGIN, _END = regex(r"StreamBeginCapture"), regex(r"StreamEndCapture")


class Launching(NamedTuple):
    """How the host kept up in the windows."""

    share: float
    """Idle time in dispatch and host operators over the step (`launch_bound_share`, definitions §6)."""
    late: float
    """Gaps that ended with work launched during them, over all gaps."""
    depth: float | None
    """Median queue depth; None where the clocks disagree."""
    spans: NDArray[np.int64]
    """(n, 2) idle time in which the host was on its way to the next launch: dispatch, operators, Python in between."""
    gap: NDArray[np.int64]
    """Which of `idle_gaps` each of them lies in."""
    first_use: NDArray[np.int64]
    """(n, 2) idle time of that kind in gaps that are too long for it; not in `spans`, nor in `share`."""

    def bound(self, share: float, late: float) -> bool:
        """Whether the host cannot keep the queue filled."""
        empty = self.depth is not None and self.depth <= 1
        return self.share >= share and (self.late >= late or empty)


def late_host(facts: Facts, options: Options) -> bool:
    """Whether the host cannot keep the queue filled, by the options `LATE_HOST`."""
    return facts.once(launching).bound(options.number("share"), options.number("late"))


def idle_during(facts: Facts, rows: NDArray[np.int64], about: tuple[str, ...] = ()) -> Finding:
    """Idle time of the device during some events of the host; at most, all their time.

    Args:
        facts: Of the rank.
        rows: The events.
        about: What to name; else the first of them.
    """
    host = merged(facts.spans(rows))
    spans = facts.overlap(host)
    saving, bound = facts.length(spans), facts.mean(intervals.total(host))
    return Finding(
        saving=saving,
        bound=bound,
        draws="idle",
        intervals=spans,
        evidence=measured(idle=saving, host=bound, count=len(rows)),
        scope=Scope(ops=about or facts.names(rows)),
        count=len(rows),
    )


def launching(facts: Facts) -> Launching:
    """The host's part in the idle time of a rank."""
    context, pieces = facts.context, facts.pieces
    gaps = context.once(idle_gaps)
    counted = distinct(pieces.gap)
    late = (gaps.call >= 0) & (gaps.launch_start >= gaps.start)
    short = (pieces.cause == Cause.UNTRACED) & (pieces.end - pieces.start < PYTHON_NS)
    dispatch = np.isin(pieces.cause, DISPATCH)
    first = _first_use(facts, counted, dispatch)[pieces.gap]
    chosen = (dispatch | short) & (gaps.launch_end > gaps.start)[pieces.gap] & ~first
    loading = intervals_of(*intervals.merge(pieces.start[dispatch & first], pieces.end[dispatch & first]))
    share = facts.share(facts.idle_mean(*DISPATCH) - facts.length(loading))
    ended_late, depth = float(late[counted].mean()) if len(counted) else 0.0, context.once(median_depth)
    spans = intervals_of(pieces.start[chosen], pieces.end[chosen])
    return Launching(share, ended_late, depth, spans, pieces.gap[chosen], loading)


def _first_use(facts: Facts, counted: NDArray[np.int64], dispatch: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether each of `idle_gaps` is too long to be slow launching, or is for the capture of a graph.

    Args:
        facts: Of the rank.
        counted: Gaps in the windows.
        dispatch: Which pieces of idle time are launching.
    """
    gaps, pieces = facts.context.once(idle_gaps), facts.pieces
    launching_in = np.zeros(len(gaps), np.int64)
    np.add.at(launching_in, pieces.gap[dispatch], (pieces.end - pieces.start)[dispatch])
    length = gaps.end - gaps.start
    usual = float(np.median(length[counted])) if len(counted) else 0.0
    long: NDArray[np.bool_] = (length >= max(LONG_NS, LONG_TIMES * usual)) & (2 * launching_in >= length)
    if _recurs(facts, intervals_of(gaps.start[long], gaps.end[long])):
        long[:] = False
    begin, end = (facts.spans(facts.rows(EventKind.API, name))[:, 0] for name in (_BEGIN, _END))
    after = np.searchsorted(end, begin, "left")
    closed = after < len(end)
    captures = intervals.merge(begin[closed], end[after[closed]])
    return long | (2 * intervals.coverage(captures, gaps.start, gaps.end) > length)


def _recurs(facts: Facts, spans: NDArray[np.int64]) -> bool:
    """Whether some stretches are a pattern: half of the steps have at least half as much of them as the mean step."""
    if len(spans) > MOST:
        return True
    by_step = facts.by_step(spans)
    return len(by_step) >= PATTERN and facts.recurs(by_step, max(1.0, float(by_step.mean()) / 2))


def underused(facts: Facts, busy: float, other: float) -> float | None:
    """Busy share of the step where it is below `busy` and data, sync, peers and unknown work explain less than `other`.

    None where the device is busy enough, or idle for these reasons.
    """
    parts = facts.analysis.partitions[0]
    share = facts.window.share(facts.window.sum(parts.busy))
    idle = facts.mean(facts.window.sum(parts.idle))
    explained = facts.idle_mean(Cause.DATA_LOADING, Cause.SYNC, Cause.PEER_WAIT, Cause.UNTRACED)
    return None if share >= busy or explained >= other * idle else share
