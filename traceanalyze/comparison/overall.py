"""The step of both sides from the top down: parts, their classes, and what stands beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from traceanalyze.analyses.communication.parts import collective_parts
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.memory.recorded import memory
from traceanalyze.analyses.steps.partition import own_start
from traceanalyze.comparison.attribution import IDLE, STEP, Cell, Sums, headline, headline_keys, summed, work_classes
from traceanalyze.comparison.collectives import Names, common_names, event_groups, several
from traceanalyze.comparison.pairs import (
    DIFF,
    PART,
    STEP_SHARE,
    SUMS,
    PerStep,
    both,
    diff,
    minor,
    of_base,
    of_candidate,
    ratio,
)
from traceanalyze.comparison.results import Comparison, Overall, Part, Time
from traceanalyze.comparison.side import Side
from traceanalyze.model import intervals
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, Value, declare
from traceanalyze.model.vocabulary import BUSY_PARTS, DeviceClass

_LOCAL = frozenset({"ON_CHIP", "LOCAL", "INVALID_TYPE", ""})
"""Not a way between devices."""


def link_rates(side: Side) -> dict[str, int] | None:
    """Bytes a second by kind of link (HCCS, RoCE, PCIe …) inside the steps; transfers run in parallel, so the union.

    None where the profile does not hold the tasks of collectives.
    """
    context, events = side.context, side.context.trace.events
    part = events.fields.get("part_of")
    if part is None:
        return None
    row = part.row.astype(np.int64)
    size, link = context.trace.events.numbers("bytes", row), context.trace.events.numbers("link_type", row)
    transport = context.trace.events.numbers("transport", row)
    code = np.where(link >= 0, link, transport)
    windows = intervals.merge(context.steps.start, context.steps.end)
    moved = (size > 0) & (code >= 0) & intervals.contains(windows, events.ts[row])
    text = context.trace.strings.text
    found: dict[str, int] = {}
    for each in np.unique(code[moved]).tolist():
        if text(each) in _LOCAL:
            continue
        mine = row[moved & (code == each)]
        busy = intervals.total(events.active(mine))
        if busy:
            found[text(each)] = int(size[moved & (code == each)].sum()) * 10**9 // busy
    return found


def exposed_transfers(side: Side, names: Names) -> dict[str, Time]:
    """Exposed time of each group in which one of its collectives moved data, by the common name of the group.

    The rest of the group's exposed time is waiting. Not measured without the tasks that its collectives consist of.
    """
    context = side.context
    device, parts = context.device, context.once(collective_parts)
    if side.partition is None:
        return {}
    events = context.once(device_work).event
    comm = events[(device.klass[events] == DeviceClass.COMM) & (device.device[events] == side.partition.device)]
    labels, group_of = event_groups(context, comm)
    if parts is None:
        reason = "no_collective_tasks" if context.trace.origin.format == "ascend" else "needs_all_ranks"
        return {names[label]: NotMeasured(reason) for label in labels}
    compute = (device.klass == DeviceClass.COMPUTE) & (device.device == side.partition.device)
    windows = intervals.merge(context.steps.start, context.steps.end)
    free = intervals.subtract(windows, intervals.merge(device.start[compute], device.end[compute]))
    begin = np.full(len(device), np.iinfo(np.int64).max)
    begin[comm] = own_start(device.start[comm], device.end[comm])
    # A piece counts from when its collective has the time for itself; pieces of other devices never do.
    start = np.minimum(np.maximum(parts.start, begin[parts.event]), parts.end)
    moved = parts.by_event(intervals.coverage(free, start, parts.end))[comm]
    found: dict[str, Time] = {}
    for index, label in enumerate(labels):
        mine = group_of == index
        recorded = bool(parts.recorded[comm[mine]].all())
        found[names[label]] = int(moved[mine].sum()) if recorded else NotMeasured("no_collective_tasks")
    return found


_PEAKS = ("peak_allocated", "peak_reserved", "peak_recorded")
"""Highest totals of the allocator; highest sum of recorded allocations minus frees, without what was there before."""
_PROCESS = "peak_process"
"""Highest memory of the whole process, the libraries' own included: never the same quantity as the allocator's."""
_ORDER = {
    key: place
    for place, key in enumerate(
        (
            "matmul",
            "fused_communication",
            "attention_forward",
            "attention_backward",
            "attention",
            "convolution_forward",
            "convolution_backward",
            "convolution",
            "paged_attention",
            "vector_work",
            "compiled",
            "other",
            "cube",
            "vector",
            "units_unknown",
        )
    )
}


_PARTS = declare(
    "step_difference",
    "What the difference is made of (per step)",
    PART,
    *both(time_ns=""),
    DIFF,
    ratio(),
    STEP_SHARE,
    *SUMS,
    detail=True,
)
_INDEX = replace(PART, key="index", heading="part", meaning=f"{PART.meaning}; rows further in lie inside the row above")
_OVERALL = declare(
    "overall_metrics",
    "Where the steps' time went (per step)",
    replace(_INDEX, alias="Index"),
    *of_base(time_ns="Duration(ms)"),
    *minor(*of_base(share="Duration Ratio", number="Number")),
    *of_candidate(time_ns="Duration(ms)"),
    *minor(*of_candidate(share="Duration Ratio", number="Number")),
    diff(alias="Diff Duration(ms)"),
    ratio(),
    STEP_SHARE,
    Column("level", Kind.COUNT, "depth of the row", machine=True),
    *SUMS,
    level="level",
)
_PEAK_MEMORY = declare(
    "memory_peak", "Peak memory", _INDEX, *both(peak_bytes="Mem Usage"), diff("diff_bytes"), ratio(alias="")
)
_LINK_RATES = declare(
    "link_rates",
    "Speed of the links between devices (10⁹ bytes a second)",
    Column("link", Kind.TEXT, "kind of link: HCCS, RoCE, PCIe …"),
    *both(rate_gbs="SDMA Bandwidth, RDMA Bandwidth"),
    Column("rate_ratio", Kind.RATIO, "candidate over base; above 1 is faster", heading="ratio"),
)
SPAN = "device_span"


def parts_table(comparison: Comparison, per: PerStep) -> Table:
    """The exclusive parts of the step on both sides; they sum to the step. What neither side has is left out."""
    shown = [
        part for part in headline(comparison.parts) if part.key in BUSY_PARTS or part.base != 0 or part.candidate != 0
    ]
    table = _PARTS.fill_records({"part": part.key, **per.amounts(part.base, part.candidate)} for part in shown)
    # Where the step is the only part, it needs no sum.
    if [part.key for part in shown] == [STEP]:
        return table
    whole = {"part": STEP, **per.amounts(comparison.base.step_time, comparison.candidate.step_time)}
    return replace(table, totals=whole)


def overall_tables(comparison: Comparison, per: PerStep) -> Iterator[Table]:
    """Every row with its share of the step and of the difference; peaks of memory and speed of links as they are.

    Nothing where it was not asked for, no peaks and links where no side tells any.
    """
    if comparison.overall is None:
        return
    steps = comparison.base.step_time, comparison.candidate.step_time
    found = [row for row in comparison.overall if row.kind == "duration"]
    rows = [row for row in _worth_showing(found) if row.key not in {STEP, SPAN}]
    table = _OVERALL.fill_records(_cells(row, steps, per) for row in rows)
    total = next((_cells(row, steps, per) for row in found if row.key == STEP), None)
    yield replace(table, totals=total, notes=tuple(_span_note(found, per)))
    peaks = [row for row in comparison.overall if row.kind == "bytes"]
    missing = [row.base for row in peaks if isinstance(row.base, NotMeasured)]
    if peaks and all(isinstance(row.base, NotMeasured) and isinstance(row.candidate, NotMeasured) for row in peaks):
        yield replace(_PEAK_MEMORY, absent=missing[0])
    elif peaks:
        yield _PEAK_MEMORY.fill_records(map(_peak_cells, peaks))
    rates = [row for row in comparison.overall if row.kind == "rate"]
    if rates:
        yield _LINK_RATES.fill_records(map(_rate_cells, rates))


def _cells(row: Overall, steps: Sequence[int], per: PerStep) -> dict[str, Value]:
    return {
        "index": row.name or row.key,
        "level": row.level,
        "base_share": _share(row.base, steps[0]),
        "candidate_share": _share(row.candidate, steps[1]),
        "base_number": None if row.base_count is None else row.base_count / per.base_steps,
        "candidate_number": None if row.candidate_count is None else row.candidate_count / per.candidate_steps,
        **per.amounts(row.base, row.candidate),
    }


def _share(amount: Time, whole: int) -> Value:
    if isinstance(amount, NotMeasured):
        return amount
    return amount / whole if whole else 0.0


def _peak_cells(row: Overall) -> dict[str, Value]:
    cells: dict[str, Value] = {
        "index": row.name or row.key,
        "base_peak_bytes": row.base,
        "candidate_peak_bytes": row.candidate,
    }
    if isinstance(row.base, NotMeasured) or isinstance(row.candidate, NotMeasured):
        why = row.base if isinstance(row.base, NotMeasured) else row.candidate
        return cells | {"diff_bytes": why, "ratio": why}
    by = row.candidate / row.base if row.base else None
    return cells | {"diff_bytes": row.candidate - row.base, "ratio": by}


def _rate_cells(row: Overall) -> dict[str, Value]:
    base, candidate = (rate if isinstance(rate, NotMeasured) else rate / 10**9 for rate in (row.base, row.candidate))
    by = row.candidate / row.base if isinstance(row.base, int) and isinstance(row.candidate, int) and row.base else None
    return {"link": row.name, "base_rate_gbs": base, "candidate_rate_gbs": candidate, "rate_ratio": by}


def _worth_showing(rows: Sequence[Overall]) -> Iterator[Overall]:
    """Rows of the first level always; inside those that are not zero, rows that are not zero themselves."""
    hidden = False
    for row in rows:
        zero = row.base == 0 and row.candidate == 0
        if row.level == 0:
            hidden = zero
            yield row
        elif not hidden and not zero:
            yield row


def _span_note(rows: Sequence[Overall], per: PerStep) -> Iterator[Message]:
    """First to last device event: what other tools call the end-to-end time."""
    for row in rows:
        if row.key == SPAN and isinstance(row.base, int) and isinstance(row.candidate, int):
            values = (
                ("base", Kind.DURATION, per.base(row.base)),
                ("candidate", Kind.DURATION, per.candidate(row.candidate)),
                ("diff", Kind.CHANGE, per.diff(row.base, row.candidate)),
            )
            yield Message("compare_span", values)


def overall(base: Side, candidate: Side, parts: Sequence[Part]) -> tuple[Overall, ...]:
    """Rows from compute to the step, then the device's span and peaks of memory; classes without events are left out.

    Args:
        base: reference.
        candidate: what is under test.
        parts: the parts of both, as `attribution.parts` gives them.
    """
    return (
        *_work(base, candidate),
        *_idle(parts),
        _row("step", 0, base.info.step_time, candidate.info.step_time),
        *_span(base, candidate),
        *_peaks(base, candidate),
        *_rates(base, candidate),
    )


def _row(key: str, level: int, base: Time, candidate: Time, counts: tuple[int, int] | None = None) -> Overall:
    old, new = counts or (None, None)
    return Overall(key, level, "duration", base, candidate, old, new)


def _work(base: Side, candidate: Side) -> Iterator[Overall]:
    """Compute, communication and memory operations with their classes."""
    if base.partition is None or candidate.partition is None:
        return
    names = common_names(base.context, candidate.context)
    sums = work_classes(base, names[0]), work_classes(candidate, names[1])
    moved = exposed_transfers(base, names[0]), exposed_transfers(candidate, names[1])
    measured = any(isinstance(time, int) for each in moved for time in each.values())
    for key in BUSY_PARTS:
        paths = {((key, None),), *(path for side in sums for path in side if path[0][0] == key)}
        if not several(names):
            paths -= {((key, None), ("group", ""))}
        for path in sorted(paths, key=_place):
            (old, old_count), (new, new_count) = (side.get(path, (0, 0)) for side in sums)
            cell, name = path[-1]
            yield Overall(cell, len(path) - 1, "duration", old, new, old_count, new_count, name)
            if cell == "group" and measured:
                yield from _waiting(path, sums, moved)
        some = any(path[0][0] == key for side in sums for path in side)
        if key == "communication" and some and not measured:
            why = [next(iter(each.values()), 0) for each in moved]
            yield _row("comm_wait", 1, why[0], why[1])
            yield _row("comm_transfer", 1, why[0], why[1])
        elif key == "communication" and some and len(paths) == 1:
            yield from _waiting(((key, None), ("group", "")), sums, moved)


def _waiting(group: tuple[Cell, ...], sums: tuple[Sums, Sums], moved: Sequence[dict[str, Time]]) -> Iterator[Overall]:
    """A group's exposed time split into waiting for other ranks and moving data."""
    known = [_moved(side, group, each) for side, each in zip(sums, moved, strict=True)]
    level = 2 if group[-1][1] else 1
    yield _row("comm_wait", level, known[0][0], known[1][0])
    yield _row("comm_transfer", level, known[0][1], known[1][1])


