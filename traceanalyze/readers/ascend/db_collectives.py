"""Collectives of a database: COMMUNICATION_OP, and the tasks on their planes from COMMUNICATION_TASK_INFO."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.readers.ascend import db_file
from traceanalyze.readers.ascend.collective_names import collective_fields
from traceanalyze.readers.ascend.db_device import COLLECTIVES, device_pid, host_pid
from traceanalyze.readers.ascend.db_rows import block, index_of, known, taken, timed
from traceanalyze.readers.ascend.shared import ABSENT, HCCL_TASK, KERNEL, NO_TEXT, Block

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.readers.ascend.db_file import Columns
    from traceanalyze.readers.ascend.db_rows import Reading

_OP = (
    *("opName", "startNs", "endNs", "connectionId", "groupName", "opId", "dataType", "algType", "count"),
    *("deviceId", "rankSize"),
)
_PART = (
    *("globalTaskId", "taskType", "planeId", "groupName", "srcRank", "dstRank"),
    *("transportType", "size", "linkType", "opId"),
)
_DATA_TYPES = (
    "INT8",
    "INT16",
    "INT32",
    "FP16",
    "FP32",
    "INT64",
    "UINT64",
    "UINT8",
    "UINT16",
    "UINT32",
    "FP64",
    "BFP16",
)
_LINKS = ("ON_CHIP", "HCCS", "PCIE", "ROCE", "SIO", "HCCS_SW", "STANDARD_ROCE")
_TRANSPORTS = ("SDMA", "RDMA", "LOCAL")
_NOTHING = frozenset({"N/A", "INVALID_TYPE", "RESERVED"})
_PLANES = 1 << 16
"""More planes than any group has."""
_FIRST_STREAM = -1000
"""Stream of the first group of a device; those of the others follow downwards, none is a stream of the hardware."""


def collectives(reading: Reading, tasks: Columns) -> tuple[Block, Block]:
    """Collectives, and their parts on the planes; `part_of` is the place of the collective in the first block.

    Args:
        reading: The database.
        tasks: TASK, rows with usable times.
    """
    table = timed(reading, db_file.integers(reading.database, "COMMUNICATION_OP", _OP))
    parts = db_file.integers(reading.database, "COMMUNICATION_TASK_INFO", _PART)
    groups = np.unique(np.concatenate((table["groupName"], parts["groupName"])))
    return _operations(reading, table, tasks, groups), _parts(reading, parts, tasks, table, groups)


def _operations(reading: Reading, table: Columns, tasks: Columns, groups: NDArray[np.int64]) -> Block:
    name, texts = reading.strings.names(table["opName"]), reading.strings.texts
    device = _devices(reading, table, tasks)
    group = np.searchsorted(groups, table["groupName"])
    types = _enumeration(reading, "ENUM_HCCL_DATA_TYPE", _DATA_TYPES)
    fields = collective_fields(
        texts,
        reading.about,
        [reading.strings.table.text(code) for code in name.tolist()],
        [reading.strings.private.get(key, "") for key in table["groupName"].tolist()],
        [types.get(number) for number in table["dataType"].tolist()],
        np.where(table["count"] >= 0, table["count"], ABSENT),
        known(table["rankSize"]),
    )
    fields |= {
        "correlation": known(table["connectionId"]),
        "device": device,
        "stream": _FIRST_STREAM - group,
        "algorithm": texts.mapped(reading.strings.of(table["algType"]), lambda text: text or None),
    }
    return block(KERNEL, table, name, _tracks(reading, tasks, device, group, np.full(len(group), -1)), fields)


def _parts(reading: Reading, table: Columns, tasks: Columns, operations: Columns, groups: NDArray[np.int64]) -> Block:
    """Interval and device of a part are those of its task."""
    at = index_of(tasks["globalTaskId"], table["globalTaskId"])
    if (at < 0).any():
        reading.notes.append(f"{int((at < 0).sum()):,} parts of collectives have no task with times and were left out")
    table, at = db_file.select(table, at >= 0), at[at >= 0]
    table |= {name: tasks[name][at] for name in ("startNs", "endNs", "deviceId", "connectionId", "streamId")}
    owner = index_of(operations["opId"], table["opId"])
    owner = np.where(owner >= 0, owner, index_of(operations["connectionId"], table["connectionId"]))
    group = np.searchsorted(groups, table["groupName"])
    ranks = {name: known(table[column]) for name, column in (("src_rank", "srcRank"), ("dst_rank", "dstRank"))}
    fields = ranks | {
        "device": table["deviceId"],
        "stream": known(table["streamId"]),
        "part_of": np.where(owner >= 0, owner, ABSENT),
        "bytes": np.where(table["size"] >= 0, table["size"], ABSENT),
        "plane": table["planeId"],
        "link_type": _words(reading, table["linkType"], "ENUM_HCCL_LINK_TYPE", _LINKS),
        "transport": _words(reading, table["transportType"], "ENUM_HCCL_TRANSPORT_TYPE", _TRANSPORTS),
    }
    track = _tracks(reading, tasks, table["deviceId"], group, table["planeId"])
    return block(HCCL_TASK, table, reading.strings.names(table["taskType"]), track, fields)


def _devices(reading: Reading, table: Columns, tasks: Columns) -> NDArray[np.int64]:
    """Device of each collective: its own, else that of its tasks, else the one of the profile."""
    mapped = db_file.integers(reading.database, "RANK_DEVICE_MAP", ["deviceId"])["deviceId"]
    usual = next(iter([*mapped.tolist(), *tasks["deviceId"].tolist()]), 0)
    of_task = taken(tasks["deviceId"], index_of(tasks["connectionId"], table["connectionId"]), usual)
    return np.where(table["deviceId"] != ABSENT, table["deviceId"], of_task)


def _tracks(
    reading: Reading,
    tasks: Columns,
    device: NDArray[np.int64],
    group: NDArray[np.int64],
    plane: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Tracks of groups (plane -1) and of their planes: thread ids run group by group."""
    host = host_pid(tasks)

    def place(one: int) -> tuple[str, str]:
        on, thread = one >> 40, one & ((1 << 40) - 1)
        pid, (index, position) = device_pid(host, COLLECTIVES, on), divmod(thread, _PLANES)
        reading.process_names[pid] = f"HCCL [NPU {on}]"
        title = f"Plane {position - 1}" if position else f"Group {index} Communication"
        reading.thread_names[pid, str(thread)] = title
        return pid, str(thread)

    return reading.tracks_of((device << 40) | (group * _PLANES + np.clip(plane, -1, _PLANES - 2) + 1), place)


def _enumeration(reading: Reading, table: str, usual: tuple[str, ...]) -> dict[int, str]:
    """Words of a numbered vocabulary: those the database lists, else the usual ones."""
    listed = {
        key: text.decode("utf-8", "replace") for key, text in db_file.texts(reading.database, table, "id", "name")
    }
    return {key: text for key, text in (listed or dict(enumerate(usual))).items() if text not in _NOTHING}


def _words(reading: Reading, number: NDArray[np.int64], table: str, usual: tuple[str, ...]) -> NDArray[np.int32]:
    codes = np.full(len(number), NO_TEXT, np.int32)
    for key, text in _enumeration(reading, table, usual).items():
        codes[number == key] = reading.strings.texts.code(text)
    return codes
