"""The moments of the host that matter to the device, by thread, and what its calls wait for."""

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.links import enqueuing_calls
from traceanalyze.analyses.idle.host_state import PYTHON_NS, host_states, is_sync_call, loading_ranges, peer_waits
from traceanalyze.analyses.idle.launches import FULL_QUEUE_DEPTH, LONG_LAUNCH_NS
from traceanalyze.analyses.idle.syncs import NUMBER_BYTES
from traceanalyze.analyses.kernels.copies import DIRECTIONS, directions
from traceanalyze.analyses.steps.critical_waits import lanes, launched_before, sync_records
from traceanalyze.model import intervals
from traceanalyze.model.columns import Rows, distinct, median, occurs, quantile, short
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import ApiClass, Cause, EventKind, Mode, SyncKind
from traceanalyze.replay.device import Launches
from traceanalyze.replay.silences import active_time, silences

WORKERS = regex(r"^enumerate\(DataLoader\)#(?!_SingleProcess).*__next__")
"""Ranges in which torch's loader waits for its worker processes."""
READY_NS = 600_000
"""What fetching a batch takes that the workers have ready: 0.53 to 0.71 ms in torch 2.13, small batches."""
WAITED_NS, MORE_NS, WAITED = 1_000_000, 500_000, 0.02
"""Fetching a batch that is ready takes less, hardly so much more than the shortest call of the recording, or less of
the time from one batch to the next where batches are large: in a longer call the loop waited for the workers."""
_FREES = regex(r"Free")
_BARRIER = regex(r"(gloo|mpi)[:_]\w*barrier|c10d::(monitored_)?barrier", re.IGNORECASE)
LEAST_WAITS = 3
"""So many waits tell the pace of the workers."""
ALONE = 10
"""Waits of more than so many times the median come by themselves, as in DAT102."""
OWN_COST_NS, MOST_OWN_COST_NS = 5_000, 20_000
"""What a call costs that finds the device done, where the recording has none, and at most."""
TOGETHER = 0.05
"""Threads that are active at the same time for less than this part of their time take turns: one goes on where the
other one stopped, as the thread of the backward pass does."""


class Waits(NamedTuple):
    """Ends of runtime calls that wait for the end of a device event."""

    call: NDArray[np.int64]
    event: NDArray[np.int64]
    lag: NDArray[np.int64]
    """From the end of the event to that of the call; negative where the call does not wait for all of it."""


class Moments(NamedTuple):
    """Points of the host, in no order."""

    time: NDArray[np.int64]
    tie: NDArray[np.int64]
    """Order among those of one instant."""
    track: NDArray[np.int32]
    began: NDArray[np.int64]
    """Point at which each runtime call began, -1 where that does not matter."""
    returned: NDArray[np.int64]
    marks: NDArray[np.int64]
    """(2, windows) begin and end of each on the host; (2, 0) where the host does not mark them."""
    batches: NDArray[np.int64]
    """(2, n) begin and end of each wait for a batch of the loader's workers."""
    silences: NDArray[np.int64]
    """(2, n) begin and end of each wait that no call tells (`replay.silences`)."""
    barriers: NDArray[np.int64]
    """(2, n) begin and end of each barrier of the ranks on the host."""


class Chains(NamedTuple):
    """What follows what on the host: time between two points."""

    source: Rows
    target: Rows
    weight: NDArray[np.int64]
    line: Rows
    """Which line of threads works in the meantime: row of `Lines.tracks`."""


class Lines(NamedTuple):
    """Threads that take turns are one line."""

    tracks: tuple[tuple[int, ...], ...]
    of: NDArray[np.int32]
    """Line of each point."""
    chains: Chains
    free: Rows
    """Points that nothing recorded comes before."""


