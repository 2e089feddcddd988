"""Work of the host that is done once: compilation, the capture of graphs, and what is loaded when it is first used.

A step after these does without them, so that they have a cost and no saving.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.idle.idle import idle_gaps
from traceanalyze.analyses.idle.pauses import profiling
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct, median, occurs
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import DISPATCH, ApiClass, Cause, EventKind
from traceanalyze.rules.common.allocations import allocator_calls, flushes
from traceanalyze.rules.facts import RANGES
from traceanalyze.rules.rule import Facts, intervals_of, merged, picked

LONG_NS, LONG_TIMES, MOST, PATTERN = 10_000_000, 100, 20, 3
"""A gap of so much, and of so many times the median gap, is no slow launching: libraries are loaded or kernels compiled
when they are first used, unless there are more than so many, or they come back in half of so many steps or more."""
CALL_NS, CALL_TIMES = 50_000, 10
"""A launch of so much, and of so many times the median one, of a kernel that was not launched before, loads its code;
so does a call that asks for it."""
_CODE = regex(r"Occupancy|Func(GetAttr|SetAttr)|Module(Load|GetFunc)|Library(Load|Get)|KernelGet")
_COMPILING = regex(
    r"\(dynamo_timed\)|_dynamo/convert_frame\.py\(\d+\): (_compile|compile_inner)"
    r"|CachingAutotuner\.benchmark_all_configs"
    r"|^(compile_fx|async_compile\.wait|GraphLowering)|_inductor/compile_fx\.py\(\d+\): compile_fx"
)
_RECORDING = regex(r"^CUDAGraphNode\.record\b")
_BEGIN, _END = regex(r"StreamBeginCapture"), regex(r"StreamEndCapture")


def compiling(facts: Facts) -> NDArray[np.int64]:
    """Event rows of ranges and Python functions of the compiler that begin in the windows, by time."""
    return facts.rows((*RANGES, EventKind.PYTHON), _compiles)


def _compiles(text: str) -> bool:
    return _COMPILING.search(text) is not None and _RECORDING.search(text) is None


def capturing(facts: Facts) -> Intervals:
    """When graphs are captured, in the windows; use with `Facts.once`.

    From the call that begins a capture to the one that ends it on the same thread, and ranges that record a graph.
    """
    recorded = merged(facts.spans(facts.rows(RANGES, _RECORDING)))
    begin, end = (facts.rows(EventKind.API, name) for name in (_BEGIN, _END))
    tracks = facts.context.trace.events.track
    found = [recorded]
    for track in distinct(tracks[begin]).tolist():
        start = facts.spans(begin[tracks[begin] == track])[:, 0]
        stop = facts.spans(end[tracks[end] == track])[:, 1]
        after = np.searchsorted(stop, start, "right")
        closed = after < len(stop)
        found.append(intervals.merge(start[closed], stop[after[closed]]))
    return intervals.union(*found)


def comes_back(facts: Facts, spans: NDArray[np.int64]) -> bool:
    """Whether some work (n, 2) is of more than the beginning: in three steps, or again after a step without it."""
    steps = np.flatnonzero(facts.by_step(spans) > 0)
    return len(steps) >= PATTERN or (len(steps) > 1 and int(steps[-1] - steps[0]) >= len(steps))


class OneOff(NamedTuple):
    """Idle time of the device in the windows by what is done once meanwhile: (n, 2), disjoint."""

    compile: NDArray[np.int64]
    capture: NDArray[np.int64]
    first_use: NDArray[np.int64]
    """In gaps that are too long for slow launching and do not come back, in first launches, while pools grow."""

    end: NDArray[np.int64]
    """At the end of the last step, without anything recorded."""

    @property
    def every(self) -> Intervals:
        """All of it."""
        return merged(np.concatenate(self))


def one_off(facts: Facts) -> OneOff:
    """What is done once on a rank; use with `Facts.once`."""
    none = intervals_of(*intervals.EMPTY)
    captures, compiled = facts.once(capturing), facts.spans(compiling(facts))
    capture = none if comes_back(facts, intervals_of(*captures)) else facts.overlap(captures)
    compile_ = none if comes_back(facts, compiled) else facts.overlap(merged(compiled))
    compile_ = intervals_of(*intervals.subtract(merged(compile_), merged(capture)))
    # Memory that runs short does so again.
    short = facts.once(flushes)
    known = intervals.union(merged(capture), merged(compile_), intervals.merge(short.start, short.end))
    known = intervals.union(known, facts.context.once(profiling))
    return OneOff(compile_, capture, intervals_of(*intervals.subtract(_first_use(facts), known)), _last(facts))


def _first_use(facts: Facts) -> Intervals:
    """Gaps that are too long to be slow launching, launches that load code, and memory that is taken and kept."""
    return intervals.union(_long_gaps(facts), _loading(facts), _growing(facts))


def _growing(facts: Facts) -> Intervals:
    """Idle time while a pool of memory that is not given back takes more, unless later steps do so, too.

    A library that starts may free some before its pool grows; a pool half of which is taken before the last time that
    some is given back does not only grow.
    """
    calls, found = allocator_calls(facts, everywhere=True), intervals.EMPTY
    step = np.searchsorted(facts.context.all_steps.start, calls.start, "right")
    for pinned in (False, True):
        taken = (calls.pinned == pinned) & ~calls.frees
        freed = calls.start[(calls.pinned == pinned) & calls.frees].max(initial=np.iinfo(np.int64).min)
        kept = taken & (calls.start > freed)
        steps = distinct(step[taken])
        later = len(steps) >= PATTERN or (len(steps) > 1 and 2 * len(steps) > len(facts.context.all_steps))
        if 2 * int(kept.sum()) > int(taken.sum()) and not later:
            spans = intervals.merge(calls.start[kept], calls.end[kept])
            found = intervals.union(found, merged(facts.overlap(spans)))
    return found


def _loading(facts: Facts) -> Intervals:
    """Idle time during launches that take far longer than others, each the first one of its kernel.

    And during calls as long that ask what its code needs.
    """
    context, device = facts.context, facts.context.device
    calls, rows = context.calls, np.flatnonzero((device.kind == EventKind.KERNEL) & (context.link >= 0))
    if not len(rows):
        return intervals.EMPTY
    call = context.link[rows].astype(np.intp)
    length = calls.end - calls.start
    slow = length >= max(CALL_NS, CALL_TIMES * median(length[call]))
    if not slow.any():
        return intervals.EMPTY
    # Only kernels of slow launches can have a slow first one.
    rows, call = (each[occurs(device.name[rows], distinct(device.name[rows[slow[call]]]))] for each in (rows, call))
    latest = np.argsort(calls.start[call], kind="stable")[::-1]
    first = np.full(len(context.trace.strings), -1)
    # Of several values for one place the last stays.
    first[device.name[rows[latest]]] = latest
    asks = context.trace.strings.matches(calls.name, _CODE.search)
    asks[call[first[first >= 0]]] = True
    asks &= slow
    long = intervals.merge(calls.start[asks], calls.end[asks])
    return intervals.EMPTY if comes_back(facts, intervals_of(*long)) else merged(facts.overlap(long))


def _long_gaps(facts: Facts) -> Intervals:
    """Dispatch and host operators in gaps that are too long to be slow launching."""
    gaps, pieces = facts.context.once(idle_gaps), facts.pieces
    length = gaps.end - gaps.start
    long = length >= LONG_NS
    chosen = np.flatnonzero(long[pieces.gap])
    chosen = chosen[occurs(pieces.cause[chosen], DISPATCH)]
    launching_in = np.zeros(len(gaps), np.int64)
    np.add.at(launching_in, pieces.gap[chosen], (pieces.end - pieces.start)[chosen])
    long &= 2 * launching_in >= length
    if not long.any():
        return intervals.EMPTY
    long &= length >= LONG_TIMES * median(length[np.bincount(pieces.gap, minlength=len(gaps)) > 0])
    spans = picked(gaps.start, gaps.end, long)
    if _recurs(facts, spans):
        return intervals.EMPTY
    long[long] = [not _again(facts, start, end) for start, end in spans.tolist()]
    chosen = chosen[long[pieces.gap[chosen]]]
    return intervals.merge(pieces.start[chosen], pieces.end[chosen])


def _last(facts: Facts) -> NDArray[np.int64]:
    """Untraced idle time after the last device work of several steps, twice as long as in any other gap."""
    gaps, pieces, last = facts.context.once(idle_gaps), facts.pieces, len(facts.context.once(idle_gaps)) - 1
    known = facts.context.doubt is None and facts.context.doubt_of_idle is None and len(facts.context.all_steps) > 1
    if not known or last < 0 or gaps.event[last] >= 0:
        return intervals_of(*intervals.EMPTY)
    untraced = pieces.cause == Cause.UNTRACED
    time = np.bincount(pieces.gap[untraced], (pieces.end - pieces.start)[untraced], len(gaps))
    if time[last] < max(LONG_NS, 2 * time[:last].max(initial=0)):
        return intervals_of(*intervals.EMPTY)
    return intervals_of(*(each[untraced & (pieces.gap == last)] for each in (pieces.start, pieces.end)))


def _recurs(facts: Facts, spans: NDArray[np.int64]) -> bool:
    """Whether some stretches are a pattern: half of the steps have at least half as much of them as the mean step."""
    if len(spans) > MOST:
        return True
    by_step = facts.by_step(spans)
    return len(by_step) >= PATTERN and facts.recurs(by_step, max(1.0, float(by_step.mean()) / 2))


def _again(facts: Facts, start: int, end: int) -> bool:
    """Whether the operator or call that takes most of a gap takes as long again in another recorded step."""
    context, events = facts.context, facts.context.trace.events
    # A launch loads the code of its kernel: another one that takes as long loads that of another.
    calls = context.calls.row[context.calls.klass != ApiClass.LAUNCH]
    rows = np.concatenate((context.op_nest.row, calls))
    begin, length = events.ts[rows], events.dur[rows]
    within = np.minimum(begin + length, end) - np.maximum(begin, start)
    around = np.flatnonzero(2 * within >= end - start)
    if not len(around):
        return False
    most = around[np.argmin(length[around])]
    step = np.searchsorted(context.all_steps.start, begin, "right")
    alike = (events.name[rows] == events.name[rows[most]]) & (2 * length >= length[most])
    return bool((alike & (step != step[most])).any())
