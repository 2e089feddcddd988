"""Sends and receives: who is at the other end, which are pairs, and the waiting between the two."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.collectives import batched, description_rows, sizes, types
from traceanalyze.analyses.communication.parts import collective_tasks
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.model.collectives import TYPES
from traceanalyze.model.columns import narrowed, occurs
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value, declare
from traceanalyze.ranks.links import MOST_RANKS
from traceanalyze.ranks.match import POINT_TO_POINT
from traceanalyze.ranks.results import NONE, Cluster, ExposedWaits, Moved, Partners, RankCollectives, RankSummary
from traceanalyze.ranks.waits import in_common

_SEND, _RECEIVE, _BOTH = (TYPES.index(kind) for kind in ("send", "recv", "send_recv"))


def partners(context: Context, own: RankCollectives) -> Partners:
    """Who is at the other end of the sends and receives of one rank, where its recording tells."""
    single = np.flatnonzero(POINT_TO_POINT[own.kind])
    if not len(single):
        return Partners(*np.zeros((4, 0), np.int8))
    place = np.full(len(context.device), -1, np.int64)
    place[own.event[single]] = single
    ends = _by_tasks(context, place, own) if context.trace.origin.format == "ascend" else _by_records(context, place)
    ends = Partners(*(column[ends.row >= 0] for column in ends))
    rest = single[~occurs(single, ends.row)]
    untold = Partners(rest, np.full(len(rest), -1), own.kind[rest], own.bytes[rest])
    columns = [np.concatenate(each) for each in zip(ends, untold, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return Partners(*(narrowed(column[order]) for column in columns))


def _by_tasks(context: Context, place: NDArray[np.int64], own: RankCollectives) -> Partners:
    """Of each the ranks that its tasks reach; HCCL writes its own rank as the source, whichever way data moves."""
    task, event = collective_tasks(context)
    source, target = (context.trace.events.numbers(name, task) for name in ("src_rank", "dst_rank"))
    known = (place[event] >= 0) & (target != source) & (target >= 0) & (target < MOST_RANKS)
    row, rank = place[event][known], target[known]
    first = group(row, rank).first
    row, rank = row[first], rank[first]
    return Partners(row, rank, own.kind[row].astype(np.int64), own.bytes[row].astype(np.int64))


def _by_records(context: Context, place: NDArray[np.int64]) -> Partners:
    """By the record around the launch, and by those that a batch runs."""
    batch, event = context.once(batched), np.flatnonzero(place >= 0)
    event = event[~occurs(event, batch.event)]
    described = description_rows(context, event)
    kind: NDArray[np.int64] = np.concatenate((types(context, event, described), batch.kind))
    event, record = np.concatenate((event, batch.event)), np.concatenate((described, batch.row))
    to, since = (context.trace.events.numbers(name, record, -1) for name in ("to_rank", "from_rank"))
    rank = np.where(kind == _SEND, to, np.where(kind == _RECEIVE, since, -1))
    return Partners(place[event], rank, kind, sizes(context, record, kind))


_PAIRS = declare(
    "sends",
    "Sends and receives (per step)",
    Column("group", Kind.TEXT, "process group: its ranks, or its name"),
    Column("sender", Kind.TEXT, "rank that sends; of send_recv one of both", heading="from"),
    Column("receiver", Kind.TEXT, "rank that receives", heading="to"),
    Column("sends", Kind.NUMBER, "sends on the one side"),
    Column("receives", Kind.NUMBER, "receives on the other"),
    Column("paired", Kind.NUMBER, "pairs: the first with the first, in their order within the step"),
    Column("unpaired", Kind.NUMBER, "sends and receives without a partner of the same size"),
    Column("bytes", Kind.BYTES, "of the pairs"),
    Column("transfer_ns", Kind.DURATION, "of each pair the shorter duration", heading="transfer"),
    Column("sender_wait_ns", Kind.DURATION, "what sends take beyond that", heading="sender waits"),
    Column("receiver_wait_ns", Kind.DURATION, "what receives take beyond that", heading="receiver waits"),
    worst="receiver_wait_ns",
    detail=True,
)


class _Sends(NamedTuple):
    """Sends and receives of all ranks in the common steps, one rank after another: columns of one length."""

    labels: tuple[str, ...]
    """Of all groups."""
    first: NDArray[np.int64]
    """(ranks + 1,) where those of each rank begin."""
    row: NDArray[np.int64]
    """In the collectives of its rank."""
    step: NDArray[np.int64]
    """Common step."""
    group: NDArray[np.int64]
    """Position in `labels`."""
    kind: NDArray[np.int64]
    bytes: NDArray[np.int64]
    time: NDArray[np.int64]


class _Ends(NamedTuple):
    """Of all these sends and receives, of a batch of each it runs, who is at both ends: columns of one length."""

    of: NDArray[np.int64]
    """Position in `_Sends`."""
    source: NDArray[np.int64]
    """Position of the rank that sends, -1 where it is not told or not here; where no direction is, of the first."""
    target: NDArray[np.int64]
    """The same of the one that receives."""
    receives: NDArray[np.bool_]
    """Whether it is the end of the target."""
    both: NDArray[np.bool_]
    """No direction is told."""
    bytes: NDArray[np.int64]


class Between(NamedTuple):
    """All sends and receives, and which belong together."""

    sends: _Sends
    ends: _Ends
    way: NDArray[np.int64]
    """Of each end the group and both ranks as one number, -1 where one of them is not told."""
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]]
    """Ends that belong together, of the sender and of the receiver."""


def between(ranks: Sequence[RankSummary], rows: NDArray[np.int64]) -> Between:
    """Pair what ranks send to each other: in each step the k-th of the one with the k-th of the other.

    Within a group and by direction where that is told, up to one whose sizes differ. `rows` are as in `Cluster`.
    """
    sends = _all_sends(ranks, rows)
    ends = _all_ends(ranks, sends)
    told = np.flatnonzero((ends.source >= 0) & (ends.target >= 0))
    of, source, target, receives, both, size = (column[told] for column in ends)
    way = np.full(len(ends.of), -1, np.int64)
    way[told] = ways = group(sends.group[of], both, source, target).of
    in_step = group(ways, sends.step[of]).of
    side = group(in_step, receives).of
    order = np.lexsort((of, side))
    first = np.flatnonzero(np.diff(side[order], prepend=-1))
    number = np.empty(len(of), np.int64)
    number[order] = np.arange(len(of)) - np.repeat(first, np.diff(np.append(first, len(of))))
    order = np.lexsort((receives, number, in_step))
    pair = np.flatnonzero((np.diff(in_step[order]) == 0) & (np.diff(number[order]) == 0))
    one, two = order[pair], order[pair + 1]
    wrong = (size[one] != size[two]) & (size[one] >= 0) & (size[two] >= 0)
    stop = np.full(len(of), len(of))
    np.minimum.at(stop, in_step[one[wrong]], number[one[wrong]])
    kept = number[one] < stop[in_step[one]]
    return Between(sends, ends, way, (told[one[kept]], told[two[kept]]))


def _all_sends(ranks: Sequence[RankSummary], rows: NDArray[np.int64]) -> _Sends:
    labels: dict[str, int] = {}
    found = []
    for rank, common in zip(ranks, rows, strict=True):
        of = np.array([labels.setdefault(one.label, len(labels)) for one in rank.groups], np.int64)
        if not len(rank.partners.row):
            found.append((NONE,) * 6)
            continue
        own, (step, inside) = rank.collectives, in_common(rank, common)
        row = np.flatnonzero(inside & POINT_TO_POINT[own.kind])
        time = own.end[row] - own.start[row]
        found.append((row, step[row], of[own.group[row]] if len(row) else row, own.kind[row], own.bytes[row], time))
    first = np.cumsum([0, *(len(each[0]) for each in found)])
    columns = (np.concatenate(each).astype(np.int64) for each in zip(*found, strict=True))
    return _Sends(tuple(labels), first, *columns)


def _all_ends(ranks: Sequence[RankSummary], sends: _Sends) -> _Ends:
    """Ends by the positions of their ranks; in groups of two, both of which are here, one is the other's."""
    numbers = np.array([-1 if rank.rank is None else rank.rank for rank in ranks], np.int64)
    of_rank = np.repeat(np.arange(len(ranks)), np.diff(sends.first))
    once = group(sends.group, of_rank).first
    members = [of_rank[once[sends.group[once] == code]] for code in range(len(sends.labels))]
    size = dict.fromkeys(sends.labels, 0)
    for one in (one for rank in ranks for one in rank.groups):
        size[one.label] = max(size[one.label], one.size)
    found = [(NONE,) * 5]
    for at in np.flatnonzero(np.diff(sends.first)).tolist():
        rank = ranks[at]
        row, told = sends.row[sends.first[at] : sends.first[at + 1]], rank.partners
        own, number, kind, each = (column[occurs(told.row, row)].astype(np.int64) for column in told)
        of = sends.first[at] + np.searchsorted(row, own)
        for code in np.unique(sends.group[of]).tolist():
            label, mine, here = sends.labels[code], sends.group[of] == code, numbers[members[code]]
            listed = next((one.ranks for one in rank.groups if one.label == label), ())
            known = np.array(listed or (np.sort(here) if len(here) == size[label] else ()), np.int64)
            number[mine] = _in_run(number[mine], known, inside=rank.inside)
        found.append((of, np.full(len(of), at), number, kind, each))
    of, own, number, kind, each = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(numbers, kind="stable")
    place = order[np.minimum(np.searchsorted(numbers[order], number), len(ranks) - 1)]
    other = np.where((number >= 0) & (numbers[place] == number) & (place != own), place, -1)
    # Of groups of two the sum of both.
    two = [own.sum() if len(own) == 2 == size[label] else -1 for own, label in zip(members, sends.labels, strict=True)]
    both = np.array([*two, -1])[sends.group[of]]
    other = np.where(both >= 0, both - own, other)
    receives = np.where(kind == _BOTH, own > other, kind == _RECEIVE)
    source, target = np.where(receives, other, own), np.where(receives, own, other)
    return _Ends(of, source, target, receives, kind == _BOTH, each)


