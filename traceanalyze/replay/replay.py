"""The recorded program again with some change: how long the steps would have been.

Host work keeps its length and its order on each thread, device events keep theirs and wait for their launches, for the
events before them on their streams and for what streams wait for each other for; calls that wait for the device return
when it is done; batches that workers make are there when they were. Without a change every recorded time comes back.
"""

from collections.abc import Mapping
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.idle.idle import idle_gaps
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct, occurs
from traceanalyze.model.intervals import EMPTY, Intervals
from traceanalyze.model.patterns import dataclass
from traceanalyze.replay.graph import Graph, Program, program
from traceanalyze.replay.longest import NEVER, Ended, gone, longest, shorten, take_out

_NONE = np.zeros(0, np.int64)


class Change(NamedTuple):
    """What another run of the program would not do. Only what lies in or after the analysed windows counts."""

    host: Intervals = EMPTY
    """Host time taken out of all threads, a set; calls that begin inside it wait for nothing."""
    threads: Mapping[int, Intervals] = {}
    """The same of one thread each, by track."""
    calls: NDArray[np.int64] = _NONE
    """Positions in `Context.calls` that no longer wait for the device; the copies that they start stay."""
    events: NDArray[np.int64] = _NONE
    """Positions in `Context.device` of events that are shorter,"""
    shorter: NDArray[np.int64] = _NONE
    """by so many ns each, of an event named twice by the larger number; what is more than an event lasts is taken from
    the gap after it, as where there is no event."""
    batches: float = 0.0
    """By what part sooner the workers of the loader have every batch ready, as counted from the windows' begin; 1: in
    time."""
    pinned: Intervals = EMPTY
    """Stretches of a host that may wait for what comes at its own time: it goes on no earlier after them than recorded,
    but for those of which most is taken out."""
    numbers: bool = False
    """Whether work of the host that follows the read of a single number needs it; that of more is always needed."""
    slower: float = 0.0
    """By what part longer the work takes that is left to the host."""


def together(*changes: Change) -> Change:
    """All of several changes in one run."""
    tracks = {track for change in changes for track in change.threads}
    return Change(
        intervals.union(EMPTY, *(change.host for change in changes)),
        {track: intervals.union(*(change.threads.get(track, EMPTY) for change in changes)) for track in tracks},
        np.concatenate([_NONE, *(change.calls for change in changes)]),
        np.concatenate([_NONE, *(change.events for change in changes)]),
        np.concatenate([_NONE, *(change.shorter for change in changes)]),
        batches=max((change.batches for change in changes), default=0.0),
        pinned=intervals.union(EMPTY, *(change.pinned for change in changes)),
        numbers=any(change.numbers for change in changes),
        slower=max((change.slower for change in changes), default=0.0),
    )


def same(one: Change, other: Change) -> bool:
    """Whether two changes are the same, entry by entry."""
    threads = one.threads.keys() == other.threads.keys()
    if not threads or (one.batches, one.numbers, one.slower) != (other.batches, other.numbers, other.slower):
        return False
    mine, others = (
        (
            *each.host,
            *each.pinned,
            each.calls,
            each.events,
            each.shorter,
            *chain(*(each.threads[track] for track in one.threads)),
        )
        for each in (one, other)
    )
    return all(map(np.array_equal, mine, others))


def amount(change: Change) -> int:
    """Time that a change takes out, and one for each call that no longer waits; without any it is none."""
    spans = (change.host, *change.threads.values())
    return sum(map(intervals.total, spans)) + int(change.shorter.sum()) + len(change.calls) + bool(change.batches)


class Again(NamedTuple):
    """A program run again, point by point of its graph."""

    weight: NDArray[np.int64]
    """Of its edges: how long after the source the target may happen."""
    time: NDArray[np.int64]
    """When each point happens."""
    lasted: NDArray[np.int64]
    """How long each device event takes."""
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    """Of the windows."""
    waited: NDArray[np.int64] | None = None
    """How long each device event waits for other ranks after its start; None: not replayed with them."""


