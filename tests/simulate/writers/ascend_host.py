"""The framework's part of trace_view.json: operators, Python, the task queue, and the arrows between them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from tests.simulate.model import Tensor
from tests.simulate.writers.ascend_rank import PID, THREADS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulate.model import Argument
    from tests.simulate.schedule import OpCall, Range
    from tests.simulate.writers.ascend_rank import Rank

Event = dict[str, Any]
_BREAK = ";\r\n"


def host_events(rank: Rank) -> Iterator[Event]:
    """Names, then everything with a duration, then arrows."""
    schedule = rank.schedule
    yield from _names(rank)
    for found in schedule.annotations:
        yield _complete(rank, found.name, "cpu_op", found, {"Sequence number": -1, "Fwd thread id": 0})
    for op in schedule.ops:
        yield _complete(rank, op.name, "cpu_op", op, op_args(rank, op))
    if schedule.workload.recording.stacks:
        for number, frame in enumerate(schedule.frames):
            args = {"Python id": number, "Python parent id": max(0, number - 1)}
            yield _complete(rank, frame.name, "python_function", frame, args)
    for call in schedule.calls:
        if call.name == "Enqueue" or call.queued is not None:
            kind = "enqueue" if call.queued is None else "dequeue"
            yield _complete(rank, call.name, kind, call, {"correlation_id": rank.correlation(call)})
    for call in schedule.calls:
        if call.name == "Enqueue" or call.queued is not None:
            phase = "s" if call.queued is None else "f"
            yield arrow(rank, phase, "enqueue_to_dequeue", "async_task_queue", rank.correlation(call), call)
    for op in schedule.ops:
        source = op.forward_of
        if source is not None:
            yield arrow(rank, "s", "fwdbwd", "fwdbwd", source.sequence or 0, source)
            yield arrow(rank, "f", "fwdbwd", "fwdbwd", source.sequence or 0, op)


def arrow(rank: Rank, phase: str, name: str, category: str, number: int | str, where: Any) -> Event:
    """One end of an arrow on a host thread."""
    place = {"pid": PID, "tid": THREADS[where.thread], "ts": rank.us(where.start)}
    return {"ph": phase, "bp": "e", "name": name, "id": number, **place, "cat": category}


def op_args(rank: Rank, op: OpCall) -> dict[str, Any]:
    """Sequence number, shapes and call stack."""
    backward = op.thread == "autograd"
    args: dict[str, Any] = {"Sequence number": -1 if op.sequence is None else op.sequence}
    args["Fwd thread id"] = int(backward and op.sequence is not None)
    if rank.layout.shapes and op.inputs:
        args["Input Dims"] = _BREAK.join(dims(each) for each in op.inputs)
        args["Input type"] = _BREAK.join(type_word(each) for each in op.inputs)
    if rank.schedule.workload.recording.stacks and op.frames:
        args["Call stack"] = _BREAK.join(op.frames)
    return args


@cache
def dims(given: Argument) -> str:
    """Shape of an argument; plain values have none."""
    return ",".join(map(str, given.dims)) if isinstance(given, Tensor) else ""


def type_word(given: Argument) -> str:
    """Type of an argument."""
    if isinstance(given, Tensor):
        return given.dtype
    return "ScalarList" if given.startswith("[") else "Scalar" if given else "None"


def _complete(rank: Rank, name: str, category: str, found: Any, args: dict[str, Any]) -> Event:
    place = {"pid": PID, "tid": THREADS[found.thread]}
    times = {"ts": rank.us(found.start), "dur": (found.end - found.start) / 1000}
    return {"ph": "X", "name": name, **place, **times, "cat": category, "args": args}


def _names(rank: Rank) -> Iterator[Event]:
    about = (("process_name", {"name": "Python"}), ("process_labels", {"labels": "CPU"}))
    for name, args in (*about, ("process_sort_index", {"sort_index": 0})):
        yield {"ph": "M", "name": name, "pid": PID, "tid": 0, "args": args}
    used = [thread for thread, states in rank.schedule.states.items() if states]
    for thread in used:
        tid = THREADS[thread]
        sort = max(THREADS.values()) + 1 if thread == "dequeue" else tid
        yield {"ph": "M", "name": "thread_name", "pid": PID, "tid": tid, "args": {"name": f"Thread {tid}"}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": PID, "tid": tid, "args": {"sort_index": sort}}


def user_ranges(rank: Rank) -> list[Range | OpCall]:
    """Everything that is an operator to the files, in the order of time."""
    return sorted([*rank.schedule.annotations, *rank.schedule.ops], key=lambda each: (each.start, -each.end))
