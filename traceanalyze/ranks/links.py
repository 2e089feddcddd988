"""Traffic between pairs of ranks: by the tasks of collectives, where they are recorded (Ascend), and by sends."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.parts import MOVES, NETWORK, went_over
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.model import intervals
from traceanalyze.model.collectives import TYPES
from traceanalyze.model.columns import distinct
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value, declare
from traceanalyze.ranks.match import POINT_TO_POINT
from traceanalyze.ranks.results import Cluster, ExposedWaits, Group, LinkTraffic, RankCollectives, RankSummary
from traceanalyze.ranks.waits import in_common

SLOW = 0.05
"""Bandwidth so far below the others is slow (rule RNK103)."""
LEAST_TRANSFERS = 10
LEAST_LINKS = 3
"""Fewer of a kind have no usual bandwidth."""
_MOST_RANKS = 2**20
"""Numbers beyond stand for no rank."""


def link_traffic(context: Context) -> tuple[LinkTraffic, ...]:
    """Transfers of one recording by pair of ranks and kind of link, inside the analysed windows."""
    trace = context.trace
    column = trace.events.fields.get("part_of")
    if column is None or len(context.steps) == 0:
        return ()
    row = column.row.astype(np.int64)
    moves = trace.strings.matches(trace.events.name[row], MOVES.match)
    row = row[moves]
    names = "src_rank", "dst_rank", "bytes", "link_type"
    source, target, size, link = (trace.events.numbers(each, row) for each in names)
    # Of a size of 0 nothing moves; where none is recorded, something does.
    between = (source != target) & (size != 0)
    for rank in (source, target):
        between &= (rank >= 0) & (rank < _MOST_RANKS)
    start = trace.events.ts[row]
    between &= intervals.contains(intervals.merge(context.counted.start, context.counted.end), start)
    row, source, target, size, link = (each[between] for each in (row, source, target, size, link))
    rows = group(source, target, link)
    kinds = [trace.strings.text(code) if code >= 0 else "" for code in link[rows.first].tolist()]
    sized = size > 0
    numbers = sized, np.where(sized, size, 0), np.where(sized, trace.events.dur[row], 0), ~sized
    sums = (rows.sum(each).tolist() for each in numbers)
    return tuple(map(LinkTraffic, source[rows.first].tolist(), target[rows.first].tolist(), kinds, *sums))


def networked_groups(
    context: Context, events: NDArray[np.int64], groups: Sequence[Group], of: NDArray[np.int64]
) -> frozenset[str] | None:
    """Labels of the groups that have collectives with tasks over a network (RDMA); None where no task is recorded.

    `events` are positions of the rank's collectives in `Context.device`, `of` the group of each.
    """
    trace = context.trace
    column = trace.events.fields.get("part_of")
    if column is None or not {"transport", "link_type"} & set(trace.events.fields):
        return None
    row, owner = column.row.astype(np.int64), np.asarray(column.value, np.int64)
    far = np.isin(context.device.row[events], owner[went_over(context, row, NETWORK)])
    return frozenset(groups[number].label for number in distinct(of[far]).tolist())


def without(ordered: Sequence[float], place: int) -> float:
    """Median of the others of values in order, of which there are two or more."""
    low, high = (len(ordered) - 2) // 2, (len(ordered) - 1) // 2
    return (ordered[low + (low >= place)] + ordered[high + (high >= place)]) / 2


_LINKS = declare(
    "links",
    "Traffic between ranks",
    Column("link", Kind.TEXT, "kind of link: HCCS, RoCE, PCIe …"),
    Column("source_rank", Kind.COUNT, "rank inside the group that sends", heading="from"),
    Column("target_rank", Kind.COUNT, "rank inside the group that receives", heading="to"),
    Column("transfers", Kind.COUNT, "recorded transfers whose size is known"),
    Column("bytes", Kind.BYTES, "of all of them"),
    Column("time_ns", Kind.DURATION, "sum of their durations"),
    Column("bandwidth", Kind.NUMBER, "bytes over time, 10⁹ bytes a second", heading="GB/s"),
    Column("below_usual", Kind.SHARE, "below the median of the other links of its kind, from 5 % on and 10 transfers"),
    Column(
        "unsized", Kind.COUNT, "transfers without a size, which are in none of the numbers", "without size", minor=True
    ),
    detail=True,
)


def links(ranks: Sequence[RankSummary]) -> Table:
    """All pairs of all recordings, slowest of each kind first; slow ones are marked where enough tell what is usual."""
    sums: dict[tuple[str, int, int], LinkTraffic] = {}
    for one in (one for rank in ranks for one in rank.links):
        key = one.link, one.source, one.target
        before = sums.get(key, replace(one, count=0, bytes=0, time=0, unsized=0))
        count, size, time = before.count + one.count, before.bytes + one.bytes, before.time + one.time
        sums[key] = replace(before, count=count, bytes=size, time=time, unsized=before.unsized + one.unsized)
    if not sums:
        return _LINKS.missing("no_collective_tasks")
    rows: list[dict[str, Value]] = []
    ordered = sorted(sums.values(), key=lambda one: (one.link, one.rate, one.source, one.target))
    rates: dict[str, list[float]] = {}
    for one in ordered:
        if one.time:
            rates.setdefault(one.link, []).append(one.rate)
    places: Counter[str] = Counter()
    for one in ordered:
        alike, below = rates.get(one.link, []), 0.0
        if one.time and len(alike) >= LEAST_LINKS:
            usual = without(alike, places[one.link])
            below = 1 - one.rate / usual if usual else 0.0
        places[one.link] += bool(one.time)
        rows.append(
            {
                "link": one.link,
                "source_rank": one.source,
                "target_rank": one.target,
                "transfers": one.count,
                "bytes": one.bytes if one.count else NotMeasured("no_bytes"),
                "time_ns": one.time if one.count else NotMeasured("no_bytes"),
                "bandwidth": one.rate if one.time else NotMeasured("no_duration" if one.count else "no_bytes"),
                "below_usual": below if below >= SLOW and one.count >= LEAST_TRANSFERS else None,
                "unsized": one.unsized,
            }
        )
    return _LINKS.fill_records(rows)


_SEND, _RECEIVE, _BOTH = (TYPES.index(kind) for kind in ("send", "recv", "send_recv"))
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


class _Way(NamedTuple):
    """Transfers of a group of two ranks in one direction."""

    ranks: tuple[int, int]
    """Positions of the sender and the receiver."""
    asked: tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]
    """Of both their rows in each step."""
    paired: tuple[NDArray[np.int64], NDArray[np.int64]]
    """Of both the rows of pairs."""
    time: NDArray[np.int64]
    """(2, pairs) durations; what the longer one has more is waiting."""


def _groups(cluster: Cluster) -> Iterator[tuple[str, list[int], bool]]:
    """Groups that send, their ranks, and whether the partner is told, as in groups of two ranks alone."""
    members: dict[str, list[int]] = {}
    sizes: dict[str, int] = {}
    for rank, own in enumerate(cluster.ranks):
        for number in np.unique(own.collectives.group[POINT_TO_POINT[own.collectives.kind]]).tolist():
            one = own.groups[number]
            members.setdefault(one.label, []).append(rank)
            sizes[one.label] = max(sizes.get(one.label, 0), one.size)
    for label, ranks in members.items():
        yield label, sorted(set(ranks)), sizes[label] == len(set(ranks)) == 2


def _ways(cluster: Cluster, label: str, ranks: Sequence[int]) -> Iterator[_Way]:
    first, second = ranks
    for one, other, sent, received in (
        (first, second, _SEND, _RECEIVE),
        (second, first, _SEND, _RECEIVE),
        (first, second, _BOTH, _BOTH),
    ):
        asked = _asked(cluster, one, label, sent), _asked(cluster, other, label, received)
        if any(map(len, (*asked[0], *asked[1]))):
            own = [cluster.ranks[rank].collectives for rank in (one, other)]
            paired = _paired(own, asked)
            time = np.stack([side.end[at] - side.start[at] for side, at in zip(own, paired, strict=True)])
            yield _Way((one, other), asked, paired, time)


Place: TypeAlias = "tuple[int, int]"
"""Position of a rank, and row of its collectives."""


def transfers(cluster: Cluster) -> dict[Place, int]:
    """By position of the rank and row of its collectives how long a send or receive moves data, if its pair tells."""
    found: dict[Place, int] = {}
    for label, ranks, told in _groups(cluster):
        for way in _ways(cluster, label, ranks) if told else ():
            times = way.time.min(axis=0).tolist()
            for rank, rows in zip(way.ranks, way.paired, strict=True):
                found |= zip(((rank, row) for row in rows.tolist()), times, strict=True)
    return found


def moves(cluster: Cluster, rows: Sequence[Sequence[int]], told: dict[Place, int]) -> dict[Place, int]:
    """How long sends and receives (by rank their rows) move data, ns.

    As its pair tells (`transfers`), else at most as long as the shortest of its group, kind and size on any rank.
    """
    least: dict[tuple[str, int, int], int] = {}
    alike = {}
    for at, (rank, places) in enumerate(zip(cluster.ranks, rows, strict=True)):
        own = rank.collectives
        for row in places:
            key = alike[at, row] = rank.groups[int(own.group[row])].label, int(own.kind[row]), int(own.bytes[row])
            time = int(own.end[row] - own.start[row])
            least[key] = min(least.get(key, time), time)
    return {place: least[key] for place, key in alike.items()} | told


def waits_between(cluster: Cluster) -> ExposedWaits | None:
    """Exposed waiting in sends and receives; None unless all ranks are here and have some."""
    found = np.zeros(cluster.rows.shape, np.int64)
    common = [in_common(rank, own) for rank, own in zip(cluster.ranks, cluster.rows, strict=True)]
    chosen = [
        np.flatnonzero(inside & POINT_TO_POINT[rank.collectives.kind])
        for rank, (_, inside) in zip(cluster.ranks, common, strict=True)
    ]
    if len(chosen) < 2 or cluster.missing or not all(map(len, chosen)):
        return None
    told = transfers(cluster)
    moved = moves(cluster, [rows.tolist() for rows in chosen], told)
    for at, (rank, rows, (step, _)) in enumerate(zip(cluster.ranks, chosen, common, strict=True)):
        own, time = rank.collectives, np.array([moved[at, row] for row in rows.tolist()], np.int64)
        wait = np.clip(own.exposed[rows] - time, 0, None)
        np.add.at(found[at], step[rows], wait)
    bound = any((at, row) not in told for at, rows in enumerate(chosen) for row in rows.tolist())
    return ExposedWaits(found, bound)


def sends(cluster: Cluster) -> Table:
    """Point-to-point transfers by group and direction."""
    if not cluster.steps:
        return _PAIRS.missing("no_common_steps", detail=True)
    rows: list[dict[str, Value]] = []
    for label, ranks, told in _groups(cluster):
        rows += (_summed(cluster, label, way) for way in _ways(cluster, label, ranks)) if told else ()
        rows += () if told else _alone(cluster, label, ranks)
    return _PAIRS.fill_records(rows) if rows else _PAIRS.missing("no_sends", detail=True)


def _alone(cluster: Cluster, label: str, ranks: Sequence[int]) -> Iterator[dict[str, Value]]:
    """What each rank sends and receives, where the other end is not told."""
    untold, steps = NotMeasured("no_partner"), len(cluster.steps)
    for rank in ranks:
        counts = [sum(map(len, _asked(cluster, rank, label, kind))) for kind in (_SEND, _RECEIVE, _BOTH)]
        if any(counts):
            yield {
                **dict.fromkeys(_PAIRS.keys, untold),
                "group": label,
                "sender": cluster.ranks[rank].label,
                "sends": (counts[0] + counts[2]) / steps,
                "receives": (counts[1] + counts[2]) / steps,
            }


def _asked(cluster: Cluster, rank: int, label: str, kind: int) -> list[NDArray[np.int64]]:
    """Rows of a rank's transfers of a group in each step, in order."""
    own, groups = cluster.ranks[rank].collectives, cluster.ranks[rank].groups
    numbers = [number for number, one in enumerate(groups) if one.label == label]
    chosen = np.isin(own.group, numbers) & (own.kind == kind)
    return [np.flatnonzero(chosen & (own.step == row)) for row in cluster.rows[rank].tolist()]


