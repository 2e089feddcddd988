"""Sync points: where the host waited for the device, and the device idle time each one caused (definitions §7)."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.host.frames import locate
from traceanalyze.analyses.results import SyncSite
from traceanalyze.frozen import frozen
from traceanalyze.model import intervals
from traceanalyze.model.classify import is_data_dependent
from traceanalyze.model.columns import distinct
from traceanalyze.model.vocabulary import Cause, SyncKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context
    from traceanalyze.analyses.host.events import ApiCalls
    from traceanalyze.analyses.idle.idle import Gaps, Pieces
    from traceanalyze.model.trace import Trace


@frozen
class SyncPoint:
    """One instance: the sync calls under one operator instance on one thread."""

    calls: tuple[int, ...]
    op: str | None
    frame: str | None


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
    inside = np.flatnonzero((drained_by[pieces.gap] < 0) & (pieces.cause == Cause.SYNC))
    by[inside] = _call_at(sync, calls, pieces.track[inside], pieces.start[inside])
    return by, drained_by >= 0


def _draining_call(sync: NDArray[np.int64], calls: ApiCalls, gaps: Gaps) -> NDArray[np.int64]:
    """Call that drained the device before each gap, -1 for none.

    It runs while the gap begins, and the next event was launched after it returned, is its own copy, or has no launch
    record.
    """
    best = np.full(len(gaps), -1, np.int64)
    best_start = np.full(len(gaps), np.iinfo(np.int64).min)
    has_event = gaps.event >= 0
    for track in distinct(calls.track[sync]).tolist():
        mine = sync[calls.track[sync] == track]
        at = np.searchsorted(calls.start[mine], gaps.start, "right") - 1
        candidate = np.where(at >= 0, mine[at], -1)
        running = (candidate >= 0) & (gaps.start <= calls.end[candidate])
        after = (gaps.call < 0) | (gaps.call == candidate) | (gaps.launch_start >= calls.end[candidate])
        # The launching thread's own sync wins over any other; else the one that started last.
        launching = (gaps.call >= 0) & (calls.track[gaps.call] == track)
        rank = np.where(launching, np.iinfo(np.int64).max, calls.start[candidate])
        better = has_event & running & after & (rank > best_start)
        best[better], best_start[better] = candidate[better], rank[better]
    return best


def _call_at(
    sync: NDArray[np.int64], calls: ApiCalls, track: NDArray[np.int64], t: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The sync call running on each track at each instant (there must be one)."""
    found = np.empty(len(t), np.int64)
    for one in distinct(track).tolist():
        mine = sync[calls.track[sync] == one]
        here = track == one
        found[here] = mine[np.searchsorted(calls.start[mine], t[here], "right") - 1]
    return found


def sync_sites(
    trace: Trace,
    sync: NDArray[np.int64],
    calls: ApiCalls,
    kinds: NDArray[np.uint8],
    cost: NDArray[np.int64],
    last_launch: int,
    locate: Callable[[int, NDArray[np.int64]], tuple[NDArray[np.int64], list[str | None], list[str | None]]],
) -> tuple[SyncSite, ...]:
    """Merge calls under one operator instance into points, and points of one place into sites; costliest first.

    Args:
        trace: the trace.
        sync: positions in `calls`.
        calls: runtime calls.
        kinds: `SyncKind` of each of `sync`.
        cost: idle caused by each of `sync`.
        last_launch: start of the trace's last launch; later syncs are terminal.
        locate: `(track, instants) -> (operator row or -1, operator name, user frame)`.
    """
    points: dict[tuple[int, int], list[int]] = defaultdict(list)
    place: dict[int, tuple[str | None, str | None]] = {}
    for track in distinct(calls.track[sync]).tolist():
        here = np.flatnonzero(calls.track[sync] == track)
        op_row, op_name, frame = locate(track, calls.start[sync[here]])
        for k, i in enumerate(here.tolist()):
            row = int(op_row[k])
            points[(track, row if row >= 0 else -2 - i)].append(i)
            place[i] = (op_name[k], frame[k])
    sites: dict[tuple[str | None, str | None, str, bool], list[list[int]]] = defaultdict(list)
    for members in points.values():
        names = dict.fromkeys(trace.strings.text(int(calls.name[sync[i]])) for i in members)
        terminal = all(int(calls.start[sync[i]]) >= last_launch for i in members)
        sites[(*place[members[0]], " + ".join(names), terminal)].append(members)
    table = [
        SyncSite(
            op=op,
            frame=frame,
            call=call,
            kind=SyncKind(int(kinds[instances[0][0]])),
            count=len(instances),
            blocked=sum(int(calls.end[sync[i]] - calls.start[sync[i]]) for m in instances for i in m),
            idle_caused=None
            if terminal or cost[instances[0][0]] < 0
            else sum(int(cost[i]) for m in instances for i in m),
            data_dependent=op is not None and is_data_dependent(op),
        )
        for (op, frame, call, terminal), instances in sites.items()
    ]
    return tuple(sorted(table, key=lambda s: (-(s.idle_caused or 0), -(s.blocked or 0), s.call, s.op or "")))


def suspected_syncs(context: Context) -> tuple[SyncSite, ...]:
    """Operators in the analysed time that need a value from the device, by name and user frame, most frequent first.

    One inside another is the same point; what they cost is not known.
    """
    trace, nest = context.trace, context.op_nest
    needy = trace.strings.lookup(trace.events.name[nest.row], is_data_dependent).astype(np.bool_)
    before = np.concatenate(([0], np.cumsum(needy)))
    innermost = needy & (before[nest.stop] == before[np.arange(len(nest)) + 1])
    places = np.flatnonzero(innermost & intervals.contains(context.host_windows, nest.start))
    found: Counter[tuple[str | None, str | None]] = Counter()
    track = trace.events.track[nest.row[places]]
    for one in sorted(set(track.tolist())):
        _, name, frame = locate(context, one, nest.start[places[track == one]])
        found.update(zip(name, frame, strict=True))
    return tuple(
        SyncSite(op, frame, "", SyncKind.SUSPECTED, count, None, None, data_dependent=True)
        for (op, frame), count in found.most_common()
    )
