"""Device work of a database: kernels, copies, everything that is no work, and collectives with their parts.

Collectives come from COMMUNICATION_OP, the tasks on their planes from COMMUNICATION_TASK_INFO.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import Lost
from traceanalyze.model.patterns import regex
from traceanalyze.readers.ascend.comm_tables import FIRST_STREAM, collective_fields
from traceanalyze.readers.ascend.db_file import Columns, Reading, block, known, select, selected, timed
from traceanalyze.readers.ascend.hardware import task_category
from traceanalyze.readers.ascend.shared import (
    ABSENT,
    CONTROL,
    COPY,
    HCCL_TASK,
    KERNEL,
    NO_TEXT,
    SET,
    Block,
    copy_direction,
    core_clock,
    index_of,
    kernel_dtypes,
    of_busier_core,
    values_at,
)

_TASK = ("startNs", "endNs", "deviceId", "connectionId", "globalTaskId", "globalPid", "taskType", "streamId")
_COMPUTE = (
    *("name", "globalTaskId", ("blockNum", "blockDim"), "taskType", "opType", "inputDataTypes", "inputShapes"),
    *("inputFormats", "outputDataTypes", "outputShapes", "opState", "hf32Eligible"),
)
_PMU = {
    "aicore_time": ("aic_total_time", "aicore_time"),
    "aiv_time": ("aiv_total_time", "aiv_time"),
    "mac_time": ("aic_mac_time",),
    "vec_time": ("aiv_vec_time",),
    "aic_cycles": ("aic_total_cycles",),
    "aiv_cycles": ("aiv_total_cycles",),
    "scalar_time_aic": ("aic_scalar_time",),
    "scalar_time_aiv": ("aiv_scalar_time",),
    "mte1_time": ("aic_mte1_time",),
    "mte2_time_aic": ("aic_mte2_time",),
    "mte2_time_aiv": ("aiv_mte2_time",),
    "mte3_time": ("aiv_mte3_time",),
    "fixpipe_time": ("aic_fixpipe_time",),
}
"""Column of the model → names in TASK_PMU_INFO."""
_LOW = (1 << 40) - 1
_NOTHING = frozenset({"", "N/A"})
_HARDWARE, _COLLECTIVES = 13, 15
"""The text export's numbers of the processes "Ascend Hardware" and "HCCL"."""


def device_tasks(reading: Reading) -> tuple[Columns, list[Block]]:
    """TASK's rows with usable times, and its blocks: kernels (rows of COMPUTE_TASK_INFO), copies, fills, no work."""
    database, strings = reading.database, reading.strings
    table = timed(reading, database.integers("TASK", _TASK))
    compute = database.integers("COMPUTE_TASK_INFO", _COMPUTE)
    at = index_of(compute["globalTaskId"], table["globalTaskId"])
    lost = len(compute["name"]) - len(np.unique(at[at >= 0]))
    if lost:
        reading.notes.append(
            Lost("{count:,} rows of COMPUTE_TASK_INFO have no task with times and were left out", lost)
        )
    kind = strings.names(table["taskType"])
    name = np.where(at >= 0, strings.names(values_at(compute["name"], at, ABSENT)), kind).astype(np.int32)

    def are(cat: str) -> NDArray[np.bool_]:
        """Tasks that the type says to be of a category."""
        return np.asarray(strings.table.lookup(kind, lambda text: task_category(text, text) == cat) > 0)

    kernel = at >= 0
    if len(compute["name"]) == 0:
        operations = database.integers("COMMUNICATION_OP", ["connectionId"])
        kernel = are(KERNEL) & ~np.isin(table["connectionId"], operations["connectionId"])
        if kernel.any():
            reading.notes.append(
                Lost("COMPUTE_TASK_INFO is missing: kernels are known by the type of their task alone")
            )
    copy, fill = (~kernel & are(cat) for cat in (COPY, SET))
    kernel &= strings.table.lookup(name, lambda text: task_category("AI_CORE", text) == CONTROL) == 0
    numbers = {"correlation": known(table["connectionId"]), "device": table["deviceId"]}
    numbers["stream"] = known(table["streamId"])
    whole = block("", table, name, _streams(reading, table), numbers)
    task = table["globalTaskId"]
    return table, [
        selected(whole, KERNEL, kernel, **_kernel_fields(reading, compute, at[kernel], select(table, kernel))),
        selected(whole, COPY, copy, **_copy_fields(reading, task[copy])),
        selected(whole, SET, fill),
        selected(whole, CONTROL, ~(kernel | copy | fill)),
    ]


