"""Rows of the profiler's database. A `Text` becomes an id of STRING_IDS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tests.simulate.writers.ascend_host import dims, type_word, user_ranges
from tests.simulate.writers.ascend_layouts import NONE
from tests.simulate.writers.ascend_memory import MODULES, STREAM_PTR, blocks, module_samples, totals
from tests.simulate.writers.ascend_rank import PID, THREADS, is_cann, kernel_of
from tests.simulate.writers.ascend_tables import blocks_of, cycles_of, kernel_shapes, pmu

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.simulate.schedule import Work
    from tests.simulate.writers.ascend_rank import DeviceTask, Rank

Tables = dict[str, tuple[str, "Iterable[Sequence[Any]]"]]
_OP, _QUEUE, _PYTHON = 50001, 50002, 50003
_API_TYPES = {"Hccl": 5500, "Node": 10000, "AscendCL": 20000}
_DTYPES = {"float": 4, "c10::BFloat16": 11}
_CORE_TASKS = {"AI_CORE": "KERNEL_AICORE", "AI_VECTOR_CORE": "KERNEL_AIVEC", "AI_CPU": "KERNEL_AICPU"}


class Text(NamedTuple):
    """A text that is stored once."""

    text: str


def _integers(names: str) -> str:
    """Columns of whole numbers."""
    return ", ".join(f"{name} INTEGER" for name in names.split())


def _tid(thread: str) -> int:
    return PID << 32 | THREADS[thread]


class _Connections:
    """Rows of CONNECTION_IDS: one id of an operator or queue entry may stand for many connections."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int]] = []
        self._next = 0

    def add(self, connections: list[int]) -> int | None:
        if not connections:
            return None
        self.rows += [(self._next, each) for each in connections]
        self._next += 1
        return self._next - 1


def host_rows(rank: Rank) -> Tables:
    """The framework's calls and those of CANN."""
    connections = _Connections()
    rows: list[Sequence[Any]] = []
    chains: list[Sequence[Any]] = []
    whole = rank.layout.era == "2026"

    def times(found: Any) -> tuple[Any, Any]:
        start, end = rank.base + found.start, rank.base + found.end
        return (start, end) if whole else (str(start), str(end))

    for found in user_ranges(rank):
        launched = connections.add([rank.connection_of(work) for work in rank.launched.get(id(found), [])])
        sequence = getattr(found, "sequence", None)
        forward = int(found.thread == "autograd" and sequence is not None)
        given = getattr(found, "inputs", ()) if rank.layout.shapes else ()
        shapes = Text(";\r\n".join(dims(each) for each in given)) if given else None
        types = Text(";\r\n".join(type_word(each) for each in given)) if given else None
        chain = None
        frames = getattr(found, "frames", ())
        if rank.schedule.workload.recording.stacks and frames:
            chain = chains[-1][0] + 1 if chains else 0
            chains += [(chain, Text(frame), depth) for depth, frame in enumerate(frames)]
        # Old exports have the two columns the wrong way round.
        both = (types, shapes) if whole else (shapes, types)
        row = (*times(found), _tid(found.thread), launched, Text(found.name))
        rows.append((*row, -1 if sequence is None else sequence, forward, *both, chain, _OP))
    entries: dict[int, int | None] = {}
    for call in rank.schedule.calls:
        if call.name == "Enqueue" or call.queued is not None:
            number = rank.correlation(call)
            if number not in entries:
                entries[number] = connections.add([number])
            row = (*times(call), _tid(call.thread), entries[number], Text(call.name))
            rows.append((*row, None, None, None, None, None, _QUEUE))
    if rank.schedule.workload.recording.stacks:
        for frame in rank.schedule.frames:
            row = (*times(frame), _tid(frame.thread), None, Text(frame.name))
            rows.append((*row, None, None, None, None, None, _PYTHON))
    kind = "INTEGER" if whole else "TEXT"
    columns = "globalTid connectionId name sequenceNumber fwdThreadId inputDtypes inputShapes callchainId type"
    return {
        "PYTORCH_API": (f"startNs {kind}, endNs {kind}, {_integers(columns)}", rows),
        "CONNECTION_IDS": (_integers("id connectionId"), connections.rows),
        "PYTORCH_CALLCHAINS": (_integers("id stack stackDepth"), chains),
        "CANN_API": (_integers("startNs endNs type globalTid connectionId name"), _cann(rank)),
    }


def _cann(rank: Rank) -> list[Sequence[Any]]:
    rows = []
    for call in rank.schedule.calls:
        if is_cann(call):
            group, name = call.name.split("@")
            times = rank.base + call.start, rank.base + call.end
            rows.append((*times, _API_TYPES[group], _tid(call.thread), rank.connection(call), Text(name)))
    return rows