def _in_run(number: NDArray[np.int64], members: NDArray[np.int64], *, inside: bool) -> NDArray[np.int64]:
    """Ranks of the run for those that a recording numbers, inside a group of some members or not; -1 for none.

    What is no member of the group is told wrongly; where these are not known, ranks of the run may be right.
    """
    if inside:
        known = (number >= 0) & (number < len(members))
        return np.where(known, members[np.where(known, number, 0)], -1) if len(members) else np.full(len(number), -1)
    return np.where(np.isin(number, members) | (len(members) == 0), number, -1)


def moves(found: Between) -> list[Moved]:
    """Of each rank's sends and receives in the common steps how long they move data.

    As long as the shorter of a pair; those of a batch one after another at most, as parts may move at once. Where the
    other end is not told, at most as long as the shortest of its group, kind and size on any rank.
    """
    sends, ends, (one, two) = found.sends, found.ends, found.pairs
    count, alike = len(sends.row), group(sends.group, sends.kind, sends.bytes)
    own, partner = (np.concatenate((ends.of[each], ends.of[other])) for each, other in ((one, two), (two, one)))
    number = np.bincount(ends.of, minlength=count)
    told = (number > 0) & (np.bincount(own, minlength=count) == number)
    # A batch may send to a rank and receive from it.
    first = group(own, partner).first
    own, partner = own[first], partner[first]
    summed = np.zeros(count, np.int64)
    np.add.at(summed, own, np.minimum(sends.time[own], sends.time[partner]))
    least = alike.spread(sends.time).shortest[alike.of] if count else sends.time
    time = np.where(told, np.minimum(summed, sends.time), least)
    exact = told & (np.bincount(own, minlength=count) == 1)
    columns = (np.split(column, sends.first[1:-1]) for column in (sends.row, time, exact))
    return [Moved(*each) for each in zip(*columns, strict=True)]


