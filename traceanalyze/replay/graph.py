"""The recorded program of one rank: points in time, and what each of them waits for.

Points are moments of the host (starts of launches, starts and ends of calls that wait, of waits for batches and of
windows) and the starts of device events. An edge says that a point comes so long after another one, at least; of the
edges that lead to a point one fits exactly, so that the longest paths through the graph are the recording.
"""

from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.steps.critical_waits import lanes
from traceanalyze.analyses.steps.steps import owners
from traceanalyze.analyses.steps.window import Steps, window_of
from traceanalyze.model import intervals
from traceanalyze.model.columns import Rows, distinct, occurs, short, taken
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.patterns import dataclass
from traceanalyze.model.vocabulary import Mode
from traceanalyze.replay.device import Launches, device_order, followers
from traceanalyze.replay.host import (
    OF_GRAPHS,
    READY_NS,
    Chains,
    Lines,
    Moments,
    device_waits,
    fetches,
    lines,
    moments,
    own_cost,
    reading,
)
from traceanalyze.replay.longest import NEVER, Busy, Edges, HostTime, by_target
from traceanalyze.replay.silences import silences


class Waiting(NamedTuple):
    """Edges by which calls wait for device events, one row an edge."""

    edge: Rows
    call: NDArray[np.int64]
    """Position in `Context.calls`."""
    reading: Intervals
    """Work of the host that reads what was copied, and is never done before it."""
    number: NDArray[np.bool_]
    """Whether that is a single number: it may be logged only."""


class Returns(NamedTuple):
    """Edges that lead to the end of a runtime call from what its thread did before."""

    edge: NDArray[np.int64]
    call: NDArray[np.int64]


class Batches(NamedTuple):
    """Waits for batches that workers make."""

    point: NDArray[np.int64]
    """The end of each."""
    begin: NDArray[np.int64]
    """When it began."""
    line: NDArray[np.int64]


class Barriers(NamedTuple):
    """Barriers of the ranks on the host in which nothing else happens, one row each, in time order."""

    point: NDArray[np.int64]
    """Its begin."""
    end: NDArray[np.int64]
    edge: NDArray[np.int64]
    """From the one to the other."""


@dataclass(frozen=True, eq=False)
class Graph:
    """Points are numbered in order of time."""

    time: NDArray[np.int64]
    """As recorded."""
    earliest: NDArray[np.int64]
    """What began before the windows and is over sooner counts from their beginning on."""
    edges: Edges
    weight: NDArray[np.int64]
    tracks: tuple[tuple[int, ...], ...]
    """Threads of each line."""
    host: HostTime
    waiting: Waiting
    returns: Returns
    own_cost: int
    """What a call takes at most that does not wait, ns."""
    batches: Batches
    busy: Busy
    event: NDArray[np.int64]
    """Point of each device event's start."""
    marks: Rows
    """(2, windows) points at which the host marks each window's begin and end; (2, 0) where it does not."""
    barriers: Barriers


def graph(context: Context) -> Graph:
    """The program of a rank; use with `Context.once`."""
    device = context.device
    order = context.once(device_order)
    # The recorded order stays for rules that ask what waited for what.
    context.once(followers)
    waits = device_waits(context, order.launches)
    points = moments(context, order.launches, waits)
    context.forget(device_order, lanes)
    count = len(points.time)
    rank = _ranks(points, device.start)
    event = rank[count:]
    # Large, as what is let go further down: nobody asks for it again.
    points = points._replace(tie=np.zeros(0, np.int64))
    own, longest_call = own_cost(context, waits)
    threads, quiet = lines(context, points, rank[:count], _most(context, points, longest_call)), context.once(silences)

    recorded = np.empty(len(rank), np.int64)
    recorded[rank[:count]], recorded[event] = points.time, device.start
    earliest, held = np.full(len(rank), NEVER), rank[np.append(threads.free, count + np.flatnonzero(order.free))]
    earliest[held] = recorded[held]
    earliest[rank[points.batches[1]]] = context.once(fetches).ready
    began = int(context.all_steps.start[_windows(context)[1]].min())
    first = int(np.searchsorted(recorded, began))
    np.maximum(earliest[first:], began, out=earliest[first:])

    chains, launches, follows, length = threads.chains, order.launches, order.follows, device.end - device.start
    begun = taken(points.began, launches.call)
    source = (
        chains.source,
        begun,
        count + follows.source,
        count + waits.event,
        count + quiet.event,
    )
    target = (
        chains.target,
        count + launches.event,
        count + follows.event,
        points.returned[waits.call],
        points.silences[1],
    )
    weight = (
        chains.weight,
        launches.lag,
        taken(length, follows.source) + follows.lag,
        length[waits.event] + waits.lag,
        quiet.end - device.start[quiet.event],
    )
    cuts = np.cumsum([len(each) for each in source[:-1]])
    edges, number, weights = by_target(
        rank[np.concatenate(source)], rank[np.concatenate(target)], np.concatenate(weight), len(recorded)
    )
    del source, target, weight, length
    on_host, by_launch, after, until_done, until_dry = np.split(number, cuts)

    host = _host_time(points, threads, launches, begun, on_host, by_launch)
    return Graph(
        time=recorded,
        earliest=earliest,
        edges=edges,
        weight=weights,
        host=host,
        tracks=threads.tracks,
        # Copies: a part would keep the whole, of which most is asked for no more.
        waiting=Waiting(until_done.copy(), waits.call, *reading(context, waits)),
        returns=_returns(points, threads, on_host),
        own_cost=own,
        batches=_batches(points, threads, rank),
        busy=Busy(
            np.concatenate((after, until_done, until_dry), dtype=np.int64),
            np.concatenate((follows.source, waits.event, quiet.event), dtype=np.int64),
            len(after),
        ),
        event=event.astype(np.int64),
        marks=rank[points.marks],
        barriers=_barriers(points, chains, rank, on_host),
    )


