"""Calls of the allocator of the device in the windows, for the rules about memory."""

import re
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.idle.idle import idle_gaps
from traceanalyze.model.columns import Rows, distinct, occurs
from traceanalyze.model.intervals import Intervals, contains, merge
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import DISPATCH, ApiClass, Cause
from traceanalyze.replay.replay import Change
from traceanalyze.rules.rule import Evidence, Facts, Finding, Scope, Severity, measured, picked

_PINNED = regex(r"HostAlloc|HostMalloc|FreeHost|HostFree|MallocHost", re.IGNORECASE)
_FREES = regex(r"Free|Unmap|Release", re.IGNORECASE)


class AllocatorCalls(NamedTuple):
    """Calls that take memory from the device or the host's pinned pool, or give it back; by thread and start."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    track: NDArray[np.int32]
    op: Rows
    """Place in `Context.op_nest` of the innermost operator, -1 for none."""
    pinned: NDArray[np.bool_]
    frees: NDArray[np.bool_]
    step: NDArray[np.int64]
    """Which of the windows each begins in."""


def allocator_calls(facts: Facts, everywhere: bool = False) -> AllocatorCalls:
    """Those of a rank that begin in the windows, or all that were recorded."""
    calls, strings = facts.context.calls, facts.context.trace.strings
    chosen = (calls.klass == ApiClass.ALLOC) & calls.outermost
    rows = np.flatnonzero(chosen if everywhere else chosen & facts.inside(calls.start))
    name, start = calls.name[rows], calls.start[rows]
    starts = facts.analysis.steps.start[list(facts.window.rows)]
    pinned, frees = (strings.matches(name, pattern.search) for pattern in (_PINNED, _FREES))
    step = np.searchsorted(starts, start, "right") - 1
    return AllocatorCalls(start, calls.end[rows], calls.track[rows], facts.context.call_op[rows], pinned, frees, step)


def steady(facts: Facts, chosen: NDArray[np.bool_]) -> int:
    """Windows after the first recorded one with such calls: memory is taken once at the beginning of every program."""
    step = facts.once(allocator_calls).step[chosen]
    begun = facts.marked and int(facts.edges[0].min()) > int(facts.context.all_steps.start.min())
    return len(set(step[step >= int(not begun)].tolist()))


class Flushes(NamedTuple):
    """Operators of the whole recording in which the allocator gave its cache back for lack of memory; by start."""

    op: NDArray[np.int64]
    """Place in `Context.op_nest`."""
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    """From the first call of the allocator in it to the last."""
    frees: NDArray[np.int64]
    time: NDArray[np.int64]
    """In its calls, ns."""


FREES = 4
"""In a row (own): libraries that start inside an operator free up to two."""


def flushes(facts: Facts) -> Flushes:
    """Operators that give several blocks back to the device and take one right after; use with `Facts.once`.

    So does the allocator where a request does not fit: it waits for the device, frees what it has cached, tries again.
    Libraries that try algorithms out in an operator free what they took for that, after kernels of their own.
    """
    context, strings = facts.context, facts.context.trace.strings
    calls = context.calls
    rows = np.flatnonzero((calls.klass == ApiClass.ALLOC) & calls.outermost & (context.call_op >= 0))
    rows = rows[~strings.matches(calls.name[rows], _PINNED.search)]
    rows = rows[np.lexsort((calls.start[rows], context.call_op[rows]))]
    op, frees = context.call_op[rows], strings.matches(calls.name[rows], _FREES.search)
    count = len(rows) - FREES
    row = np.logical_and.reduce([frees[at : at + count] for at in range(FREES)]) if count > 0 else np.zeros(0, np.bool_)
    again = np.flatnonzero(row & ~frees[FREES:] & (op[: len(row)] == op[FREES:])) + FREES
    launched = np.flatnonzero(context.link >= 0)
    launcher = context.event_op[launched]
    found: list[tuple[int, ...]] = []
    for one in distinct(op[again]).tolist():
        own = op == one
        first = int(calls.start[rows[own & frees]].min())
        mine = launched[launcher == one]
        if not (calls.start[context.link[mine]] < first).any():
            each = rows[own]
            time = int((calls.end[each] - calls.start[each]).sum())
            found.append((one, int(calls.start[each].min()), int(calls.end[each].max()), int(frees[own].sum()), time))
    table = np.array(sorted(found, key=itemgetter(1)), np.int64).reshape(-1, len(Flushes._fields))
    return Flushes(*table.T)


def allocator_finding(facts: Facts, chosen: NDArray[np.bool_]) -> Finding:
    """What the chosen calls cost: the host side of the gaps they lie in; and what is gained without them."""
    calls = facts.once(allocator_calls)
    removed = merge(calls.start[chosen], calls.end[chosen])
    spans = _gaps_with(facts, removed)
    caused, blocked = facts.length(spans), facts.per_step(removed.end - removed.start)
    return Finding(
        cost=caused,
        bound=blocked,
        change=Change(removed),
        draws="idle",
        intervals=spans,
        evidence=measured(count=int(chosen.sum()), time=blocked, idle=caused),
        count=int(chosen.sum()),
    )


def _gaps_with(facts: Facts, calls: Intervals) -> NDArray[np.int64]:
    """(n, 2) host side of the gaps of which these calls take the larger part."""
    pieces, gaps = facts.pieces, facts.context.once(idle_gaps)
    length = pieces.end - pieces.start
    host = occurs(pieces.cause, DISPATCH)
    inside = (pieces.cause == Cause.DISPATCH_ALLOC) & contains(calls, pieces.start)
    whole, part = np.zeros(len(gaps), np.int64), np.zeros(len(gaps), np.int64)
    np.add.at(whole, pieces.gap[host], length[host])
    np.add.at(part, pieces.gap[inside], length[inside])
    chosen = host & (2 * part >= whole)[pieces.gap] & (part > 0)[pieces.gap]
    return picked(pieces.start, pieces.end, chosen)


def device_memory(facts: Facts) -> tuple[Any, int] | None:
    """Row of the headline device in the table `memory`, and its capacity, where both are known."""
    capacity = _capacity(facts)
    for each in facts.analysis.records("memory"):
        if each.memory_of == "memory_of_device" and each.device == facts.analysis.device and capacity:
            return each, capacity
    return None


def _capacity(facts: Facts) -> int | None:
    """Bytes of the headline device, None where the trace does not state them."""
    known = {device.id: device.memory_bytes for device in facts.context.trace.devices}
    return None if facts.analysis.device is None else known.get(facts.analysis.device)


def memory_finding(severity: Severity, line: str, count: int, *evidence: Evidence, sentence: str = "") -> Finding:
    """A finding about memory at a line of the program, empty where none is known."""
    scope = Scope(ops=(line,) if line else ())
    return Finding(evidence=evidence, severity=severity, count=count, scope=scope, sentence=sentence)


def reserved_of_capacity(facts: Facts) -> tuple[int, int] | None:
    """The snapshot's highest reserve, and the device's memory by whoever states it; None where either is unknown."""
    if facts.allocator is None:
        return None
    capacity = facts.allocator.capacity or _capacity(facts)
    return (facts.allocator.most_reserved, capacity) if capacity else None
