"""A schedule as the JSON text of the PyTorch profiler, in any of its layouts."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.simulate.recorded import as_recorded
from tests.simulate.schedule import AUTOGRAD, MAIN, SIDE
from tests.simulate.writers.arguments import Arguments
from tests.simulate.writers.header import header
from tests.simulate.writers.layouts import TODAY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.simulate.schedule import Call, OpCall, Range, Schedule, Work
    from tests.simulate.writers.layouts import Layout

BASE = 1_767_225_600_000_000_000
"""Recordings begin at midnight on 1 January 2026 (UTC)."""
PID = 4242
THREADS = {MAIN: PID, AUTOGRAD: 4300, SIDE: 4317}


def write(schedule: Schedule, layout: Layout = TODAY) -> bytes:
    """The trace file of one rank."""
    schedule = as_recorded(schedule)
    if layout.whole_us and schedule.workload.tick % 1000:
        raise ValueError("this layout needs a schedule on whole microseconds")
    base = BASE + schedule.rank * schedule.workload.recording.clock_offset
    found = header(schedule, layout, base - layout.since)
    events = ",\n".join(_Writer(schedule, layout, base).events())
    members = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in found.items()]
    listed = f'  "traceEvents": [\n{events}\n  ]'
    parts = [*members, listed] if layout.header_first else [members[0], listed, *members[1:]]
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


class _Writer:
    """Ids and places of everything in one file."""

    def __init__(self, schedule: Schedule, layout: Layout, base: int) -> None:
        self._schedule = schedule
        self._base = base
        self._layout = layout
        self._arguments = Arguments(schedule, layout)
        self._whole = schedule.workload.tick % 1000 == 0 and not layout.relative

    def events(self) -> Iterator[str]:
        """Host events, then the device, then the names of processes and threads."""
        schedule, layout = self._schedule, self._layout
        for op in schedule.ops:
            yield from self._op(op)
        if layout.pairs:
            yield from self._pairs()
        for annotation in schedule.annotations:
            yield self._range("annotation", annotation, {})
        if layout.python and schedule.workload.recording.stacks:
            for number, frame in enumerate(schedule.frames):
                yield self._range("python", frame, {"Python id": number + 1, "Ev Idx": number})
        if layout.with_device:
            for call in schedule.calls:
                yield from self._call(call)
            for work in schedule.works:
                yield from self._work(work)
            if layout.sync_events:
                yield from self._device_rows()
        yield from self._instants()
        yield from self._names()

    def _op(self, op: OpCall) -> Iterator[str]:
        place = self._host_place(op.thread)
        if not self._layout.pairs:
            yield self._complete("op", op.name, place, op.start, op.end, self._arguments.of_op(op))
        if op.forward_of is not None and self._layout.name != "2021":
            source = op.forward_of
            number = source.sequence or 0
            yield self._arrow("s", "fwdbwd", "fwdbwd", number, self._host_place(source.thread), source.start)
            yield self._arrow("f", "fwdbwd", "fwdbwd", number, place, op.start)

    def _pairs(self) -> Iterator[str]:
        """Begins and ends of operators in the order of time; of equal times ends first, and the inner ones of these."""
        ops = list(self._schedule.ops)
        begins = [(op.start, 1, -op.end, "B", op) for op in ops]
        ends = [(op.end, 0 if op.end > op.start else 2, -op.start, "E", op) for op in ops]
        for time, *_, phase, op in sorted([*begins, *ends], key=lambda one: one[:3]):
            head = f'"ph": "{phase}", "cat": "cpu_op", "name": {_quoted(op.name)}, {self._host_place(op.thread)}'
            args = f', "args": {json.dumps(self._arguments.of_op(op))}' if phase == "B" else ""
            yield f'  {{\n    {head}, "ts": {self._time(time)}{args}\n  }}'

    def _range(self, kind: str, found: Range, args: dict[str, Any]) -> str:
        return self._complete(kind, found.name, self._host_place(found.thread), found.start, found.end, args)

    def _call(self, call: Call) -> Iterator[str]:
        place = self._host_place(call.thread)
        kind, name = "call", self._layout.call_name(call.name)
        if self._arguments.family_launched_by(call) in self._layout.driver_families:
            kind, name = "cuda_driver", "cuLaunchKernel"
        yield self._complete(kind, name, place, call.start, call.end, self._arguments.of_call(call))
        number = self._arguments.launched_by(call)
        if number is not None:
            yield self._arrow("s", *self._layout.flow, number, place, call.start)

    def _work(self, work: Work) -> Iterator[str]:
        place = self._device_place(work.stream)
        kind = work.kind if work.kind in {"memcpy", "memset"} else "kernel"
        name = self._layout.copy_name(work.name)
        yield self._complete(kind, name, place, work.start, work.end, self._arguments.of_work(work))
        if work.linked:
            yield self._arrow("f", *self._layout.flow, self._arguments.correlation(work), place, work.start)

    def _device_rows(self) -> Iterator[str]:
        """What the profiler shows on the device's rows although the device does nothing for it."""
        for call in self._schedule.calls:
            if call.waits_for is not None and call.stream is not None:
                args = self._arguments.of_wait(call)
                place = self._device_place(call.stream)
                yield self._complete("cuda_sync", "Stream Wait Event", place, call.start, call.end, args)
        works = [work for work in self._schedule.recorded if work.kind == "compute" and work.call]
        for step in self._schedule.steps:
            mine = [work for work in works if work.call and step.start <= work.call.start < step.end]
            if mine:
                first, last = mine[0].start, max(work.end for work in mine)
                name = f"ProfilerStep#{step.number}"
                place = self._device_place(mine[0].stream)
                yield self._complete("gpu_user_annotation", name, place, first, last, {})

    def _instants(self) -> Iterator[str]:
        layout = self._layout
        category = '"cat": "cpu_instant_event", ' if layout.relative else ""
        for record in self._schedule.memory if layout.with_device else ():
            args = self._arguments.of_memory(record)
            yield (
                f'  {{\n    "ph": "i", {category}"s": "t", "name": "[memory]", '
                f"{self._host_place(record.thread)},\n"
                f'    "ts": {self._time(record.time)},\n    "args": {json.dumps(args)}\n  }}'
            )
        begin = self._schedule.begin
        duration = max(call.end for call in self._schedule.calls) - begin
        yield (
            f'  {{\n    "ph": "X", "cat": "Trace", "ts": {self._time(begin)}, "dur": {self._duration(duration)},\n'
            '    "pid": "Spans", "tid": "PyTorch Profiler",\n    "name": "PyTorch Profiler (0)",\n'
            '    "args": {\n      "Op count": 0\n    }\n  }'
        )

    def _names(self) -> Iterator[str]:
        layout = self._layout
        named: list[tuple[str, Any, Any, dict[str, Any]]] = [
            ("process_name", PID, 0, {"name": "python"}),
            ("process_labels", PID, 0, {"labels": "CPU"}),
            ("process_name", layout.device, 0, {"name": "python"}),
            ("process_labels", layout.device, 0, {"labels": f"GPU {layout.device}"}),
        ]
        used = [thread for thread, states in self._schedule.states.items() if states]
        named += [("thread_name", PID, THREADS[each], {"name": f"thread {THREADS[each]} (python)"}) for each in used]
        streams = sorted({layout.streams[work.stream] for work in self._schedule.works})
        named += [("thread_name", layout.device, each, {"name": f"stream {each} "}) for each in streams]
        begin = self._time(self._schedule.begin)
        for name, pid, tid, args in named:
            yield (
                f'  {{\n    "name": "{name}", "ph": "M", "ts": {begin}, "pid": {pid}, "tid": {tid},\n'
                f'    "args": {json.dumps(args)}\n  }}'
            )

    def _complete(self, kind: str, name: str, place: str, start: int, end: int, args: dict[str, Any]) -> str:
        category = "python_function" if kind == "python" else self._layout.categories.get(kind, kind)
        times = f'"ts": {self._time(start)}, "dur": {self._duration(end - start)}'
        body = f',\n    "args": {{\n      {json.dumps(args)[1:-1]}\n    }}' if args else ""
        return f'  {{\n    "ph": "X", "cat": "{category}", "name": {_quoted(name)}, {place},\n    {times}{body}\n  }}'

    def _arrow(self, phase: str, category: str, name: str, number: int, place: str, time: int) -> str:
        binding = ', "bp": "e"' if phase == "f" else ""
        return (
            f'  {{\n    "ph": "{phase}", "id": {number}, {place}, "ts": {self._time(time)},\n'
            f'    "cat": "{category}", "name": "{name}"{binding}\n  }}'
        )

    def _host_place(self, thread: str) -> str:
        return self._place(PID, str(THREADS[thread]))

    def _device_place(self, stream: int) -> str:
        number = self._layout.streams[stream]
        return self._place(self._layout.device, f"stream {number}" if self._layout.text_tids else str(number))

    def _place(self, pid: int, tid: str) -> str:
        return f'"pid": {pid}, "tid": {_quoted(tid) if self._layout.text_tids else tid}'

    def _time(self, ns: int) -> str:
        return self._number(self._layout.since + ns if self._layout.relative else self._base + ns)

    def _duration(self, ns: int) -> str:
        return self._number(ns)

    def _number(self, ns: int) -> str:
        """Microseconds; three decimals where the schedule is finer than that."""
        return str(ns // 1000) if self._whole else f"{ns // 1000}.{ns % 1000:03d}"


_quoted: Callable[[str], str] = cache(json.dumps)