def _most(context: Context, points: Moments, longest_call: NDArray[np.int64]) -> NDArray[np.int64]:
    """What each point takes at most after the one before it when nothing holds it."""
    most = np.full(len(points.time), np.iinfo(np.int64).max)
    back = points.returned >= 0
    most[points.returned[back]] = longest_call[back]
    late = context.once(fetches).ready == points.time[points.batches[1]]
    most[points.batches[1][late]] = READY_NS
    quiet = context.once(silences)
    # Marks inside a wait are passed when it is over: the thread does nothing until then.
    for track in distinct(quiet.track).tolist():
        here, of = quiet.track == track, np.flatnonzero(points.track == track)
        silent = Intervals(quiet.begin[here] + 1, quiet.end[here] + 1)
        most[of[intervals.contains(silent, points.time[of])]] = 0
    most[points.silences[0]] = np.iinfo(np.int64).max
    return most


def _ranks(points: Moments, starts: NDArray[np.int64]) -> NDArray[np.int32]:
    """Place of each point in time, those of the host first; at one instant, too. The starts are in order."""
    order = np.lexsort((points.tie, points.time))
    rank = np.empty(len(order) + len(starts), np.int32)
    place, free = np.arange(len(order)) + intervals.passed(starts, points.time[order] - 1), np.ones(len(rank), np.bool_)
    rank[order], free[place] = place, False
    rank[len(order) :] = np.flatnonzero(free)
    return rank


def _host_time(
    points: Moments, threads: Lines, launches: Launches, began: Rows, on_host: Rows, by_launch: Rows
) -> HostTime:
    """The host's part of the edges between its points and of those from launches, that began there, to their events."""
    chains = threads.chains
    long = np.flatnonzero(launches.lag > launches.least)
    return HostTime(
        short(np.concatenate((on_host, by_launch[long]))),
        points.time[np.concatenate((chains.source, began[long]))],
        np.concatenate((points.time[chains.target], launches.until[long])),
        np.concatenate((np.zeros(len(on_host), np.int64), launches.least[long])),
        short(np.concatenate((chains.line, threads.of[began[long]]))),
    )


def _returns(points: Moments, threads: Lines, on_host: Rows) -> Returns:
    call = np.full(len(points.time), -1, np.int64)
    ends = np.flatnonzero(points.returned >= 0)
    call[points.returned[ends]] = ends
    of = call[threads.chains.target]
    back = np.flatnonzero(of >= 0)
    return Returns(on_host[back], of[back])


def _batches(points: Moments, threads: Lines, rank: Rows) -> Batches:
    begin, end = points.batches
    return Batches(rank[end], points.time[begin], threads.of[end])


def _barriers(points: Moments, chains: Chains, rank: Rows, on_host: Rows) -> Barriers:
    begin, end = points.barriers
    if not len(begin):
        return Barriers(end, end, end)
    of = np.full(len(points.time), -1, np.int64)
    of[begin] = end
    own = np.flatnonzero((of[chains.source] >= 0) & (of[chains.source] == chains.target))
    own = own[np.argsort(rank[chains.source[own]], kind="stable")]
    return Barriers(rank[chains.source[own]], rank[chains.target[own]], on_host[own])


