"""One NPU rank's recording with everything that files need to tell about it: absolute times, ids, device tasks."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tests.simulate.npu_kernels import NpuKernel, described
from tests.simulate.schedule import AUTOGRAD, DEQUEUE, MAIN, SIDE
from tests.simulate.streams import COMM, COMPUTE, SIDE_STREAM
from tests.simulate.writers.kineto import BASE

if TYPE_CHECKING:
    from tests.simulate.schedule import Call, Control, OpCall, Schedule, Task, Work
    from tests.simulate.writers.ascend_layouts import AscendLayout

PID = 4242
THREADS = {MAIN: PID, AUTOGRAD: 4300, SIDE: 4317, DEQUEUE: 4290}
STREAMS = {COMPUTE: 2, COMM: 4, SIDE_STREAM: 5}
_FIRST_CONNECTION, _FIRST_CORRELATION, _LOST = 936, 8_226, 9_000_000
_SUB_TASKS = {"Notify_Wait": "Notify Wait", "Notify_Record": "Write Value"}


@dataclass(frozen=True, slots=True)
class DeviceTask:
    """One row of the device: a kernel, a copy, an event, or part of a collective."""

    name: str
    stream: int
    start: int
    end: int
    connection: int
    task: int
    """Number on its stream."""
    kind: str
    """compute, memcpy, control, part (of a collective)"""
    task_type: str
    work: Work | None = None
    part: Task | None = None
    subtask: int = 0


class Rank:
    """A schedule as the files see it."""

    def __init__(self, schedule: Schedule, layout: AscendLayout) -> None:
        self.schedule = schedule
        self.layout = layout
        self.base = BASE + schedule.rank * schedule.workload.recording.clock_offset
        self.world = schedule.workload.ranks.count
        named = [call for call in schedule.calls if is_cann(call)]
        self._connections = {id(call): number for number, call in enumerate(named, start=_FIRST_CONNECTION)}
        queued = [call for call in schedule.calls if call.name == "Enqueue"]
        self._correlations = {id(call): number for number, call in enumerate(queued, start=_FIRST_CORRELATION)}
        self._lost = {id(work): number for number, work in enumerate(schedule.works, start=_LOST)}

    def us(self, ns: int) -> str:
        """Absolute time in microseconds."""
        time = self.base + ns
        return f"{time // 1000}.{time % 1000:03d}"

    def correlation(self, call: Call) -> int:
        """Number of an entry of the task queue, of the call that made it and of the one that took it out."""
        return self._correlations[id(call.queued or call)]

    def connection(self, call: Call) -> int:
        """Number of a CANN call."""
        return self._connections[id(call)]

    def connection_of(self, work: Work) -> int:
        """Number that a work shares with its launch; its own where the launch was not recorded."""
        launched = work.linked and work.call is not None
        return self._connections[id(work.call)] if launched else self._lost[id(work)]

    @cached_property
    def launched(self) -> dict[int, list[Work]]:
        """Works of each operator (by identity)."""
        found: dict[int, list[Work]] = {}
        for work in self.schedule.recorded:
            if work.op is not None:
                found.setdefault(id(work.op), []).append(work)
        return found

    @cached_property
    def tasks(self) -> list[DeviceTask]:
        """Rows of the device, in the order in which streams ran them."""
        number: Counter[int] = Counter()
        found: list[DeviceTask] = []
        every: list[Work | Control] = [*self.schedule.works, *self.schedule.controls]
        for each in sorted(every, key=lambda each: each.start):
            stream = STREAMS[each.stream]
            number[stream] += 1
            found += self._rows(each, stream, 11_000 + number[stream])
        return found

    def _rows(self, each: Work | Control, stream: int, task: int) -> list[DeviceTask]:
        span = stream, each.start, each.end
        if not hasattr(each, "kind"):
            kind = f"{each.name}_SQE"
            return [DeviceTask(each.name, *span, self.connection(each.call), task, "control", kind)]
        number = self.connection_of(each)
        if each.kind == "comm":
            return [self._part(each, stream, task, part, place) for place, part in enumerate(each.tasks)]
        copy = each.kind == "memcpy"
        kind = "PCIE_DMA_SQE" if copy else self.layout.task_type(described(each.name).core)
        return [DeviceTask(each.name, *span, number, task, "memcpy" if copy else "compute", kind, each)]

    def _part(self, work: Work, stream: int, task: int, part: Task, place: int) -> DeviceTask:
        name = _SUB_TASKS.get(part.name, "SDMA")
        number = self.connection_of(work)
        return DeviceTask(name, stream, part.start, part.end, number, task, "part", name, work, part, place)

    @cached_property
    def task_numbers(self) -> dict[int, int]:
        """Number on its stream of each work (by identity)."""
        return {id(task.work): task.task for task in self.tasks}

    @cached_property
    def collectives(self) -> list[Work]:
        """Collectives in the order asked for."""
        return [work for work in self.schedule.works if work.collective is not None]

    def collective_name(self, work: Work) -> str:
        """Name of a collective; the oldest exports did not count repetitions."""
        return work.name.removesuffix("_1") if self.layout.era == "2023" else work.name

    @cached_property
    def rows(self) -> list[Work]:
        """What the kernel table lists: kernels and collectives by start time."""
        return sorted((work for work in self.schedule.works if work.kind != "memcpy"), key=lambda work: work.start)

    def parts(self, work: Work) -> tuple[Task, ...]:
        """Parts of a collective as far as they are exported."""
        return work.tasks if self.layout.planes else ()


def is_cann(call: Call) -> bool:
    """Whether a call is one of the CANN host interface."""
    return "@" in call.name and not call.name.startswith("Dequeue@")


def kernel_of(work: Work) -> NpuKernel:
    """What the tables say of a kernel."""
    return described(work.name)


def fraction(ns: int) -> float:
    """A duration of the device in microseconds: the device's clock is finer than a nanosecond."""
    return (ns + zlib.crc32(str(ns).encode()) % 15 / 32) / 1000


def innermost(ops: list[OpCall], thread: str, time: int) -> OpCall | None:
    """The operator that a thread is in."""
    around = [op for op in ops if op.start <= time <= op.end and op.thread == thread]
    return max(around, key=lambda op: op.start) if around else None
