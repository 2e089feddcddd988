"""Sync points: where the host waited for the device, and the device idle time each one caused (definitions §7)."""

from collections import Counter, defaultdict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.events import ApiCalls
from traceanalyze.analyses.host.frames import locate
from traceanalyze.analyses.idle.host_state import PYTHON_NS, blocking_copies, data_loading, is_sync_call
from traceanalyze.analyses.idle.idle import Gaps, Pieces, analysed_time, clipped, idle_gaps, idle_pieces
from traceanalyze.analyses.idle.pauses import pauses
from traceanalyze.analyses.kernels.copies import DIRECTIONS, directions
from traceanalyze.analyses.steps.window import span_of
from traceanalyze.model import intervals
from traceanalyze.model.classify import is_data_dependent
from traceanalyze.model.columns import Rows, distinct, occurs
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value, declare
from traceanalyze.model.vocabulary import Cause, EventKind, SyncKind

SYNC_POINTS = declare(
    "sync_points",
    "Where the host waited for the device (sum over the analysed steps)",
    Column("op", Kind.NAME, "innermost operator around the call", heading="operator"),
    Column("call", Kind.NAME, "runtime or driver call"),
    Column("kind", Kind.TERM, "why the host waits: an explicit call, a blocking copy, or in effect", minor=True),
    Column("count", Kind.COUNT, "how many there are"),
    Column("blocked_ns", Kind.DURATION, "time the host spent inside the call"),
    Column("idle_caused_ns", Kind.DURATION, "time the device was idle because of it"),
    Column(
        "data_dependent",
        Kind.FLAG,
        "the host waits because it needs a value from the device",
        heading="needs value",
        minor=True,
    ),
    Column("at_end", Kind.FLAG, "after the last launch: no later work could come sooner", heading="at the end"),
    Column("frame", Kind.NAME, "innermost Python frame, when stacks were recorded", heading="Python frame", minor=True),
    ranked=True,
)


