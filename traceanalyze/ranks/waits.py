"""Who waits for whom, and how long the transfers themselves take; needs no common clock (definitions §12)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.parts import outlasting
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.steps.window import rounded
from traceanalyze.errors import listed, ranges
from traceanalyze.model.collectives import TYPES
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, declare, sentences
from traceanalyze.ranks.match import MATCHED, POINT_TO_POINT
from traceanalyze.ranks.results import MANY, Cluster, ExposedWaits, MatchedGroup, RankCollectives, RankSummary

_SAY = sentences(
    waits_bounded=("Transfers are upper, waits lower bounds, and nobody is blamed: ranks were {absent}."),
    waits_perhaps_bounded=(
        "Nothing tells whether all ranks are here: transfers are upper bounds, waits lower bounds, nobody is blamed."
    ),
    matching_stopped_kind=(
        "{count} collectives are not matched: ranks run different types in the same place (steps: {steps})."
    ),
    matching_stopped_bytes=(
        "{count} collectives are not matched: ranks state different sizes in the same place (steps: {steps})."
    ),
    matching_stopped_count=("{count} collectives are not matched: ranks do not have equally many (steps: {steps})."),
    waits_of_some=(
        "Of {count} kinds of collectives those with most waiting are shown, of each the ranks that wait most and least."
    ),
    collectives_outside_steps="{count} collectives of all ranks lie outside the steps that all ranks recorded.",
)


MOST_ROWS = 10_000
"""Of more rows of collectives and ranks only those that tell most are kept."""


def point_to_point(rank: RankSummary, inside: NDArray[np.bool_]) -> int:
    """Exposed time of the sends and receives among some collectives, ns.

    How much of it is waiting nobody knows: a receive begins when the rank is ready, and ends when the data is there.
    """
    own = rank.collectives
    return int(own.exposed[POINT_TO_POINT[own.kind] & inside].sum())


_COLLECTIVE_WAITS = declare(
    "collective_waits",
    "Waiting and transfer of collectives, rank by rank (sum over the steps that all ranks recorded)",
    Column("group", Kind.NAME, "ranks of the process group, or its name"),
    Column("role", Kind.TERM, "what the group is for, where its name says so", minor=True),
    Column("collective", Kind.TEXT, "type of collective"),
    Column("bytes", Kind.BYTES, "size of one of them"),
    Column("count", Kind.COUNT, "collectives of each rank"),
    Column("rank", Kind.TEXT, "rank of the process; ?n where the profile does not tell"),
    Column(
        "transfer_ns",
        Kind.DURATION,
        "sum of the shortest durations on any rank; an upper bound where ranks are missing",
    ),
    Column(
        "wait_ns",
        Kind.DURATION,
        "sum of what the collectives of this rank take longer; a lower bound where ranks are missing",
        heading="waiting",
    ),
    Column("is_bound", Kind.FLAG, "not all ranks of the group are known to be here", heading="bound", minor=True),
    worst="wait_ns",
    detail=True,
)


def collective_waits(cluster: Cluster) -> Table:
    """Synchronising collectives by group, type and size, most waiting first; of each a row a rank."""
    found = [each for one in cluster.groups for each in _by_size(one)]
    if not found:
        return replace(_COLLECTIVE_WAITS.missing("no_matched_collectives"), notes=tuple(_stops(cluster)))
    found.sort(key=lambda one: -int(one.wait.sum()))
    notes = (*_bounds(cluster), *_stops(cluster))
    if sum(len(one.wait) for one in found) > MOST_ROWS:
        notes = (*notes, Message(_SAY["waits_of_some"], (("count", Kind.COUNT, len(found)),)))
        told = [(one, at) for one in found[: MOST_ROWS // 2] for at in (int(one.wait.argmax()), int(one.wait.argmin()))]
    else:
        told = [(one, at) for one in found for at in range(len(one.wait))]
    table = _COLLECTIVE_WAITS.fill_records(_row(cluster, one, at) for one, at in told)
    return replace(table, notes=notes)


class _Size(NamedTuple):
    """Collectives of one group with type and size in common."""

    group: MatchedGroup
    kind: int
    bytes: int
    number: int
    transfer: int
    wait: NDArray[np.int64]
    """(members,) sum."""


def _by_size(one: MatchedGroup) -> Iterator[_Size]:
    chosen = np.flatnonzero(one.synchronising)
    rows = group(one.kind[chosen], one.bytes[chosen])
    count, transfer = rows.count().tolist(), rows.sum(one.transfer[chosen]).tolist()
    wait = np.zeros((len(count), len(one.members)), np.int64)
    for part in one.parts():
        np.add.at(wait[:, part], rows.of, one.wait(part)[chosen])
    for index, first in enumerate(chosen[rows.first].tolist()):
        yield _Size(one, int(one.kind[first]), int(one.bytes[first]), count[index], transfer[index], wait[index])


def _row(cluster: Cluster, one: _Size, member: int) -> dict[str, Any]:
    """One rank that took part."""
    of = one.group
    return {
        "group": of.group or NotMeasured("no_collective_metadata"),
        "role": None if of.role is None else f"role_{of.role}",
        "collective": TYPES[one.kind],
        "bytes": one.bytes if one.bytes >= 0 else NotMeasured("no_collective_metadata"),
        "count": one.number,
        "rank": cluster.ranks[of.members[member]].label,
        "transfer_ns": one.transfer,
        "wait_ns": int(one.wait[member]),
        "is_bound": not of.complete,
    }


_RANK_WAITS = declare(
    "rank_waits",
    "Who waits for whom (per step)",
    Column("rank", Kind.TEXT, "rank of the process; ?n where the profile does not tell"),
    Column("step_ns", Kind.DURATION, "mean of the steps that all ranks recorded completely"),
    Column(
        "wait_ns",
        Kind.DURATION,
        "per step, duration of collectives beyond the shortest on any rank; a lower bound where ranks are missing",
        heading="waiting",
    ),
    Column("share", Kind.SHARE, "of the step"),
    Column("times_last", Kind.COUNT, "collectives in which no rank waited less", heading="last"),
    replace(MATCHED, minor=True),
    Column(
        "straggler",
        Kind.FLAG,
        "makes a group wait again and again, 1 % of the step or more: last in half of the collectives and in 60 % of "
        "at least 3 steps",
    ),
    Column("late_because", Kind.TERM, "part of the step by which it exceeds the mean of the other ranks most"),
    Column("excess_ns", Kind.DURATION, "by how much, per step", heading="more than others"),
    Column(
        "recorded_wait_ns",
        Kind.DURATION,
        "per step, time in its collectives in which no plane moved data; needs no other rank",
        heading="waiting by tasks",
        minor=True,
    ),
    Column(
        "waited_for",
        Kind.COUNT,
        "rank that most of this was for; inside the group unless its ranks are known",
        heading="rank waited for longest",
        minor=True,
    ),
    Column(
        "point_to_point_ns",
        Kind.DURATION,
        "per step, exposed time of send and receive: in a pipeline, its bubbles",
        heading="send/receive",
        minor=True,
    ),
    worst="wait_ns",
    bar="share",
)


def rank_waits(cluster: Cluster) -> Table:
    """Waiting of each rank over all groups, how often nobody waited less, and whether it makes the others wait.

    Columns about what these recordings do not have at all are left out.
    """
    if not cluster.steps:
        return _RANK_WAITS.missing("no_common_steps")
    found = cluster.stragglers
    late = {} if isinstance(found, NotMeasured) else {one.position: one for one in found}
    steps = len(cluster.steps)
    inside = [in_common(rank, rows)[1] for rank, rows in zip(cluster.ranks, cluster.rows, strict=True)]
    recorded = [_recorded(rank, own) for rank, own in zip(cluster.ranks, inside, strict=True)]
    between = [point_to_point(rank, own) for rank, own in zip(cluster.ranks, inside, strict=True)]
    by_step, *counts = in_groups(cluster)
    numbers = (each.tolist() for each in (cluster.step_time.sum(axis=1), by_step.sum(axis=1), *counts))
    rows = []
    for position, (rank, time, wait, last, matched) in enumerate(zip(cluster.ranks, *numbers, strict=True)):
        unmatched = None if matched else NotMeasured("no_matched_collectives")
        own, tasks = late.get(position), recorded[position]
        blamed = own if own is not None and own.phase is not None else None
        rows.append(
            {
                "rank": rank.label,
                "step_ns": rounded(time, steps) if time else NotMeasured("no_events"),
                "wait_ns": unmatched or rounded(wait, steps),
                "share": unmatched or (wait / time if time else 0.0),
                "times_last": unmatched or last,
                "matched": matched,
                "straggler": found if isinstance(found, NotMeasured) else own is not None,
                "late_because": None if blamed is None else blamed.phase,
                "excess_ns": None if blamed is None else blamed.excess,
                "recorded_wait_ns": tasks if isinstance(tasks, NotMeasured) else rounded(tasks, steps),
                "waited_for": waited_for(rank, inside[position]),
                "point_to_point_ns": rounded(between[position], steps),
            }
        )
    bounded = any(not one.complete and one.synchronising.any() for one in cluster.groups)
    notes = tuple(_bounds(cluster)) if bounded else ()
    unused = set() if any(between) else {"point_to_point_ns"}
    if all(isinstance(one, NotMeasured) for one in recorded):
        unused |= {"recorded_wait_ns", "waited_for"}
    many = len(rows) > MANY
    if many:
        # Nearly all of many ranks wait: first those they wait for, and who is last to collectives.
        rows.sort(key=lambda row: (row["straggler"] is not True, -(row["matched"] and row["times_last"])))
    table = _RANK_WAITS.fill_records(rows).drop(*unused)
    table = replace(table, worst=None, ranked=True) if many else table
    # Where waits are but lower bounds, what the tasks of the collectives tell is the better answer.
    better = "recorded_wait_ns" if notes else ""
    return replace(
        table, columns=tuple(replace(one, minor=one.minor and one.key != better) for one in table.columns), notes=notes
    )


def in_groups(cluster: Cluster) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(ranks, steps) ns of waiting; of each rank the collectives in which nobody waited less, and all of its."""
    found = np.zeros(cluster.rows.shape, np.int64)
    last, matched = np.zeros((2, len(cluster.ranks)), np.int64)
    for one in cluster.groups:
        members = np.array(one.members)
        found[members] += one.by_step(one.wait, len(cluster.steps)).T
        for part in one.parts():
            last[members[part]] += (one.wait(part)[one.synchronising] == 0).sum(axis=0)
        matched[members] += int(one.synchronising.sum())
    return found, last, matched