def moments(context: Context, launches: Launches, waits: Waits) -> Moments:
    """Starts of launches, starts and ends of calls that wait, of waits for batches, and of windows."""
    calls, trace = context.calls, context.trace
    begins, returns = np.zeros(len(calls), np.bool_), np.zeros(len(calls), np.bool_)
    returns[waits.call] = True
    returns[context.once(is_sync_call)] = True
    begins[launches.call] = True
    queue = context.once(_enqueues)
    begins[queue[queue >= 0]] = True
    begins |= returns
    begin, back = np.flatnonzero(begins), np.flatnonzero(returns)
    began, returned = np.full((2, len(calls)), -1, np.int64)
    began[begin], returned[back] = np.arange(len(begin)), len(begin) + np.arange(len(back))
    rows = context.once(fetches).row
    steps, marked = context.all_steps, context.mode != Mode.WHOLE_TRACE and context.step_track >= 0
    marked = marked and (context.markers is None or context.markers.track >= 0)
    windows = len(steps) if marked else 0
    quiet, meet = context.once(silences), _barriers(context)
    count = np.cumsum((len(begin) + len(back), windows, windows, len(rows), len(rows), 2 * len(quiet.begin))).tolist()
    fetched = trace.events.ts[rows] + trace.events.dur[rows]
    # At one instant what ends comes first: calls, then batches, then steps; but a call of no length begins before.
    ties = 2 * len(calls) + 5
    parts = (
        (calls.start[begin], ties + 2 * begin - 1, calls.track[begin]),
        (calls.end[back], np.where(calls.end[back] > calls.start[back], 0, ties) + 2 * back, calls.track[back]),
        (steps.host_start[:windows], np.full(windows, ties - 2), np.full(windows, context.step_track)),
        (steps.host_end[:windows], np.full(windows, ties - 3), np.full(windows, context.step_track)),
        (trace.events.ts[rows], np.full(len(rows), ties - 2), trace.events.track[rows]),
        (fetched, np.full(len(rows), ties - 4), trace.events.track[rows]),
        (quiet.begin, np.full(len(quiet.begin), 2 * ties), quiet.track),
        (quiet.end, np.full(len(quiet.end), -1), quiet.track),
        (meet.start, np.full(len(meet.start), ties - 2), np.full(len(meet.start), context.step_track)),
        (meet.end, np.full(len(meet.end), ties - 4), np.full(len(meet.end), context.step_track)),
    )
    time, tie, track = (np.concatenate(column) for column in zip(*parts, strict=True))
    marks, batches = (np.arange(count[at], count[at + 2]).reshape(2, -1) for at in (0, 2))
    silent, met = np.arange(count[4], count[5]).reshape(2, -1), np.arange(count[5], len(time)).reshape(2, -1)
    return Moments(time, tie, short(track), began, returned, marks, batches, silent, met)


def _barriers(context: Context) -> Intervals:
    """When the steps' thread is in a barrier of the ranks, which it leaves when all have come."""
    rows = context.once(peer_waits).of(context.step_track)
    names = context.trace.events.name[rows]
    return context.trace.events.active(rows[context.trace.strings.matches(names, _BARRIER.match)])


class Fetches(NamedTuple):
    """Calls that fetch a batch of the loader's workers, and would wait for it if they came too early."""

    row: NDArray[np.int64]
    """Of the event."""
    ready: NDArray[np.int64]
    """When the workers have the batch, ns: of a call that waited its end."""


def fetches(context: Context) -> Fetches:
    """What the loop fetches from workers, without batches of which nothing tells when they were ready.

    Nor is it told of one that the loop waited for though it did not wait before: the workers began with it when the
    loop came to it, as those do that start anew, and the wait is as long whenever that is.

    Workers that the loop waited for twice made the batches in between one after the other, and as fast those that come
    later: each is ready in its turn, however late it was fetched.
    """
    trace, rows = context.trace, context.once(loading_ranges).rows
    rows = rows[trace.strings.matches(trace.events.name[rows], WORKERS.search)]
    rows = rows[np.argsort(trace.events.ts[rows], kind="stable")]
    begin, time = trace.events.ts[rows], trace.events.dur[rows]
    apart = np.diff(begin)
    least = min(WAITED_NS, int(time.min(initial=WAITED_NS)) + MORE_NS)
    least = max(least, round(WAITED * median(apart))) if len(apart) else least
    waited = np.flatnonzero((time >= least) & (time <= ALONE * median(time))) if len(rows) else rows
    end = begin + time
    if len(waited) < LEAST_WAITS:
        return Fetches(rows[waited], end[waited])
    each = np.arange(waited[0], len(rows))
    pace = median(np.diff(end[waited]) / np.diff(waited))
    turn = np.interp(each, waited, end[waited]) + pace * np.maximum(each - waited[-1], 0)
    return Fetches(rows[each], np.minimum(np.round(turn).astype(np.int64), end[each]))


def _enqueues(context: Context) -> NDArray[np.int32]:
    return enqueuing_calls(context.trace, context.calls)


def device_waits(context: Context, launches: Launches) -> Waits:
    """What sync calls and launches into a full queue wait for.

    Also what a call found done, as it may be early in another run. Where the recording does not tell the stream of a
    call, it is that of the event that ended last before the call returned, or of the thread's last launch before.
    """
    parts = [_copies(context), _syncs(context, launches), _full_queues(context, launches)]
    call, event, lag = (np.concatenate(column) for column in zip(*parts, strict=True))
    valid = context.device.start[event] < context.calls.end[call]
    return Waits(call[valid], event[valid], lag[valid])