def _moved(side: Sums, group: tuple[Cell, ...], moved: dict[str, Time]) -> tuple[Time, Time]:
    """Waiting and transfer of a group on one side."""
    whole = side.get(group, (0, 0))[0]
    transfer = moved.get(group[-1][1] or "", 0)
    return (transfer, transfer) if isinstance(transfer, NotMeasured) else (whole - transfer, transfer)


def _place(path: tuple[Cell, ...]) -> list[tuple[int, str, str]]:
    """Order of rows: as listed, other classes by name."""
    return [(_ORDER.get(key, len(_ORDER)), key, name or "") for key, name in path]


def _idle(parts: Sequence[Part]) -> Iterator[Overall]:
    """Idle time by cause; of a comparison without a device the parts as they are."""
    causes = [part for part in parts if part.key not in {*BUSY_PARTS, STEP}]
    if len(causes) == len(parts):
        yield from (_row(part.key, 0, part.base, part.candidate) for part in parts)
        return
    if not causes:
        return
    yield _row("free", 0, summed([part.base for part in causes]), summed([part.candidate for part in causes]))
    keys = headline_keys(parts)
    for whole in headline(parts):
        if whole.key in {*BUSY_PARTS, IDLE}:
            continue
        yield _row(whole.key, 1, whole.base, whole.candidate)
        for part in causes:
            if keys[part.key] == whole.key != part.key:
                yield _row(part.key, 2, part.base, part.candidate)


