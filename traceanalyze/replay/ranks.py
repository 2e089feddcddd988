"""The programs of all ranks as one: a collective begins to move data when the last of its ranks has come.

Each collective that was matched across ranks gets a point at which all have come. It needs no common clock: collectives
end together, and their shortest duration on any rank is the transfer (definitions §12), so that each rank's clock tells
where in its own time that point lies. Without a change every recorded time comes back, as in the replay of one rank.
"""

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.patterns import dataclass
from traceanalyze.ranks.results import Cluster
from traceanalyze.replay.graph import Program
from traceanalyze.replay.longest import NEVER, Edges, longest
from traceanalyze.replay.replay import Again, Change, changed_program, run_again, windows_of

_NOTHING = Change()


class Meetings(NamedTuple):
    """Where ranks come together: a row for each rank that takes part, in an order all ranks agree on.

    Collectives of the device, and barriers on the host.
    """

    number: NDArray[np.int64]
    """Of the meeting."""
    rank: NDArray[np.int64]
    """Position in `Cluster.ranks`."""
    event: NDArray[np.int64]
    """Position of the collective in the device events of that rank, -1 of a barrier."""
    point: NDArray[np.int64]
    """Of that rank's graph, at which it comes."""
    wait: NDArray[np.int64]
    """From the rank's arrival to that of the last one, ns."""
    ahead: NDArray[np.int64]
    """What the clock of the collective's first rank shows more than that of this one when all have come."""


@dataclass(frozen=True, eq=False)
class Joint:
    """All ranks of a run in one graph."""

    programs: tuple[Program, ...]
    rows: NDArray[np.int64]
    """(ranks, steps) rows of the common steps in each program's `steps`."""
    meetings: Meetings
    edges: Edges
    origin: NDArray[np.int64]
    """Which weight each edge has: of the edges of all ranks, one rank after the other, then those of `meetings`."""
    place: tuple[NDArray[np.int64], ...]
    """By rank the place of each of its points."""
    met: NDArray[np.int64]
    """Place of the point at which all have come, for each row of `meetings`."""
    held: NDArray[np.int64]
    """Edges (of all ranks) that lead on from a collective, and in `held_by` the row of `meetings` that holds them."""
    held_by: NDArray[np.int64]
    through: NDArray[np.int64]
    """Edges (of all ranks) from the begin of a barrier to its end, and in `barrier` the row of `meetings`."""
    barrier: NDArray[np.int64]


def joint(programs: Sequence[Program], cluster: Cluster) -> Joint:
    """The programs of the ranks of a cluster, in its order, as one."""
    meetings = _meetings(programs, cluster)
    count = [len(one.graph.time) for one in programs]
    first = np.concatenate(([0], np.cumsum(count)))
    collectives = int(meetings.number.max()) + 1 if len(meetings.number) else 0
    # A point comes after the collectives that its rank came to before it, and before what it comes to next.
    key = np.empty(int(first[-1]) + collectives, np.int64)
    for rank in range(len(programs)):
        own = meetings.rank == rank
        at = np.searchsorted(meetings.point[own], np.arange(count[rank]), "left")
        key[first[rank] : first[rank + 1]] = np.append(meetings.number[own], collectives)[at]
    key[first[-1] :] = np.arange(collectives)
    order = np.lexsort((np.arange(len(key)), key))
    place = np.empty(len(key), np.int64)
    place[order] = np.arange(len(key))
    met = place[first[-1] + meetings.number] if collectives else np.zeros(0, np.int64)

    source, target, held, held_by, through, leave, edges = [], [], [], [], [], [], 0
    barrier = np.flatnonzero(meetings.event < 0)
    for rank, one in enumerate(programs):
        graph, own = one.graph, np.flatnonzero((meetings.rank == rank) & (meetings.event >= 0))
        of_event = np.full(len(one.start), -1, np.int64)
        of_event[meetings.event[own]] = own
        leads = place[first[rank] + graph.edges.source]
        row = of_event[graph.busy.event]
        leads[graph.busy.edge[row >= 0]] = met[row[row >= 0]]
        source.append(leads)
        target.append(place[first[rank] + np.repeat(np.arange(count[rank]), np.diff(graph.edges.bounds))])
        held.append(edges + graph.busy.edge[row >= 0])
        held_by.append(row[row >= 0])
        at = np.searchsorted(graph.barriers.point, meetings.point[barrier[meetings.rank[barrier] == rank]])
        through.append(edges + graph.barriers.edge[at])
        leave.append(place[first[rank] + graph.barriers.end[at]])
        edges += len(leads)
    arrival = place[first[meetings.rank] + meetings.point]
    barrier = barrier[np.argsort(meetings.rank[barrier], kind="stable")]
    sources = np.concatenate([*source, arrival, met[barrier]])
    targets = np.concatenate([*target, met, *leave])
    by_target = np.argsort(targets, kind="stable")
    bounds = np.concatenate(([0], np.cumsum(np.bincount(targets, minlength=len(key)))))
    return Joint(
        programs=tuple(programs),
        rows=np.stack([one.analysed[rows] for one, rows in zip(programs, cluster.rows, strict=True)]),
        meetings=meetings,
        edges=Edges(bounds.astype(np.int64), sources[by_target].astype(np.int32)),
        origin=by_target,
        place=tuple(place[low:high] for low, high in itertools.pairwise(first.tolist())),
        met=met,
        held=np.concatenate(held),
        held_by=np.concatenate(held_by),
        through=np.concatenate(through),
        barrier=barrier,
    )


