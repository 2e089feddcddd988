"""Collectives of a database: COMMUNICATION_OP, and the tasks on their planes from COMMUNICATION_TASK_INFO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import InputError
from traceanalyze.model.collectives import VendorCollective, VendorCollectives
from traceanalyze.readers.ascend import db_file
from traceanalyze.readers.ascend.comm_tables import (
    SUMS,
    TOTAL,
    MatrixRow,
    collective_fields,
    group_label,
    lost_rows,
    scaled,
    summed,
)
from traceanalyze.readers.ascend.db_device import COLLECTIVES, device_pid, host_pid
from traceanalyze.readers.ascend.db_file import open_database
from traceanalyze.readers.ascend.db_rows import block, index_of, known, taken, timed
from traceanalyze.readers.ascend.shared import ABSENT, HCCL_TASK, KERNEL, NO_TEXT, Block
from traceanalyze.readers.ascend.tables import step_number

if TYPE_CHECKING:
    from pathlib import Path

    from traceanalyze.model.collectives import VendorLink
    from traceanalyze.readers.ascend.db_file import Columns, Database
    from traceanalyze.readers.ascend.db_rows import Reading
    from traceanalyze.readers.ascend.info import About

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


TIMES, LINKS, MATRIX = "CommAnalyzerTime", "CommAnalyzerBandwidth", "CommAnalyzerMatrix"
_TIMES = ("hccl_op_name", "group_name", "step", "elapse_time", "transit_time", "wait_time", "idle_time")
_DB_COMM_TABLES_LINKS = ("hccl_op_name", "group_name", "step", "transport_type", "transit_size", "transit_time")
_MATRIX = (
    *("hccl_op_name", "group_name", "src_rank", "dst_rank", "transport_type"),
    *("transit_size", "transit_time", "op_name"),
)
_MS = 10**6


def communication_tables(path: Path, about: About, notes: list[str]) -> VendorCollectives | None:
    """What analysis.db says of collectives; None where it says nothing. A damaged file is noted.

    Args:
        path: analysis.db.
        about: What the profile says of itself; names groups.
        notes: Grows by what was left out.
    """
    lost = {LINKS: 0, MATRIX: 0}
    try:
        with open_database(path) as database:
            collectives, links = _collectives(database, about, lost), _pairs(database, about, lost)
    except InputError as error:
        if str(error) not in notes:
            notes.append(str(error))
        return None
    notes.extend(lost_rows({f"{path.name} {table}": count for table, count in lost.items()}))
    names = f"{path.name} {TIMES}", f"{path.name} {MATRIX}"
    return VendorCollectives(names[0], collectives, names[1], links) if collectives or links else None


def _rows(database: Database, table: str, columns: Sequence[str]) -> list[tuple[object, ...]]:
    """All rows, texts decoded; None for a column that this version lacks."""
    present = database.tables.get(table.upper())
    if present is None:
        return []
    chosen = ", ".join(f'"{name}"' if name in present else "NULL" for name in columns)
    found = database.connection.execute(f'SELECT {chosen} FROM "{table}"')  # noqa: S608
    return [
        tuple(cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell for cell in row) for row in found
    ]


def _collectives(database: Database, about: About, lost: dict[str, int]) -> tuple[VendorCollective, ...]:
    moved: dict[tuple[object, ...], dict[str, tuple[int, int]]] = {}
    for *key, link, size, time in _rows(database, LINKS, _DB_COMM_TABLES_LINKS):
        # One row a size of packet, each with the sums of its link.
        numbers = scaled(size, _MS), scaled(time, _MS)
        if link in SUMS or numbers[0] == 0:
            continue
        if numbers[0] is None or numbers[1] is None:
            lost[LINKS] += 1
        else:
            moved.setdefault(tuple(key), {})[str(link or "")] = numbers[0], numbers[1]
    found = []
    for name, group, step, *times in _rows(database, TIMES, _TIMES):
        links = tuple((link, *sizes) for link, sizes in moved.get((name, group, step), {}).items())
        label = group_label(str(name or ""), str(group or ""), about)
        elapsed, transit, wait, idle = (scaled(time, _MS) for time in times)
        number = step_number(str(step or ""))
        found.append(VendorCollective(str(name or ""), label, number, elapsed, transit, wait, idle, links))
    return tuple(found)


def _pairs(database: Database, about: About, lost: dict[str, int]) -> tuple[VendorLink, ...]:
    rows: list[MatrixRow] = []
    names: dict[str, str] = {}
    for kind, group, source, target, link, size, time, op in _rows(database, MATRIX, _MATRIX):
        if op:
            names.setdefault(str(group or ""), str(op))
        total = TOTAL.match(str(kind or ""))
        ends = str(source), str(target)  # Rank 0 may be a number.
        if total and all(map(str.isdecimal, ends)):
            moved, spent = scaled(size, _MS), scaled(time, _MS)
            if moved is None or spent is None:
                lost[MATRIX] += 1
                continue
            pair = int(ends[0]), int(ends[1])
            rows.append(MatrixRow(total[1], str(group or ""), *pair, str(link or ""), moved, spent))
    return summed(rows, names, about)
