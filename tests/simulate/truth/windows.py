"""Step windows of a schedule, and the exclusive parts of each (definitions §§3, 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulate.truth.vendor import step_of, vendor_steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.simulate.schedule import Schedule, Work

PARTS = ("compute", "comm_exposed", "mem_exposed", "idle")


@dataclass(frozen=True, slots=True)
class Window:
    """One step, `[start, end)`."""

    number: int
    start: int
    end: int
    owned: int

    @property
    def time(self) -> int:
        return self.end - self.start


def windows(schedule: Schedule) -> tuple[Window, ...]:
    """From the marker to the end of the last work that was launched in the step."""
    found: list[Window] = []
    free_from = _leftover_end(schedule)
    for index, step in enumerate(schedule.steps):
        own = owned(schedule, index)
        start = max(step.start, free_from)
        end = max([step.end, start, *(work.end for work in own)])
        found.append(Window(step.number, start, end, len(own)))
        free_from = end
    return tuple(found)


def owned(schedule: Schedule, index: int) -> list[Work]:
    """Works launched in a step; what comes between two markers belongs to the earlier one."""
    steps = schedule.steps
    begin = steps[index].start
    last = index + 1 == len(steps)
    end = steps[index].end + 1 if last else steps[index + 1].start
    mine = [work for work in schedule.recorded if work.call and begin <= work.call.asked < end]
    return mine + _by_vendor(schedule, steps[index].number)


def _by_vendor(schedule: Schedule, number: int) -> list[Work]:
    """What an NPU did without a launch record belongs to the first step on the device in which it begins."""
    alone = [work for work in schedule.works if not work.linked]
    if not alone or schedule.workload.device.vendor != "ascend":
        return []
    vendor = vendor_steps(schedule, copies=True)
    return [work for work in alone if (step := step_of(vendor, work.start)) is not None and step.number == number]


def _leftover_end(schedule: Schedule) -> int:
    """When the device had finished what was launched before recording."""
    owners = {id(work) for index in range(len(schedule.steps)) for work in owned(schedule, index)}
    first = min((work.start for work in owned(schedule, 0)), default=0)
    return max((work.end for work in schedule.works if id(work) not in owners and work.end <= first), default=0)


def pieces(works: Sequence[Work]) -> Iterator[tuple[int, int, dict[str, int]]]:
    """Stretches in which the same kinds of work run: `(start, end, how many of each kind)`."""
    edges: dict[int, list[tuple[str, int]]] = {}
    for work in works:
        kind = "mem" if work.kind in {"memcpy", "memset"} else work.kind
        edges.setdefault(work.start, []).append((kind, 1))
        edges.setdefault(work.end, []).append((kind, -1))
    running = {"compute": 0, "comm": 0, "mem": 0}
    times = sorted(edges)
    for time, following in zip(times, [*times[1:], None], strict=True):
        for kind, change in edges[time]:
            running[kind] += change
        if following is not None:
            yield time, following, dict(running)


def parts(works: Sequence[Work], start: int, end: int) -> dict[str, int]:
    """Exclusive parts of `[start, end)`, and the totals beside them."""
    found = dict.fromkeys((*PARTS, "comm_total", "mem_total"), 0)
    found["idle"] = end - start
    for begin, stop, running in pieces(works):
        length = min(stop, end) - max(begin, start)
        if length <= 0 or not any(running.values()):
            continue
        kind = "compute" if running["compute"] else "comm_exposed" if running["comm"] else "mem_exposed"
        found[kind] += length
        found["idle"] -= length
        found["comm_total"] += length if running["comm"] else 0
        found["mem_total"] += length if running["mem"] else 0
    return found
