"""trace_view.json: the framework's part, then CANN and the device, then the arrows from operators to the device."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.simulate.npu_kernels import described
from tests.simulate.truth.vendor import step_of
from tests.simulate.writers.ascend_host import Event, host_events
from tests.simulate.writers.ascend_layouts import NONE
from tests.simulate.writers.ascend_rank import PID, STREAMS, THREADS, fraction, is_cann
from tests.simulate.writers.ascend_steps import ROWS, Overlap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulate.schedule import Call, Task, Work
    from tests.simulate.truth.vendor import VendorStep
    from tests.simulate.writers.ascend_rank import DeviceTask, Rank

DTYPES = {"c10::BFloat16": "BFP16", "float": "FP32", "long int": "INT64"}
_MODES = {"AscendCL": ("ACL_RTS", "acl"), "Node": ("launch", "node"), "Hccl": ("master", "hccl")}
_DIRECTIONS = {"HtoD": "host to device", "DtoH": "device to host"}


def trace_view(rank: Rank, overlap: Overlap) -> str:
    """The whole file, damaged as the layout asks."""
    damage = rank.layout.damage
    events = list(host_events(rank))
    if not damage.startswith("host_"):
        events += [*_cann(rank), *_device(rank), *_collectives(rank), *_overlap(rank, overlap), *_counters(rank)]
        events += _from_operators(rank)
    text = json.dumps(events)
    if damage.endswith("open"):
        return text[:-1]
    if damage.endswith("comma"):
        return text[:-1] + ",]"
    return text[:-40] if damage == "cut" else text


def _process(rank: Rank, process: str, *threads: tuple[int, str], named: bool = True) -> Iterator[Event]:
    pid, layout = rank.layout.process(PID, process), rank.layout
    if named:
        yield _name(pid, 0, "process_name", {"name": process})
    for tid, name in threads:
        yield _name(pid, tid, "thread_name", {"name": name})
        yield _name(pid, tid, "thread_sort_index", {"sort_index": tid})
    yield _name(pid, 0, "process_labels", {"labels": "CPU" if process == "CANN" else layout.label})
    yield _name(pid, 0, "process_sort_index", {"sort_index": layout.sort_index(process)})


def _name(pid: int, tid: int, name: str, args: dict[str, Any]) -> Event:
    return {"name": name, "pid": pid, "tid": tid, "args": args, "ph": "M"}


def _complete(rank: Rank, name: str, place: tuple[int, int], span: tuple[int, float], args: dict[str, Any]) -> Event:
    pid, tid = place
    found = {"name": name, "pid": pid, "tid": tid, "ts": rank.us(span[0]), "dur": span[1], "args": args, "ph": "X"}
    return found if args else {key: value for key, value in found.items() if key != "args"}


def _cann(rank: Rank) -> Iterator[Event]:
    """Host calls of CANN (level 1 and more), and the arrows from them to the device."""
    layout = rank.layout
    pid = layout.process(PID, "CANN")
    calls = [call for call in rank.schedule.calls if is_cann(call)]
    tids = sorted({THREADS[call.thread] for call in calls})
    yield from _process(rank, "CANN", *((tid, f"Thread {tid}") for tid in tids), named=layout.level > 0)
    items = {id(work.call): work.name for work in rank.schedule.works}
    for call in calls if layout.level else ():
        group, name = call.name.split("@")
        mode, level = _MODES[group]
        item = items.get(id(call), "0") if group == "Node" else "0" if group == "AscendCL" else name
        args = {"Thread Id": THREADS[call.thread], "Mode": mode, "level": level, "id": name if level == "acl" else "0"}
        args |= {"item_id": item, "connection_id": rank.connection(call)}
        shown = layout.comm_api + name if group == "Hccl" else call.name
        place = pid, THREADS[call.thread]
        yield _complete(rank, shown, place, (call.start, (call.end - call.start) / 1000), args)
        if layout.level == 2 and call.end - call.start > 100 and name.startswith("aclrt"):
            yield _runtime(rank, call, place)
    for work in rank.schedule.recorded:
        if work.call is not None:
            number = _flow_id(rank, work)
            name = f"HostToDevice{number}"
            inside = (work.call.end - work.call.start) // 2 if work.kind == "compute" else 0
            start = {"name": name, "ph": "s", "cat": "HostToDevice", "id": number, "pid": pid}
            yield start | {"tid": THREADS[work.call.thread], "ts": rank.us(work.call.start + inside)}
            to = _place(rank, work)
            end = {"name": name, "ph": "f", "id": number, "ts": rank.us(work.start), "cat": "HostToDevice"}
            yield end | {"pid": to[0], "tid": to[1], "bp": "e"}


def _runtime(rank: Rank, call: Call, place: tuple[int, int]) -> Event:
    """The runtime's own call at the end of a CANN call."""
    name = call.name.split("@")[1].removeprefix("aclrt")
    args = {"Thread Id": place[1], "Mode": name, "level": "runtime", "id": name, "item_id": "0"}
    args["connection_id"] = rank.connection(call) + 500_000
    return _complete(rank, f"Runtime@{name}", place, (call.end - 10, 0.01), args)


