"""What a host thread is doing at each instant (definitions §5, "host state"), and each step by that (§3, fallback)."""

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import starmap
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.events import ByTrack, by_track
from traceanalyze.model import intervals
from traceanalyze.model.classify import is_async_copy, is_data_loading, is_peer_wait
from traceanalyze.model.columns import occurs
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import DISPATCH_CALLS, ApiClass, Cause, EventKind, SyncKind

BLOCKING_COPY_NS = 50_000
"""An asynchronous copy call this long that outlasts the start of its copy blocks in effect (definitions §7)."""

PYTHON_NS = 1_000_000
"""Own: shorter stretches without anything recorded are Python between operators, and belong to launching; longer ones
are work or waiting of their own."""
HANDED_NS = 100_000
"""A thread that goes on so soon after another one has made a batch has waited for it."""

API_CAUSE = {
    ApiClass.LAUNCH: Cause.DISPATCH_LAUNCH,
    ApiClass.COPY: Cause.DISPATCH_COPY,
    ApiClass.ALLOC: Cause.DISPATCH_ALLOC,
    ApiClass.OTHER: Cause.DISPATCH_OTHER,
    ApiClass.SYNC: Cause.SYNC,
}


_OF_CLASS = np.array([API_CAUSE[each] for each in ApiClass], np.uint8)


class States(NamedTuple):
    """Disjoint segments of one thread in time order, each with the `Cause` (or `Phase`) it stands for."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    cause: NDArray[np.uint8]

    @property
    def spans(self) -> Intervals:
        """The segments without their labels."""
        return Intervals(self.start, self.end)

    def of(self, labels: Sequence[int]) -> Intervals:
        """When the thread is in any of some states."""
        member = occurs(self.cause, labels)
        return intervals.merge(self.start[member], self.end[member])

    def beside(self, more: "States") -> "States":
        """The segments and, in the time between them, others."""
        if not len(self.start) or not len(more.start):
            return self if len(self.start) else more
        return States(*intervals.beside(self.spans, self.cause, more.spans, more.cause))


def alike(cause: int, spans: Intervals) -> States:
    """A set as segments of one cause."""
    return States(*spans, np.full(len(spans.start), int(cause), np.uint8))


def layered(layers: Iterable[tuple[int, Intervals]]) -> States:
    """Segments of several overlapping sets where an earlier set hides the later ones."""
    return reduce(States.beside, starmap(alike, layers), alike(0, intervals.EMPTY))


def together(threads: Iterable[States]) -> States:
    """The segments of several threads, in time order; they overlap."""
    start, end, cause = map(np.concatenate, zip(*threads, strict=True))
    order = np.argsort(start, kind="stable")
    return States(start[order], end[order], cause[order])


def host_states(context: Context, track: int, with_data: bool) -> States:
    """What a host thread is doing at each instant; its data loading too only if `with_data`."""
    if with_data:
        return _with_data(context, track)
    calls, active = context.calls, context.trace.events.active
    first, last = np.searchsorted(calls.track, (track, track + 1))
    own = first + np.flatnonzero((calls.outermost & (calls.end > calls.start))[first:last])
    cause = _OF_CLASS[calls.klass[own]]
    cause[context.once(is_sync_call)[own]] = Cause.SYNC
    states = _whole(States(calls.start[own], calls.end[own], cause))
    waits = active(context.once(peer_waits).of(track))
    if len(waits.start):
        waits = intervals.subtract(waits, states.of((Cause.SYNC,)))
        states = alike(Cause.PEER_WAIT, waits).beside(states)
    states = states.beside(alike(Cause.HOST_OP, active(context.op_nest.row[context.op_nest.of(track)])))
    if track == context.step_track:
        # Blocked: what the thread waits for runs on another one.
        states = states.beside(alike(Cause.PEER_WAIT, context.once(collectives_of_workers)))
    return states


def _whole(states: States) -> States:
    """The same with those of one cause that touch each other as one."""
    goes_on = (states.start[1:] == states.end[:-1]) & (states.cause[1:] == states.cause[:-1])
    if not goes_on.any():
        return states
    first, last = ~np.append(False, goes_on), ~np.append(goes_on, False)
    return States(states.start[first], states.end[last], states.cause[first])


def _with_data(context: Context, track: int) -> States:
    """The same with its data loading, which hides all else."""
    states = context.once(host_states, track, False)
    if not len(context.once(loading_ranges).rows):
        return states
    states = alike(Cause.DATA_LOADING, data_loading(context, track)).beside(states)
    if track == context.step_track:
        states = states.beside(alike(Cause.DATA_LOADING, _loaded_elsewhere(context, states.spans)))
    return states


def _loaded_elsewhere(context: Context, active: Intervals) -> Intervals:
    """When a loader of another thread makes the batch that the thread of the steps goes on with after a silence."""
    ranges, tracks, step = context.once(loading_ranges), context.trace.tracks, context.step_track
    others = [ranges.of(track) for track in ranges.bounds if track != step and tracks[track, 0] == tracks[step, 0]]
    loading = context.trace.events.active(np.concatenate(others)) if others else intervals.EMPTY
    if not len(loading.start):
        return loading
    begin, end = (int(each) for each in (context.all_steps.host_start.min(), context.all_steps.host_end.max()))
    silent = intervals.gaps(active, begin, end)
    at = np.searchsorted(loading.end, silent.end, "right") - 1
    made = loading.end[np.maximum(at, 0)]
    handed = (at >= 0) & (silent.end - made <= HANDED_NS) & (made - silent.start >= PYTHON_NS)
    return intervals.intersect(loading, Intervals(silent.start[handed], silent.end[handed]))


def data_loading(context: Context, track: int) -> Intervals:
    """When a thread waits for its data loader."""
    return context.trace.events.active(context.once(loading_ranges).of(track))


def loading_ranges(context: Context) -> ByTrack:
    """Ranges in which a thread waits for its data loader, by thread."""
    classify = context.options.classify
    data = context.trace.strings.matches(context.host_names, lambda text: is_data_loading(text, classify))
    return by_track(context.trace, context.host_rows[data])


def peer_waits(context: Context) -> ByTrack:
    """Ranges in which a thread waits for other processes, by thread."""
    waits = context.trace.strings.matches(context.host_names, is_peer_wait)
    return by_track(context.trace, context.host_rows[waits])


def collectives_of_workers(context: Context) -> Intervals:
    """When another thread of the step's process is inside a collective of the host (gloo and like)."""
    waits, tracks, step = context.once(peer_waits), context.trace.tracks, context.step_track
    others = [waits.of(track) for track in waits.bounds if track != step and tracks[track, 0] == tracks[step, 0]]
    return context.trace.events.active(np.concatenate(others)) if others and step >= 0 else intervals.EMPTY


