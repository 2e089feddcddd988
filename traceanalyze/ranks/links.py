"""Traffic between pairs of ranks, by the tasks of collectives where they are recorded (Ascend)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.parts import MOVES, NETWORK, went_over
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value, declare
from traceanalyze.ranks.results import Group, LinkTraffic, RankSummary

SLOW = 0.05
"""Bandwidth so far below the others is slow (rule RNK103)."""
LEAST_TRANSFERS = 10
LEAST_LINKS = 3
"""Fewer of a kind have no usual bandwidth."""
MOST_RANKS = 2**20
"""Numbers beyond any machine are a profiler's way of saying that there is no rank."""


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
        between &= (rank >= 0) & (rank < MOST_RANKS)
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
