"""Operators of a program that computes on the host: those of the steps' thread outside its data loader, in order."""

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.frames import user_frames
from traceanalyze.analyses.host.nesting import Nest
from traceanalyze.analyses.idle.host_state import data_loading
from traceanalyze.model import intervals
from traceanalyze.model.classify import is_step_marker
from traceanalyze.model.columns import median
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.common.op_chains import OTHER, letter_of
from traceanalyze.rules.common.replay import launched_inside
from traceanalyze.rules.rule import Facts, intervals_of, picked

RECORDING_NS = 600
"""What the profiler adds to each operator: own measurement, torch 2.13 with shapes: 0.4 to 0.7 µs."""

CALL_NS = 2_000
"""What an operator takes for hardly any work, recorded: own measurement, torch 2.13."""


class HostOps(NamedTuple):
    """Operators that begin in the windows, by start; parents before their children."""

    nest: Nest
    place: NDArray[np.int64]
    """Where they stand in the nest."""
    start: NDArray[np.int64]
    name: NDArray[np.int32]
    """Code in `Trace.strings`."""

    def inside(self, ranges: Intervals) -> NDArray[np.int64]:
        """Those that begin in a set of ranges."""
        first, last = (np.searchsorted(self.start, edge) for edge in ranges)
        return np.repeat(last - np.cumsum(last - first), last - first) + np.arange(int((last - first).sum()))

    def spans(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n, 2) starts and ends."""
        return picked(self.nest.start, self.nest.end, self.place[chosen])


def host_ops(facts: Facts) -> HostOps:
    """Operators of the steps' thread outside its data loader; use with `Facts.once`."""
    nest, track = facts.context.op_nest, facts.context.step_track
    own = nest.of(track)
    counted = intervals.subtract(facts.windows, data_loading(facts.context, track))
    place = np.flatnonzero(intervals.contains(counted, nest.start[own]))
    place += own.start
    return HostOps(nest, place, nest.start[place], facts.context.op_names[place])


def ranges(facts: Facts, name: re.Pattern[str]) -> Intervals:
    """When the steps' thread was in annotations with such a name, in the windows."""
    rows = facts.rows(EventKind.ANNOTATION, name)
    rows = rows[facts.context.trace.events.track[rows] == facts.context.step_track]
    return facts.clip(facts.spans(rows))


def calls_and_work(facts: Facts, ops: HostOps, inside: Intervals) -> tuple[int, int]:
    """Time in ranges of the steps' thread, ns a step: of calling operators, without what recording them adds; of work.

    Work is what operators take beyond `CALL_NS` themselves.
    """
    within = ops.inside(inside)
    time = max(0, intervals.total(inside) - len(within) * RECORDING_NS)
    work = min(time, int(np.maximum(ops.nest.own[ops.place[within]] - CALL_NS, 0).sum()))
    return facts.mean(time - work), facts.mean(work)


NO_WORK = regex(
    r"^autograd::|^\w+Backward\d*$|^(aten::)?(_unsafe_view|_reshape_alias|alias|as_strided_?|chunk|detach_?|diagonal|empty\w*|expand\w*|flatten"
    r"|lift_fresh|narrow|permute|reshape|resize_|resolve_(conj|neg)|result_type|select|slice|split\w*|squeeze_?|t|to"
    r"|transpose_?|unbind|unflatten|unsafe_split|unsqueeze_?|view\w*)$"
)
"""Operators that give memory or another view of it, and steps of autograd: they compute nothing themselves."""


VIEW = regex(
    r"^aten::(_unsafe_view|_reshape_alias|alias|as_strided|chunk|detach|diagonal|expand\w*|flatten|narrow|permute|reshape"
    r"|select|slice|split\w*|squeeze|t|transpose|unbind|unflatten|unsqueeze|view\w*)$"
)
"""Those of them that only view a tensor."""


_NAMED = r"(\w*_)?(e?poll|wait|sleep|recv\w*)(_\w*)?|_?select|accept|acquire|epoll_wait|kqueue|input|readline"
_WAITS = regex(
    rf"(^|\): |^<built-in (method|function) )({_NAMED})( of .*)?>?$|^<built-in (method|function) get of _queue\b"
    r"|(^|/)(queue|queues|threading|socket|ssl|connection|synchronize)\.py\(\d+\): (get|join|readinto|read|__enter__)$"
    r"|^(wait|idle)(ing|s)?\b|^(await|fetch|get|next|poll|receive|recv)_(\w+_)?(event|job|message|request)s?$"
)
"""Functions of Python in which a thread waits for another one, for the network or for the clock, by their names in any
library; and ranges of the program that say so."""
NEARLY = 0.99
"""A range of the program that covers this part of a stretch is where the stretch is."""


def own_ranges(facts: Facts) -> NDArray[np.int64]:
    """(n, 2) ranges of the program on the thread of the steps, and their rows in a third column; by start.

    Use with `Facts.once`.
    """
    context = facts.context
    test = context.options.classify
    own = facts.rows(EventKind.ANNOTATION, lambda text: not is_step_marker(text, test), anywhere=True)
    own = own[context.trace.events.track[own] == context.step_track]
    return np.column_stack((facts.spans(own), own))


