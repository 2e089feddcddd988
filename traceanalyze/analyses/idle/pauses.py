"""Stretches in which the whole host stands still, and which of them come back alike: pauses that the program makes.

What sleeps, polls or computes outside of torch stops at the same place in every step for the same time, between
operators or inside a function that calls some (one of autograd in Python, a range of the program). A collector of
garbage does not: it comes when a counter is full, wherever the program is by then, and takes the longer the more
objects there are.
"""

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.frames import locate, user_frames
from traceanalyze.analyses.idle.host_state import data_loading, host_states
from traceanalyze.analyses.idle.idle import idle_pieces
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct, median, occurs, rows_of
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import Cause, EventKind

LEAST_NS = 2_000_000
"""What is shorter is Python between two operators."""
ALIKE = 0.02
"""Lengths within this part of their median are the same: a sleep of 20 ms was seen to vary by 0.1 %."""
TIMES = 3
"""As often at least something has to come back to be a habit of the program."""
SHRINKS = 0.8
"""A stretch shorter than this part of one before it is none of a growing number of objects."""
SPREAD = 4.0
"""The longest of a collector's pauses over the shortest: what scatters more has more than one reason."""
AFTER_NS, BUSY = 50_000, 0.8
"""A stretch that ends so soon after the device, which works for this part of it, is a wait for the device."""
_SHOWN = EventKind.HOST_OP, EventKind.API, EventKind.ANNOTATION, EventKind.PYTHON
_COMPUTES = regex(r"::")
"""Operators of libraries: between the calls inside of them they compute."""
_PROFILERS = regex(r"^(Activity Buffer Request|Buffer Flush|Instrumentation|Resource|UVM Activity Init)$")
"""Overhead of the profiler itself, which CUPTI writes down for no thread. A full queue of launches and code that is
loaded are the program's."""
BETWEEN = " … "
"""Between the names of the operators around a pause."""


class Pauses(NamedTuple):
    """Stretches in time order; int64 ns."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    place: tuple[str, ...]
    """The user's line where Python functions are recorded, else the operators before and after it."""
    recurs: NDArray[np.bool_]
    """At the same place in every step."""
    constant: NDArray[np.bool_]
    """And for the same time."""
    timed: NDArray[np.bool_]
    """Of these, whose ends are more regular than their lengths: what the program does before makes them no earlier."""
    irregular: NDArray[np.bool_]
    """Of those that come here and there: at places that the program mostly passes without a pause."""

    def __len__(self) -> int:
        return len(self.start)


def pauses(context: Context) -> Pauses:
    """Pauses from the first step to the last, whichever steps were chosen.

    A stretch in which no launching thread is in an operator or call, nor begins or ends anything at all; and for which
    the device, where there is one, waits, or does so at other times for the same, or has work to its end: what is
    constant holds back what is launched after it even then. Of those inside a function only the constant ones.
    """
    between, inside = context.once(_between), context.once(_inside)
    if not len(inside):
        return between
    order = np.argsort(np.concatenate((between.start, inside.start)), kind="stable")
    place = (*between.place, *inside.place)
    found = {
        key: np.concatenate((getattr(between, key), getattr(inside, key)))[order]
        for key in ("start", "end", "recurs", "constant", "timed", "irregular")
    }
    return Pauses(place=tuple(place[at] for at in order.tolist()), **found)


def _between(context: Context) -> Pauses:
    """Those between operators."""
    silent = context.once(_silence)
    waits = np.ones(len(silent.start), np.bool_)
    if len(context.device):
        held = _wait_for_device(context, silent)
        silent = Intervals(silent.start[~held], silent.end[~held])
        pieces = context.once(idle_pieces)
        unknown = pieces.cause == Cause.UNTRACED
        quiet = intervals.merge(pieces.start[unknown], pieces.end[unknown])
        waits = intervals.coverage(quiet, silent.start, silent.end) >= LEAST_NS
    places = pause_places(context, silent, context.step_track)
    recurs, constant, timed, step = _habits(context, silent, places)
    irregular = _irregular(context, silent, recurs, step)
    # Where the device waits for some of them, those as long or as irregular hold it back as well; and those
    # in which it has work to the end, which so are no waits for it, what comes after them.
    known = set(compress(places, waits.tolist()))
    behind = intervals.contains(intervals.merge(context.device.start, context.device.end), silent.end)
    kept = waits | (constant & (behind | np.array([place in known for place in places], np.bool_)))
    kept |= irregular & (irregular & waits).any()
    chosen = tuple(compress(places, kept.tolist()))
    habits = (each[kept] for each in (recurs, constant, timed, irregular))
    return Pauses(silent.start[kept], silent.end[kept], chosen, *habits)