@dataclass(frozen=True, eq=False)
class Replayed:
    """The windows (`Context.all_steps`) as they would have been, ns."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    shorter: NDArray[np.int64]
    """By how much each is shorter than the one recorded; negative where it is longer."""
    counted: NDArray[np.bool_]
    """The analysed windows that count in means."""
    context: Context
    again: Again

    @cached_property
    def idle(self) -> Intervals:
        """Idle time of the headline device that would be gone: the end of the gap before each event."""
        return _idle_gone(self.context, self.again)

    @property
    def saving(self) -> int:
        """By how much the windows that count are shorter together, never less than 0."""
        return max(0, int(self.shorter[self.counted].sum()))


def counted_windows(context: Context) -> NDArray[np.bool_]:
    """Which of `Context.all_steps` are analysed and count in means."""
    return context.once(program).counted


def run_again(known: Program, change: Change) -> Again:
    """The program of a rank without what the change takes out."""
    changed = changed_program(known, change)
    time = longest(known.graph.edges, changed.weight, changed.earliest)
    done = time.take(known.graph.event) + changed.lasted
    return Again(changed.weight, time, changed.lasted, *windows_of(known, time, done))


def replay(context: Context, change: Change) -> Replayed:
    """What the steps of a rank gain by a change."""
    known = context.once(program)
    again = run_again(known, change)
    shorter = known.steps.time - (again.end - again.start)
    return Replayed(again.start, again.end, shorter, known.counted, context, again)


class Changed(NamedTuple):
    """A program with a change."""

    weight: NDArray[np.int64]
    """Of its edges."""
    earliest: NDArray[np.int64]
    """Of its points."""
    lasted: NDArray[np.int64]
    """How long each device event takes."""


def changed_program(known: Program, change: Change) -> Changed:
    """What a change makes of the waits and times of a program."""
    if not len(change.events):
        return Changed(*_changed(known, change, None), known.length)
    shorter = _shorter(known, change)
    return Changed(*_changed(known, change, shorter), np.maximum(known.length - shorter, 0))


def _shorter(known: Program, change: Change) -> NDArray[np.int64]:
    """By how much sooner each device event is over; of one that began before the windows, at most what is inside."""
    shorter = np.zeros(len(known.start), np.int64)
    np.maximum.at(shorter, change.events, change.shorter)
    before = slice(np.searchsorted(known.start, known.began))
    shorter[before] = np.clip(shorter[before], 0, np.maximum(known.end[before] - known.began, 0))
    return shorter


def _changed(
    known: Program, change: Change, shorter: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Weights of the edges and earliest times of the points."""
    graph, began = known.graph, known.began
    weight, earliest = graph.weight.copy(), graph.earliest
    if len(graph.batches.point) or len(change.pinned.start):
        earliest = earliest.copy()
    if shorter is not None:
        # Calls that wait for an event return when it is over; only what follows on the device closes up.
        shorten(graph.busy, shorter, known.length, weight)
    ends = [change.calls]
    sooner = np.full(len(graph.batches.point), float(change.batches))
    read = graph.waiting.reading
    left = read.end - read.start
    for row, removed in enumerate(_removed(graph, change)):
        _pin(known, change.pinned, removed, row, earliest)
        if len(removed.start) == 0:
            continue
        take_out(graph.host, row, _from(removed, began), weight)
        ends.append(_begun_in(known, removed, row))
        waits = np.flatnonzero((left > 0) & occurs(known.call_track[graph.waiting.call], graph.tracks[row]))
        if len(waits):
            left[waits] -= intervals.coverage(removed, read.start[waits], read.end[waits])
        sooner[(graph.batches.line == row) & intervals.contains(removed, graph.batches.begin)] = 1
    if len(sooner):
        ready = np.maximum(earliest[graph.batches.point] - began, 0)
        earliest[graph.batches.point] -= np.round(ready * sooner).astype(np.int64)
    calls = np.concatenate(ends)
    if len(calls):
        gone_calls = np.zeros(len(known.call_start), np.bool_)
        gone_calls[calls[known.call_end[calls] > began]] = True
        # What reads the result of a copy is not done before it, unless it is taken out, too.
        reads = 2 * left > read.end - read.start
        reads &= change.numbers | ~graph.waiting.number
        weight[graph.waiting.edge[gone_calls[graph.waiting.call] & ~reads]] = NEVER
        back = graph.returns.edge[gone_calls[graph.returns.call]]
        weight[back] = np.minimum(weight[back], graph.own_cost)
    if change.slower:
        edge, least = graph.host.edge, graph.host.least
        weight[edge] += np.round(change.slower * np.maximum(weight[edge] - least, 0)).astype(np.int64)
    return weight, earliest