def _paired(
    own: Sequence[RankCollectives], asked: tuple[list[NDArray[np.int64]], ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The k-th of the one with the k-th of the other in each step, up to one whose sizes differ."""
    kept: tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]] = [], []
    for here, there in zip(*asked, strict=True):
        count = min(len(here), len(there))
        sent, received = own[0].bytes[here[:count]], own[1].bytes[there[:count]]
        wrong = np.flatnonzero((sent != received) & (sent >= 0) & (received >= 0))
        count = int(wrong[0]) if len(wrong) else count
        kept[0].append(here[:count])
        kept[1].append(there[:count])
    return np.concatenate(kept[0]), np.concatenate(kept[1])


def _summed(cluster: Cluster, label: str, way: _Way) -> dict[str, Value]:
    own = [cluster.ranks[rank].collectives for rank in way.ranks]
    size = np.maximum(*(side.bytes[at] for side, at in zip(own, way.paired, strict=True)))
    transfer, steps = way.time.min(axis=0), len(cluster.steps)
    counts = [sum(map(len, each)) for each in way.asked]
    waits = (way.time - transfer).sum(axis=1) // steps
    sender, receiver = (cluster.ranks[rank].label for rank in way.ranks)
    return {
        "group": label,
        "sender": sender,
        "receiver": receiver,
        "sends": counts[0] / steps,
        "receives": counts[1] / steps,
        "paired": len(transfer) / steps,
        "unpaired": (sum(counts) - 2 * len(transfer)) / steps,
        "bytes": int(size.sum()) // steps if (size >= 0).all() else NotMeasured("no_bytes"),
        "transfer_ns": int(transfer.sum()) // steps,
        "sender_wait_ns": int(waits[0]),
        "receiver_wait_ns": int(waits[1]),
    }