def peers_unknown(context: Context) -> NotMeasured | None:
    """Why the wait for other processes is unknown: workers run collectives while the step's thread is never blocked."""
    if not len(context.once(collectives_of_workers).start):
        return None
    blocked = context.once(host_states, context.step_track, True).cause == int(Cause.PEER_WAIT)
    return None if blocked.any() else NotMeasured("step_never_blocked")


def blocking_copies(context: Context) -> NDArray[np.bool_]:
    """Asynchronous copy calls that were still running when their own copy began: they block in effect."""
    device, calls, link = context.device, context.calls, context.link
    copies = np.flatnonzero((device.kind == int(EventKind.MEMCPY)) & (link >= 0))
    first_copy = np.full(len(calls), np.iinfo(np.int64).max)
    np.minimum.at(first_copy, link[copies], device.start[copies])
    asynchronous = context.trace.strings.matches(calls.name, is_async_copy)
    return asynchronous & (calls.end - calls.start >= BLOCKING_COPY_NS) & (calls.end > first_copy)


def is_sync_call(context: Context) -> NDArray[np.bool_]:
    """Calls that count as sync points: explicit, blocking copies, and copies blocking in effect (definitions §7)."""
    calls = context.calls
    by_name = occurs(calls.sync, (SyncKind.EXPLICIT, SyncKind.BLOCKING_COPY))
    counted: NDArray[np.bool_] = (by_name | context.once(blocking_copies)) & calls.outermost
    return counted


class HostSplit(NamedTuple):
    """Host-only report: the step thread's span by what it did (ns per step, rows sum to the step)."""

    data_loading: NDArray[np.int64]
    sync: NDArray[np.int64]
    peer_wait: NDArray[np.int64]
    api: NDArray[np.int64]
    host_op: NDArray[np.int64]
    untraced: NDArray[np.int64]


def host_split(context: Context) -> HostSplit | NotMeasured:
    """Each step by what its thread did; the rest is untraced."""
    if context.step_track < 0:
        return NotMeasured("no_host_events")
    states, steps = context.once(host_states, context.step_track, True), context.steps
    causes = (Cause.DATA_LOADING,), (Cause.SYNC,), (Cause.PEER_WAIT,), DISPATCH_CALLS, (Cause.HOST_OP,)
    times = [intervals.coverage(states.of(each), steps.start, steps.end) for each in causes]
    return HostSplit._make((*times, steps.time - np.sum(times, axis=0)))
