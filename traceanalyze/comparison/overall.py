"""The step of both sides from the top down: parts, their classes, and what stands beside them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from traceanalyze.analyses.communication.parts import collective_parts
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.steps.partition import own_start
from traceanalyze.comparison import columns
from traceanalyze.comparison.attribution import IDLE, STEP, Cell, Sums, headline, headline_keys, summed, work_classes
from traceanalyze.comparison.collectives import Names, common_names, event_groups, several
from traceanalyze.comparison.pairs import PerStep
from traceanalyze.comparison.results import Part, Time
from traceanalyze.comparison.side import Side
from traceanalyze.model import intervals
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, Value, declare
from traceanalyze.model.vocabulary import BUSY_PARTS, DeviceClass


class Row(NamedTuple):
    """A row of the overall table; rows of level 0 before the step sum to it, deeper ones to the row above them.

    Device rows hold exclusive time: at each instant one event counts, compute before communication before copies and
    of several of one class the one that started first. Hence classes sum to the union.
    """

    key: str
    level: int
    base: Time
    candidate: Time
    counts: tuple[int, int] | None = None
    """Device events behind both times; None where counting makes no sense."""
    name: str | None = None
    """Of rows that the profile names: a process group."""


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
        own = group_of == index
        recorded = bool(parts.recorded[comm[own]].all())
        found[names[label]] = int(moved[own].sum()) if recorded else NotMeasured("no_collective_tasks")
    return found


_ORDER = (
    *("matmul", "fused_communication", "attention_forward", "attention_backward", "attention"),
    *("convolution_forward", "convolution_backward", "convolution", "paged_attention"),
    *("vector_work", "tensor_move", "compiled", "other", "cube", "vector", "units_unknown"),
)
"""Of classes of work; others follow by name."""
_PARTS = declare(
    "step_difference",
    "What the difference is made of (per step)",
    columns.PART,
    *columns.both(time_ns=""),
    columns.DIFF,
    columns.ratio(),
    columns.STEP_SHARE,
    columns.CHANCE,
    *columns.SUMS,
    detail=True,
)
_OVERALL = declare(
    "overall_metrics",
    "Where the steps' time went (per step)",
    replace(columns.INDEX, alias="Index"),
    *columns.of_base(time_ns="Duration(ms)"),
    *columns.minor(*columns.of_base(share="Duration Ratio", number="Number")),
    *columns.of_candidate(time_ns="Duration(ms)"),
    *columns.minor(*columns.of_candidate(share="Duration Ratio", number="Number")),
    columns.diff(alias="Diff Duration(ms)"),
    columns.ratio(),
    columns.STEP_SHARE,
    Column("level", Kind.COUNT, "depth of the row", machine=True),
    *columns.SUMS,
    level="level",
)
SPAN = "device_span"


def parts_table(found: Sequence[Part], steps: tuple[int, int], per: PerStep, chance: Mapping[str, int | None]) -> Table:
    """The exclusive parts of the step on both sides; they sum to the step. What neither side has is left out.

    `chance` is by how much each may differ by chance.
    """
    shown = [part for part in headline(found) if part.key in BUSY_PARTS or part.base != 0 or part.candidate != 0]
    table = _PARTS.fill_records(
        {"part": part.key, **per.amounts(part.base, part.candidate), "noise_ns": chance.get(part.key)} for part in shown
    )
    # Where the step is the only part, it needs no sum.
    whole = None if [part.key for part in shown] == [STEP] else {"part": STEP, **per.amounts(*steps)}
    return replace(table, totals=whole)


def overall_table(rows: Iterable[Row], steps: tuple[int, int], per: PerStep) -> Table:
    """Every row with its share of the step and of the difference."""
    found = list(rows)
    whole = next((_cells(row, steps, per) for row in found if row.key == STEP), None)
    shown = (row for row in _worth_showing(found) if row.key not in {STEP, SPAN})
    table = _OVERALL.fill_records(_cells(row, steps, per) for row in shown)
    return replace(table, totals=whole, notes=tuple(_span_note(found, per)))


def _cells(row: Row, steps: Sequence[int], per: PerStep) -> dict[str, Value]:
    return {
        "index": row.name or row.key,
        "level": row.level,
        "base_share": _share(row.base, steps[0]),
        "candidate_share": _share(row.candidate, steps[1]),
        "base_number": None if row.counts is None else row.counts[0] / per.base_steps,
        "candidate_number": None if row.counts is None else row.counts[1] / per.candidate_steps,
        **per.amounts(row.base, row.candidate),
    }


def _share(amount: Time, whole: int) -> Value:
    if isinstance(amount, NotMeasured):
        return amount
    return amount / whole if whole else 0.0


def _worth_showing(rows: Sequence[Row]) -> Iterator[Row]:
    """Rows of the first level always; inside those that are not zero, rows that are not zero themselves."""
    hidden = False
    for row in rows:
        zero = row.base == 0 and row.candidate == 0
        if row.level == 0:
            hidden = zero
            yield row
        elif not hidden and not zero:
            yield row


def _span_note(rows: Sequence[Row], per: PerStep) -> Iterator[Message]:
    """First to last device event: what other tools call the end-to-end time."""
    for row in rows:
        if row.key == SPAN and isinstance(row.base, int) and isinstance(row.candidate, int):
            values = (
                ("base", Kind.DURATION, per.base(row.base)),
                ("candidate", Kind.DURATION, per.candidate(row.candidate)),
                ("diff", Kind.CHANGE, per.diff(row.base, row.candidate)),
            )
            yield Message("compare_span", values)


def time_rows(base: Side, candidate: Side, parts: Sequence[Part]) -> Iterator[Row]:
    """Rows from compute to the step, then the device's span; classes without events are left out."""
    yield from _work(base, candidate)
    yield from _idle(parts)
    yield Row(STEP, 0, base.info.step_time, candidate.info.step_time)
    if base.partition is not None and candidate.partition is not None:
        yield Row(SPAN, 0, _device_span(base), _device_span(candidate))