def device_rows(rank: Rank) -> Tables:
    """Tasks of the device; kernels, collectives and parts of these once more with what is known of them."""
    new, level = rank.layout.era == "2026", rank.layout.level
    tasks: list[Sequence[Any]] = []
    kernels: list[Sequence[Any]] = []
    parts: list[Sequence[Any]] = []
    counters: list[Sequence[Any]] = []
    copies: list[Sequence[Any]] = []
    for number, task in enumerate(rank.tasks):
        tasks.append(_task(rank, number, task))
        work = task.work
        if work is None:
            continue
        if task.kind == "part" and task.part is not None:
            parts.append(_part(rank, number, task, work))
        elif task.kind == "compute":
            kernels.append(_kernel(rank, number, work))
            if level:
                counters += [(number, Text(name), time) for name, time in (pmu(work) | cycles_of(work)).items()]
        elif task.kind == "memcpy" and new and level == 2:
            copies.append((number, work.bytes, Text({"HtoD": "host to device", "DtoH": "device to host"}[work.family])))
    block = "blockNum mixBlockNum" if new else "blockDim mixBlockDim"
    task_columns = (
        "startNs endNs deviceId connectionId globalTaskId globalPid taskType contextId streamId taskId modelId"
    )
    kernel_columns = f"name globalTaskId {block} taskType opType inputFormats inputDataTypes inputShapes "
    op_columns = "opName startNs endNs connectionId groupName opId relay retry dataType algType count opType"
    part_columns = "name globalTaskId taskType planeId groupName notifyId rdmaType srcRank dstRank transportType size "
    return {
        "TASK": (_integers(task_columns), tasks),
        "COMPUTE_TASK_INFO": (
            _integers(kernel_columns + "outputFormats outputDataTypes outputShapes attrInfo"),
            kernels,
        ),
        "TASK_PMU_INFO": ("globalTaskId INTEGER, name INTEGER, value NUMERIC", counters),
        "COMMUNICATION_OP": (
            _integers(op_columns + (" deviceId rankSize" if new else "")),
            [_collective(rank, number, work) for number, work in enumerate(rank.collectives, start=1)],
        ),
        "COMMUNICATION_TASK_INFO": (
            _integers(part_columns + "dataType linkType opId"),
            parts if rank.layout.planes else [],
        ),
        "MEMCPY_INFO": (_integers("globalTaskId size memcpyOperation"), copies),
    }


def _task(rank: Rank, number: int, task: DeviceTask) -> Sequence[Any]:
    kind = task.name
    if task.kind == "compute" and task.work is not None:
        core = kernel_of(task.work).core
        kind = _CORE_TASKS.get(core, core)
    times = rank.base + task.start, rank.base + task.end
    context = task.subtask if task.kind == "part" else NONE
    place = rank.layout.device, task.connection, number, PID
    return (*times, *place, Text(kind), context, task.stream, task.task, NONE)


def _kernel(rank: Rank, number: int, work: Work) -> Sequence[Any]:
    known = kernel_of(work)
    shapes = kernel_shapes(rank, work)
    level = rank.layout.level
    about = (known.core, known.type, shapes["Input Formats"], shapes["Input Data Types"], shapes["Input Shapes"])
    named = [Text(each if level else "N/A") for each in about]
    none = Text("N/A")
    return (Text(work.name), number, blocks_of(work), 0, *named, none, none, none, none)


def _collective(rank: Rank, number: int, work: Work) -> Sequence[Any]:
    meant = work.collective
    assert meant is not None
    count = meant.elements_out if meant.type == "reduce_scatter" else meant.elements_in
    name = rank.collective_name(work)
    row = (Text(name), rank.base + work.start, rank.base + work.end, rank.connection_of(work))
    row = (*row, Text(rank.layout.group_id), number, 0, 0, _DTYPES[meant.dtype], Text("MESH-RING"), count)
    more = (rank.layout.device, rank.world) if rank.layout.era == "2026" else ()
    return (*row, Text(name.split("__")[0] + "_"), *more)


def _part(rank: Rank, number: int, task: DeviceTask, work: Work) -> Sequence[Any]:
    part = task.part
    assert part is not None
    place = next(n for n, each in enumerate(rank.collectives, start=1) if each is work)
    local = part.peer == rank.schedule.rank
    link = 65535 if not part.moves else 0 if local else 1
    transport = 2 if part.name == "Notify_Wait" else 0
    row = (Text(rank.collective_name(work)), number, Text(part.name), part.plane, Text(rank.layout.group_id))
    row = (*row, 56 + 4 * part.plane, 65535, rank.schedule.rank, part.peer, transport, part.bytes)
    dtype = _DTYPES[work.collective.dtype] if work.collective and part.name == "Reduce_Inline" else 65535
    return (*row, dtype, link, place)


def memory_rows(rank: Rank) -> Tables:
    """Blocks and totals, in bytes."""
    device = rank.layout.device
    rows = []
    for name, taken, given in blocks(rank):
        begin = rank.base + taken.time
        end = rank.base + given.time if given else None
        length = end - begin if end is not None else None
        first = taken.allocated, taken.reserved, taken.allocated
        last = (given.allocated, given.reserved, given.allocated) if given else (None, None, None)
        times = begin, end, end, length, length
        rows.append((Text(name), taken.bytes, *times, *first, *last, STREAM_PTR, device))
    every = [
        (Text(component), rank.base + time, allocated, reserved, allocated, STREAM_PTR, device)
        for component, time, allocated, reserved in totals(rank)
        if component != "APP"
    ]
    sizes = [f"{when}Total{size}" for when in ("allocation", "release") for size in ("Allocated", "Reserved", "Active")]
    block = "name size allocationTime releaseTime activeReleaseTime duration activeDuration"
    record = "component timestamp totalAllocated totalReserved totalActive streamPtr deviceId"
    number = {name: key for key, name in MODULES.items()}
    modules = [(number[name], rank.base + time, size, device) for name, time, size in module_samples(rank)]
    process = [
        (Text("app"), 0, reserved, rank.base + time, device)
        for component, time, _, reserved in totals(rank)
        if component == "APP"
    ]
    return {
        "NPU_MODULE_MEM": (_integers("moduleId timestampNs totalReserved deviceId"), modules),
        "ENUM_MODULE": ("id INTEGER PRIMARY KEY, name TEXT", list(MODULES.items())),
        "NPU_MEM": (_integers("type ddr hbm timestampNs deviceId"), process),
        "OP_MEMORY": (_integers(f"{block} {' '.join(sizes)} streamPtr deviceId"), rows),
        "MEMORY_RECORD": (_integers(record), every),
    }