def _bounds(cluster: Cluster) -> Iterator[Message]:
    """What makes the numbers mere bounds."""
    if cluster.missing_ranks:
        ranks = ("ranks", Kind.TEXT, ranges(cluster.missing_ranks)), ("absent", Kind.TEXT, cluster.absent)
        yield Message(_SAY["waits_bounded"], ranks)
    elif any(not one.complete for one in cluster.groups):
        yield Message(_SAY["waits_perhaps_bounded"])


def _stops(cluster: Cluster) -> Iterator[Message]:
    """What was not matched."""
    for what in ("kind", "bytes", "count"):
        stops = [stop for stop in cluster.stops if stop.what == what]
        if stops:
            steps = listed(dict.fromkeys(stop.step for stop in stops[:5]))
            count = sum(stop.left_out for stop in stops)
            yield Message(_SAY[f"matching_stopped_{what}"], (("count", Kind.COUNT, count), ("steps", Kind.TEXT, steps)))
    if cluster.outside:
        yield Message(_SAY["collectives_outside_steps"], (("count", Kind.COUNT, cluster.outside),))


def _recorded(rank: RankSummary, inside: NDArray[np.bool_]) -> int | NotMeasured:
    """Waiting by the tasks of the rank's own collectives; needs no other rank."""
    own = rank.collectives
    if not inside.any() or (own.moved[inside] < 0).any():
        return NotMeasured("no_collective_tasks")
    return int((own.end - own.start - own.moved)[inside].sum())