def _removed(graph: Graph, change: Change) -> list[Intervals]:
    """Host time taken out of each line of threads."""
    found = []
    for tracks in graph.tracks:
        of_threads = [change.threads[track] for track in tracks if track in change.threads]
        found.append(intervals.union(change.host, *of_threads) if of_threads else change.host)
    return found


def _pin(known: Program, pinned: Intervals, removed: Intervals, row: int, earliest: NDArray[np.int64]) -> None:
    """Let what a line does first after each stretch that it is silent in happen no earlier than the stretch ends.

    Marks of windows are passed inside such a stretch, too. Without anything after it the last of them ends it.
    """
    left = 2 * intervals.coverage(removed, *pinned) <= pinned.end - pinned.start if len(pinned.start) else EMPTY.start
    if not left.any():
        return
    start, end = (each[left] for each in pinned)
    graph = known.graph
    target = np.searchsorted(graph.edges.bounds, graph.host.edge[graph.host.line == row], "right") - 1
    point = distinct(target)
    point = point[~occurs(point, graph.event)]
    acts = point[~occurs(point, graph.marks.ravel())]
    at = np.searchsorted(graph.time[acts], end)
    silent = (at == 0) | (graph.time[acts[np.maximum(at, 1) - 1]] <= start) if len(acts) else at == 0
    after = np.append(acts, point[-1:])[np.minimum(at, len(acts))[silent]] if len(point) else point
    end = end[silent][: len(after)]
    gone = intervals.coverage(removed, end, np.maximum(graph.time[after], end))
    np.maximum.at(earliest, after, graph.time[after] - gone)


def _from(removed: Intervals, began: int) -> Intervals:
    """What of a set lies after an instant."""
    first = int(np.searchsorted(removed.end, began, "right"))
    start, end = removed.start[first:], removed.end[first:]
    return Intervals(np.maximum(start, began), end) if len(start) and start[0] < began else Intervals(start, end)


def _begun_in(known: Program, removed: Intervals, row: int) -> NDArray[np.int64]:
    """Calls of a line that wait and begin in the time taken out."""
    calls = known.graph.waiting.call
    calls = calls[intervals.contains(removed, known.call_start[calls])]
    return calls[occurs(known.call_track[calls], known.graph.tracks[row])]


def windows_of(
    known: Program, time: NDArray[np.int64], done: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Begin and end of the windows: each ends when its host and its device events have (`done`; definitions §3)."""
    steps, owned, marks = known.steps, known.owned, known.graph.marks
    latest = np.full(len(steps), NEVER)
    if len(owned.event):
        latest[owned.window] = np.maximum.reduceat(done.take(owned.event), owned.first)
    if marks.shape[1]:
        begin, back = time[marks]
    elif known.whole:
        begin = back = steps.start
    else:
        begin, back = (_on_device(known, done, each) for each in (steps.host_start, steps.host_end))
    begin = begin.copy()
    begin[0] = max(int(begin[0]), int(steps.start[0]))
    end = np.maximum.accumulate(np.maximum(np.maximum(latest, back), begin))
    start = np.maximum(begin, np.concatenate((begin[:1], end[:-1])))
    return start, end


def _on_device(known: Program, done: NDArray[np.int64], marks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Marks on the device: so long after the event that ended last before them as recorded."""
    order = np.argsort(known.end, kind="stable")
    at = np.searchsorted(known.end[order], marks, "right") - 1
    event = order[np.maximum(at, 0)]
    return marks - np.where(at >= 0, known.end[event] - done[event], 0)


def _idle_gone(context: Context, again: Again) -> Intervals:
    """What would be gone of each idle gap of the headline device."""
    if not context.devices:
        return EMPTY
    return gone(context.once(_headline), again.time, again.lasted, int(context.all_steps.start[0]))


def _headline(context: Context) -> Ended:
    device, gaps = context.device, context.once(idle_gaps)
    own = np.flatnonzero((device.device == context.devices[0]) & (device.end > device.start))
    at = intervals.passed(device.start[own], gaps.end - 1)
    known = (at < len(own)) & (gaps.event >= 0)
    point, length = context.once(program).graph.event.take(own), gaps.end - gaps.start
    return Ended(own, point, at[known], gaps.end[known], length[known])