def _work(base: Side, candidate: Side) -> Iterator[Row]:
    """Compute, communication and memory operations with their classes."""
    if base.partition is None or candidate.partition is None:
        return
    names = common_names(base.context, candidate.context)
    sums = work_classes(base, names[0]), work_classes(candidate, names[1])
    moved = exposed_transfers(base, names[0]), exposed_transfers(candidate, names[1])
    measured = any(isinstance(time, int) for each in moved for time in each.values())
    if measured:
        moved = _told(base, sums[0], moved[0]), _told(candidate, sums[1], moved[1])
    for key in BUSY_PARTS:
        paths = {((key, None),), *(path for side in sums for path in side if path[0][0] == key)}
        if not several(names):
            paths -= {((key, None), ("group", ""))}
        lost = [side.context.unmeasured.get(key, "") for side in (base, candidate)]
        for path in sorted(paths, key=_place):
            found = [side.get(path, (0, 0)) for side in sums]
            old, new = (NotMeasured(why) if why else time for why, (time, _) in zip(lost, found, strict=True))
            cell, name = path[-1]
            yield Row(cell, len(path) - 1, old, new, None if any(lost) else (found[0][1], found[1][1]), name)
            if cell == "group" and measured:
                yield from _waiting(path, sums, moved, lost)
        some = any(path[0][0] == key for side in sums for path in side)
        if key == "communication" and some and not measured:
            # Ranks tell the waiting of all groups together: of one it is a part, below several it would be none.
            one = len(paths) <= 2
            split = [_by_ranks(*each, known=one) for each in zip((base, candidate), sums, moved, strict=True)]
            for row, times in zip(("comm_wait", "comm_transfer"), zip(*split, strict=True), strict=True):
                yield Row(row, len(paths) if any(isinstance(time, int) for time in times) else 1, *times)
        elif key == "communication" and some and len(paths) == 1:
            yield from _waiting(((key, None), ("group", "")), sums, moved, lost)


def _told(side: Side, sums: Sums, moved: dict[str, Time]) -> dict[str, Time]:
    """Transfers of each group, where not tasks but the recordings of all ranks tell them: of the only one."""
    by_tasks = side.info.waited is None or any(isinstance(time, int) for time in moved.values())
    return moved if by_tasks else dict.fromkeys(moved, _by_ranks(side, sums, moved, known=len(moved) == 1)[1])


def _by_ranks(side: Side, sums: Sums, moved: Mapping[str, Time], *, known: bool) -> tuple[Time, Time]:
    """Waiting and transfer as all ranks tell them, where that is `known`, else why they are not measured."""
    waited, lost = side.info.waited, side.context.unmeasured.get("communication")
    if lost:
        return NotMeasured(lost), NotMeasured(lost)
    if waited is None or not known:
        why = next(iter(moved.values()), 0) if waited is None else NotMeasured("of_all_together")
        return why, why
    return waited, sums.get((("communication", None),), (0, 0))[0] - waited


def _waiting(
    group: tuple[Cell, ...], sums: tuple[Sums, Sums], moved: Sequence[dict[str, Time]], lost: Sequence[str]
) -> Iterator[Row]:
    """A group's exposed time split into waiting for other ranks and moving data; `lost` is why a side has none."""
    label = group[-1][1] or ""
    transfer = [NotMeasured(why) if why else each.get(label, 0) for each, why in zip(moved, lost, strict=True)]
    wait = [
        time if isinstance(time, NotMeasured) else side.get(group, (0, 0))[0] - time
        for side, time in zip(sums, transfer, strict=True)
    ]
    level = 2 if group[-1][1] else 1
    yield Row("comm_wait", level, wait[0], wait[1])
    yield Row("comm_transfer", level, transfer[0], transfer[1])


def _place(path: tuple[Cell, ...]) -> list[tuple[int, str, str]]:
    return [(_ORDER.index(key) if key in _ORDER else len(_ORDER), key, name or "") for key, name in path]


def _idle(parts: Sequence[Part]) -> Iterator[Row]:
    """Idle time by cause; of a comparison without a device the parts as they are."""
    causes = [part for part in parts if part.key not in {*BUSY_PARTS, STEP}]
    if len(causes) == len(parts):
        yield from (Row(part.key, 0, part.base, part.candidate) for part in parts)
        return
    if not causes:
        return
    yield Row("free", 0, summed([part.base for part in causes]), summed([part.candidate for part in causes]))
    keys = headline_keys(parts)
    for whole in headline(parts):
        if whole.key in {*BUSY_PARTS, IDLE}:
            continue
        yield Row(whole.key, 1, whole.base, whole.candidate)
        for part in causes:
            if keys[part.key] == whole.key != part.key:
                yield Row(part.key, 2, part.base, part.candidate)


def _device_span(side: Side) -> int:
    """From the first to the last work of the headline device in each step, summed."""
    context, steps = side.context, side.context.steps
    own = context.device.device == context.devices[0]
    busy = intervals.merge(context.device.start[own], context.device.end[own])
    window = np.flatnonzero(steps.end > steps.start)
    hit = intervals.overlaps(busy, intervals.Intervals(steps.start[window], steps.end[window]))
    if len(hit.start) == 0:
        return 0
    opens = np.concatenate(([True], hit.second[1:] != hit.second[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return int((hit.end[closes] - hit.start[opens]).sum())
