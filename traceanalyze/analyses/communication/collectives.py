"""Collectives of one rank: what was sent, how fast, and how much of it nothing hid (definitions §12).

What a collective is stands on the host, in the record that describes it.
"""

import re
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.parts import collective_parts
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import COUNT, EXTREMES, MEAN, Groups, group
from traceanalyze.analyses.host.nesting import Nest, innermost, nest_rows
from traceanalyze.analyses.kernels.work import DEVICES, device_work, on_devices
from traceanalyze.analyses.steps.partition import own_start
from traceanalyze.model import intervals
from traceanalyze.model.collectives import TYPES, bus_factor, collective_type, counts_output, element_bytes
from traceanalyze.model.columns import MISSING, Rows, occurs, rows_of
from traceanalyze.model.op_calls import MOST_ELEMENTS, parse_call
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, Value, Values, declare, sentences, where
from traceanalyze.model.vocabulary import DeviceClass, EventKind

_SAY = sentences(
    exposed_wait="Of {exposed} of exposed communication {wait} is waiting for other ranks and {transfer} is transfer.",
    bandwidth_waits="Bandwidths include the time ranks wait for each other.",
)

_NO_METADATA = "no_collective_metadata"
_RANGE = regex(r"(nccl|rccl|hccl|c10d|_c10d_functional|symm_mem|deep_?ep)::?")
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
        heading="rank waited for longest",
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
    DEVICES,
    COUNT,
    Column("device_time_ns", Kind.DURATION, "sum of the durations, waiting for other ranks included"),
    replace(MEAN, minor=True),
    *EXTREMES,
    Column(
        "exposed_ns", Kind.DURATION, "outside compute; where several run the one that started first; sums to the step's"
    ),
    Column("overlapped_ns", Kind.DURATION, "under compute", heading="hidden"),
    *_PARTS,
    Column(
        "algbw", Kind.NUMBER, "size over duration; the duration includes waiting", heading="algorithm GB/s", minor=True
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
    dtype: int
    size: int
    """Bytes, -1 where not stated."""


def collectives(context: Context) -> Table:
    """Collectives inside the analysed windows by group, type, element type and size, most time first.

    Their exposed times sum to the exposed communication of the partition.
    """
    work, device = context.once(device_work), context.device
    chosen = np.flatnonzero(device.klass[work.event] == DeviceClass.COMM)
    if len(chosen) == 0:
        return _COLLECTIVES.drop(*_PART_KEYS).missing("no_communication", detail=True)
    event = work.event[chosen]
    row = description_rows(context, event)
    kind = types(context, event, row)
    fields = ("group_ranks", "group", "group_size", "dtype", "in_elements", "out_elements")
    ranks, name, *others, given, result = (context.trace.events.numbers(field, row) for field in fields)
    # The name of a group counts only where its ranks are not known.
    keys = (kind, ranks, np.where(ranks >= 0, MISSING, name), *others)
    groups = group(*keys[:-1], given, result, keys[-1])
    spread = groups.spread(work.time[chosen])
    of_device, start, end = device.device[event], device.start[event], device.end[event]
    # Instants with several collectives on one device count as exposed for the one that started first.
    counts_from = start.copy()
    for one in context.devices:
        here = of_device == one
        counts_from[here] = own_start(start[here], end[here])
    exposed = _outside_compute(context, of_device, counts_from, end)
    overlapped = work.time[chosen] - _outside_compute(context, of_device, start, end)
    waits, transfer, waited_for = _waits(context, chosen, groups, exposed, counts_from)
    moving = np.where(transfer > 0, transfer, groups.sum(end - start))
    columns = (*keys, sizes(context, row, kind))
    described = (_Described(*known) for known in zip(*(each[groups.first].tolist() for each in columns), strict=True))
    amounts = zip(described, spread.number.tolist(), moving.tolist(), waited_for.tolist(), strict=True)
    rows = [_row(context, *amount) for amount in amounts]
    times = spread.values | {"exposed_ns": groups.sum(exposed), "overlapped_ns": groups.sum(overlapped)}
    devices = on_devices(context, groups, of_device)
    table = _COLLECTIVES.fill(devices=devices, **times, **waits, **{key: [row[key] for row in rows] for key in rows[0]})
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
        return (Message(_SAY["exposed_wait"], values),)
    measured = any(isinstance(rate, float) for rate in table.column("algbw"))
    return (Message(_SAY["bandwidth_waits"]),) if measured else ()


def _waits(
    context: Context,
    chosen: Rows,
    groups: Groups,
    exposed: NDArray[np.int64],
    counts_from: NDArray[np.int64],
) -> tuple[dict[str, Values], NDArray[np.int64], NDArray[np.int64]]:
    """What the tasks of the collectives tell, where all of a row have recorded tasks.

    Returns:
        Columns of transfer and waiting; all transfer, also outside the windows, 0 where unknown; and the rank inside
        the group that was waited for, -1 where unknown.
    """
    parts = context.once(collective_parts)
    missing = NotMeasured("no_collective_tasks")
    nothing = np.zeros(len(groups), np.int64)
    if parts is None:
        return dict.fromkeys(("transfer_ns", "wait_ns", "exposed_wait_ns"), missing), nothing, nothing - 1
    work, event = context.once(device_work), context.once(device_work).event[chosen]
    begin = np.zeros(len(context.device), np.int64)
    begin[event] = counts_from
    windows = intervals.merge(context.counted.start, context.counted.end)
    transfer = parts.by_event(intervals.coverage(windows, parts.start, parts.end))[event]
    whole = parts.by_event(parts.end - parts.start)[event]
    since = np.minimum(np.maximum(parts.start, begin[parts.event]), parts.end)
    bare = _outside_compute(context, context.device.device[parts.event], since, parts.end)
    unknown = groups.sum(~parts.recorded[event]) > 0
    order = np.argsort(parts.longest_wait[event], kind="stable")
    peer = nothing - 1
    peer[groups.of[order]] = parts.waited_for[event[order]]

    amounts = {
        "transfer_ns": transfer,
        "wait_ns": work.time[chosen] - transfer,
        "exposed_wait_ns": exposed - parts.by_event(bare)[event],
    }
    columns = {key: where(~unknown, groups.sum(values), missing) for key, values in amounts.items()}
    return columns, np.where(unknown, 0, groups.sum(whole)), np.where(unknown, -1, peer)


def _outside_compute(
    context: Context, device: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How much of each interval lies in the analysed windows with no compute beside it on its device."""
    out = np.zeros(len(start), np.int64)
    windows = intervals.merge(context.counted.start, context.counted.end)
    for one in context.devices:
        free = intervals.subtract(windows, context.class_sets(one)[DeviceClass.COMPUTE])
        here = np.flatnonzero(device == one)
        out[here] = intervals.coverage(free, start[here], end[here])
    return out


def _row(context: Context, known: _Described, count: int, duration: int, waited_for: int) -> dict[str, Value]:
    kind = TYPES[known.type]
    dtype = _text(context, known.dtype)
    size = known.size if known.size >= 0 else NotMeasured(_NO_METADATA)
    ranks = _ranks(context, known)
    algbw = _bandwidth(size, count, duration)
    group_name = _text(context, known.ranks if known.ranks >= 0 else known.group)
    return {
        "collective": kind,
        "group": group_name if isinstance(group_name, NotMeasured) else ranks_label(group_name),
        "ranks": ranks,
        "dtype": dtype,
        "size_bytes": size,
        "waited_for": _waited_for(context, group_name, waited_for),
        "algbw": algbw,
        "busbw": _busbw(algbw, kind, ranks),
    }


def _waited_for(context: Context, group_name: str | NotMeasured, member: int) -> _Amount:
    """Rank that was waited for, translated to the whole run where the ranks of the group are known."""
    if member < 0:
        return NotMeasured("no_collective_tasks")
    ranks = context.trace.groups.get(group_name, ()) if isinstance(group_name, str) else ()
    return ranks[member] if member < len(ranks) else member


def _text(context: Context, code: int) -> str | NotMeasured:
    return context.trace.strings.text(code) if code >= 0 else NotMeasured(_NO_METADATA)


def _ranks(context: Context, known: _Described) -> _Amount:
    """Ranks of the group: as stated, else as listed, else as the header says."""
    if known.group_size > 0:
        return known.group_size
    if known.ranks >= 0:
        return len(listed_ranks(context.trace.strings.text(known.ranks))) or NotMeasured(_NO_METADATA)
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


_MOST_LISTED, _MOST_PARTS = 12, 4
"""Ranks of a group that are named one by one, and rows of ranks."""


def listed_ranks(text: str) -> list[int]:
    """Ranks that the text of a group lists; what has more digits is none."""
    return [int(number) for number in re.findall(r"(?<!\d)\d{1,9}(?!\d)", text)]


def ranks_label(text: str) -> str:
    """`[0, 1, 2, 3]` as `0-3`, and of many at even distances the first and the last: `0, 8, …, 504`.

    Another list, or a group's name, as it is. No two lists have the same label.
    """
    listed = listed_ranks(text) if re.fullmatch(r"\[[\d,\s]+\]", text) else []
    breaks = [at for at, (one, other) in enumerate(pairwise(listed), 1) if other != one + 1]
    rows = [listed[start:stop] for start, stop in pairwise([0, *breaks, len(listed)])]
    if len(rows) > 1 and len(listed) <= _MOST_LISTED:
        return ", ".join(map(str, listed))
    parts = [f"{row[0]}-{row[-1]}" if len(row) > 1 else str(*row) for row in rows]
    if (
        len(parts) > _MOST_PARTS
        and len({(other[0] - one[0], len(one), len(other)) for one, other in pairwise(rows)}) == 1
    ):
        parts[2:-1] = "…"
    return ", ".join(parts) or text


def description_rows(context: Context, event: Rows) -> Rows:
    """Event row with each collective's arguments: its own, else that of the `record_param_comms` around its launch.

    Of a batch of sends and receives that of the first.
    """
    return context.once(_described)[event]


def _described(context: Context) -> NDArray[np.int32]:
    """The same of every device event: several ask for it."""
    batch, found = context.once(batched), np.full(len(context.device), -1, np.int32)
    found[batch.event[::-1]] = batch.row[::-1]
    event, numbers = rows_of(context.device.klass, DeviceClass.COMM), context.trace.events.numbers
    row = context.device.row[event]
    own = (numbers("collective", row) >= 0) | (numbers("group", row) >= 0)
    known = np.where(own, row, _innermost(context, event, context.once(describing)))
    found[event[known >= 0]] = known[known >= 0]
    return found


class Batched(NamedTuple):
    """Sends and receives that a batch runs (`batch_isend_irecv`), in order.

    PyTorch describes each as the program asks for it; one kernel runs them all, launched when the batch ends.
    """

    event: NDArray[np.int64]
    """Device event that runs it."""
    row: NDArray[np.int64]
    """Event that describes it."""
    kind: NDArray[np.int32]
    """Position in `TYPES`."""


def batched(context: Context) -> Batched:
    """Records around no launch, which the next launch of their thread runs where nothing else describes that."""
    strings, events, calls = context.trace.strings, context.trace.events, context.calls
    event = np.flatnonzero((context.device.klass == int(DeviceClass.COMM)) & (context.issued_by >= 0))
    nested = context.once(describing)
    kind = strings.lookup(events.numbers("collective", nested.row, -1).astype(np.int32), _known_type)
    single = np.flatnonzero((kind == TYPES.index("send")) | (kind == TYPES.index("recv")))
    if len(event) == 0 or len(single) == 0:
        return Batched(event[:0], single[:0], kind[:0])
    call, first = np.unique(context.issued_by[event], return_index=True)
    event = event[first]
    track = np.repeat(np.arange(len(nested.bounds) - 1), np.diff(nested.bounds))[single]
    since = int(min(nested.start.min(), calls.start[call].min()))
    span = int(max(nested.start.max(), calls.start[call].max())) - since + 1
    keys = calls.track[call] * np.int64(span) + calls.start[call] - since
    place = np.searchsorted(keys, track * span + nested.start[single] - since)
    single, track, place = (each[place < len(call)] for each in (single, track, place))
    after = call[place]
    lone = (calls.track[after] == track) & (calls.start[after] >= nested.end[single])
    around = _innermost(context, event, nested)
    stated = (events.numbers("collective", rows, -1) for rows in (context.device.row[event], around))
    told = np.maximum(*stated)
    named = strings.lookup(np.where(told >= 0, told, context.device.name[event]).astype(np.int32), _known_type)
    lone &= named[place] == SEND_RECV
    single = single[lone]
    return Batched(event[place[lone]], nested.row[single].astype(np.int64), kind[single])


def _known_type(name: str) -> int:
    return TYPES.index(collective_type(name) or "other")


SEND_RECV = TYPES.index("send_recv")


def types(context: Context, event: Rows, described: NDArray[np.int64]) -> NDArray[np.int64]:
    """Position in `TYPES` of each collective's canonical type.

    By its arguments, else by the `nccl:` or `c10d::` range around its launch (NCCL runs an all_to_all in a kernel
    named SendRecv), else by the kernel's name.
    """
    if len(event) == 0:
        return np.empty(0, np.int64)
    strings = context.trace.strings
    stated = context.trace.events.numbers("collective", described)
    around = _innermost(context, event, context.once(named_ranges))
    ranges = np.where(around >= 0, context.trace.events.name[around], -1)
    keys = group(stated, ranges, context.device.name[event])
    decided = np.empty(len(keys), np.int64)
    for index, first in enumerate(keys.first.tolist()):
        codes = (int(stated[first]), int(ranges[first]), int(context.device.name[event[first]]))
        found = (collective_type(strings.text(code)) for code in codes if code >= 0)
        decided[index] = TYPES.index(next((kind for kind in found if kind is not None), "other"))
    several = np.bincount(context.once(batched).event, minlength=len(context.device))[event] > 1
    return np.where(several, SEND_RECV, decided[keys.of])


def sizes(context: Context, described: NDArray[np.int64], kind: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bytes of each collective (definitions §12): of its input, of an all_gather its output; -1 where not stated.

    Of a batch of sends and receives no record states them all.
    """
    given, result, dtype = (
        context.trace.events.numbers(field, described) for field in ("in_elements", "out_elements", "dtype")
    )
    batch = np.flatnonzero(kind == SEND_RECV)
    stated = context.trace.events.numbers("collective", described[batch], -1).astype(np.int32)
    given[batch[(stated >= 0) & (context.trace.strings.lookup(stated, _known_type) != SEND_RECV)]] = MISSING
    rows = group(kind, given, result, dtype)
    found = []
    for first in rows.first.tolist():
        elements = int((result if counts_output(TYPES[int(kind[first])]) else given)[first])
        each = element_bytes(context.trace.strings.text(int(dtype[first]))) if dtype[first] >= 0 else None
        found.append(-1 if each is None or not 0 <= elements <= MOST_ELEMENTS else elements * each)
    return np.array(found, np.int64)[rows.of]


def shown_sizes(context: Context, event: Rows, kind: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same by the shapes of the `nccl:` range around the launch, as PyTorch before 2.1 has them alone."""
    if not len(event):
        return np.zeros(0, np.int64)
    row = _innermost(context, event, context.once(named_ranges))
    shapes, dtypes = (context.trace.events.numbers(field, row, -1) for field in ("shapes", "dtypes"))
    rows, text = group(kind, shapes, dtypes), context.trace.strings.text
    found = []
    for first in rows.first.tolist():
        stated = min(shapes[first], dtypes[first]) >= 0 and not counts_output(TYPES[int(kind[first])])
        call = parse_call("", text(int(shapes[first])), text(int(dtypes[first])), None) if stated else None
        found.append((call and call.input_bytes()) or -1)
    return np.array(found, np.int64)[rows.of]


def describing(context: Context) -> Nest:
    """Host events that describe a collective."""
    fields = context.trace.events.fields
    row = (fields["collective"].row if "collective" in fields else np.zeros(0)).astype(np.int64)
    return nest_rows(context.trace, row[occurs(context.kind[row], (EventKind.HOST_OP, EventKind.ANNOTATION))])


def named_ranges(context: Context) -> Nest:
    """Host events that are named like a call of a communication library."""
    named = context.trace.strings.matches(context.host_names, _RANGE.match)
    return nest_rows(context.trace, context.host_rows[named])


def _innermost(context: Context, event: NDArray[np.int64], nested: Nest) -> Rows:
    """Which of some host events is innermost around the launch of each device event, -1 for none."""
    call = context.issued_by[event]
    if len(nested) == 0 or len(context.calls) == 0:
        return np.full(len(event), -1, np.int64)
    thread = np.where(call >= 0, context.calls.track[call], -1)
    return nested.rows(innermost(nested, thread, context.calls.start[call]))
