"""A training program written down as a schedule: one host thread active at a time, streams that run in order.

Times are integer ns on a grid of 100 ns, so that what really happened can be counted cell by cell (`truth.py`).
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

PID = 4242
MAIN, BACKWARD = 4242, 4300
COMPUTE_STREAM, COMM_STREAM = 7, 20
CELL = 100
LATENCY = 4_000
"""From the return of a launch call to the start of its kernel on an idle stream."""
BETWEEN = 1_000
"""From the end of a kernel to the start of the next one, if that was queued."""
RETURN = 6_000
"""From the end of the awaited work to the return of the call that waits for it."""


@dataclass(slots=True)
class Span:
    """One event: `kind` is op, annotation, python, api, kernel, memcpy, memset or comm."""

    kind: str
    name: str
    start: int
    end: int
    thread: int
    args: dict[str, Any] = field(default_factory=dict)
    correlation: int = 0


@dataclass(slots=True)
class Program:
    """The program while it runs: `now` is the host's clock, `busy_until` the end of each stream's queue."""

    rank: int = 0
    world: int = 1
    with_python: bool = True
    now: int = 0
    thread: int = MAIN
    device_first: bool = False
    spans: list[Span] = field(default_factory=list)
    host_states: list[tuple[int, int, str]] = field(default_factory=list)
    """(start, end, what the host did), later entries override earlier ones."""
    steps: list[tuple[str, int, int]] = field(default_factory=list)
    busy_until: dict[int, int] = field(default_factory=dict)
    correlation: int = 100
    op_id: int = 0

    def work(self, duration: int) -> None:
        """Python code that the profiler does not see."""
        self.now += duration

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        start = self.now
        yield
        self.steps.append((f"ProfilerStep#{number}", start, self.now))
        self._add("annotation", f"ProfilerStep#{number}", start)

    @contextmanager
    def annotation(self, name: str) -> Iterator[None]:
        start = self.now
        yield
        self._add("annotation", name, start)

    @contextmanager
    def python(self, name: str) -> Iterator[None]:
        start = self.now
        yield
        if self.with_python:
            self._add("python", name, start)

    @contextmanager
    def on(self, thread: int) -> Iterator[None]:
        """The calling thread waits while another one works."""
        before, self.thread = self.thread, thread
        yield
        self.thread = before

    def load_batch(self, duration: int) -> None:
        """The loop asks its data loader for the next batch."""
        start = self.now
        self.now += duration
        self._add("annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start)
        self.host_states.append((start, self.now, "data_loading"))

    @contextmanager
    def op(self, name: str, lead: int, tail: int, **args: Any) -> Iterator[None]:
        """An operator: `lead` before what it does inside, `tail` after."""
        start, self.op_id = self.now, self.op_id + 1
        number, at = self.op_id, len(self.host_states)
        self.now += lead
        yield
        self.now += tail
        self.host_states.insert(at, (start, self.now, "host_op"))
        self._add("op", name, start, {"External id": number, **args})

    def launch(self, kernel: str, duration: int, call: int, *, stream: int = COMPUTE_STREAM, **args: Any) -> Span:
        """A kernel, launched by a call of the given length."""
        return self._enqueue("kernel", kernel, duration, ("cudaLaunchKernel", "dispatch.launch", call), stream, args)

    def collective(self, kernel: str, duration: int, call: int, after: int, **args: Any) -> Span:
        """A collective on its own stream that waits for compute to reach `after`."""
        self.busy_until[COMM_STREAM] = max(self.busy_until.get(COMM_STREAM, 0), after)
        api = ("cudaLaunchKernelExC", "dispatch.launch", call)
        return self._enqueue("comm", kernel, duration, api, COMM_STREAM, args)

    def copy(self, direction: str, duration: int, call: int, **args: Any) -> Span:
        """An asynchronous copy."""
        api = ("cudaMemcpyAsync", "dispatch.copy", call)
        return self._enqueue("memcpy", f"Memcpy {direction}", duration, api, COMPUTE_STREAM, args)

    def synchronize(self, name: str) -> None:
        """The host waits until every stream is empty."""
        start = self.now
        self.now = max(self.now, *self.busy_until.values()) + RETURN
        self.correlation += 1
        self._add("api", name, start, correlation=self.correlation)
        self.host_states.append((start, self.now, "sync"))

    def wait_for_comm(self) -> None:
        """Compute that follows needs the collectives' results."""
        ends = self.busy_until
        ends[COMPUTE_STREAM] = max(ends.get(COMPUTE_STREAM, 0), ends.get(COMM_STREAM, 0))

    def _enqueue(
        self, kind: str, name: str, duration: int, api: tuple[str, str, int], stream: int, args: dict[str, Any]
    ) -> Span:
        call_name, state, call = api
        start = self.now
        self.now += call
        self.correlation += 1
        self._add("api", call_name, start, {"External id": self.op_id}, self.correlation)
        self.host_states.append((start, self.now, state))
        begin = max(self.now + LATENCY, self.busy_until.get(stream, -BETWEEN) + BETWEEN)
        self.busy_until[stream] = begin + duration
        span = Span(kind, name, begin, begin + duration, stream, {"External id": self.op_id, **args}, self.correlation)
        self.spans.append(span)
        return span

    def _add(self, kind: str, name: str, start: int, args: dict[str, Any] | None = None, correlation: int = 0) -> None:
        self.spans.append(Span(kind, name, start, self.now, self.thread, args or {}, correlation))
