"""Device tasks of a database: kernels with what is known of them, copies, and everything that is not work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from traceanalyze.frozen import frozen
from traceanalyze.readers.ascend import db_file
from traceanalyze.readers.ascend.db_rows import block, chosen, index_of, known, taken, timed
from traceanalyze.readers.ascend.hardware import task_category
from traceanalyze.readers.ascend.shared import (
    ABSENT,
    CONTROL,
    COPY,
    KERNEL,
    NO_TEXT,
    SET,
    Block,
    copy_direction,
    kernel_dtypes,
)

if TYPE_CHECKING:
    from traceanalyze.readers.ascend.db_file import Columns
    from traceanalyze.readers.ascend.db_rows import Reading

_TASK = ("startNs", "endNs", "deviceId", "connectionId", "globalTaskId", "globalPid", "taskType", "streamId")
_COMPUTE = ("name", "globalTaskId", ("blockNum", "blockDim"), "taskType", "opType", "inputDataTypes", "inputShapes")
_PMU = {
    "aicore_time": ("aic_total_time", "aicore_time"),
    "aiv_time": ("aiv_total_time", "aiv_time"),
    "mac_time": ("aic_mac_time",),
    "vec_time": ("aiv_vec_time",),
}
"""Column of the model → names in TASK_PMU_INFO."""
_LOW = (1 << 40) - 1
_NOTHING = frozenset({"", "N/A"})
HARDWARE, COLLECTIVES = 13, 15
"""The text export's numbers of the processes "Ascend Hardware" and "HCCL"."""


@frozen
class Tasks:
    """All device tasks, the kernels and copies among them as blocks."""

    table: Columns
    """TASK: rows with usable times."""
    kernels: Block
    copies: Block
    others: list[Block]
    """Fills, and what is not work."""


def device_tasks(reading: Reading) -> Tasks:
    """TASK with COMPUTE_TASK_INFO, TASK_PMU_INFO and MEMCPY_INFO; kernels are the rows of COMPUTE_TASK_INFO."""
    database, strings = reading.database, reading.strings
    table = timed(reading, db_file.integers(database, "TASK", _TASK))
    compute = db_file.integers(database, "COMPUTE_TASK_INFO", _COMPUTE)
    at = index_of(compute["globalTaskId"], table["globalTaskId"])
    lost = db_file.count(compute) - len(np.unique(at[at >= 0]))
    if lost:
        reading.notes.append(f"{lost:,} rows of COMPUTE_TASK_INFO have no task with times and were left out")
    kind = strings.names(table["taskType"])
    name = np.where(at >= 0, strings.names(taken(compute["name"], at, ABSENT)), kind).astype(np.int32)

    def are(cat: str) -> NDArray[np.bool_]:
        """Tasks that the type says to be of a category."""
        return np.asarray(strings.table.lookup(kind, lambda text: task_category(text, text) == cat) > 0)

    kernel = at >= 0
    if db_file.count(compute) == 0:
        kernel = are(KERNEL) & ~_of_collectives(reading, table)
        if kernel.any():
            reading.notes.append("COMPUTE_TASK_INFO is missing: kernels are known by the type of their task alone")
    copy, fill = (~kernel & are(cat) for cat in (COPY, SET))
    kernel &= strings.table.lookup(name, lambda text: task_category("AI_CORE", text) == CONTROL) == 0
    whole = block("", table, name, _streams(reading, table), _placed(table))
    task = table["globalTaskId"]
    return Tasks(
        table=table,
        kernels=_with(chosen(whole, KERNEL, kernel), _kernel_fields(reading, compute, at[kernel], task[kernel])),
        copies=_with(chosen(whole, COPY, copy), _copy_fields(reading, task[copy])),
        others=[chosen(whole, SET, fill), chosen(whole, CONTROL, ~(kernel | copy | fill))],
    )


def _with(part: Block, fields: Mapping[str, NDArray[Any]]) -> Block:
    return replace(part, fields={**part.fields, **fields})


def _placed(table: Columns) -> dict[str, NDArray[np.int64]]:
    return {
        "correlation": known(table["connectionId"]),
        "device": table["deviceId"],
        "stream": known(table["streamId"]),
    }


def _streams(reading: Reading, table: Columns) -> NDArray[np.int32]:
    """Tracks of device tasks: process ids as the text export makes them."""
    host = host_pid(table)

    def place(one: int) -> tuple[str, str]:
        device, stream = one >> 40, str(one & _LOW)
        pid = device_pid(host, HARDWARE, device)
        reading.process_names[pid] = f"Ascend Hardware [NPU {device}]"
        reading.thread_names[pid, stream] = f"Stream {stream}"
        return pid, stream

    return reading.tracks_of((table["deviceId"] << 40) | (table["streamId"] & _LOW), place)


def host_pid(table: Columns) -> int:
    """Process that the tasks belong to."""
    return int(table["globalPid"][0]) if len(table["globalPid"]) and table["globalPid"][0] != ABSENT else 0


def device_pid(pid: int, process: int, device: int) -> str:
    """Process id of a process of the device in the text export."""
    return str((pid << 10) | (process << 5) | (device & 31))


def _of_collectives(reading: Reading, table: Columns) -> NDArray[np.bool_]:
    operations = db_file.integers(reading.database, "COMMUNICATION_OP", ["connectionId"])
    return np.isin(table["connectionId"], operations["connectionId"])


def _kernel_fields(
    reading: Reading, compute: Columns, at: NDArray[np.int64], task: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """What COMPUTE_TASK_INFO and TASK_PMU_INFO say of kernels."""
    strings = reading.strings

    def text(column: str, change: Callable[[str], str | None]) -> NDArray[np.int32]:
        codes = strings.of(taken(compute[column], at, ABSENT))
        return strings.texts.mapped(codes, lambda value: None if value in _NOTHING else change(value))

    return {
        "op_type": text("opType", str),
        "core": text("taskType", str),
        "kernel_shapes": text("inputShapes", lambda value: value.strip('"') or None),
        "kernel_dtypes": text("inputDataTypes", lambda value: kernel_dtypes(value.strip('"')) or None),
        "block_dim": taken(compute["blockNum"], at, ABSENT),
        **_pmu(reading, task),
    }


def _pmu(reading: Reading, task: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """Counter times of kernels, ns."""
    ids = {field: reading.strings.ids_of(*names) for field, names in _PMU.items()}
    columns, every = ("globalTaskId", "name", "value"), [one for named in ids.values() for one in named]
    table = db_file.integers(reading.database, "TASK_PMU_INFO", columns, only=("name", every))
    found = {}
    for field, named in ids.items():
        mine = np.isin(table["name"], named)
        at = index_of(table["globalTaskId"][mine], task)
        found[field] = taken(table["value"][mine], at, ABSENT)
    return found


def _copy_fields(reading: Reading, task: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """Size and direction of copies (MEMCPY_INFO, which older versions do not write)."""
    table = db_file.integers(reading.database, "MEMCPY_INFO", ["globalTaskId", "size", "memcpyOperation"])
    at = index_of(table["globalTaskId"], task)
    said = dict(db_file.texts(reading.database, "ENUM_MEMCPY_OPERATION", "id", "name"))
    operations, texts = taken(table["memcpyOperation"], at, ABSENT), reading.strings.texts
    kind = np.full(len(task), NO_TEXT, np.int32)
    for number in set(operations.tolist()) & set(said):
        direction = copy_direction(said[number].decode("utf-8", "replace"))
        kind[operations == number] = NO_TEXT if direction is None else texts.code(direction)
    return {"bytes": taken(table["size"], at, ABSENT), "copy_kind": kind}