def reading(context: Context, waits: Waits) -> tuple[Intervals, NDArray[np.bool_]]:
    """Of each wait for a copy to the host, the work of its thread that reads what was copied, and if that is a number.

    It is what the thread does until anything is launched again, of some length; empty where there is none. Waiting for
    the device or for data is no work.
    """
    device, calls = context.device, context.calls
    start, end = np.zeros((2, len(waits.call)), np.int64)
    copy = np.flatnonzero(device.kind[waits.event] == EventKind.MEMCPY)
    copy = copy[directions(context, waits.event[copy]) == DIRECTIONS.index("d2h")]
    queue, launches = context.once(_enqueues), np.zeros(len(calls), np.bool_)
    launches[context.link[context.link >= 0]] = True
    launches[queue[queue >= 0]] = True
    launching = np.sort(calls.start[launches], kind="stable")
    launching = np.append(launching, max(int(context.all_steps.host_end[-1]), int(calls.end.max(initial=0))))
    for track in distinct(calls.track[waits.call[copy]]).tolist():
        own = copy[calls.track[waits.call[copy]] == track]
        back = calls.end[waits.call[own]]
        until = launching[np.minimum(np.searchsorted(launching, back), len(launching) - 1)]
        until = np.maximum(until, back)
        idle = context.once(host_states, track, True).of((Cause.SYNC, Cause.DATA_LOADING, Cause.PEER_WAIT))
        works = until - back - intervals.coverage(idle, back, until) >= PYTHON_NS
        start[own[works]], end[own[works]] = back[works], until[works]
    return Intervals(start, end), context.trace.events.numbers("bytes", device.row[waits.event]) <= NUMBER_BYTES


def _own_copy(context: Context) -> NDArray[np.int64]:
    """Last event that each blocking copy call launched itself, -1 for other calls."""
    calls = context.calls
    own = np.full(len(calls), -1, np.int64)
    linked = np.flatnonzero(context.link >= 0)
    own[context.link[linked]] = linked
    return np.where(context.once(is_sync_call) & (calls.sync != SyncKind.EXPLICIT), own, -1)


def _copies(context: Context) -> Waits:
    own = context.once(_own_copy)
    call = np.flatnonzero(own >= 0)
    return Waits(call, own[call], context.calls.end[call] - context.device.end[own[call]])


def _syncs(context: Context, launches: Launches) -> Waits:
    calls, device = context.calls, context.device
    streams, records = context.once(lanes), context.once(sync_records)
    sync = np.flatnonzero((context.once(is_sync_call) & (context.once(_own_copy) < 0)) | _implicit(context))
    found = [(sync[:0], sync[:0]), *launched_before(context, streams, records, sync)]
    place, event = (np.concatenate(column) for column in zip(*found, strict=True))
    end, returned = device.end[event], calls.end[sync]
    latest = np.full(len(sync), np.iinfo(np.int64).min)
    np.maximum.at(latest, place, end)
    binds = end == latest[place]
    waited = latest > calls.start[sync]
    late = (returned - latest)[waited]
    usual = min(int(median(late)), OWN_COST_NS) if len(late) else 0
    # What frees memory is at work when the device is done: as long as where it found it done.
    frees = context.trace.strings.matches(calls.name[sync], _FREES.search)
    own = np.where(frees, returned - np.maximum(latest, calls.start[sync]), usual)[place]
    lag = np.where(binds & waited[place], returned[place] - end, np.minimum(own, returned[place] - end))
    if len(records.kind) == 0:
        kept = _of_one_stream(context, launches, sync, place, event, binds & waited[place])
        place, event, lag = place[kept], event[kept], lag[kept]
    return Waits(sync[place], event, lag)


def _implicit(context: Context) -> NDArray[np.bool_]:
    """Calls that free memory when the device is done with it, besides their own work."""
    calls = context.calls
    found: NDArray[np.bool_] = (calls.sync == SyncKind.IMPLICIT) & calls.outermost
    return found