def _inside(context: Context) -> Pauses:
    """Constant ones inside a function, between what it calls, unless it waits for the device there."""
    nest, events, kind = context.op_nest, context.trace.events, context.kind
    tracks = list(dict.fromkeys([context.step_track, *context.threads]))
    calls = intervals.merge(context.calls.start, context.calls.end) if len(context.calls) else intervals.EMPTY
    known = intervals.union(calls, data_loading(context, context.step_track))
    rows: NDArray[np.int64] | None = None
    found, places = [np.zeros((0, 2), np.int64)], list[str]()
    for track in tracks:
        own = nest.of(track)
        place = own.start + np.flatnonzero(nest.own[own] >= LEAST_NS)
        place = place[nest.stop[place] > place + 1]
        place = place[~context.trace.strings.matches(events.name[nest.row[place]], _COMPUTES.search)]
        child = np.flatnonzero(occurs(nest.parent[own], place)) + own.start
        active = intervals.union(known, intervals.merge(nest.start[child], nest.end[child]))
        silent = intervals.subtract(intervals.merge(nest.start[place], nest.end[place]), active)
        long = silent.end - silent.start >= LEAST_NS
        if not long.any():
            continue
        if rows is None:
            rows = np.flatnonzero(occurs(kind, _SHOWN))
            rows = rows[occurs(events.track[rows], tracks)]
        begun = events.ts[rows]
        edges = np.concatenate([each[intervals.contains(silent, each)] for each in (begun, begun + events.dur[rows])])
        edges.sort()
        awake = np.searchsorted(edges, silent.end, "left") > np.searchsorted(edges, silent.start, "right")
        still = long & ~awake & ~_wait_for_device(context, silent)
        silent = Intervals(silent.start[still], silent.end[still])
        places += pause_places(context, silent, track)
        found.append(np.stack(silent, axis=1))
    start, end = np.concatenate(found).T
    recurs, constant, timed, _ = _habits(context, Intervals(start, end), places)
    chosen = tuple(place for place, keep in zip(places, constant.tolist(), strict=True) if keep)
    none = np.zeros(len(chosen), np.bool_)
    return Pauses(start[constant], end[constant], chosen, recurs[constant], ~none, timed[constant], none)


def _wait_for_device(context: Context, silent: Intervals) -> NDArray[np.bool_]:
    """Which stretches end with the device running dry, or with one long event: calls that wait are not all recorded."""
    device = context.device
    if not len(device):
        return np.zeros(len(silent.start), np.bool_)
    by_end = np.argsort(device.end, kind="stable")
    at = np.searchsorted(device.end[by_end], silent.end, "right") - 1
    event = by_end[np.maximum(at, 0)]
    done, busy = device.end[event], intervals.merge(device.start, device.end)
    least = BUSY * (done - silent.start)
    dry = intervals.coverage(busy, done, np.maximum(done, silent.end)) == 0
    full = dry & (intervals.coverage(busy, silent.start, np.maximum(done, silent.start)) >= least)
    alone = done - np.maximum(device.start[event], silent.start) >= least
    waits: NDArray[np.bool_] = (at >= 0) & (least > 0) & (silent.end - done <= AFTER_NS) & (full | alone)
    return waits


