"""Device work, collectives and memory of a schedule (definitions §§2, 12)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.simulate.kernels import CLASSES
from tests.simulate.truth.windows import parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.simulate.schedule import Schedule, Work
    from tests.simulate.truth.windows import Window


def unlinked(schedule: Schedule) -> tuple[int, int]:
    """Count and time of device events without launch record."""
    alone = [work for work in schedule.works if not work.linked]
    return len(alone), sum(work.end - work.start for work in alone)


def inside(works: Sequence[Work], steps: Sequence[Window]) -> Iterator[tuple[Work, int]]:
    """Works that run in the steps, each with its time there; one that takes no time counts where it is."""
    for work in works:
        time = sum(max(0, min(work.end, step.end) - max(work.start, step.start)) for step in steps)
        instant = work.start == work.end and any(step.start <= work.start <= step.end for step in steps)
        if time or instant:
            yield work, time


def kernels(schedule: Schedule, steps: Sequence[Window]) -> dict[str, tuple[int, int]]:
    """Count and time of everything the device ran, by name."""
    found: dict[str, tuple[int, int]] = {}
    for work, time in inside(schedule.works, steps):
        count, whole = found.get(work.name, (0, 0))
        found[work.name] = (count + 1, whole + time)
    return found


def families(schedule: Schedule, steps: Sequence[Window]) -> dict[str, int]:
    """Device time by what kernels are for."""
    found: dict[str, int] = defaultdict(int)
    for work, time in inside(schedule.works, steps):
        found[CLASSES[work.family]] += time
    return dict(found)


def copies(schedule: Schedule, steps: Sequence[Window]) -> dict[str, tuple[int, int, int, int]]:
    """Count, time, bytes, and calls that blocked, of copies by direction and of fills."""
    found: dict[str, tuple[int, int, int, int]] = {}
    for work, time in inside(schedule.works, steps):
        if work.kind in {"memcpy", "memset"}:
            count, whole, size, blocked = found.get(work.family, (0, 0, 0, 0))
            blocks = int(work.linked and work.call is not None and work.call.klass == "sync")
            found[work.family] = (count + 1, whole + time, size + work.bytes, blocked + blocks)
    return found


def matrix_products(schedule: Schedule, steps: Sequence[Window]) -> dict[str, tuple[int, int, int]]:
    """Calls, device time and floating-point operations of the operators that multiply matrices."""
    found: dict[str, tuple[int, int, int]] = {}
    for work, time in inside(schedule.recorded, steps):
        if work.family == "matmul" and work.op is not None:
            count, whole, flops = found.get(work.op.name, (0, 0, 0))
            found[work.op.name] = (count + 1, whole + time, flops + work.flops)
    return found


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """One collective on one rank."""

    type: str
    bytes: int
    duration: int
    wait: int
    """More than on the rank that waited least; None of it is transfer."""
    exposed: int
    """While this rank computed nothing."""


def collectives(schedules: Sequence[Schedule], rank: int) -> tuple[CollectiveRow, ...]:
    """The collectives of a rank in the order it asked for them."""
    every = [[work for work in schedule.works if work.collective is not None] for schedule in schedules]
    compute = [work for work in schedules[rank].works if work.kind == "compute"]
    rows = []
    for index, work in enumerate(every[rank]):
        durations = [works[index].end - works[index].start for works in every]
        mine = durations[rank]
        if work.collective is not None:
            hidden = mine - parts(compute, work.start, work.end)["idle"]
            meant = work.collective
            rows.append(CollectiveRow(meant.type, meant.bytes, mine, mine - min(durations), mine - hidden))
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class Transfer:
    """One collective of an NPU rank: it transfers while any of its parts moves data, and waits otherwise."""

    name: str
    transfer: int
    wait: int
    exposed_wait: int
    """Of the wait, while this rank computed nothing."""


def transfers(schedule: Schedule) -> tuple[Transfer, ...]:
    """The collectives of a rank in the order it asked for them."""
    compute = [work for work in schedule.works if work.kind == "compute"]
    rows = []
    for work in schedule.works:
        if work.tasks:
            moving = [replace(work, start=task.start, end=task.end) for task in work.tasks if task.moves]
            span = work.start, work.end
            transfer = work.end - work.start - parts(moving, *span)["idle"]
            exposed = parts(compute, *span)["idle"] - parts([*compute, *moving], *span)["comm_exposed"]
            rows.append(Transfer(work.name, transfer, work.end - work.start - transfer, exposed))
    return tuple(rows)


def memory_peak(schedule: Schedule) -> tuple[int, int]:
    """Highest allocated and reserved bytes."""
    return max(each.allocated for each in schedule.memory), max(each.reserved for each in schedule.memory)