def idle_caused(
    sync: NDArray[np.int64], calls: ApiCalls, gaps: Gaps, pieces: Pieces
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Device idle time each of the sync calls (positions in `calls`) caused, and which gaps a sync drained.

    `pieces` must already be cut to the analysed time.
    """
    by, drained = blamed(sync, calls, gaps, pieces)
    cost = np.zeros(len(calls), np.int64)
    known = by >= 0
    np.add.at(cost, by[known], (pieces.end - pieces.start)[known])
    return cost[sync], drained


def blamed(
    sync: NDArray[np.int64], calls: ApiCalls, gaps: Gaps, pieces: Pieces
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The sync call (position in `calls`) that caused each piece of idle time, -1 for none; and which gaps one drained.

    A drained gap is wholly its call's, but for waiting for data and for other processes; in other gaps a call caused
    the time inside it.
    """
    drained_by = _draining_call(sync, calls, gaps)
    by = drained_by[pieces.gap]
    by[(pieces.cause == Cause.DATA_LOADING) | (pieces.cause == Cause.PEER_WAIT)] = -1
    inside = np.flatnonzero(pieces.cause == Cause.SYNC)
    inside = inside[by[inside] < 0]
    by[inside] = _call_at(sync, calls, pieces.track[inside], pieces.start[inside])
    return by, drained_by >= 0


def _draining_call(sync: NDArray[np.int64], calls: ApiCalls, gaps: Gaps) -> NDArray[np.int64]:
    """Call that drained the device before each gap, -1 for none.

    It runs while the gap begins, and the next event was launched after it returned, is its own copy, or has no launch
    record.
    """
    best = np.full(len(gaps), -1, np.int64)
    best_start = np.full(len(gaps), np.iinfo(np.int64).min)
    for track in distinct(calls.track[sync]).tolist():
        own = sync[calls.track[sync] == track]
        at = intervals.passed(calls.start[own], gaps.start) - 1
        gap = np.flatnonzero((at >= 0) & (gaps.start <= calls.end[own].take(at)) & (gaps.event >= 0))
        candidate, call = own[at[gap]], gaps.call[gap]
        after = (call < 0) | (call == candidate) | (gaps.launch_start[gap] >= calls.end[candidate])
        # The launching thread's own sync wins over any other; else the one that started last.
        launching = (call >= 0) & (calls.track[call] == track)
        rank = np.where(launching, np.iinfo(np.int64).max, calls.start[candidate])
        better = after & (rank > best_start[gap])
        best[gap[better]], best_start[gap[better]] = candidate[better], rank[better]
    return best


def _call_at(sync: NDArray[np.int64], calls: ApiCalls, track: Rows, t: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sync call running on each track at each instant (there must be one)."""
    found = np.empty(len(t), np.int64)
    for one in distinct(track).tolist():
        own = sync[calls.track[sync] == one]
        here = track == one
        found[here] = own[np.searchsorted(calls.start[own], t[here], "right") - 1]
    return found


class SyncCosts(NamedTuple):
    """What the sync calls of the analysed time cost."""

    call: NDArray[np.int64]
    """Positions in `ApiCalls`."""
    blocked: NDArray[np.int64]
    """Part of each in the analysed time; without steps all of it, as of every call."""
    idle: NDArray[np.int64]
    """Device idle time each of them caused."""
    drained: NDArray[np.bool_]
    """Gaps that one of them caused."""


def sync_costs(context: Context) -> SyncCosts:
    """Sync calls of the steps that count, and their cost there; none where the runtime's calls were not recorded."""
    calls = context.calls
    if len(calls) == 0 or context.queue_only:
        nothing = np.empty(0, np.int64)
        return SyncCosts(nothing, nothing, nothing, np.zeros(len(context.once(idle_gaps)), np.bool_))
    host = context.host_windows
    blocked = intervals.coverage(host, calls.start, calls.end)
    sync = np.flatnonzero(context.once(is_sync_call) & ((blocked > 0) | intervals.contains(host, calls.start)))
    analysed, _ = clipped(context.once(idle_pieces), *intervals.merge(context.counted.start, context.counted.end))
    caused, drained = idle_caused(sync, calls, context.once(idle_gaps), analysed)
    return SyncCosts(sync, blocked[sync], caused, drained)


LONG_NS, NUMBER_BYTES = 10_000_000, 16
"""Stretches that nothing recorded explains are work or waiting of its own if those of one gap are so long together;
after a copy to the host of more than a number from `PYTHON_NS` on, as they read that."""


def own_stretches(context: Context) -> Intervals:
    """Idle time that is no sync's, though one may have drained the device before it.

    Long stretches of the host that nothing recorded explains, shorter ones that read what was copied, pauses that every
    step makes alike, and those of `timed_stretches`.
    """
    pieces, device = context.once(idle_pieces), context.device
    copy = np.flatnonzero(device.kind == EventKind.MEMCPY)
    copy = copy[directions(context, copy) == DIRECTIONS.index("d2h")]
    copy = copy[context.trace.events.numbers("bytes", device.row[copy]) > NUMBER_BYTES]
    read = occurs(context.once(idle_gaps).start, device.end[copy])[pieces.gap]
    least = np.where(read, PYTHON_NS, LONG_NS)
    return intervals.union(_quiet(pieces, least), context.once(timed_stretches), _alike(context))


def longer_stretches(context: Context, least: int) -> Intervals:
    """Idle time that may be no sync's: stretches that nothing recorded explains, from so many ns on."""
    pieces = context.once(idle_pieces)
    own = (pieces.cause == Cause.UNTRACED) & (pieces.end - pieces.start >= least)
    long = intervals.merge(pieces.start[own], pieces.end[own])
    return intervals.union(long, _quiet(pieces, max(least, PYTHON_NS)), context.once(timed_stretches))


def perhaps_timed(context: Context) -> Intervals:
    """The same without pauses of which equal lengths tell that they would end sooner if they began sooner."""
    quiet = _quiet(context.once(idle_pieces), PYTHON_NS, _alike(context))
    return intervals.union(quiet, context.once(timed_stretches))


def _alike(context: Context) -> Intervals:
    habit = context.once(pauses)
    return intervals.merge(habit.start[habit.constant], habit.end[habit.constant])


def _quiet(pieces: Pieces, least: int | NDArray[np.int64], aside: Intervals = intervals.EMPTY) -> Intervals:
    """Stretches of gaps that have so much of them: operators that launch nothing cut one piece of work into many."""
    own = np.flatnonzero(pieces.cause == Cause.UNTRACED)
    start, end, gap = pieces.start[own], pieces.end[own], pieces.gap[own]
    long = (
        np.bincount(gap, end - start - intervals.coverage(aside, start, end))[gap]
        >= np.broadcast_to(least, len(pieces.gap))[own]
    )
    return intervals.subtract(intervals.merge(start[long], end[long]), aside)


def timed_stretches(context: Context) -> Intervals:
    """What ends at its own time: waits for others, and pauses whose ends are more regular than their lengths.

    Others are processes, and threads that load data.
    """
    pieces, habit = context.once(idle_pieces), context.once(pauses)
    here = intervals.coverage(data_loading(context, context.step_track), pieces.start, pieces.end) > 0
    own = (pieces.cause == Cause.PEER_WAIT) | ((pieces.cause == Cause.DATA_LOADING) & ~here)
    own &= pieces.end - pieces.start >= PYTHON_NS
    return intervals.union(
        intervals.merge(pieces.start[own], pieces.end[own]),
        intervals.merge(habit.start[habit.timed], habit.end[habit.timed]),
    )


WORTH_NAMING = 0.05
"""Share of the time that sync points must cost to be named."""


def worth_naming(context: Context) -> dict[str, int]:
    """What `synced` tells, or nothing where it is too little to be named, whatever lies in these stretches.

    To find them takes longer than all else.
    """
    if len(context.calls) == 0 or context.queue_only or context.doubt_of_idle is not None:
        return {}
    pieces, by = context.once(_blamed)
    time = int((pieces.end - pieces.start)[by >= 0].sum())
    return context.once(synced) if time >= WORTH_NAMING * span_of(context.steps) else {}


def _blamed(context: Context) -> tuple[Pieces, NDArray[np.int64]]:
    """Idle time in the analysed time, and the sync call that caused each piece of it, -1 for none."""
    pieces, _ = clipped(context.once(idle_pieces), *context.once(analysed_time))
    by, _ = blamed(np.flatnonzero(context.once(is_sync_call)), context.calls, context.once(idle_gaps), pieces)
    return pieces, by


def synced(context: Context) -> dict[str, int]:
    """Idle time in the analysed time that sync calls caused, less these stretches, by operator (else the call)."""
    calls, found = context.calls, dict[str, int]()
    if len(calls) == 0 or context.queue_only or context.doubt_of_idle is not None:
        return found
    pieces, by = context.once(_blamed)
    time = pieces.end - pieces.start
    aside = intervals.coverage(context.once(own_stretches), pieces.start, pieces.end)
    cost = np.bincount(by[by >= 0], (time - aside)[by >= 0], len(calls)).astype(np.int64)
    worth = np.flatnonzero((cost > 0) & (calls.start < context.once(last_launch)))
    _, ops, _ = locate(context, calls.track[worth], calls.start[worth])
    for call, op in zip(worth.tolist(), ops, strict=True):
        place = op or context.trace.strings.text(int(calls.name[call]))
        found[place] = found.get(place, 0) + int(cost[call])
    return found


def held_up(context: Context, pieces: Pieces) -> NDArray[np.int64]:
    """The sync call (position in `ApiCalls`) that each piece of idle time lies in or is held up by, -1 for none.

    Held up is what nothing recorded explains after a wait that drained the device, but for `own_stretches`.
    """
    calls = context.calls
    if len(calls) == 0 or context.queue_only or context.doubt_of_idle is not None:
        return np.full(len(pieces.start), -1, np.int64)
    by, _ = blamed(np.flatnonzero(context.once(is_sync_call)), calls, context.once(idle_gaps), pieces)
    own = intervals.coverage(context.once(own_stretches), pieces.start, pieces.end) > 0
    by[(pieces.cause != Cause.SYNC) & ((pieces.cause != Cause.UNTRACED) | own)] = -1
    return by


def last_launch(context: Context) -> int:
    """Start of the last launch of the trace: a later sync point leaves nothing that the host could be late for."""
    linked = context.link >= 0
    return int(context.launch_start[linked].max()) if linked.any() else int(np.iinfo(np.int64).min)


def sync_points(context: Context) -> Table:
    """Places where the host waits for the device: operator, Python frame and call; costliest first."""
    if len(context.calls) == 0:
        return SYNC_POINTS.missing("no_api")
    if context.doubt in {"unknown_runtime", "no_names"}:
        return SYNC_POINTS.missing(context.doubt)
    return _suspected(context, NotMeasured(context.waits_lost)) if context.waits_lost else _sites(context)


def _sites(context: Context) -> Table:
    """Calls under one operator instance are one point, points of one place one site."""
    calls, costs = context.calls, context.once(sync_costs)
    doubt = context.doubt_of_idle and NotMeasured(context.doubt_of_idle)
    last = context.once(last_launch)
    points: dict[int, list[int]] = defaultdict(list)
    call_name = context.trace.strings.each(calls.name[costs.call])
    after = (calls.start[costs.call] >= last).tolist()
    op_row, op_name, user_frame = locate(context, calls.track[costs.call], calls.start[costs.call])
    for i, row in enumerate(op_row.tolist()):
        points[row if row >= 0 else -2 - i].append(i)
    sites: dict[tuple[str | None, str | None, str, bool], list[list[int]]] = defaultdict(list)
    for members in points.values():
        names, terminal = dict.fromkeys(call_name[i] for i in members), all(after[i] for i in members)
        first = members[0]
        sites[op_name[first], user_frame[first], " + ".join(names), terminal].append(members)
    rows: list[dict[str, Value]] = []
    for (op, frame, call, terminal), instances in sites.items():
        every = np.concatenate(instances)
        at = costs.call[every]
        site: dict[str, Value] = {
            "op": op,
            "call": call or None,
            "kind": _kind(context, int(at[0])),
            "count": len(instances),
            "blocked_ns": int(costs.blocked[every].sum()),
            "idle_caused_ns": NotMeasured("terminal_sync") if terminal else doubt or int(costs.idle[every].sum()),
            "data_dependent": op is not None and is_data_dependent(op),
            "at_end": terminal if any(each[3] for each in sites) else None,
            "frame": frame,
        }
        rows.append(site)
    return SYNC_POINTS.fill_records(rows).sort("-idle_caused_ns", "-blocked_ns", "call", "op")


def _kind(context: Context, call: int) -> str:
    kind = SyncKind(int(context.calls.sync[call]))
    if kind == SyncKind.NONE and context.once(blocking_copies)[call]:
        kind = SyncKind.BLOCKING_IN_EFFECT
    return f"sync_{kind.name.lower()}"


def _suspected(context: Context, why: NotMeasured) -> Table:
    """Operators in the analysed time that need a value from the device, by name and user frame, most frequent first.

    One inside another is the same point; what they cost is not known.
    """
    trace, nest = context.trace, context.op_nest
    needy = trace.strings.matches(context.op_names, is_data_dependent)
    before = np.concatenate(([0], np.cumsum(needy)))
    innermost = needy & (before[nest.stop] == before[np.arange(len(nest)) + 1])
    places = np.flatnonzero(innermost & intervals.contains(context.host_windows, nest.start))
    _, name, frame = locate(context, trace.events.track[nest.row[places]], nest.start[places])
    ordered = Counter(zip(name, frame, strict=True)).most_common()
    return SYNC_POINTS.fill(
        op=[op for (op, _), _ in ordered],
        call=[None] * len(ordered),
        kind=["sync_suspected"] * len(ordered),
        count=[count for _, count in ordered],
        blocked_ns=why,
        idle_caused_ns=why,
        data_dependent=[True] * len(ordered),
        at_end=[None] * len(ordered),
        frame=[frame for (_, frame), _ in ordered],
    )