class Owned(NamedTuple):
    """Device events by the window they belong to."""

    window: NDArray[np.int64]
    """Windows that own some."""
    first: NDArray[np.int64]
    event: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Program:
    """What one rank did, as its recording tells; times int64 ns on its own clock."""

    graph: Graph
    steps: Steps
    """Every window, analysed or not."""
    analysed: NDArray[np.int64]
    """Rows of the analysed ones in `steps`."""
    counted: NDArray[np.bool_]
    """Those that are analysed and count in means."""
    whole: bool
    """Whether the one window is the whole trace."""
    start: NDArray[np.int64]
    """Of the device events, as in `Context.device`; so is `end`."""
    end: NDArray[np.int64]
    call_start: NDArray[np.int64]
    """Of the runtime calls, as in `Context.calls`; so are `call_end` and `call_track`."""
    call_end: NDArray[np.int64]
    call_track: NDArray[np.int32]
    owned: Owned

    @cached_property
    def began(self) -> int:
        """When the first window that counts began."""
        return int(self.steps.start[self.counted].min())

    @cached_property
    def length(self) -> NDArray[np.int64]:
        """Of the device events."""
        return self.end - self.start


def program(context: Context) -> Program:
    """The program of a rank; use with `Context.once`."""
    steps, device, calls = context.all_steps, context.device, context.calls
    analysed, counted = _windows(context)
    found = Program(
        graph=context.once(graph),
        steps=steps,
        analysed=analysed,
        counted=counted,
        whole=context.mode == Mode.WHOLE_TRACE,
        start=device.start,
        end=device.end,
        call_start=calls.start,
        call_end=calls.end,
        call_track=calls.track,
        owned=_owned(context),
    )
    context.forget(*OF_GRAPHS)
    return found


def _windows(context: Context) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Rows of the analysed windows in `Context.all_steps`, and which of all are analysed and count in means."""
    analysed, counted = (
        np.searchsorted(context.all_steps.start, context.steps.start),
        np.zeros(len(context.all_steps), np.bool_),
    )
    counted[analysed[list(window_of(context.steps).rows)]] = True
    return analysed, counted


def _owned(context: Context) -> Owned:
    if context.mode == Mode.WHOLE_TRACE or context.markers is None:
        owner = np.zeros(len(context.device), np.int64)
    else:
        owner = owners(context.markers, context.device.start, *context.ownership)
    event = np.argsort(owner, kind="stable")
    window = owner[event]
    owned = slice(np.searchsorted(window, 0), None)
    event, window = event[owned], window[owned]
    first = np.flatnonzero(np.append(True, window[1:] != window[:-1])[: len(window)])
    return Owned(window[first], first, event)


def folded(known: Program) -> Program:
    """The same with what follows from the rest as 0, mostly, and ends as durations: half as much to keep (`unfolded`).

    Where edges come from is told by how many points lie in between. Of calls that neither wait nor are returned to no
    replay asks when they were: each is where the one before it is.
    """
    own, calls = known.graph, np.arange(len(known.call_start))
    asked = occurs(calls, np.concatenate((known.graph.waiting.call, known.graph.returns.call)))
    before = np.maximum.accumulate(np.where(asked, calls, 0))
    source, host, target = own.edges.source, own.host, _targets(own)
    begin, end = own.time[source], own.time[target]
    less = replace(
        own,
        edges=own.edges._replace(source=(target - source).astype(np.int32)),
        # Those that hold nothing up have few lengths, and how much later what they lead to is has many.
        weight=np.where(own.weight == end - begin, 0, own.weight + (own.weight >= 0)),
        host=host._replace(start=host.start - begin[host.edge], end=host.end - end[host.edge]),
    )
    return replace(
        known,
        graph=less,
        start=known.start - own.time[own.event],
        end=known.end - known.start,
        call_start=known.call_start[before],
        call_end=np.where(asked, known.call_end - known.call_start, 0),
        call_track=known.call_track[before],
    )


def unfolded(less: Program) -> Program:
    """What was folded."""
    own = less.graph
    target, host = _targets(own), own.host
    source = target - own.edges.source
    begin, end, start = own.time[source], own.time[target], less.start + own.time[own.event]
    whole = replace(
        own,
        edges=own.edges._replace(source=source.astype(np.int32)),
        weight=np.where(own.weight == 0, end - begin, own.weight - (own.weight > 0)),
        host=host._replace(start=host.start + begin[host.edge], end=host.end + end[host.edge]),
    )
    return replace(less, graph=whole, start=start, end=start + less.end, call_end=less.call_start + less.call_end)


def _targets(own: Graph) -> NDArray[np.int64]:
    """The point that each edge leads to."""
    return np.repeat(np.arange(len(own.time)), np.diff(own.edges.bounds))