def _streams(reading: Reading, table: Columns) -> NDArray[np.int32]:
    """Tracks of device tasks: process ids as the text export makes them."""
    host = _host_pid(table)

    def place(one: int) -> tuple[str, str]:
        device, stream = one >> 40, str(one & _LOW)
        pid = _device_pid(host, _HARDWARE, device)
        reading.process_names[pid] = f"Ascend Hardware [NPU {device}]"
        reading.thread_names[pid, stream] = f"Stream {stream}"
        return pid, stream

    return reading.tracks_of((table["deviceId"] << 40) | (table["streamId"] & _LOW), place)


def _host_pid(table: Columns) -> int:
    return int(table["globalPid"][0]) if len(table["globalPid"]) and table["globalPid"][0] != ABSENT else 0


def _device_pid(pid: int, process: int, device: int) -> str:
    """Process id of a process of the device in the text export."""
    return str((pid << 10) | (process << 5) | (device & 31))


def _kernel_fields(
    reading: Reading, compute: Columns, at: NDArray[np.int64], tasks: Columns
) -> dict[str, NDArray[Any]]:
    strings = reading.strings

    def text(column: str, change: Callable[[str], str | None]) -> NDArray[np.int32]:
        codes = strings.of(values_at(compute[column], at, ABSENT))
        return strings.texts.mapped(codes, lambda value: None if value in _NOTHING else change(value))

    counters, blocks = _pmu(reading, tasks["globalTaskId"]), values_at(compute["blockNum"], at, ABSENT)
    clock = _sampled_clock(reading, tasks)
    counted = core_clock(counters, blocks)
    del counters["aiv_cycles"]
    return {
        "core_clock": np.where(clock == ABSENT, counted, clock),
        "op_type": text("opType", str),
        "core": text("taskType", str),
        "kernel_shapes": text("inputShapes", lambda value: value.strip('"') or None),
        "kernel_dtypes": text("inputDataTypes", lambda value: kernel_dtypes(value.strip('"')) or None),
        "op_state": text("opState", str),
        "hf32": text("hf32Eligible", str),
        "kernel_formats": text("inputFormats", str),
        "kernel_outputs": text("outputShapes", lambda value: value.strip('"') or None),
        "kernel_output_dtypes": text("outputDataTypes", lambda value: kernel_dtypes(value.strip('"')) or None),
        "block_dim": blocks,
        **counters,
    }


def _sampled_clock(reading: Reading, tasks: Columns) -> NDArray[np.int64]:
    """Clock of the cores in MHz when each task began: AICORE_FREQ has a row where it changes."""
    table = reading.database.integers("AICORE_FREQ", ["deviceId", "timestampNs", "freq"])
    found = np.full(len(tasks["startNs"]), ABSENT, np.int64)
    for device in np.unique(table["deviceId"]).tolist():
        sampled = np.flatnonzero((table["deviceId"] == device) & (table["timestampNs"] != ABSENT) & (table["freq"] > 0))
        sampled = sampled[np.argsort(table["timestampNs"][sampled], kind="stable")]
        own = np.flatnonzero(tasks["deviceId"] == device)
        last = np.searchsorted(table["timestampNs"][sampled], tasks["startNs"][own], "right") - 1
        found[own] = values_at(table["freq"][sampled], last, ABSENT)
    return found


