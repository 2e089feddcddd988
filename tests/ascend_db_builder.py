"""A small database of an Ascend profile, row by row; tables without rows are not made, as in real exports."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from traceanalyze.readers.ascend.db import read_database
from traceanalyze.readers.ascend.folder import profile_at

if TYPE_CHECKING:
    from pathlib import Path

    from traceanalyze.model.trace import Trace

START = 1_736_410_576_000_000_000
"""Instant 0 of the builder's times, ns."""
PID, MAIN, QUEUE = 4_194_000, 4_194_000, 4_194_077
NONE = (1 << 32) - 1
OP, QUEUED, PYTHON, MARK = 50001, 50002, 50003, 50004
ADDRESS = "10.20.30.40%eth0_60000_0_1736410538306028"

COLUMNS = {
    "PYTORCH_API": "startNs TEXT, endNs TEXT, globalTid INTEGER, connectionId INTEGER, name INTEGER, "
    "sequenceNumber INTEGER, fwdThreadId INTEGER, inputDtypes INTEGER, inputShapes INTEGER, callchainId INTEGER, "
    "type INTEGER",
    "CONNECTION_IDS": "id INTEGER, connectionId INTEGER",
    "PYTORCH_CALLCHAINS": "id INTEGER, stack INTEGER, stackDepth INTEGER",
    "CANN_API": "startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER, connectionId INTEGER PRIMARY KEY, "
    "name INTEGER",
    "TASK": "startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER, "
    "globalPid INTEGER, taskType INTEGER, contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER",
    "COMPUTE_TASK_INFO": "name INTEGER, globalTaskId INTEGER PRIMARY KEY, blockDim INTEGER, mixBlockDim INTEGER, "
    "taskType INTEGER, opType INTEGER, inputFormats INTEGER, inputDataTypes INTEGER, inputShapes INTEGER",
    "TASK_PMU_INFO": "globalTaskId INTEGER, name INTEGER, value NUMERIC",
    "MEMCPY_INFO": "globalTaskId INTEGER, size INTEGER, memcpyOperation INTEGER",
    "ENUM_MEMCPY_OPERATION": "id INTEGER PRIMARY KEY, name TEXT",
    "COMMUNICATION_OP": "opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER, groupName INTEGER, "
    "opId INTEGER PRIMARY KEY, relay INTEGER, retry INTEGER, dataType INTEGER, algType INTEGER, count NUMERIC, "
    "opType INTEGER",
    "COMMUNICATION_TASK_INFO": "name INTEGER, globalTaskId INTEGER, taskType INTEGER, planeId INTEGER, "
    "groupName INTEGER, notifyId INTEGER, rdmaType INTEGER, srcRank INTEGER, dstRank INTEGER, "
    "transportType INTEGER, size INTEGER, dataType INTEGER, linkType INTEGER, opId INTEGER",
    "OP_MEMORY": "name INTEGER, size INTEGER, allocationTime INTEGER, releaseTime INTEGER, "
    "allocationTotalAllocated INTEGER, allocationTotalReserved INTEGER, releaseTotalAllocated INTEGER, "
    "releaseTotalReserved INTEGER, deviceId INTEGER",
    "MEMORY_RECORD": "component INTEGER, timestamp INTEGER, totalAllocated INTEGER, totalReserved INTEGER, "
    "deviceId INTEGER",
    "STEP_TIME": "id INTEGER, startNs INTEGER, endNs INTEGER",
    "GC_RECORD": "startNs INTEGER, endNs INTEGER, globalTid INTEGER",
    "MSTX_EVENTS": "startNs INTEGER, endNs INTEGER, eventType INTEGER, message INTEGER, globalTid INTEGER",
    "NPU_INFO": "id INTEGER, name TEXT",
    "RANK_DEVICE_MAP": "rankId INTEGER, deviceId INTEGER",
    "HOST_INFO": "hostUid TEXT, hostName TEXT",
    "ENUM_API_TYPE": "id INTEGER PRIMARY KEY, name TEXT",
}
"""Schema of CANN 8.0; a builder may replace entries."""


def thread(tid: int) -> int:
    """`globalTid` of a thread of the program."""
    return PID << 32 | tid


_TASK_TYPES = {
    "Notify_Wait": "Notify Wait",
    "Notify_Record": "Write Value",
    "Memcpy": "SDMA",
    "Reduce_Inline": "SDMA",
}
"""Type of a part of a collective → type of its task."""