def waits_between(ranks: Sequence[RankSummary], rows: NDArray[np.int64], moved: Sequence[Moved]) -> ExposedWaits | None:
    """Exposed waiting in sends and receives; None where there are none."""
    if not rows.shape[1] or not any(len(own.row) for own in moved):
        return None
    waits, perhaps = np.zeros(rows.shape, np.int64), np.zeros(len(ranks), np.int64)
    for at, (rank, common, own) in enumerate(zip(ranks, rows, moved, strict=True)):
        shown = rank.collectives.exposed[own.row].astype(np.int64)
        np.add.at(waits[at], in_common(rank, common)[0][own.row], np.clip(shown - own.time, 0, None))
        perhaps[at] = np.minimum(shown, own.time)[~own.exact].sum() // rows.shape[1]
    return ExposedWaits(waits, bound=not all(own.exact.all() for own in moved), perhaps=perhaps)


def sends(cluster: Cluster, found: Between) -> Table:
    """Point-to-point transfers by group and direction; of those whose other end is not told how many each rank has."""
    if not cluster.steps:
        return _PAIRS.missing("no_common_steps", detail=True)
    rows = [*_paired(cluster, found), *_alone(cluster, found)]
    rows.sort(key=lambda one: one[0])
    return _PAIRS.fill_records(row for _, row in rows) if rows else _PAIRS.missing("no_sends", detail=True)


