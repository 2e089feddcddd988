"""The device: streams that run in order; work begins when it is launched, its turn, and what it waits for is done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.simulate.noise import scattered

if TYPE_CHECKING:
    from tests.simulate.model import Kernel
    from tests.simulate.workload import Workload

COMPUTE, COMM, SIDE_STREAM = 7, 20, 24


@dataclass(slots=True)
class Streams:
    """When each stream is free, and what it must wait for."""

    workload: Workload
    rank: int
    busy_until: dict[int, int] = field(default_factory=dict)
    waits: dict[int, int] = field(default_factory=dict)
    begins: dict[int, list[int]] = field(default_factory=dict)

    def begin(self, stream: int, launch: int) -> int:
        """When work launched at `launch` begins, on an idle stream after the device's latency."""
        device = self.workload.device
        tick = self.workload.tick
        free = self.busy_until[stream] + on_grid(device.gap, tick) if stream in self.busy_until else 0
        way = 0 if self.workload.recording.behind else on_grid(device.latency, tick)
        return max(launch + way, free, self.waits.get(stream, 0))

    def run(self, stream: int, start: int, duration: int) -> int:
        """Occupy a stream; returns the end."""
        self.busy_until[stream] = start + duration
        self.begins.setdefault(stream, []).append(start)
        return start + duration

    def wait(self, stream: int, other: int) -> None:
        """What follows on `stream` waits for what is on `other` now."""
        self.waits[stream] = max(self.waits.get(stream, 0), self.busy_until.get(other, 0))

    def room_at(self, stream: int) -> int:
        """When the queue of a stream has room for one more: the moment after an earlier one has begun."""
        begins = self.begins.get(stream, [])
        full = len(begins) >= self.workload.device.queue
        return begins[-self.workload.device.queue] + self.workload.tick if full else 0

    @property
    def all_done(self) -> int:
        """When nothing is left to run."""
        return max(self.busy_until.values(), default=0)

    def kernel_time(self, kernel: Kernel, *key: object) -> int:
        """Roofline time of a kernel on this rank's device, scattered."""
        device, ranks = self.workload.device, self.workload.ranks
        ideal = max(kernel.flops / device.flops, kernel.bytes / device.bandwidth) * 1e9
        slow = ranks.slow_by if self.rank == ranks.slow_rank else 1.0
        if kernel.kind == "matmul" and kernel.misaligned:
            ideal *= device.misaligned
        nominal = round((device.floor + ideal) * slow)
        duration = scattered(nominal, device.spread, self.workload.seed, "kernel", self.rank, *key)
        return round(duration / self.workload.tick) * self.workload.tick


def on_grid(time: int, tick: int) -> int:
    """A host or latency time on the clock's grid, never 0."""
    return max(1, round(time / tick)) * tick
