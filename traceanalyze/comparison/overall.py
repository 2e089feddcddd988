"""The step of both sides from the top down: parts, their classes, and what stands beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.communication.parts import collective_parts
from traceanalyze.analyses.kernels.work import argument, device_work
from traceanalyze.analyses.memory.recorded import memory
from traceanalyze.analyses.steps.partition import own_start
from traceanalyze.comparison.attribution import IDLE, STEP, headline, headline_keys, summed, work_classes
from traceanalyze.comparison.collectives import common_names, event_groups, several
from traceanalyze.comparison.results import Overall
from traceanalyze.model import intervals
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import BUSY_PARTS, DeviceClass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceanalyze.comparison.attribution import Cell, Sums
    from traceanalyze.comparison.collectives import Names
    from traceanalyze.comparison.results import Part, Time
    from traceanalyze.comparison.side import Side

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
    size, link = argument(context, "bytes", row), argument(context, "link_type", row)
    transport = argument(context, "transport", row)
    code = np.where(link >= 0, link, transport)
    windows = intervals.merge(context.steps.start, context.steps.end)
    moved = (size > 0) & (code >= 0) & intervals.contains(windows, events.ts[row])
    text = context.trace.strings.text
    found: dict[str, int] = {}
    for each in np.unique(code[moved]).tolist():
        if text(each) in _LOCAL:
            continue
        mine = row[moved & (code == each)]
        busy = intervals.total(intervals.merge(events.ts[mine], events.ts[mine] + events.dur[mine]))
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
        told = bool(parts.recorded[comm[mine]].all())
        found[names[label]] = int(moved[mine].sum()) if told else NotMeasured("no_collective_tasks")
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
    told = any(isinstance(time, int) for each in moved for time in each.values())
    for key in BUSY_PARTS:
        paths = {((key, None),), *(path for side in sums for path in side if path[0][0] == key)}
        if not several(names):
            paths -= {((key, None), ("group", ""))}
        for path in sorted(paths, key=_place):
            (old, old_count), (new, new_count) = (side.get(path, (0, 0)) for side in sums)
            cell, name = path[-1]
            yield Overall(cell, len(path) - 1, "duration", old, new, old_count, new_count, name)
            if cell == "group" and told:
                yield from _waiting(path, sums, moved)
        some = any(path[0][0] == key for side in sums for path in side)
        if key == "communication" and some and not told:
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
        yield _row("device_span", 0, _device_span(base), _device_span(candidate))


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