def _paired(cluster: Cluster, found: Between) -> Iterator[tuple[int, dict[str, Value]]]:
    """Of each direction of a group, with its place."""
    every, ends, way, (one, two) = found
    steps, count = len(cluster.steps), int(way.max(initial=-1)) + 1
    place = np.zeros(count, np.int64)
    place[way[way >= 0]] = np.flatnonzero(way >= 0)
    asked = [np.bincount(way[(way >= 0) & (ends.receives == side)], minlength=count) for side in (False, True)]
    time = [every.time[ends.of[each]] for each in (one, two)]
    size = np.maximum(ends.bytes[one], ends.bytes[two])
    shorter = np.minimum(*time)
    values = np.ones_like(one), np.maximum(size, 0), shorter, *(each - shorter for each in time)
    sums = np.zeros((len(values), count), np.int64)
    for total, each in zip(sums, values, strict=True):
        np.add.at(total, way[one], each)
    sized = np.bincount(way[one[size >= 0]], minlength=count) == sums[0]
    columns = (each.tolist() for each in (place, *asked, sized, *sums))
    for at, sent, received, known, paired, moved, transfer, *waits in zip(*columns, strict=True):
        label = int(every.group[ends.of[at]])
        yield (
            label,
            {
                "group": every.labels[label],
                "sender": cluster.ranks[int(ends.source[at])].label,
                "receiver": cluster.ranks[int(ends.target[at])].label,
                "sends": sent / steps,
                "receives": received / steps,
                "paired": paired / steps,
                "unpaired": (sent + received - 2 * paired) / steps,
                "bytes": moved // steps if known else NotMeasured("no_bytes"),
                "transfer_ns": transfer // steps,
                "sender_wait_ns": waits[0] // steps,
                "receiver_wait_ns": waits[1] // steps,
            },
        )


def _alone(cluster: Cluster, found: Between) -> Iterator[tuple[int, dict[str, Value]]]:
    """What each rank sends and receives, where the other end is not told."""
    every, ends, way, _ = found
    lone = np.flatnonzero(way < 0)
    label, rank = every.group[ends.of[lone]], np.maximum(ends.source, ends.target)[lone]
    rows = group(label, rank)
    sent, received = (rows.sum(ends.both[lone] | (ends.receives[lone] == side)) for side in (False, True))
    untold, steps = NotMeasured("no_partner"), len(cluster.steps)
    for first, sends, receives in zip(rows.first.tolist(), sent.tolist(), received.tolist(), strict=True):
        yield (
            int(label[first]),
            {
                **dict.fromkeys(_PAIRS.keys, untold),
                "group": every.labels[int(label[first])],
                "sender": cluster.ranks[int(rank[first])].label,
                "sends": sends / steps,
                "receives": receives / steps,
            },
        )