class Builder:
    """Collects rows; times are ns after `START`."""

    def __init__(self) -> None:
        self.columns = dict(COLUMNS)
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self._strings: dict[str, int] = {}
        self._tasks = 0

    def text(self, value: str | None) -> int | None:
        """Id of a text."""
        return None if value is None else self._strings.setdefault(value, 3 * len(self._strings))

    def row(self, table: str, **values: Any) -> None:
        self.rows.setdefault(table, []).append(values)

    def api(
        self,
        kind: int,
        name: str,
        at: int,
        dur: int,
        *,
        tid: int = MAIN,
        connection: int | None = None,
        dtypes: str | None = None,
        shapes: str | None = None,
        **more: Any,
    ) -> None:
        """A framework event; the times are stored as text, as CANN 8.0 does."""
        times = {"startNs": str(START + at), "endNs": str(START + at + dur)}
        arguments = {"inputDtypes": self.text(dtypes), "inputShapes": self.text(shapes)}
        self.row(
            "PYTORCH_API",
            **(times | arguments | {"globalTid": thread(tid), "connectionId": connection, "name": self.text(name)}),
            **({"type": kind, "sequenceNumber": -1, "fwdThreadId": 0} | more),
        )

    def connect(self, key: int, *connections: int) -> None:
        for connection in connections:
            self.row("CONNECTION_IDS", id=key, connectionId=connection)

    def stack(self, key: int, *frames: str) -> None:
        """Innermost frame first; stored outermost first."""
        for depth, frame in reversed(list(enumerate(frames))):
            self.row("PYTORCH_CALLCHAINS", id=key, stack=self.text(frame), stackDepth=depth)

    def call(self, kind: int, name: str, at: int, dur: int, connection: int, *, tid: int = QUEUE) -> None:
        self.row(
            "CANN_API",
            startNs=START + at,
            endNs=START + at + dur,
            type=kind,
            globalTid=thread(tid),
            connectionId=connection,
            name=self.text(name),
        )

    def task(self, kind: str, at: int, dur: int, connection: int, *, stream: int = 2, device: int = 4) -> int:
        """A device task; its id."""
        self._tasks += 1
        self.row(
            "TASK",
            startNs=START + at,
            endNs=START + at + dur,
            deviceId=device,
            connectionId=connection,
            globalTaskId=self._tasks,
            globalPid=PID,
            taskType=self.text(kind),
            contextId=NONE,
            streamId=stream,
            taskId=self._tasks,
            modelId=NONE,
        )
        return self._tasks

    def kernel(
        self,
        name: str,
        at: int,
        dur: int,
        connection: int,
        *,
        kind: str = "KERNEL_AIVEC",
        core: str = "AI_VECTOR_CORE",
        op_type: str = "Mul",
        shapes: str = '"32,64;64"',
        dtypes: str = "FLOAT;DT_BF16",
        **more: Any,
    ) -> int:
        task = self.task(kind, at, dur, connection, **more)
        self.row(
            "COMPUTE_TASK_INFO",
            name=self.text(name),
            globalTaskId=task,
            **{self._block(): 16},
            taskType=self.text(core),
            opType=self.text(op_type),
            inputDataTypes=self.text(dtypes),
            inputShapes=self.text(shapes),
        )
        return task

    def _block(self) -> str:
        return "blockNum" if "blockNum" in self.columns["COMPUTE_TASK_INFO"] else "blockDim"

    def counter(self, task: int, name: str, value: float) -> None:
        self.row("TASK_PMU_INFO", globalTaskId=task, name=self.text(name), value=value)

    def collective(self, name: str, at: int, dur: int, connection: int, number: int, **more: Any) -> None:
        values = {"dataType": 4, "count": 1000, "groupName": self.text(ADDRESS), "algType": self.text("MESH-RING")}
        self.row(
            "COMMUNICATION_OP",
            opName=self.text(name),
            startNs=START + at,
            endNs=START + at + dur,
            connectionId=connection,
            opId=number,
            **(values | more),
        )

    def part(self, kind: str, at: int, dur: int, connection: int, number: int, *, plane: int, **more: Any) -> None:
        """A task of a collective on one of its planes."""
        task = self.task(_TASK_TYPES[kind], at, dur, connection, stream=9)
        values = {"srcRank": 1, "dstRank": 6, "size": 0, "transportType": 2, "linkType": 65535}
        self.row(
            "COMMUNICATION_TASK_INFO",
            name=next((row["opName"] for row in self.rows.get("COMMUNICATION_OP", ()) if row["opId"] == number), None),
            globalTaskId=task,
            taskType=self.text(kind),
            planeId=plane,
            groupName=self.text(ADDRESS),
            opId=number,
            **(values | more),
        )

    def write(self, folder: Path, name: str = "ascend_pytorch_profiler_3.db") -> Path:
        """Write the database into the folder of a profile; its path."""
        output = folder / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(output / name)) as database, database:
            database.execute("CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT)")
            database.executemany("INSERT INTO STRING_IDS VALUES (?, ?)", [(i, t) for t, i in self._strings.items()])
            for table, rows in self.rows.items():
                database.execute(f"CREATE TABLE {table} ({self.columns[table]})")
                for values in rows:
                    marks = ", ".join("?" * len(values))
                    database.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", [*values.values()])
        return output / name

    def read(self, folder: Path) -> Trace:
        """Write and read."""
        self.write(folder)
        return read_profile(folder)


def read_profile(folder: Path) -> Trace:
    """The trace of a folder with a database."""
    profile = profile_at(folder)
    assert profile is not None
    return read_database(profile)


def write_totals(folder: Path, sql: str) -> Path:
    """analysis.db made by statements."""
    path = folder / "ASCEND_PROFILER_OUTPUT" / "analysis.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(sql)
    return path


def write_info(folder: Path, **more: Any) -> None:
    """profiler_info_3.json."""
    config = {"common_config": {"record_shapes": True}, "experimental_config": {"_profiler_level": "Level1"}}
    (folder / "profiler_info_3.json").write_text(json.dumps({"config": config, "rank_id": 3} | more))
