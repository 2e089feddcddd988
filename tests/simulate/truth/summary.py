"""All truth about one rank in one place, and what would be without each fault."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.simulate.faults import with_faults, without
from tests.simulate.simulate import simulate
from tests.simulate.truth.causes import Threads, by_step, explained, gaps
from tests.simulate.truth.syncs import Cost, Place, sync_places
from tests.simulate.truth.windows import Window, parts, windows

if TYPE_CHECKING:
    from tests.simulate.schedule import Schedule
    from tests.simulate.workload import Workload


@dataclass(frozen=True, slots=True)
class Truth:
    """Numbers by step, and sync places over all steps. All times in ns."""

    steps: tuple[Window, ...]
    parts: tuple[dict[str, int], ...]
    idle: tuple[dict[str, int], ...]
    syncs: dict[Place, Cost]
    late: int
    """Works that ended a gap and were launched after it had begun."""


def truth(schedule: Schedule) -> Truth:
    """What the analyses of one rank must find."""
    steps = windows(schedule)
    threads = Threads(schedule)
    cut = [(gap, explained(gap, threads)) for gap in gaps(schedule.works, steps[0].start, steps[-1].end)]
    return Truth(
        steps,
        tuple(parts(schedule.works, step.start, step.end) for step in steps),
        by_step([piece for _, pieces in cut for piece in pieces], steps),
        sync_places(schedule, steps, cut),
        sum(1 for gap, _ in cut if gap.call is not None and gap.call.start >= gap.start),
    )


def total(rows: tuple[dict[str, int], ...]) -> dict[str, int]:
    """Sum over steps."""
    found: dict[str, int] = {}
    for row in rows:
        for key, value in row.items():
            found[key] = found.get(key, 0) + value
    return found


def step_time(workload: Workload, rank: int = 0) -> int:
    """Sum of the step times of one rank."""
    return sum(step.time for step in windows(simulate(workload)[rank]))


def without_faults(workload: Workload, rank: int = 0) -> dict[str, int]:
    """For each fault the sum of the step times without it, all else equal."""
    return {fault.name: step_time(without(workload, fault.name), rank) for fault in workload.faults}


def critical_resource(workload: Workload, rank: int = 0) -> str:
    """What the steps would be shortest without: host, device, loader or comm."""
    plain = with_faults(replace(workload, recording=replace(workload.recording, leftover=0)))
    plain = replace(plain, faults=())
    host = replace(plain.host, op=0, python=0, launch=1, copy=1, allocate=1, other=1)
    queue = replace(plain.queue, on=False, call=0)
    device = replace(plain.device, flops=1e30, bandwidth=1e30, floor=0)
    ranks = replace(plain.ranks, bandwidth=1e30, latency=1)
    free = {
        "host": replace(plain, host=host, queue=queue, script=replace(plain.script, pause=0)),
        "device": replace(plain, device=device),
        "loader": replace(plain, loader=replace(plain.loader, cost=1)),
        "comm": replace(plain, ranks=ranks),
    }
    return min(free, key=lambda name: step_time(free[name], rank))
