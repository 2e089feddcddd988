"""The step of both sides from the top down: parts, their classes, and what stands beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.analyses.device_memory import memory
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.compare.attribution import GROUPS, IDLE, STEP, headline, summed
from traceanalyze.compare.groups import common_names, several
from traceanalyze.compare.links import link_rates
from traceanalyze.compare.results import Overall
from traceanalyze.compare.transfers import exposed_transfers
from traceanalyze.compare.work_classes import work_classes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceanalyze.compare.results import Part, Time
    from traceanalyze.compare.side import Side
    from traceanalyze.compare.work_classes import Cell, Sums

_PEAKS = ("peak_allocated", "peak_reserved", "peak_recorded")
"""Highest totals of the allocator; highest sum of recorded allocations minus frees, without what was there before."""
_PROCESS = "peak_process"
"""Highest memory of the whole process, the libraries' own included: never the same quantity as the allocator's."""
_BUSY = ("compute", "communication", "memory_ops")
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
    for key in _BUSY:
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
    causes = [part for part in parts if part.key not in {*_BUSY, STEP}]
    if len(causes) == len(parts):
        yield from (_row(part.key, 0, part.base, part.candidate) for part in parts)
        return
    if not causes:
        return
    yield _row("free", 0, summed([part.base for part in causes]), summed([part.candidate for part in causes]))
    for whole in headline(causes):
        if whole.key == IDLE:
            continue
        yield _row(whole.key, 1, whole.base, whole.candidate)
        for part in causes:
            if GROUPS.get(part.key) == whole.key:
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
    devices = memory(side.context).devices
    if isinstance(devices, NotMeasured) or side.partition is None:
        return missing, missing, missing
    mine = [each for each in devices if each.kind == "device"]
    if len(mine) > 1:
        mine = [each for each in mine if each.device == side.partition.device]
    if len(mine) != 1:
        return missing, missing, missing
    return mine[0].peak_allocated, mine[0].peak_reserved, mine[0].relative_peak


def _process(side: Side) -> Time:
    mine = side.context.trace.process_memory
    if len(mine) > 1 and side.partition is not None:
        mine = tuple(each for each in mine if each.device == side.partition.device)
    return mine[0].peak if len(mine) == 1 else NotMeasured("no_process_memory")
