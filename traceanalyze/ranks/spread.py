"""What the ranks of a run have run, over all of them: operators, collectives, calls, the clock, and load of experts."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.kernels.work import device_work, ratio_argument
from traceanalyze.model import intervals
from traceanalyze.model.collectives import TYPES
from traceanalyze.model.columns import Rows, narrow
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, Value, declare, sentences
from traceanalyze.model.vocabulary import DeviceClass, EventKind
from traceanalyze.ranks.results import Experts, OfName, Ran, RankSummary, Times

_SAY = sentences(
    spread_of_some="Of each rank and kind the {most} names of most time count; all others take {time} together.",
    spread_quartiles=(
        "Quartiles and median are approximate for names with more than {points} calls on a rank: between {points} of "
        "their durations."
    ),
)
MOST = 256
"""Names kept of a rank and kind, those of most time: they are sent between processes."""
POINTS = 33
"""Durations kept of a name: of no more calls its quartiles are exact, else to a 32nd of their number."""
_GROUPED = regex(r"Grouped_?Mat_?[Mm]ul|GroupedMM|grouped_(mm|matmul|gemm)|\bgmm\b", re.IGNORECASE)
_SHAPE = regex(r"(?<!\d)\d{1,18}(?:\s*,\s*\d{1,18})*(?!\d)")


def times(names: Sequence[str], of: NDArray[np.int64], time: NDArray[np.int64]) -> Times:
    """Durations by the name that `of` says of each; those of most time."""
    rows = group(of)
    count, total = rows.count(), rows.sum(time)
    square = np.bincount(rows.of, time.astype(np.float64) ** 2, len(rows)).astype(np.float64)
    kept = np.argsort(-total, kind="stable")[:MOST]
    ordered, first = time[np.argsort(narrow(rows.of), kind="stable")], np.cumsum(count) - count
    for low, number in zip(first[kept].tolist(), count[kept].tolist(), strict=True):
        ordered[low : low + number].sort()
    number = np.minimum(count, POINTS)[kept, None]
    place, apart = np.arange(POINTS), np.maximum(number - 1, 1)
    at = (place * (count[kept, None] - 1) + apart // 2) // apart
    inside = place < number
    points = np.where(inside, ordered[first[kept, None] + np.where(inside, at, 0)], 0) if len(time) else at
    named = tuple(names[code] for code in of[rows.first[kept]].tolist())
    left = int(total.sum() - total[kept].sum())
    return Times(named, count[kept], total[kept], square[kept], points, left)


def ran(context: Context) -> Ran:
    """What a rank has run."""
    work, device = context.once(device_work), context.device
    chosen = np.flatnonzero(device.klass[work.event] == DeviceClass.COMPUTE)
    if context.devices:
        chosen = chosen[device.device[work.event[chosen]] == context.devices[0]]
    event, time = work.event[chosen], work.time[chosen]
    row = device.row[event]
    kind = context.trace.events.numbers("op_type", row)
    code = np.where(kind >= 0, kind, work.op_name[chosen])
    code = np.where(code >= 0, code, device.name[event]).astype(np.int64)
    clock = ratio_argument(context, "core_clock", row)
    told = ~np.isnan(clock) & (time > 0)
    recorded = bool(context.devices) and "compute" not in context.unmeasured
    grouped = context.trace.strings.matches(code.astype(np.int32), _GROUPED.search)
    return Ran(
        _named(context, code, time),
        _calls(context),
        float(np.average(clock[told], weights=time[told])) if told.any() else None,
        _experts(context, row[grouped], work.op[chosen[grouped]]) if recorded else Experts(None, None),
    )


def _named(context: Context, code: NDArray[np.int64], time: NDArray[np.int64]) -> Times:
    rows = group(code)
    return times(list(context.trace.strings.texts(code[rows.first])), rows.of, time)


def _calls(context: Context) -> Times:
    events = context.trace.events
    row = np.flatnonzero(context.kind == EventKind.API)
    row = row[intervals.contains(context.host_windows, events.ts[row])]
    return _named(context, events.name[row].astype(np.int64), events.dur[row])


def _experts(context: Context, row: Rows, op: Rows) -> Experts:
    """Grouped products, and the tokens that the rank was given: see `_rows`."""
    numbers, text = context.trace.events.numbers, context.trace.strings.text
    shape = numbers("kernel_shapes", row, -1)
    shape = np.where(shape < 0, numbers("shapes", op, -1), shape)
    rows, tokens = group(shape), 0
    for code, count in zip(shape[rows.first].tolist(), rows.count().tolist(), strict=True):
        each = _rows(text(code)) if code >= 0 else None
        if each is None:
            return Experts(len(row), None)
        tokens += each * count
    return Experts(len(row), tokens if len(row) else None)


def _rows(shapes: str) -> int | None:
    """Rows of what a grouped product multiplies: of its first tensor, and of those of other experts that follow it.

    They have the same length of a row, and the first matrix that they are multiplied by has as many rows.
    """
    found = [tuple(map(int, one.split(","))) for one in _SHAPE.findall(shapes)]
    if not found:
        return None
    first, *others = found
    alike = takewhile(lambda one: len(one) == len(first) > 1 and one[-1] == first[-1] and one[0] != first[-1], others)
    return first[0] + sum(one[0] for one in alike)


_SPREAD = declare(
    "rank_spread",
    "Operators, collectives and calls over all ranks (sum over the analysed steps)",
    Column("what", Kind.TERM, "operator that computes, collective, or call of the runtime", heading="kind"),
    Column("name", Kind.NAME, "type of operator, kind of collective, or name of the call"),
    Column("ranks", Kind.COUNT, "ranks that ran it"),
    Column("calls", Kind.COUNT, "on all ranks: kernels, collectives, calls"),
    Column("time_ns", Kind.DURATION, "of all of them", heading="time"),
    Column("mean_ns", Kind.DURATION, "mean duration of one", heading="mean", scale="event"),
    Column("std_ns", Kind.DURATION, "standard deviation of their durations", heading="std", scale="event", minor=True),
    Column("min_ns", Kind.DURATION, "shortest of them", heading="shortest", scale="event"),
    Column("min_rank", Kind.TEXT, "rank that ran it", heading="shortest: rank"),
    *(
        Column(key, Kind.DURATION, f"{which} of their durations", heading=name, scale="event", minor=minor)
        for key, which, name, minor in (
            ("q1_ns", "first quartile", "quartile 1", True),
            ("median_ns", "median", "median", False),
            ("q3_ns", "third quartile", "quartile 3", True),
        )
    ),
    Column("max_ns", Kind.DURATION, "longest of them", heading="longest", scale="event"),
    Column("max_rank", Kind.TEXT, "rank that ran it", heading="longest: rank"),
    ranked=True,
    detail=True,
)
_CLOCKS = declare(
    "core_clocks",
    "Clock of the cores by rank",
    Column("rank", Kind.TEXT, "rank of the process; ?n where the profile does not tell"),
    Column("clock", Kind.NUMBER, "clock of its cores, MHz, mean weighted by time", heading="clock (MHz)"),
    Column("of_highest", Kind.SHARE, "of that of the rank with the highest"),
    detail=True,
)
_EXPERTS = declare(
    "expert_load",
    "Load of experts by rank (sum over the analysed steps)",
    Column("rank", Kind.TEXT, "rank of the process; ?n where the profile does not tell"),
    Column("calls", Kind.COUNT, "kernels of products that are grouped by expert"),
    Column("tokens", Kind.COUNT, "rows of what they multiply"),
    Column("of_mean", Kind.RATIO, "tokens over the mean of the ranks, without tokens the bytes", heading="of the mean"),
    Column("sent_bytes", Kind.BYTES, "in all_to_all, where its size was recorded", heading="all-to-all"),
    detail=True,
)


def spread_tables(ranks: Sequence[RankSummary]) -> Iterator[Table]:
    """What ranks ran over all of them, and by rank the clock and the load of experts."""
    each = [rank.ran for rank in ranks]
    if any(one is None for one in each):
        return
    known = [one for one in each if one is not None]
    labels = [rank.label for rank in ranks]
    sides = {
        "operator": [one.operators for one in known],
        "collective": [_collectives(rank) for rank in ranks],
        "call": [one.calls for one in known],
    }
    rows = [row for what, times_ in sides.items() for row in _over_ranks(what, labels, times_)]
    left = sum(side.left for times_ in sides.values() for side in times_)
    values = ("most", Kind.COUNT, MOST), ("time", Kind.DURATION, left)
    notes = [Message(_SAY["spread_of_some"], values)] if left else []
    if any((side.calls > POINTS).any() for times_ in sides.values() for side in times_):
        notes.append(Message(_SAY["spread_quartiles"], (("points", Kind.COUNT, POINTS),)))
    yield replace(_SPREAD.fill_records(rows), notes=tuple(notes)) if rows else _SPREAD.missing("no_device_events")
    yield _clocks(labels, [one.clock for one in known])
    yield _expert_load(labels, [one.experts for one in known], list(map(_sent, ranks)))


def _counted(rank: RankSummary) -> NDArray[np.bool_]:
    """Which collectives are of steps that count."""
    counted: NDArray[np.bool_] = np.append(rank.counted, False)[rank.collectives.step]
    return counted


def _collectives(rank: RankSummary) -> Times:
    own, counted = rank.collectives, _counted(rank)
    return times(TYPES, own.kind[counted], (own.end - own.start)[counted])


def _sent(rank: RankSummary) -> int | None:
    own = rank.collectives
    size = own.bytes[_counted(rank) & (own.kind == TYPES.index("all_to_all"))]
    return int(size.sum()) if len(size) and (size >= 0).all() else None


def _over_ranks(what: str, labels: Sequence[str], sides: Sequence[Times]) -> Iterator[dict[str, Value]]:
    """A row a name, most time first."""
    parts: dict[str, list[tuple[int, int]]] = {}
    for rank, side in enumerate(sides):
        for row, name in enumerate(side.names):
            parts.setdefault(name, []).append((rank, row))
    rows = [
        {
            "what": what,
            "name": name,
            **_of_all([sides[rank].of(row) for rank, row in part], [labels[rank] for rank, _ in part]),
        }
        for name, part in parts.items()
    ]
    yield from sorted(rows, key=lambda row: (-row["time_ns"], row["name"]))


def _of_all(each: Sequence[OfName], labels: Sequence[str]) -> dict[str, Any]:
    """The durations of one name on all ranks that have it."""
    number, time = sum(one.calls for one in each), sum(one.total for one in each)
    square = sum(one.square for one in each) - time**2 / number
    shortest = min(range(len(each)), key=lambda at: each[at].points[0])
    longest = max(range(len(each)), key=lambda at: each[at].points[-1])
    return {
        "ranks": len(each),
        "calls": number,
        "time_ns": time,
        "mean_ns": round(time / number),
        "std_ns": round(sqrt(max(square, 0.0) / (number - 1))) if number > 1 else None,
        "min_ns": int(each[shortest].points[0]),
        "min_rank": labels[shortest],
        **dict(zip(("q1_ns", "median_ns", "q3_ns"), _quartiles(each), strict=True)),
        "max_ns": int(each[longest].points[-1]),
        "max_rank": labels[longest],
    }


def _quartiles(each: Sequence[OfName]) -> list[int]:
    """Between the two calls next to a quarter, half and three quarters of their number; a point stands for its part."""
    value = np.concatenate([one.points for one in each])
    weight = np.concatenate([np.full(len(one.points), one.calls / len(one.points)) for one in each])
    order = np.argsort(value, kind="stable")
    reach = np.cumsum(weight[order])
    place = reach - (weight[order] + 1) / 2
    return [
        round(one) for one in np.interp(np.array((0.25, 0.5, 0.75)) * (reach[-1] - 1), place, value[order]).tolist()
    ]


def _clocks(labels: Sequence[str], clocks: Sequence[float | None]) -> Table:
    highest = max((clock for clock in clocks if clock is not None), default=0.0)
    if not highest:
        return _CLOCKS.missing("no_core_counters", detail=True)
    untold = NotMeasured("no_core_counters")
    return _CLOCKS.fill(
        rank=labels,
        clock=[untold if clock is None else clock for clock in clocks],
        of_highest=[untold if clock is None else clock / highest for clock in clocks],
    )


def _expert_load(labels: Sequence[str], experts: Sequence[Experts], sent: Sequence[int | None]) -> Table:
    """By tokens; of ranks without grouped products by what they send, if that differs."""
    grouped = any(one.calls for one in experts)
    if not grouped and len({size for size in sent if size is not None}) < 2:
        return _EXPERTS.missing("no_experts", detail=True)
    load = [one.tokens for one in experts] if grouped else list(sent)
    told = [amount for amount in load if amount is not None]
    mean = sum(told) / len(told) if told else 0.0
    no_shapes, no_bytes = NotMeasured("no_shapes"), NotMeasured("no_bytes")
    return _EXPERTS.fill(
        rank=labels,
        calls=[NotMeasured("no_device_events") if one.calls is None else one.calls for one in experts],
        tokens=[None if not one.calls else no_shapes if one.tokens is None else one.tokens for one in experts],
        of_mean=[None if amount is None or not mean else amount / mean for amount in load],
        sent_bytes=[no_bytes if size is None else size for size in sent],
    )