def _flow_id(rank: Rank, work: Work) -> str:
    task = rank.task_numbers[id(work)]
    return rank.layout.flow_id(work.kind, STREAMS[work.stream], task, rank.connection_of(work))


def _place(rank: Rank, work: Work) -> tuple[int, int]:
    """Where the timeline shows a work: a stream of the device, or the thread of its group."""
    if work.kind == "comm":
        return rank.layout.process(PID, rank.layout.comm_process), 0
    return rank.layout.process(PID, "Ascend Hardware"), STREAMS[work.stream]


def _device(rank: Rank) -> Iterator[Event]:
    streams = sorted({0, *(task.stream for task in rank.tasks)})
    yield from _process(rank, "Ascend Hardware", *((stream, f"Stream {stream}") for stream in streams))
    pid = rank.layout.process(PID, "Ascend Hardware")
    if rank.layout.level:
        span = rank.schedule.begin - 12_155_978, 0.02
        args = _task_args(rank, "PLACE_HOLDER_SQE", 0, 8, NONE, 700)
        yield _complete(rank, "PROFILING_ENABLE", (pid, 0), span, args)
    for task in rank.tasks:
        subtask = task.subtask if task.kind == "part" else NONE
        args = _task_args(rank, task.task_type, task.stream, task.task, subtask, task.connection)
        if task.kind == "memcpy" and rank.layout.level == 2:
            args |= _copy_args(rank, task)
        span = task.start, fraction(task.end - task.start)
        yield _complete(rank, task.name, (pid, task.stream), span, args)


def _task_args(rank: Rank, kind: str, stream: int, task: int, subtask: int, connection: int) -> dict[str, Any]:
    args = {"Model Id": NONE, "Task Type": kind, rank.layout.stream_key: stream, "Task Id": task, "Batch Id": 0}
    return args | {"Subtask Id": subtask, "connection_id": connection}


def _copy_args(rank: Rank, task: DeviceTask) -> dict[str, Any]:
    work = task.work
    if work is None:
        return {}
    direction = _DIRECTIONS[work.family]
    if rank.layout.era != "2026":
        return {"data size(Byte)": work.bytes, "memcpy direction": direction}
    return {"size(B)": work.bytes, "bandwidth(GB/s)": work.bytes / (work.end - work.start), "operation": direction}


def _collectives(rank: Rank) -> Iterator[Event]:
    layout = rank.layout
    pid = layout.process(PID, layout.comm_process)
    if not rank.collectives:
        return
    planes = [(plane + 1, f"Plane {plane}") for plane in range(4)]
    yield from _process(rank, layout.comm_process, (0, f"Group {layout.group} Communication"), *planes)
    for work in rank.collectives:
        meant = work.collective
        if meant is None:
            continue
        # As the call was given it: what one rank gives, but of reduce_scatter what it gets.
        count = meant.elements_out if meant.type == "reduce_scatter" else meant.elements_in
        args: dict[str, Any] = {"connection_id": rank.connection_of(work), "model id": NONE}
        args |= {"data_type": DTYPES[meant.dtype], "alg_type": "MESH-RING", "count": count}
        if layout.era == "2026":
            args |= {"rank_size": rank.world, "relay": "no", "retry": "no"}
        span = work.start, fraction(work.end - work.start)
        yield _complete(rank, rank.collective_name(work), (pid, 0), span, args)
        for place, part in enumerate(rank.parts(work) if layout.level else ()):
            span = part.start, fraction(part.end - part.start)
            yield _complete(rank, part.name, (pid, part.plane + 1), span, _part_args(rank, work, part, place))


