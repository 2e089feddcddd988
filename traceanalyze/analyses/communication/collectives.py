"""Collectives of one rank: what was sent, how fast, and how much of it nothing hid (definitions §12)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.parts import CollectiveParts, collective_parts
from traceanalyze.analyses.communication.ranges import description_rows, types
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import COUNT, EXTREMES, MEAN, Groups, group
from traceanalyze.analyses.kernels.work import argument, device_work
from traceanalyze.model import intervals
from traceanalyze.model.collectives import TYPES, bus_factor, counts_output, element_bytes
from traceanalyze.model.columns import MISSING
from traceanalyze.model.op_calls import MOST_ELEMENTS
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, Value, declare
from traceanalyze.model.vocabulary import DeviceClass

_NO_METADATA = "no_collective_metadata"
_PARTS = (
    Column(
        "wait_ns",
        Kind.DURATION,
        "of the device time, that in which no plane moves data: waiting for other ranks",
        heading="waiting",
    ),
    Column("exposed_wait_ns", Kind.DURATION, "of the exposed time, the same", heading="exposed waiting", minor=True),
    Column("transfer_ns", Kind.DURATION, "of the device time, that in which any plane moves data"),
    Column(
        "waited_for",
        Kind.COUNT,
        "rank that the longest single wait was for; inside the group unless its ranks are known",
        heading="longest wait for rank",
    ),
)
"""Where the profile records what collectives consist of."""
_PART_KEYS = tuple(column.key for column in _PARTS)
_COLLECTIVES = declare(
    "collectives",
    "Collectives of this rank (sum over the analysed steps)",
    Column("collective", Kind.TEXT, "type, the same for all libraries"),
    Column("group", Kind.TEXT, "ranks of the process group, or its name"),
    Column("ranks", Kind.COUNT, "number of ranks in the group", minor=True),
    Column("dtype", Kind.TEXT, "type of the elements", heading="type", minor=True),
    Column("size_bytes", Kind.BYTES, "input of one collective (all_gather: output)", heading="size of one"),
    COUNT,
    Column("device_time_ns", Kind.DURATION, "sum of the durations, waiting for other ranks included"),
    replace(MEAN, minor=True),
    *EXTREMES,
    Column(
        "exposed_ns",
        Kind.DURATION,
        "outside compute; where several run the one that started first; sums to the step's",
    ),
    Column("overlapped_ns", Kind.DURATION, "under compute", heading="hidden"),
    *_PARTS,
    Column(
        "algbw",
        Kind.NUMBER,
        "size over duration; the duration includes waiting",
        heading="algorithm GB/s",
        minor=True,
    ),
    Column(
        "busbw",
        Kind.NUMBER,
        "the same per link, to compare with the hardware; the duration includes waiting",
        heading="bus GB/s",
    ),
    ranked=True,
)
_Amount = int | NotMeasured
_Measure = float | NotMeasured


class _Described(NamedTuple):
    """What distinguishes the collectives of one row: codes of texts and numbers, `MISSING` where absent."""

    type: int
    ranks: int
    group: int
    group_size: int
    in_elements: int
    out_elements: int
    dtype: int


def collectives(context: Context) -> Table:
    """Collectives inside the analysed windows by group, type, element type and size, most time first.

    Their exposed times sum to the exposed communication of the partition.
    """
    work, device = context.once(device_work), context.device
    chosen = np.flatnonzero(device.klass[work.event] == DeviceClass.COMM)
    if len(chosen) == 0:
        return _COLLECTIVES.drop(*_PART_KEYS).missing("no_communication", detail=True)
    event = work.event[chosen]
    keys = _described(context, event)
    groups = group(*keys)
    spread = groups.spread(work.time[chosen])
    exposed, overlapped, own_start = _exposed(context, event)
    waits = _waits(context, chosen, groups, exposed, own_start)
    durations = groups.sum(device.end[event] - device.start[event])
    described = (_Described(*known) for known in zip(*(key[groups.first].tolist() for key in keys), strict=True))
    amounts = zip(described, waits, spread.number.tolist(), durations.tolist(), strict=True)
    rows = [_row(context, *amount) for amount in amounts]
    times = spread.values | {"exposed_ns": groups.sum(exposed), "overlapped_ns": groups.sum(overlapped)}
    table = _COLLECTIVES.fill(**times, **{key: [row[key] for row in rows] for key in rows[0]})
    table = replace(table.sort("-device_time_ns", "collective"), notes=_notes(table))
    split = any(isinstance(cell, int) for cell in table.column("transfer_ns"))
    return table if split else table.drop(*_PART_KEYS)


def _notes(table: Table) -> tuple[Message, ...]:
    """How much of the exposed time is waiting, where that is known of all; else that bandwidths include waiting."""
    waits = [wait for wait in table.column("exposed_wait_ns") if isinstance(wait, int)]
    if len(waits) == len(table):
        exposed = int(table.array("exposed_ns").sum())
        values = (
            ("exposed", Kind.DURATION, exposed),
            ("wait", Kind.DURATION, sum(waits)),
            ("transfer", Kind.DURATION, exposed - sum(waits)),
        )
        return (Message("exposed_wait", values),)
    measured = any(isinstance(rate, float) for rate in table.column("algbw"))
    return (Message("bandwidth_waits"),) if measured else ()


class _Waits(NamedTuple):
    """Transfer and waiting of the collectives of one row, ns."""

    transfer: _Amount
    wait: _Amount
    exposed_wait: _Amount
    whole_transfer: int
    """Transfer outside the analysed windows included; 0 where unknown."""
    waited_for: int
    """Rank inside the group, -1 where unknown."""


def _waits(
    context: Context,
    chosen: NDArray[np.int64],
    groups: Groups,
    exposed: NDArray[np.int64],
    own_start: NDArray[np.int64],
) -> list[_Waits]:
    """What the tasks of the collectives tell, where all of a row have recorded tasks."""
    parts = context.once(collective_parts)
    missing = NotMeasured("no_collective_tasks")
    if parts is None:
        return [_Waits(missing, missing, missing, 0, -1)] * len(groups)
    work, event = context.once(device_work), context.once(device_work).event[chosen]
    begin = np.zeros(len(context.device), np.int64)
    begin[event] = own_start
    free = _outside_compute(context, parts)
    windows = intervals.merge(context.steps.start, context.steps.end)
    transfer = parts.by_event(intervals.coverage(windows, parts.start, parts.end))[event]
    whole = parts.by_event(parts.end - parts.start)[event]
    bare = parts.by_event(free(np.minimum(np.maximum(parts.start, begin[parts.event]), parts.end)))[event]
    unknown = groups.sum(~parts.recorded[event])
    sums = [groups.sum(values) for values in (transfer, work.time[chosen] - transfer, exposed - bare, whole)]
    order = np.argsort(parts.longest_wait[event], kind="stable")
    peer = np.full(len(groups), -1, np.int64)
    peer[groups.of[order]] = parts.waited_for[event[order]]
    return [
        _Waits(missing, missing, missing, 0, -1)
        if unknown[index]
        else _Waits(*(int(column[index]) for column in (*sums, peer)))
        for index in range(len(groups))
    ]


def _outside_compute(context: Context, parts: CollectiveParts) -> Callable[[NDArray[np.int64]], NDArray[np.int64]]:
    """How much of each piece of transfer, begun at given times, lies in the windows with no compute beside it."""
    device = context.device
    of_piece = device.device[parts.event]

    def covered(start: NDArray[np.int64]) -> NDArray[np.int64]:
        out = np.zeros(len(start), np.int64)
        windows = intervals.merge(context.steps.start, context.steps.end)
        for one in context.devices:
            member = (device.device == one) & (device.klass == DeviceClass.COMPUTE)
            free = intervals.subtract(windows, intervals.merge(device.start[member], device.end[member]))
            mine = np.flatnonzero(of_piece == one)
            out[mine] = intervals.coverage(free, start[mine], parts.end[mine])
        return out

    return covered


def _described(context: Context, event: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The members of `_Described` for each event; the group's name counts only where its ranks are not known."""
    row = description_rows(context, event)
    fields = ("group_ranks", "group", "group_size", "in_elements", "out_elements", "dtype")
    ranks, name, *rest = (np.where(row >= 0, argument(context, field, np.maximum(row, 0)), MISSING) for field in fields)
    return [types(context, event, row), ranks, np.where(ranks >= 0, MISSING, name), *rest]