def run_together(run: Joint, changes: Mapping[int, Change], like_others: Collection[int] = ()) -> tuple[Again, ...]:
    """The programs of all ranks with changes by position of the rank, in their order.

    Those of `like_others` would never be the last, as they come when the others do.
    """
    meetings = run.meetings
    changed = [
        changed_program(one, _of_transfers(run, rank, changes.get(rank, _NOTHING)))
        for rank, one in enumerate(run.programs)
    ]
    others = ~np.isin(meetings.rank, list(like_others))
    led = np.bincount(meetings.number[others], minlength=len(meetings.number)) > 0
    arrival = np.where(others | ~led[meetings.number], meetings.ahead, NEVER)
    weight = np.concatenate([*(one.weight for one in changed), arrival])
    weight[run.held] -= (meetings.wait + meetings.ahead)[run.held_by]
    # Of a barrier what it takes when all have come; one that is taken out holds nobody.
    wait, barred = meetings.wait[run.barrier], weight[run.through] > 0
    weight[run.through] = np.maximum(weight[run.through] - wait, 0)
    weight = np.append(weight, np.where(barred, weight[run.through] - meetings.ahead[run.barrier], NEVER))
    earliest = np.full(len(run.edges.bounds) - 1, NEVER)
    for rank, new in enumerate(changed):
        earliest[run.place[rank]] = new.earliest
    time = longest(run.edges, weight[run.origin], earliest)
    found, edges = [], 0
    for rank, (one, new) in enumerate(zip(run.programs, changed, strict=True)):
        own = (meetings.rank == rank) & (meetings.event >= 0)
        points = time[run.place[rank]]
        lasted = new.lasted
        done = points[one.graph.event] + lasted
        event, waited = meetings.event[own], np.zeros(len(done), np.int64)
        met = time[run.met[own]] - meetings.ahead[own]
        done[event] = met + np.maximum(lasted[event] - meetings.wait[own], 0)
        waited[event] = np.maximum(met - points[one.graph.event[event]], 0)
        # Seen from its own events, what a collective holds comes so much later than the collective's start.
        held = (run.held >= edges) & (run.held < edges + len(new.weight))
        at, by = run.held[held] - edges, run.held_by[held]
        source = one.graph.edges.source[at]
        new.weight[at] = time[run.met[by]] + weight[run.held[held]] - points[source]
        edges += len(new.weight)
        took = np.maximum(done - points[one.graph.event], 0)
        found.append(Again(new.weight, points, took, *windows_of(one, points, done), waited))
    return tuple(found)


def _of_transfers(run: Joint, rank: int, change: Change) -> Change:
    """The change with collectives shorter by part of their transfer: what they wait for others stays what it is."""
    meetings, one = run.meetings, run.programs[rank]
    own = (meetings.rank == rank) & (meetings.event >= 0)
    event, part = meetings.event[own], np.ones(len(one.start))
    part[event] = 1 - meetings.wait[own] / np.maximum(one.length[event], 1)
    return change._replace(shorter=np.floor(change.shorter * part[change.events]).astype(np.int64))


def steps_with(run: Joint, changes: Mapping[int, Change], like_others: Collection[int] = ()) -> NDArray[np.int64]:
    """(ranks, steps) by how much each common step of each rank would be shorter, ns; negative where it is longer."""
    return shorter_steps(run, run_together(run, changes, like_others))


def shorter_steps(run: Joint, again: Sequence[Again]) -> NDArray[np.int64]:
    """(ranks, steps) by how much each common step is shorter than recorded, ns."""
    shorter = np.zeros(run.rows.shape, np.int64)
    for rank, (one, new) in enumerate(zip(run.programs, again, strict=True)):
        shorter[rank] = (one.steps.time - (new.end - new.start))[run.rows[rank]]
    return shorter


def own_times(run: Joint) -> tuple[int, ...]:
    """Mean step of each rank if it waited for no other one in its collectives, ns: its host has work beside that."""
    found = []
    for rank, (one, rows) in enumerate(zip(run.programs, run.rows, strict=True)):
        own = (run.meetings.rank == rank) & (run.meetings.event >= 0)
        again = run_again(one, Change(events=run.meetings.event[own], shorter=run.meetings.wait[own]))
        found.append(round(float((again.end - again.start)[rows].mean())))
    return tuple(found)