def _of_one_stream(
    context: Context,
    launches: Launches,
    sync: NDArray[np.int64],
    place: NDArray[np.int64],
    event: NDArray[np.int64],
    binds: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Which of the awaited events a call may wait for: those of its stream, if it waits for one stream or event."""
    calls, device = context.calls, context.device
    whole = context.trace.strings.matches(calls.name[sync], lambda text: "Stream" not in text and "Event" not in text)
    stream = np.full(len(sync), -1, np.int64)
    at = np.searchsorted(launches.call, sync, "right") - 1
    known = np.flatnonzero(at >= 0)
    known = known[calls.track[launches.call[at[known]]] == calls.track[sync[known]]]
    stream[known] = device.stream[launches.event[at[known]]]
    stream[place[binds]] = device.stream[event[binds]]
    kept: NDArray[np.bool_] = whole[place] | (stream[place] < 0) | (device.stream[event] == stream[place])
    return kept


def _full_queues(context: Context, launches: Launches) -> Waits:
    """Launches that return only when an event before theirs has begun, as the queue of the stream has no room."""
    calls, device = context.calls, context.device
    slow = (calls.end - calls.start > LONG_LAUNCH_NS) & (calls.klass == ApiClass.LAUNCH)
    slow &= ~context.once(is_sync_call)
    chosen = slow[launches.call]
    streams, first = context.once(lanes), np.zeros(len(device), np.bool_)
    first[launches.event] = True
    lane = np.zeros(len(device), np.int64)
    lane[streams.event] = streams.key
    call, event = launches.call[chosen], launches.event[chosen]
    parts = [(call[:0], call[:0])]
    for key in distinct(lane[event]).tolist():
        low, high = streams.bounds(key)
        queued = streams.event[low:high]
        queued = queued[first[queued]]
        here = lane[event] == key
        begun = np.searchsorted(device.start[queued], calls.start[call[here]], "right")
        full = np.searchsorted(queued, event[here], "right") - begun >= FULL_QUEUE_DEPTH
        room = np.searchsorted(device.start[queued], calls.end[call[here]], "left") - 1
        full &= (room >= begun) & (queued[np.maximum(room, 0)] < event[here])
        parts.append((call[here][full], queued[room[full]]))
    call, event = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Waits(call, event, calls.end[call] - device.end[event])


def own_cost(context: Context, waits: Waits) -> tuple[int, NDArray[np.int64]]:
    """What a call takes when nothing holds it, as calls that find the device done typically do; and at most, each.

    What frees memory works on when the device is done: as long as it then took.
    """
    calls = context.calls
    waited = np.zeros(len(calls), np.bool_)
    waited[waits.call[context.device.end[waits.event] > calls.start[waits.call]]] = True
    free = context.once(is_sync_call) & ~waited
    found = (calls.end - calls.start)[free]
    usual = min(int(median(found)), MOST_OWN_COST_NS) if len(found) else OWN_COST_NS
    most = np.where(waited, usual, np.iinfo(np.int64).max)
    frees = _implicit(context)[waits.call] & waited[waits.call]
    most[waits.call[frees]] = 0
    np.maximum.at(most, waits.call[frees], waits.lag[frees])
    return usual, most


def lines(context: Context, points: Moments, rank: Rows, own: NDArray[np.int64]) -> Lines:
    """The threads as lines of points, in their `rank`: their order in time, without ties.

    `own`: most that each point takes after the one before it when nothing holds it.
    """
    tracks = _taking_turns(context, points)
    line = np.zeros(len(points.time), np.int32)
    for row, group in enumerate(tracks):
        line[occurs(points.track, group)] = row
    order = np.lexsort((rank, line))
    apart = np.diff(line[order], prepend=-1) != 0
    later, firsts = np.flatnonzero(~apart), order[apart]
    source, target = order[later - 1], order[later]
    weight = points.time[target] - points.time[source]
    parts = [Chains(source, target, weight, line[target])]
    if len(tracks) > 1:
        quiet = _quiet(context, points, tracks, source, target, line)
        parts.extend(_joined(points, rank, line, source, target, firsts, quiet))
        forked = distinct(np.concatenate([part.target for part in parts[1:]]))
        hung = occurs(target, forked)
        weight[hung] -= quiet.length[hung]
        firsts = firsts[~occurs(firsts, forked)]
    parts.append(_queued(context, points))
    np.minimum(weight, own[target], out=weight)
    return Lines(tracks, line, Chains(*(np.concatenate(column) for column in zip(*parts, strict=True))), firsts)


def _taking_turns(context: Context, points: Moments) -> tuple[tuple[int, ...], ...]:
    """Threads by line; that of the steps first, with those that are active while it is not."""
    count = np.bincount(points.track)
    ordered = [each for each in np.argsort(-count, kind="stable").tolist() if count[each]]
    ordered.sort(key=lambda track: track != context.step_track)
    found: list[tuple[list[int], Intervals]] = []
    for track in ordered:
        active = context.once(active_time, track)
        for group, taken in found[:1]:
            if intervals.total(intervals.intersect(active, taken)) <= TOGETHER * intervals.total(active):
                group.append(track)
                found[0] = group, intervals.union(taken, active)
                break
        else:
            found.append(([track], active))
    return tuple(tuple(group) for group, _ in found)


class _Quiet(NamedTuple):
    """Before each target: when its line was last active before, and when it became active again."""

    since: NDArray[np.int64]
    until: NDArray[np.int64]

    @property
    def length(self) -> NDArray[np.int64]:
        return self.until - self.since


def _quiet(
    context: Context,
    points: Moments,
    tracks: tuple[tuple[int, ...], ...],
    source: Rows,
    target: Rows,
    line: Rows,
) -> _Quiet:
    since, until = points.time[source].copy(), points.time[target].copy()
    for row, group in enumerate(tracks):
        active = intervals.union(*(context.once(active_time, track) for track in group))
        here = np.flatnonzero(line[target] == row)
        if len(active.start) == 0 or len(here) == 0:
            continue
        at = np.searchsorted(active.start, until[here], "right") - 1
        inside = (at >= 0) & (until[here] <= active.end[np.maximum(at, 0)])
        begin = np.where(inside, active.start[np.maximum(at, 0)], until[here])
        before = at - inside
        ended = np.where(before >= 0, active.end[np.maximum(before, 0)], since[here])
        until[here] = np.maximum(begin, since[here])
        since[here] = np.minimum(np.maximum(ended, since[here]), until[here])
    return _Quiet(since, until)


def _joined(
    points: Moments,
    rank: Rows,
    line: Rows,
    source: Rows,
    target: Rows,
    firsts: Rows,
    quiet: _Quiet,
) -> list[Chains]:
    """Work that one line begins after a silence follows what another one did in it.

    A line beside the main one goes on where the main one was last; the main one where another line was, that had begun
    and ended in the silence.
    """
    main = np.flatnonzero(line == 0)
    main = main[np.argsort(rank[main], kind="stable")]
    parts = []
    beside = np.flatnonzero(line[target] > 0)
    at = np.searchsorted(points.time[main], quiet.until[beside], "right") - 1
    forked = (at >= 0) & (points.time[main[np.maximum(at, 0)]] > quiet.since[beside])
    parts.append((main[at[forked]], target[beside[forked]]))
    first = firsts[line[firsts] > 0]
    at = np.searchsorted(points.time[main], points.time[first], "left") - 1
    parts.append((main[at[at >= 0]], first[at >= 0]))
    own = np.flatnonzero(line[target] == 0)
    other = np.flatnonzero(line > 0)
    other = other[np.argsort(rank[other], kind="stable")]
    begun = np.full(len(points.time), np.iinfo(np.int64).max)
    begun[target] = quiet.until
    # When the work that each point belongs to began: the last silence before it.
    silent = np.ones(len(points.time), np.bool_)
    silent[target] = quiet.length > 0
    begun = _since_silence(points, rank, line, other, begun, silent)
    at = np.searchsorted(points.time[other], quiet.until[own], "right") - 1
    last = other[np.maximum(at, 0)] if len(other) else at
    joins = (at >= 0) & (points.time[last] > quiet.since[own]) & (begun[last] >= quiet.since[own])
    parts.append((last[joins], target[own[joins]]))
    chains = []
    for pair in parts:
        begin, end = (each[rank[pair[0]] < rank[pair[1]]] for each in pair)
        chains.append(Chains(begin, end, points.time[end] - points.time[begin], line[end]))
    return chains


def _since_silence(
    points: Moments,
    rank: Rows,
    line: Rows,
    other: Rows,
    begun: NDArray[np.int64],
    silent: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """For each point of other lines the end of the last silence of its line before it."""
    order = other[np.lexsort((rank[other], line[other]))]
    opens = silent[order].copy()
    if len(order):
        opens[0] = True
        opens[1:] |= line[order][1:] != line[order][:-1]
    first = np.maximum.accumulate(np.where(opens, np.arange(len(order)), 0))
    found = begun.copy()
    found[order] = np.minimum(begun[order[first]], points.time[order[first]])
    return found


def _queued(context: Context, points: Moments) -> Chains:
    """A thread that takes work out of a queue comes after the thread that puts it in."""
    queue = context.once(_enqueues)
    call = np.flatnonzero((queue >= 0) & (points.began >= 0))
    source, target = points.began[queue[call]], points.began[call]
    valid = points.time[source] < points.time[target]
    source, target = source[valid], target[valid]
    lag = points.time[target] - points.time[source]
    usual = int(quantile(lag, 0.1)) if len(lag) else 0
    return Chains(source, target, np.minimum(lag, usual), np.zeros(len(source), np.int32))


OF_GRAPHS = _own_copy, _enqueues, active_time, silences, fetches
"""What is made of a context for its graph alone."""