def _habits(
    context: Context, silent: Intervals, places: Sequence[str]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64]]:
    """Whether each stretch comes back in every step, for the same time, and ends by a clock; and the step it is in.

    Where one of the same time comes in every step, others at its place are of something else.
    """
    codes = {place: code for code, place in enumerate(dict.fromkeys(places))}
    each = group(np.array([codes[place] for place in places], np.int64))
    length, steps = silent.end - silent.start, context.all_steps
    step = np.searchsorted(steps.host_start, silent.start, "right")
    recurs, constant, timed = np.zeros((3, len(silent.start)), np.bool_)
    for member in (np.flatnonzero(each.of == code) for code in range(len(each))):
        if len(member) < TIMES or len(distinct(step[member])) < len(steps):
            continue
        # There may be several of a step, one after the other.
        order = member[np.argsort(length[member], kind="stable")]
        kinds = np.split(order, 1 + np.flatnonzero(np.diff(length[order]) > ALIKE * length[order[:-1]]))
        for kind in kinds:
            usual = median(length[kind])
            alike = np.sort(kind[np.abs(length[kind] - usual) <= ALIKE * usual])
            if len(alike) >= TIMES and len(distinct(step[alike])) == len(steps):
                recurs[alike] = constant[alike] = True
                timed[alike] = np.ptp(np.diff(silent.end[alike])) <= np.ptp(length[alike])
        if not constant[member].any():
            recurs[member] = True
    return recurs, constant, timed, step