def _pmu(reading: Reading, task: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """Counters of kernels: times in ns, cycles."""
    ids = {field: reading.strings.ids_of(*names) for field, names in _PMU.items()}
    columns, every = ("globalTaskId", "name", "value"), [one for named in ids.values() for one in named]
    table = reading.database.integers("TASK_PMU_INFO", columns, only=("name", every))
    found = {}
    for field, named in ids.items():
        counter = np.isin(table["name"], named)
        at = index_of(table["globalTaskId"][counter], task)
        found[field] = values_at(table["value"][counter], at, ABSENT)
    return of_busier_core(found)


def _copy_fields(reading: Reading, task: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """Size and direction of copies (MEMCPY_INFO, which older versions do not write)."""
    table = reading.database.integers("MEMCPY_INFO", ["globalTaskId", "size", "memcpyOperation"])
    at = index_of(table["globalTaskId"], task)
    names = reading.database.vocabulary("ENUM_MEMCPY_OPERATION")
    directions = {key: direction for key, name in names.items() if (direction := copy_direction(name)) is not None}
    kind = _words(reading, values_at(table["memcpyOperation"], at, ABSENT), directions)
    return {"bytes": values_at(table["size"], at, ABSENT), "copy_kind": kind}


_OP = (
    *("opName", "startNs", "endNs", "connectionId", "groupName", "opId", "dataType", "algType", "count"),
    *("deviceId", "rankSize"),
)
_PART = (
    *("name", "globalTaskId", "taskType", "planeId", "groupName", "srcRank", "dstRank"),
    *("transportType", "size", "linkType", "opId"),
)
_DATA_TYPES = (
    *("INT8", "INT16", "INT32", "FP16", "FP32", "INT64", "UINT64", "UINT8"),
    *("UINT16", "UINT32", "FP64", "BFP16"),
)
_LINKS = ("ON_CHIP", "HCCS", "PCIE", "ROCE", "SIO", "HCCS_SW", "STANDARD_ROCE")
_TRANSPORTS = ("SDMA", "RDMA", "LOCAL")
_UNNAMED = frozenset({"N/A", "INVALID_TYPE", "RESERVED"})
_WAITS, _MOVES = regex(r"Notify.?Wait", re.IGNORECASE), regex(r"[SR]DMA(?!_SQE)", re.IGNORECASE)
"""Types of tasks on the hardware that are parts of collectives."""
_PLANES = 1 << 16
"""More planes than any group has."""


def collectives(reading: Reading, tasks: Columns) -> tuple[Block, Block]:
    """Collectives, and their parts on the planes; `part_of` is the place of the collective in the first block."""
    table = timed(reading, reading.database.integers("COMMUNICATION_OP", _OP))
    if len(table["opName"]) and not len(tasks["globalTaskId"]):
        reading.notes.append(Lost("TASK is missing: what the device did beside collectives is not known, nor are they"))
        table = select(table, np.zeros(len(table["opName"]), np.bool_))
    parts = _tasks_of_parts(reading, reading.database.integers("COMMUNICATION_TASK_INFO", _PART), tasks)
    if len(parts["name"]) == 0:
        parts = _parts_by_type(reading, table, tasks)
    table = _with_lost_operations(reading, table, parts)
    groups = np.unique(np.concatenate((table["groupName"], parts["groupName"])))
    return _operations(reading, table, tasks, groups), _parts(reading, parts, tasks, table, groups)


def _operations(reading: Reading, table: Columns, tasks: Columns, groups: NDArray[np.int64]) -> Block:
    texts = reading.strings.texts
    name = np.where(table["opName"] == ABSENT, texts.code("collective"), reading.strings.names(table["opName"]))
    device = _devices(reading, table, tasks)
    group = np.searchsorted(groups, table["groupName"])
    types = _enumeration(reading, "ENUM_HCCL_DATA_TYPE", _DATA_TYPES)
    fields = collective_fields(
        texts,
        reading.about,
        [reading.strings.table.text(code) for code in reading.strings.names(table["opName"]).tolist()],
        [reading.strings.private.get(key, "") for key in table["groupName"].tolist()],
        [types.get(number) for number in table["dataType"].tolist()],
        np.where(table["count"] >= 0, table["count"], ABSENT),
        known(table["rankSize"]),
    )
    fields |= {
        "correlation": known(table["connectionId"]),
        "device": device,
        "stream": FIRST_STREAM - group,
        "algorithm": texts.mapped(reading.strings.of(table["algType"]), lambda text: text or None),
    }
    return block(KERNEL, table, name, _tracks(reading, tasks, device, group, np.full(len(group), -1)), fields)


def _tasks_of_parts(reading: Reading, table: Columns, tasks: Columns) -> Columns:
    """Interval and device of a part are those of its task."""
    at = index_of(tasks["globalTaskId"], table["globalTaskId"])
    if (at < 0).any():
        reading.notes.append(
            Lost("{count:,} parts of collectives have no task with times and were left out", int((at < 0).sum()))
        )
    table, at = select(table, at >= 0), at[at >= 0]
    table |= {name: tasks[name][at] for name in ("startNs", "endNs", "deviceId", "connectionId", "streamId")}
    # Level 0 says what a part does only where it stands among the tasks of the hardware.
    unnamed = np.isin(table["taskType"], reading.strings.ids_of("N/A"))
    table["taskType"] = np.where(unnamed, tasks["taskType"][at], table["taskType"])
    return table


def _parts_by_type(reading: Reading, operations: Columns, tasks: Columns) -> Columns:
    """The same by the type of tasks alone: of the operations' launches, else of all that wait for notice and move."""
    kind, launch = reading.strings.names(tasks["taskType"]), known(tasks["connectionId"])
    waits, moves = (reading.strings.table.matches(kind, pattern.match) for pattern in (_WAITS, _MOVES))
    lost = len(operations["opName"]) == 0
    of = np.intersect1d(launch[waits], launch[moves]) if lost else operations["connectionId"]
    rows = (waits | moves) & (launch != ABSENT) & np.isin(launch, of)
    if rows.any():
        reading.notes.append(
            Lost("COMMUNICATION_TASK_INFO is missing: parts of collectives are known by the type of their tasks alone")
        )
    elif not lost:
        reading.notes.append(Lost("COMMUNICATION_TASK_INFO is missing: waiting cannot be told from transfer"))
    parts = select(tasks, rows)
    absent = np.full(len(parts["taskType"]), ABSENT, np.int64)
    parts |= {name: parts.get(name, absent) for name in _PART}
    return parts | {"opId": parts["connectionId"] if lost else absent}


def _owner(operations: Columns, parts: Columns) -> NDArray[np.int64]:
    """Row of the operation that each part is of, -1 for none."""
    owner = index_of(operations["opId"], parts["opId"])
    return np.where(owner >= 0, owner, index_of(operations["connectionId"], parts["connectionId"]))


def _with_lost_operations(reading: Reading, operations: Columns, parts: Columns) -> Columns:
    """The operations and those that only parts tell of: from the beginning of the first part to the end of the last."""
    lost = np.flatnonzero((_owner(operations, parts) < 0) & (parts["opId"] != ABSENT))
    _, first, of = np.unique(parts["opId"][lost], return_index=True, return_inverse=True)
    if len(first) == 0:
        return operations
    reading.notes.append(
        Lost("{count:,} collective(s) are not in COMMUNICATION_OP: their times are those of their parts", len(first))
    )
    example = select(parts, lost[first])
    np.minimum.at(example["startNs"], of.reshape(-1), parts["startNs"][lost])
    np.maximum.at(example["endNs"], of.reshape(-1), parts["endNs"][lost])
    example["opName"] = example["name"]
    absent = np.full(len(first), ABSENT, np.int64)
    return {name: np.concatenate((column, example.get(name, absent))) for name, column in operations.items()}


def _parts(reading: Reading, table: Columns, tasks: Columns, operations: Columns, groups: NDArray[np.int64]) -> Block:
    owner = _owner(operations, table)
    group = np.searchsorted(groups, table["groupName"])
    ranks = {name: known(table[column]) for name, column in (("src_rank", "srcRank"), ("dst_rank", "dstRank"))}
    links = _enumeration(reading, "ENUM_HCCL_LINK_TYPE", _LINKS)
    transports = _enumeration(reading, "ENUM_HCCL_TRANSPORT_TYPE", _TRANSPORTS)
    fields = ranks | {
        "device": table["deviceId"],
        "stream": known(table["streamId"]),
        "part_of": np.where(owner >= 0, owner, ABSENT),
        "bytes": np.where(table["size"] >= 0, table["size"], ABSENT),
        "plane": table["planeId"],
        "link_type": _words(reading, table["linkType"], links),
        "transport": _words(reading, table["transportType"], transports),
    }
    track = _tracks(reading, tasks, table["deviceId"], group, table["planeId"])
    return block(HCCL_TASK, table, reading.strings.names(table["taskType"]), track, fields)


def _devices(reading: Reading, table: Columns, tasks: Columns) -> NDArray[np.int64]:
    """Device of each collective: its own, else that of its tasks, else the one of the profile."""
    mapped = reading.database.integers("RANK_DEVICE_MAP", ["deviceId"])["deviceId"]
    usual = next(iter([*mapped.tolist(), *tasks["deviceId"].tolist()]), 0)
    of_task = values_at(tasks["deviceId"], index_of(tasks["connectionId"], table["connectionId"]), usual)
    return np.where(table["deviceId"] != ABSENT, table["deviceId"], of_task)


def _tracks(
    reading: Reading, tasks: Columns, device: NDArray[np.int64], group: NDArray[np.int64], plane: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Tracks of groups (plane -1) and of their planes: thread ids run group by group."""
    host = _host_pid(tasks)

    def place(one: int) -> tuple[str, str]:
        on, thread = one >> 40, one & ((1 << 40) - 1)
        pid, (index, position) = _device_pid(host, _COLLECTIVES, on), divmod(thread, _PLANES)
        reading.process_names[pid] = f"HCCL [NPU {on}]"
        title = f"Plane {position - 1}" if position else f"Group {index} Communication"
        reading.thread_names[pid, str(thread)] = title
        return pid, str(thread)

    return reading.tracks_of((device << 40) | (group * _PLANES + np.clip(plane, -1, _PLANES - 2) + 1), place)


def _enumeration(reading: Reading, table: str, usual: Sequence[str]) -> dict[int, str]:
    """Words of a numbered vocabulary: those the database lists, else the usual ones."""
    listed = reading.database.vocabulary(table) or dict(enumerate(usual))
    return {key: text for key, text in listed.items() if text not in _UNNAMED}


def _words(reading: Reading, number: NDArray[np.int64], words: Mapping[int, str]) -> NDArray[np.int32]:
    codes = np.full(len(number), NO_TEXT, np.int32)
    for key, text in words.items():
        codes[number == key] = reading.strings.texts.code(text)
    return codes