def _span(base: Side, candidate: Side) -> Iterator[Overall]:
    if base.partition is not None and candidate.partition is not None:
        yield _row(SPAN, 0, _device_span(base), _device_span(candidate))


def _device_span(side: Side) -> int:
    """From the first to the last work of the headline device in each step, summed."""
    context, steps = side.context, side.context.steps
    mine = context.device.device == context.devices[0]
    busy = intervals.merge(context.device.start[mine], context.device.end[mine])
    window = np.flatnonzero(steps.end > steps.start)
    hit = intervals.overlaps(busy, intervals.Intervals(steps.start[window], steps.end[window]))
    if len(hit.start) == 0:
        return 0
    opens = np.concatenate(([True], hit.second[1:] != hit.second[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return int((hit.end[closes] - hit.start[opens]).sum())


def _peaks(base: Side, candidate: Side) -> Iterator[Overall]:
    """Peaks of the allocator and of the process over the whole recording; left out where neither side can tell."""
    found = [(*_allocator(side), _process(side)) for side in (base, candidate)]
    for key, old, new in zip((*_PEAKS, _PROCESS), *found, strict=True):
        if not (isinstance(old, NotMeasured) and isinstance(new, NotMeasured)):
            yield Overall(key, 0, "bytes", old, new, None, None)


def _rates(base: Side, candidate: Side) -> Iterator[Overall]:
    """Bytes a second by kind of link; 0 where a side that tells did not use it."""
    sides = [(link_rates(side), side.info.vendor) for side in (base, candidate)]
    for link in sorted({link for rates, _ in sides for link in rates or ()}):
        before, after = (
            # Only Ascend profiles can tell, at a higher level; others never do.
            NotMeasured("no_collective_tasks" if vendor == "ascend" else "vendor_does_not_say")
            if rates is None
            else rates.get(link, 0)
            for rates, vendor in sides
        )
        yield Overall("link_rate", 0, "rate", before, after, None, None, link)


def _allocator(side: Side) -> tuple[Time, Time, Time]:
    """The values of `_PEAKS`. Some profilers number devices otherwise in memory records; the only one is meant."""
    missing = NotMeasured("no_memory_records")
    mine = [each for each in memory(side.context).records() if each.memory_of == "memory_of_device"]
    if side.partition is None:
        return missing, missing, missing
    if len(mine) > 1:
        mine = [each for each in mine if each.device == side.partition.device]
    if len(mine) != 1:
        return missing, missing, missing
    return mine[0].peak_allocated_bytes, mine[0].peak_reserved_bytes, mine[0].relative_peak_bytes


def _process(side: Side) -> Time:
    mine = side.context.trace.process_memory
    if len(mine) > 1 and side.partition is not None:
        mine = tuple(each for each in mine if each.device == side.partition.device)
    return mine[0].peak if len(mine) == 1 else NotMeasured("no_process_memory")