def _irregular(
    context: Context, silent: Intervals, recurs: NDArray[np.bool_], step: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Stretches of a collector: in several steps at several places, of lengths that scatter little and do not shrink.

    A place is the pair of operators around it on all launching threads, which mostly follow each other at once, and
    how often they did in the step; not all are between the same two.
    """
    none = np.zeros(len(silent.start), np.bool_)
    nest, tracks = context.op_nest, dict.fromkeys([context.step_track, *context.threads])
    if np.count_nonzero(~recurs) < TIMES or not len(nest):
        return none
    start, name = (
        np.concatenate([each[nest.of(track)] for track in tracks]) for each in (nest.start, context.op_names)
    )
    if len(tracks) > 1:
        order = np.argsort(start, kind="stable")
        start, name = start[order], name[order]
    if len(start) < 2:
        return none
    at = np.searchsorted(start, silent.end, "left")
    inside = (at > 0) & (at < len(start))
    first = np.clip(at - 1, 0, len(start) - 2)
    before, after = (name[each].astype(np.int64) for each in (first, first + 1))
    place = np.where(inside, (before << 32) + after, -1)
    single = inside & ~recurs
    known, name = distinct(place), name.astype(np.int64)
    named = np.zeros((2, len(context.trace.strings)), np.bool_)
    named[0, before], named[1, after] = True, True
    once = np.flatnonzero(named[0, name[:-1]] & named[1, name[1:]])
    pair = (name[once] << 32) + name[once + 1]
    where = np.minimum(np.searchsorted(known, pair), len(known) - 1)
    once, where = once[known[where] == pair], where[known[where] == pair]
    own = np.searchsorted(known, place)
    mostly = (np.bincount(where, minlength=len(known)) > 2 * np.bincount(own[single], minlength=len(known)))[own]
    chosen = np.flatnonzero(single & mostly)
    # The same pair comes in every layer: where in the step it is tells one from the other.
    passed = np.sort(where * len(start) + once)
    begun = np.searchsorted(start, context.all_steps.host_start)[np.maximum(step - 1, 0)]
    turn = np.subtract(*(np.searchsorted(passed, own * len(start) + each) for each in (first, begun)))
    length = (silent.end - silent.start)[chosen]
    places, times = len(group(place[chosen], turn[chosen])), len(distinct(step[chosen]))
    if len(distinct(place[chosen])) < 2 or min(places, times) < TIMES or length.max() > SPREAD * length.min():
        return none
    half = len(chosen) // 2
    shrinks = length[half:].max() < SHRINKS * median(length[:half])
    # Of a few the first may be the longest by chance.
    none[chosen] = not shrinks or (len(chosen) < 2 * TIMES and bool((np.diff(length) > 0).any()))
    return none


def profiling(context: Context) -> Intervals:
    """When threads that launch work for the profiler, or it sees to its buffers; use with `Context.once`."""
    events, tracks = context.trace.events, [context.step_track, *context.threads]
    rows = rows_of(context.kind, EventKind.OVERHEAD)
    own = occurs(events.track[rows], [*tracks, context.once(user_frames).track(context.step_track)])
    own |= context.trace.strings.matches(events.name[rows], _PROFILERS.search)
    return events.active(rows[own])


def constant_pauses(context: Context) -> Intervals:
    """When the program stands still for the same time in every step: mostly there are too few stretches for that."""
    steps, own, still = context.all_steps, context.op_nest.own, context.once(_still)
    least = max(TIMES, len(steps))
    # Steps in which such a stretch begins, at most: mostly not each.
    first, last = (np.searchsorted(steps.host_start, at, "right") for at in (still.start, still.end - LEAST_NS))
    in_all = (last - first + 1).sum() >= len(steps)
    found = [_between] if in_all and len(context.once(_silence).start) >= least else []
    found += [_inside] if (own[own >= LEAST_NS] // LEAST_NS).sum() >= least else []
    constant = ((each.start[each.constant], each.end[each.constant]) for each in map(context.once, found))
    return intervals.union(*(intervals.merge(*each) for each in constant))


def _still(context: Context) -> Intervals:
    """When no thread that launches is in any state: what lasts."""
    found = Intervals(context.all_steps.start.min(keepdims=True), context.all_steps.end.max(keepdims=True))
    for track in _tracks(context):
        found = _lasting(intervals.subtract(found, context.once(host_states, track, True).spans))
    return found


def _tracks(context: Context) -> list[int]:
    return list(dict.fromkeys([context.step_track, *context.threads]))


def _lasting(spans: Intervals) -> Intervals:
    long = spans.end - spans.start >= LEAST_NS
    return Intervals(spans.start[long], spans.end[long])


def _silence(context: Context) -> Intervals:
    """Such stretches without what the profiler does, and without the moments in which functions begin and end."""
    free = intervals.subtract(context.once(_still), context.once(profiling))
    # Each edge cuts the stretch that it lies in: somebody was awake then.
    edges = np.concatenate([*_edges(context, [*_tracks(context), context.once(user_frames).track(context.step_track)])])
    cuts = distinct(edges[intervals.contains(free, edges)])
    start, end = (np.sort(np.concatenate((each, cuts)), kind="stable") for each in free)
    return _lasting(Intervals(start, end))


def _edges(context: Context, tracks: Sequence[int]) -> Iterator[NDArray[np.int64]]:
    """When functions and annotations of threads begin and end, thinned."""
    events = context.trace.events
    yield np.zeros(0, np.int64)
    for part in intervals.chunks(len(events)):
        rows = part.start + rows_of(context.kind[part], EventKind.ANNOTATION, EventKind.PYTHON)
        rows = rows[occurs(events.track[rows], tracks)]
        begun = events.ts[rows]
        yield _thinned(begun)
        yield _thinned(begun + events.dur[rows])


def _thinned(moments: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of moments that follow each other within half a pause the first and the last: others end and begin none."""
    if not len(moments):
        return moments
    part = moments // (LEAST_NS // 2)
    opens = np.flatnonzero(np.concatenate(([True], part[1:] != part[:-1])))
    return np.concatenate((np.minimum.reduceat(moments, opens), np.maximum.reduceat(moments, opens)))


def pause_places(context: Context, silent: Intervals, track: int) -> list[str]:
    """Where each stretch of a thread is: the user's line, else the operators around it, or the one it is in."""
    frames = locate(context, track, (silent.start + silent.end) // 2)[2]
    nest, text = context.op_nest, context.trace.strings.text
    own = nest.of(track)
    names, start = context.op_names[own], nest.start[own]
    # No operator begins in a stretch, so that the last one begun before it and the next one are neighbours.
    after = np.searchsorted(start, silent.end, "left").tolist()
    found = [
        frame or BETWEEN.join(text(int(code)) for code in names[max(0, at - 1) : at + 1])
        for frame, at in zip(frames, after, strict=True)
    ]
    # Where the recording begins or ends with it, one of the operators around it is not there.
    for at, place in zip((0, -1), (found[0], found[-1]), strict=True) if found else ():
        if after[at] == len(names):
            found[at] = next((one for one in found if one.startswith(place + BETWEEN)), place)
        elif after[at] == 0:
            found[at] = next((one for one in found if one.endswith(BETWEEN + place)), place)
    return found