def _part_args(rank: Rank, work: Work, part: Task, place: int) -> dict[str, Any]:
    length = part.end - part.start
    local = part.peer == rank.schedule.rank
    link = "INVALID_TYPE" if not part.moves else "ON_CHIP" if local else "HCCS"
    dtype = DTYPES[work.collective.dtype] if work.collective and part.name == "Reduce_Inline" else "INVALID_TYPE"
    return {
        "notify_id": str(2**64 - 1) if part.moves else str(56 + 4 * part.plane),
        "duration estimated(us)": length / 1000,
        "stream id": STREAMS[work.stream],
        "task id": rank.task_numbers[id(work)],
        "context id": place,
        "task type": part.name,
        "src rank": rank.schedule.rank,
        "dst rank": part.peer,
        "transport type": "LOCAL" if part.name == "Notify_Wait" else "SDMA",
        "size(Byte)": part.bytes,
        "data type": dtype,
        "link type": link,
        "bandwidth(GB/s)": part.bytes / length if length else 0.0,
        "model id": NONE,
    }


def _overlap(rank: Rank, overlap: Overlap) -> Iterator[Event]:
    yield from _process(rank, "Overlap Analysis", *enumerate(ROWS))
    pid = rank.layout.process(PID, "Overlap Analysis")
    for tid, name in enumerate(ROWS):
        for start, end in overlap.spans[name]:
            yield _complete(rank, name, (pid, tid), (start, (end - start) / 1000), {})


def _counters(rank: Rank) -> Iterator[Event]:
    """Counters begin long before the steps and must not be taken for work."""
    yield from _process(rank, "NPU MEM")
    pid = rank.layout.process(PID, "NPU MEM")
    for sample in range(8):
        time = rank.us(rank.schedule.begin - 100_000_000 + 20_000_000 * sample)
        yield {"name": "APP/HBM", "ts": time, "pid": pid, "tid": 0, "args": {"KB": 2_160_232.0}, "ph": "C"}


def _from_operators(rank: Rank) -> Iterator[Event]:
    """From the operator that asked for a work to the work; the id is the time at which the work begins."""
    for work in rank.schedule.recorded:
        if work.op is None:
            continue
        number = rank.base + work.start
        common = {"bp": "e", "name": "torch_to_npu", "id": number}
        host = {"pid": PID, "tid": THREADS[work.op.thread], "ts": rank.us(work.op.start)}
        yield {"ph": "s", **common, **host, "cat": "async_npu"}
        pid, tid = _place(rank, work)
        yield {"ph": "f", **common, "pid": pid, "tid": tid, "ts": rank.us(work.start), "cat": "async_npu"}


_OF_2023 = {"PCIE_DMA_SQE": "MEMCPY_ASYNC", "SDMA": "MEMCPY_ASYNC", "Write Value": "NOTIFY_RECORD"}


def iteration(rank: Rank, steps: list[VendorStep], step: VendorStep) -> Iterator[Event]:
    """A step as msprof drew it in 2023: types in capitals, planes first and then the thread of collectives."""
    hardware, hccl = 3, 1003611
    for pid, name in ((hardware, "Ascend Hardware"), (1003602, "CANN"), (hccl, "HCCL"), (1003612, "Overlap Analysis")):
        yield _name(pid, 0, "process_name", {"name": name})
    yield _name(hardware, 9, "thread_name", {"name": "Step Trace(Model ID:2)"})
    yield _name(hccl, 70000, "thread_name", {"name": "Communication Kernel"})
    for plane in range(4):
        yield _name(hccl, plane, "thread_name", {"name": f"Plane {plane}"})
    works = [work for work in rank.rows if step_of(steps, work.start) is step]
    first, last = works[0].start, max(work.end for work in works)
    yield _complete(rank, f"Iteration {step.number}", (hardware, 9), (first, (last - first) / 1000), {})
    for task in (task for task in rank.tasks if step_of(steps, task.start) is step):
        kind = _OF_2023.get(task.task_type, task.task_type.replace(" ", "_").upper())
        kind = described(task.name).core if task.kind == "compute" else kind.removesuffix("_SQE")
        args = {"Task Type": kind, "Stream Id": task.stream, "Task Id": task.task, "Batch Id": 0}
        span = task.start, (task.end - task.start) / 1000
        yield _complete(rank, task.name if task.kind == "compute" else kind, (hardware, task.stream), span, args)
    for work in (work for work in works if work.kind == "comm"):
        yield _complete(rank, work.name, (hccl, 70000), (work.start, (work.end - work.start) / 1000), {})
        for place, part in enumerate(work.tasks):
            args, span = _part_args(rank, work, part, place), (part.start, (part.end - part.start) / 1000)
            yield _complete(rank, part.name, (hccl, part.plane), span, args)
