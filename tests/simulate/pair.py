"""The same training on a GPU and on an NPU that differs in named ways, and what each of these costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.simulate.simulate import simulate
from tests.simulate.truth.summary import total, truth
from tests.simulate.truth.tables import inside
from tests.simulate.truth.windows import windows
from tests.simulate.workload import MS, US

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulate.schedule import Schedule
    from tests.simulate.workload import Workload

PARTS = ("compute", "comm_exposed", "mem_exposed")
BASE = "npu"
"""What comes of the other vendor alone: the task queue, and that memory is filled by a kernel."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference that is put in, and how big it is."""

    name: str
    """Key of `DIFFERENCES`."""
    size: float


def _slower_matmul(workload: Workload, size: float) -> Workload:
    """Every matrix product takes `size` µs longer."""
    return replace(workload, device=replace(workload.device, matmul_extra=round(size * US)))


def _layout_changes(workload: Workload, size: float) -> Workload:
    """A TransData kernel of `size` µs runs before every matrix product."""
    return replace(workload, device=replace(workload.device, layout_change=round(size * US)))


def _slower_loader(workload: Workload, size: float) -> Workload:
    """A batch takes `size` ms longer to make."""
    return replace(workload, loader=replace(workload.loader, cost=workload.loader.cost + round(size * MS)))


def _extra_sync(workload: Workload, size: float) -> Workload:
    """The loss is read in every step, `size` times."""
    return replace(workload, script=replace(workload.script, items=workload.script.items + round(size)))


def _slower_all_reduce(workload: Workload, size: float) -> Workload:
    """Every transfer takes `size` µs longer."""
    return replace(workload, ranks=replace(workload.ranks, extra=round(size * US)))


DIFFERENCES: dict[str, Callable[[Workload, float], Workload]] = {
    "slower_matmul": _slower_matmul,
    "layout_changes": _layout_changes,
    "slower_loader": _slower_loader,
    "extra_sync": _extra_sync,
    "slower_all_reduce": _slower_all_reduce,
}


@dataclass(frozen=True, slots=True)
class Pair:
    """All ranks of both runs, and for one rank the time of all steps by part (idle time by cause), ns."""

    gpu: tuple[Schedule, ...]
    npu: tuple[Schedule, ...]
    gpu_parts: dict[str, int]
    npu_parts: dict[str, int]
    moved: dict[str, dict[str, int]]
    """How much each difference adds to each part when it is put in after those before it: `BASE` first, then in the
    order given. Summed over the differences this is `npu_parts` − `gpu_parts`, exactly."""


def pair(workload: Workload, differences: tuple[Difference, ...], rank: int = 0) -> Pair:
    """Simulate a workload on a GPU, and on an NPU with the differences."""
    gpu = simulate(replace(workload, device=replace(workload.device, vendor="nvidia")))
    changed = replace(workload, device=replace(workload.device, vendor="ascend"))
    npu = simulate(changed)
    before, after = by_part(gpu[rank]), by_part(npu[rank])
    moved = {BASE: _added(before, after)}
    for difference in differences:
        changed = DIFFERENCES[difference.name](changed, difference.size)
        npu = simulate(changed)
        following = by_part(npu[rank])
        moved[difference.name] = _added(after, following)
        after = following
    return Pair(gpu, npu, before, after, moved)


def by_part(schedule: Schedule) -> dict[str, int]:
    """Time of all steps by exclusive part, idle time by cause; what is 0 is left out."""
    known = truth(schedule)
    parts = total(known.parts)
    return {name: time for name, time in ({name: parts[name] for name in PARTS} | total(known.idle)).items() if time}


def _added(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """Difference of each part that is not 0."""
    found = {name: after.get(name, 0) - before.get(name, 0) for name in sorted({*before, *after})}
    return {name: time for name, time in found.items() if time}


def device_time(schedule: Schedule, family: str) -> tuple[int, int]:
    """Count and time of the device work of one family inside the steps."""
    times = [time for work, time in inside(schedule.works, windows(schedule)) if work.family == family]
    return len(times), sum(times)