def waited_for(rank: RankSummary, inside: NDArray[np.bool_]) -> int | NotMeasured:
    """The rank that most of the waiting in some collectives was for."""
    own = rank.collectives
    known = np.flatnonzero(inside & (own.waited_for >= 0) & (own.moved >= 0))
    if len(known) == 0:
        return NotMeasured("no_collective_tasks")
    peers = group(own.group[known], own.waited_for[known])
    first = known[peers.first[peers.sum((own.end - own.start - own.moved)[known]).argmax()]]
    ranks, peer = rank.groups[int(own.group[first])].ranks, int(own.waited_for[first])
    return ranks[peer] if peer < len(ranks) else peer


def exposed_waits(
    ranks: Sequence[RankSummary], groups: Sequence[MatchedGroup], rows: NDArray[np.int64], missing: Sequence[int] = ()
) -> ExposedWaits | NotMeasured:
    """Waiting of each rank in each common step with nothing beside it.

    From the durations on all ranks; where ranks are missing rather from the tasks of each rank's own collectives, where
    these were recorded (Ascend): they tell its waiting without the others. Else what a rank's collectives take beyond
    others of their kind and size is waiting, too. `rows` are as in `Cluster`.
    """
    if rows.shape[1] == 0:
        return NotMeasured("no_common_steps")
    known = [one for one in groups if one.synchronising.any()]
    bound = bool(missing) or not all(one.complete for one in known)
    if bound or not known:
        own = [_by_tasks(rank, common) for rank, common in zip(ranks, rows, strict=True)]
        known_by_tasks = [one for one in own if one is not None]
        if len(known_by_tasks) == len(ranks):
            return ExposedWaits(np.stack(known_by_tasks), bound=True, by_tasks=True)
    if not known:
        return NotMeasured("no_matched_collectives")
    found = by_durations(known, rows)
    if bound:
        found = np.maximum(found, [_by_siblings(rank, common) for rank, common in zip(ranks, rows, strict=True)])
    return ExposedWaits(found, bound=bound)