def gain_of(run: Joint, changes: Mapping[int, Change], like_others: Collection[int] = ()) -> int:
    """Mean ns by which a step of the run would be shorter; of ranks that come when the others do, the others' steps."""
    return mean_gain(steps_with(run, changes, like_others), like_others)


def mean_gain(shorter: NDArray[np.int64], like_others: Collection[int] = ()) -> int:
    """The mean of what the steps of ranks gain (rows), but of ranks that come when the others do; never less than 0."""
    counted = [rank for rank in range(len(shorter)) if rank not in like_others] or list(range(len(shorter)))
    return max(0, round(float(shorter[counted].mean()))) if shorter.size else 0


def _meetings(programs: Sequence[Program], cluster: Cluster) -> Meetings:
    """Collectives that synchronise, in an order that is that of every rank; those that would break it are left out.

    And barriers on the host, where ranks have as many of them and no collective is left out for them.
    """
    columns: list[list[NDArray[np.int64]]] = [[] for _ in range(5)]
    number = 0
    for kind in _came(programs, cluster):
        count = 0
        for rank, event, point, wait in kind:
            count = len(event)
            values = number + np.arange(count), np.full(count, rank), event, point, wait
            for column, value in zip(columns, values, strict=True):
                column.append(value)
        number += count
    if not number:
        return Meetings(*(np.zeros(0, np.int64) for _ in Meetings._fields))
    of, rank_of, event, point, wait = (np.concatenate(column) for column in columns)
    met = np.empty(len(of), np.int64)
    for rank, program in enumerate(programs):
        own = rank_of == rank
        met[own] = program.graph.time[point[own]] + wait[own]
    _, first = np.unique(of, return_index=True)
    found = Meetings(of, rank_of, event, point, wait, met[first][of] - met)
    kept_numbers = agreed(found, len(programs))
    if (event < 0).any():
        alone = agreed(Meetings(*(column[event >= 0] for column in found)), len(programs))
        kept_numbers = max(kept_numbers, alone, key=lambda each: np.isin(each, of[event >= 0]).sum())
    new = np.full(number, -1, np.int64)
    new[kept_numbers] = np.arange(len(kept_numbers))
    order = np.lexsort((found.rank, new[found.number]))
    order = order[new[found.number[order]] >= 0]
    kept = Meetings(*(column[order] for column in found))
    return kept._replace(number=new[kept.number])


def _came(
    programs: Sequence[Program], cluster: Cluster
) -> Iterator[list[tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]]:
    """Meetings of each group, barriers last: by rank their events (-1: none), points, and waits."""
    for one in cluster.groups:
        useful = np.flatnonzero(one.synchronising)
        events = [cluster.ranks[rank].collectives.event[one.row[useful, at]] for at, rank in enumerate(one.members)]
        yield [
            (rank, event, programs[rank].graph.event[event], one.wait(at)[useful])
            for at, (rank, event) in enumerate(zip(one.members, events, strict=True))
        ]
    barriers = [one.graph.barriers for one in programs]
    if len({len(each.point) for each in barriers}) == 1:
        time = np.stack(
            [one.graph.time[one.graph.barriers.end] - one.graph.time[one.graph.barriers.point] for one in programs]
        )
        none = np.full(time.shape[1], -1)
        yield [(rank, none, barriers[rank].point, wait) for rank, wait in enumerate(time - time.min(axis=0))]


def agreed(found: Meetings, ranks: int) -> list[int]:
    """Meetings in an order in which no rank comes to a later one before an earlier one."""
    queues = []
    for rank in range(ranks):
        own = np.flatnonzero(found.rank == rank)
        queues.append(found.number[own[np.argsort(found.point[own], kind="stable")]].tolist())
    waiting = np.bincount(found.number).tolist()
    head, here, order, dropped = [0] * ranks, [0] * len(waiting), [], set()
    members: list[list[int]] = [[] for _ in waiting]
    for number, rank in zip(found.number.tolist(), found.rank.tolist(), strict=True):
        members[number].append(rank)
    ready = list(range(ranks))
    while True:
        while ready:
            rank = ready.pop()
            while head[rank] < len(queues[rank]) and queues[rank][head[rank]] in dropped:
                head[rank] += 1
            if head[rank] == len(queues[rank]):
                continue
            number = queues[rank][head[rank]]
            here[number] += 1
            if here[number] == waiting[number]:
                order.append(number)
                for each in members[number]:
                    head[each] += 1
                    ready.append(each)
        blocked = [rank for rank in range(ranks) if head[rank] < len(queues[rank])]
        if not blocked:
            return order
        # Ranks that came to two collectives in different orders: the one that fewest have come to is no meeting.
        number = min((queues[rank][head[rank]] for rank in blocked), key=lambda each: (here[each], each))
        dropped.add(number)
        ready = [rank for rank in blocked if queues[rank][head[rank]] == number]