def range_around(facts: Facts, start: int, end: int) -> str:
    """The innermost range of the program that a stretch lies in; empty where there is none."""
    begun, ended, row = facts.once(own_ranges).T
    inside = np.minimum(ended, end) - np.maximum(begun, start) >= NEARLY * (end - start)
    return next(iter(facts.names(row[inside][-1:])), "")


def waiting(facts: Facts) -> NDArray[np.int64]:
    """Rows of functions and ranges that say that the thread of the steps waits; use with `Facts.once`."""
    context, track = facts.context, facts.context.step_track
    rows = facts.rows((EventKind.PYTHON, EventKind.ANNOTATION), _WAITS, anywhere=True)
    own = (track, context.once(user_frames).track(track))
    return rows[np.isin(context.trace.events.track[rows], own)]


class HostChains(NamedTuple):
    """Operators that compute, in order; what runs inside an operator with a letter of its own belongs to that."""

    text: str
    ops: HostOps
    at: NDArray[np.int64]
    """Place in `ops` of each letter."""

    def inside(self, pattern: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of each match: (n, 2) time between the operators around the pattern's first group, and of the whole match."""
        found = [(match.span(1), match.span()) for match in re.finditer(pattern, self.text)]
        inner, whole = (np.array([each[part] for each in found], np.int64).reshape(-1, 2) for part in (0, 1))
        letters, nest = (inner[:, 0] - 1, inner[:, 1], whole[:, 0], whole[:, 1] - 1), self.ops.nest
        before, after, first, last = (self.ops.place[self.at[letter]] for letter in letters)
        return intervals_of(nest.end[before], nest.start[after]), intervals_of(nest.start[first], nest.end[last])


def host_chains(facts: Facts) -> HostChains:
    """The operators of the steps' thread as letters; use with `Facts.once`."""
    ops, strings = facts.once(host_ops), facts.context.trace.strings
    letter = strings.lookup(ops.name, letter_of).astype(np.uint8)
    named = letter != ord(OTHER)
    at = np.flatnonzero(named | ~strings.matches(ops.name, NO_WORK.match))
    place, named = ops.place[at], named[at]
    works = named | (ops.nest.stop[place] == place + 1)
    at, place, named = at[works], place[works], named[works]
    reach = np.maximum.accumulate(np.where(named, ops.nest.end[place], np.iinfo(np.int64).min))
    at = at[np.append(True, reach[:-1] <= ops.start[at[1:]])[: len(at)]]
    return HostChains(letter[at].tobytes().decode("latin-1"), ops, at)


def alone(facts: Facts, place: NDArray[np.int64]) -> NDArray[np.int64]:
    """Time of some operators (ascending) outside of those that they call and of runtime calls."""
    context, calls = facts.context, facts.context.calls
    own, chosen = context.op_nest.own[place], np.zeros(len(context.op_nest) + 1, np.bool_)
    chosen[place] = True
    # No operator is -1, the place after the last one.
    under = np.flatnonzero(calls.outermost & chosen[context.call_op])
    np.subtract.at(own, np.searchsorted(place, context.call_op[under]), (calls.end - calls.start)[under])
    return np.maximum(own, 0)


def usual_launch(facts: Facts) -> float | None:
    """What operators that launch work usually take themselves, with their runtime calls; use with `Facts.once`."""
    nest, context = facts.context.op_nest, facts.context
    # Or one that it calls: on NPUs only the innermost operator, of CANN, asks for work.
    chosen = np.flatnonzero((context.once(launched_inside) > 0) & facts.inside(nest.start))
    return median(nest.own[chosen]) if len(chosen) else None


SLOW, SLOW_NS, TIMES = 5.0, 100_000, 10
"""An operator that only views a tensor is slow as HST114 has it, and at so many times what other such ones take."""


class SlowViews(NamedTuple):
    """Operators that only view tensors and yet take the host long, as where Python takes part in each."""

    time: int
    """ns a step."""
    times: float
    """As long as other such operators."""
    what: str
    """The outermost operator around most of them."""
    start: int
    end: int
    """Of the longest of these."""


def slow_views(facts: Facts) -> SlowViews | None:
    """Those of the windows, where there are some; use with `Facts.once`."""
    nest, context = facts.context.op_nest, facts.context
    name, matches = context.op_names, context.trace.strings.matches
    long = np.flatnonzero((nest.own >= SLOW_NS) & facts.inside(nest.start))
    if not matches(name[long], VIEW.match).any() or (usual := facts.once(usual_launch)) is None:
        return None
    views = np.flatnonzero(matches(name, VIEW.match) & facts.inside(nest.start))
    own = alone(facts, views)
    slow = own >= max(SLOW * usual, SLOW_NS)
    if not slow.any() or slow.all():
        return None
    times = float(median(own[slow]) / max(median(own[~slow]), 1.0))
    if times < TIMES:
        return None
    roots = np.flatnonzero(nest.parent < 0)
    root = roots[np.searchsorted(roots, views[slow], "right") - 1]
    each = group(name[root])
    most = root[each.of == int(each.sum(own[slow]).argmax())]
    longest = int(most[np.argmax((nest.end - nest.start)[most])])
    return SlowViews(
        facts.mean(int(own[slow].sum())),
        times,
        facts.name(int(nest.row[longest])),
        int(nest.start[longest]),
        int(nest.end[longest]),
    )