def by_durations(groups: Sequence[MatchedGroup], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """(ranks, steps) ns over groups that have collectives for which waiting is defined."""
    found = np.zeros(rows.shape, np.int64)
    for one in groups:
        found[list(one.members)] += of_group(one, rows.shape[1]).T
    return found


def of_group(one: MatchedGroup, steps: int) -> NDArray[np.int64]:
    """(steps, members) ns of a group's collectives that synchronise."""
    least = one.by_step(one.exposed_wait, steps)
    if not one.complete:
        return least
    wait, shown = one.by_step(one.wait, steps), one.by_step(lambda part: one.exposed[:, part], steps)
    last = wait.argmin(axis=1)[:, None]
    transfer = np.take_along_axis(shown - least, last, 1)
    return np.asarray(np.clip(shown - transfer, least, wait))


def _by_siblings(rank: RankSummary, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """(steps,) exposed ns that its collectives take beyond their siblings."""
    own, found = rank.collectives, np.zeros(len(rows), np.int64)
    step, inside = in_common(rank, rows)
    np.add.at(found, step[inside], beyond_siblings(own, own.end - own.start)[inside])
    return found


def beyond_siblings(own: RankCollectives, time: NDArray[np.int64]) -> NDArray[np.int64]:
    """Exposed ns of each at its end that so long a time is beyond its siblings (`communication.outlasting`)."""
    longer = outlasting(own.kind, own.bytes, own.group, time)
    return np.clip(own.exposed - (own.end - own.start - longer), 0, longer)


def in_common(rank: RankSummary, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Common step of each collective of a rank, and whether it has one."""
    common = np.full(len(rank.steps) + 1, -1, np.int64)
    common[rows] = np.arange(len(rows))
    step = common[rank.collectives.step]
    return step, step >= 0


def _by_tasks(rank: RankSummary, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """(steps,) exposed ns in which no plane moved data, at least; None where the tasks are not all recorded."""
    own = rank.collectives
    step, inside = in_common(rank, rows)
    if not inside.any() or (own.moved[inside] < 0).any():
        return None
    found = np.zeros(len(rows), np.int64)
    np.add.at(found, step[inside], np.clip(own.exposed - own.moved, 0, None)[inside])
    return found


def waits_itself(ranks: Cluster, label: str) -> bool:
    """Whether a rank waits longer than the mean of all: then it is not the one that the others wait for."""
    by_host = ranks.part("peer_wait")
    if not isinstance(ranks.exposed_waits, NotMeasured):
        waits = ranks.exposed_waits.mean
    elif by_host is not None:
        waits = by_host.sum(axis=1)
    else:
        return False
    own = int(waits[[one.label for one in ranks.ranks].index(label)])
    return len(waits) * own > int(waits.sum())
