"""The program on the host: a clock, nested operators, frames and calls, and what each stretch of time was spent on."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.simulate.noise import draws
from tests.simulate.schedule import MAIN, Call, OpCall, Range, Schedule, State, Work
from tests.simulate.streams import COMPUTE, Streams, on_grid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulate.model import Argument, Kernel
    from tests.simulate.workload import Workload

BLOCKING = 50_000
"""An asynchronous copy call this long that outlasts the begin of its copy counts as sync point (definitions §7)."""


class Host:
    """One rank's program while it runs. Threads take turns: `now` is the clock of the one that is running."""

    def __init__(self, workload: Workload, rank: int) -> None:
        self.workload = workload
        self.schedule = Schedule(workload, rank)
        self.streams = Streams(workload, rank)
        self.now = 0
        self.thread = MAIN
        self.phase = "other"
        self.module: tuple[str, ...] = ()
        self.loading = False
        self.peer = False
        self._call: Call | None = None
        self._ops: list[OpCall] = []
        self._frames: list[Range] = []
        self._named: tuple[str, tuple[str, ...]] | None = None
        self._drawn: dict[object, int] = {}
        self._draws: dict[object, Iterator[float]] = {}

    def record(self) -> None:
        """Recording begins: what was before is forgotten."""
        self.schedule = Schedule(self.workload, self.schedule.rank, begin=self.now)

    def spend(self, cost: int) -> None:
        """Let the running thread work; a cost of 0 is no work."""
        if cost > 0:
            self.until(self.now + on_grid(cost, self.workload.tick))

    def work(self, cost: int, *key: object) -> None:
        """The same with scatter."""
        draw = self._draws.get(key)
        if draw is None:
            draw = self._draws[key] = draws(self.workload.seed, self.schedule.rank, *key)
        self.spend(round(cost * (1 + self.workload.host.spread * next(draw))))

    def until(self, time: int) -> None:
        """Stay in the same state until `time`."""
        if time > self.now:
            call = self._call.outermost if self._call else None
            state = State(self.now, time, self.loading, self.peer, call, bool(self._ops))
            self.schedule.states[self.thread].append(state)
            self.now = time

    def python(self) -> None:
        """Interpreter time between two operators."""
        self.work(self.workload.host.python, "python")

    @contextmanager
    def annotation(self, name: str) -> Iterator[None]:
        """A range that torch or the user annotates."""
        found = Range(name, self.thread, self.now)
        self.schedule.annotations.append(found)
        self.work(self.workload.host.python, "annotation")
        yield
        self.work(self.workload.host.python, "annotation")
        found.end = self.now

    @contextmanager
    def frame(self, name: str, *, user: bool = False) -> Iterator[None]:
        """A Python function."""
        found = Range(name, self.thread, self.now, user=user)
        self.schedule.frames.append(found)
        self._frames.append(found)
        self._named = None
        self.spend(self.workload.tick)
        yield
        self.spend(self.workload.tick)
        self._frames.pop()
        self._named = None
        found.end = self.now

    @contextmanager
    def op(self, name: str, inputs: tuple[Argument, ...] = (), *, bare: bool = False) -> Iterator[OpCall]:
        """An operator: some time before what it does inside, and some after; a bare one costs next to nothing."""
        cost = self.workload.tick if bare else self.workload.host.op
        parent = self._ops[-1] if self._ops else None
        frames = self._names()
        found = OpCall(name, self.thread, self.now, parent, inputs, self.module, self.phase, frames)
        found.sequence = parent.sequence if parent else None
        self.schedule.ops.append(found)
        self._ops.append(found)
        self.work(cost, "op", name)
        yield found
        self.work(cost // 2, "op", name)
        self._ops.pop()
        found.end = self.now

    def _names(self) -> tuple[str, ...]:
        """Frames of the running thread, innermost first."""
        if self._named is None or self._named[0] != self.thread:
            names = tuple(frame.name for frame in reversed(self._frames) if frame.thread == self.thread)
            self._named = self.thread, names
        return self._named[1]

    @contextmanager
    def on(self, thread: str) -> Iterator[None]:
        """Another thread works while this one waits for it."""
        before, ops, self.thread, self._ops = self.thread, self._ops, thread, []
        yield
        self.thread, self._ops = before, ops

    @contextmanager
    def beside(self, thread: str) -> Iterator[None]:
        """Another thread works at the same time: from now on, or from when it is free; this thread's clock stands."""
        before, frames, self._frames, self._named = self.now, self._frames, [], None
        done = self.schedule.states[thread]
        self.now = max(self.now, done[-1].end if done else 0)
        with self.on(thread):
            yield
        self.now, self._frames, self._named = before, frames, None

    def launch(self, kernel: Kernel, key: str, stream: int = COMPUTE) -> Work:
        """Launch a kernel."""
        duration = self._duration(kernel, key)
        call = self._begin_call("cudaLaunchKernel", "launch")
        work = self._begin_kernel(kernel, call, call.op, stream, duration)
        self._return(call, self.workload.host.launch, self.streams.room_at(stream))
        return work

    def _duration(self, kernel: Kernel, key: str) -> int:
        number = self._drawn[key, kernel.kind] = self._drawn.get((key, kernel.kind), 0) + 1
        return self.streams.kernel_time(kernel, key, kernel.kind, number)

    def _begin_kernel(self, kernel: Kernel, call: Call, op: OpCall | None, stream: int, duration: int) -> Work:
        start = self.streams.begin(stream, call.start)
        work = Work("compute", kernel.kind, kernel.name, stream, start, 0, call, op, self.phase)
        work.end = self.streams.run(stream, start, duration)
        work.blocks, work.threads = kernel.blocks, kernel.threads
        work.bytes, work.flops = kernel.bytes, kernel.flops
        self._linked(work)
        return work

    def _linked(self, work: Work) -> None:
        every = self.workload.recording.unlinked
        work.linked = not every or len(self.schedule.works) % every != every - 1
        self.schedule.works.append(work)

    def copy(self, direction: str, size: int, *, pageable: bool) -> Work:
        """`cudaMemcpyAsync`; from pageable memory the call returns when the copy is done."""
        device, tick = self.workload.device, self.workload.tick
        rate = device.pageable if pageable else device.pcie
        memory = "Pageable" if pageable else "Pinned"
        ends = f"{memory} -> Device" if direction == "HtoD" else f"Device -> {memory}"
        name = f"Memcpy {direction} ({ends})"
        call = self._begin_call("cudaMemcpyAsync", "copy")
        start = self.streams.begin(COMPUTE, call.start)
        end = self.streams.run(COMPUTE, start, on_grid(max(1_200, round(size / rate * 1e9)), tick))
        work = Work("memcpy", direction, name, COMPUTE, start, end, call, call.op, self.phase, bytes=size)
        call.own_copy = work
        self._linked(work)
        done = end + on_grid(self.workload.host.wake, tick) if pageable else 0
        returns = max(call.start + on_grid(self.workload.host.copy, tick), done)
        # Whether the call blocks in effect is known when it returns; an unlinked copy cannot show it.
        if work.linked and returns - call.start >= BLOCKING and returns > start:
            call.klass = "sync"
        self.until(returns)
        self._end_call(call)
        return work

    def read_back(self, size: int) -> None:
        """Copy a value to the host and wait for it."""
        self.copy("DtoH", size, pageable=False)
        self.synchronize("cudaStreamSynchronize", self.streams.busy_until[COMPUTE])

    def memset(self, fill: Kernel, key: str) -> None:
        """`cudaMemsetAsync`."""
        call = self._begin_call("cudaMemsetAsync", "copy")
        start = self.streams.begin(COMPUTE, call.start)
        end = self.streams.run(COMPUTE, start, self.streams.kernel_time(fill, key, "memset"))
        self._linked(
            Work("memset", "memset", fill.name, COMPUTE, start, end, call, call.op, self.phase, bytes=fill.bytes)
        )
        self._return(call, self.workload.host.launch, 0)

    def call(self, name: str, klass: str, cost: int, until: int = 0, begin: int = 0) -> Call:
        """A runtime call that launches nothing; it works from `begin` on, and lasts until `until` at least."""
        call = self._begin_call(name, klass)
        self.until(begin)
        self._return(call, cost, until)
        return call

    def launched_done(self) -> int:
        """When all is done that has been launched so far, by whatever thread."""
        works, now = self.schedule.works, self._queue_empty()
        return max((work.end for work in works if work.call is None or work.call.start <= now), default=0)

    def _queue_empty(self) -> int:
        """When everything that this thread asked for has been launched."""
        return self.now

    def synchronize(self, name: str, done: int) -> Call:
        """Wait until `done`, then wake up."""
        host = self.workload.host
        return self.call(name, "sync", host.wake, done + on_grid(host.wake, self.workload.tick))

    def make_wait(self, stream: int, other: int) -> None:
        """An event recorded on one stream, another stream waits for it."""
        self.call("cudaEventRecordWithFlags", "other", self.workload.host.other)
        call = self.call("cudaStreamWaitEvent", "other", self.workload.host.other)
        call.stream, call.waits_for = stream, other
        self.streams.wait(stream, other)

    def begin_collective(self, kind: str) -> tuple[Call, OpCall]:
        """The launch call of a collective and its operator; it returns before anybody knows when it ends."""
        call = self._begin_call("cudaLaunchKernelExC", "launch")
        self._return(call, 2 * self.workload.host.launch, 0)
        return call, self._ops[-1]

    def collective_name(self, name: str, index: int) -> str:
        """Name of a collective on the device."""
        return name

    def _begin_call(self, name: str, klass: str) -> Call:
        mine = (frame for frame in reversed(self._frames) if frame.thread == self.thread)
        line = next((frame.name for frame in mine if frame.user), None)
        call = Call(name, klass, self.thread, self.now, self._ops[-1] if self._ops else None, line, parent=self._call)
        self.schedule.calls.append(call)
        self._call = call
        return call

    def _return(self, call: Call, cost: int, at_least: int) -> None:
        self.work(cost, "call", call.name)
        self.until(at_least)
        self._end_call(call)

    def _end_call(self, call: Call) -> None:
        self._call = call.parent
        call.end = self.now