def _exposed(
    context: Context, event: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Time of each collective outside and under compute, inside the analysed windows, and from when on it counts.

    Instants with several collectives on one device count as exposed for the one that started first: the rest of each
    collective begins where the earlier ones have ended. Hence the exposed times sum to the exposed communication of
    the partition.
    """
    device, steps = context.device, context.steps
    windows = intervals.merge(steps.start, steps.end)
    exposed, overlapped, counts_from = np.zeros((3, len(event)), np.int64)
    for one in context.devices:
        mine = np.flatnonzero(device.device[event] == one)
        start, end = device.start[event[mine]], device.end[event[mine]]
        member = (device.device == one) & (device.klass == DeviceClass.COMPUTE)
        compute = intervals.merge(device.start[member], device.end[member])
        reach = np.maximum.accumulate(np.concatenate((start[:1], end[:-1])))
        own_start = np.minimum(np.maximum(start, reach), end)
        counts_from[mine] = own_start
        exposed[mine] = intervals.coverage(intervals.subtract(windows, compute), own_start, end)
        overlapped[mine] = intervals.coverage(intervals.intersect(windows, compute), start, end)
    return exposed, overlapped, counts_from


def _row(context: Context, known: _Described, waits: _Waits, count: int, duration: int) -> dict[str, Value]:
    kind = TYPES[known.type]
    dtype = _text(context, known.dtype)
    size = _bytes(known, kind, dtype)
    ranks = _ranks(context, known)
    algbw = _bandwidth(size, count, waits.whole_transfer or duration)
    group_name = _text(context, known.ranks if known.ranks >= 0 else known.group)
    return {
        "collective": kind,
        "group": group_name if isinstance(group_name, NotMeasured) else ranks_label(group_name),
        "ranks": ranks,
        "dtype": dtype,
        "size_bytes": size,
        "wait_ns": waits.wait,
        "exposed_wait_ns": waits.exposed_wait,
        "transfer_ns": waits.transfer,
        "waited_for": _waited_for(context, group_name, waits),
        "algbw": algbw,
        "busbw": _busbw(algbw, kind, ranks),
    }


def _waited_for(context: Context, group_name: str | NotMeasured, waits: _Waits) -> _Amount:
    """Rank that was waited for, translated to the whole run where the ranks of the group are known."""
    if waits.waited_for < 0:
        return NotMeasured("no_collective_tasks")
    ranks = context.trace.groups.get(group_name, ()) if isinstance(group_name, str) else ()
    return ranks[waits.waited_for] if waits.waited_for < len(ranks) else waits.waited_for


def _text(context: Context, code: int) -> str | NotMeasured:
    return context.trace.strings.text(code) if code >= 0 else NotMeasured(_NO_METADATA)


def _bytes(known: _Described, kind: str, dtype: str | NotMeasured) -> _Amount:
    """Size S: elements of the input (all_gather: of the output) times the size of one."""
    elements = known.out_elements if counts_output(kind) else known.in_elements
    each = None if isinstance(dtype, NotMeasured) else element_bytes(dtype)
    return NotMeasured(_NO_METADATA) if not 0 <= elements <= MOST_ELEMENTS or each is None else elements * each


def _ranks(context: Context, known: _Described) -> _Amount:
    """Ranks of the group: as stated, else as listed, else as the header says."""
    if known.group_size > 0:
        return known.group_size
    if known.ranks >= 0:
        listed = re.findall(r"\d+", context.trace.strings.text(known.ranks))
        return len(listed) or NotMeasured(_NO_METADATA)
    name = context.trace.strings.text(known.group) if known.group >= 0 else ""
    return len(context.trace.groups.get(name, ())) or NotMeasured(_NO_METADATA)


def _bandwidth(size: _Amount, count: int, duration: int) -> _Measure:
    """GB/s; bytes per nanosecond are 10⁹ bytes per second."""
    if isinstance(size, NotMeasured):
        return size
    return size * count / duration if duration else NotMeasured("no_duration")


def _busbw(algbw: _Measure, kind: str, ranks: _Amount) -> _Measure:
    if isinstance(algbw, NotMeasured):
        return algbw
    if isinstance(ranks, NotMeasured):
        return ranks
    factor = bus_factor(kind, ranks)
    return NotMeasured("no_bus_bandwidth") if factor is None else algbw * factor


def ranks_label(text: str) -> str:
    """`[0, 1, 2, 3]` as `0-3`; a list that is not a range, or a group's name, as it is."""
    listed = [int(number) for number in re.findall(r"\d+", text)] if re.fullmatch(r"\[[\d,\s]+\]", text) else []
    if len(listed) > 1 and listed == list(range(listed[0], listed[-1] + 1)):
        return f"{listed[0]}-{listed[-1]}"
    return ", ".join(map(str, listed)) or text
