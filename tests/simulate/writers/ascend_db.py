"""ascend_pytorch_profiler_<rank>.db and analysis.db: the same recording in tables, times in whole nanoseconds."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

from tests.simulate.npu_kernels import GROUP_HASH
from tests.simulate.writers.ascend_comm import communication, communication_matrix
from tests.simulate.writers.ascend_db_rows import device_rows, host_rows, memory_rows
from tests.simulate.writers.ascend_steps import step_times

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tests.simulate.writers.ascend_rank import Rank
    from tests.simulate.writers.ascend_steps import Overlap

_ENUMS = {
    "ENUM_API_TYPE": {10000: "node", 15000: "model", 20000: "acl", 5000: "runtime", 5500: "hccl", 50001: "op"}
    | {50002: "queue", 50003: "trace", 50004: "mstx"},
    "ENUM_HCCL_DATA_TYPE": {3: "FP16", 4: "FP32", 5: "INT64", 11: "BFP16", 65534: "N/A", 65535: "INVALID_TYPE"},
    "ENUM_HCCL_LINK_TYPE": {0: "ON_CHIP", 1: "HCCS", 2: "PCIE", 3: "ROCE", 4: "SIO", 65535: "INVALID_TYPE"},
    "ENUM_HCCL_TRANSPORT_TYPE": {0: "SDMA", 1: "RDMA", 2: "LOCAL", 65535: "INVALID_TYPE"},
}
_STEP_COLUMNS = (
    "step TEXT, computing NUMERIC, communication_not_overlapped NUMERIC, overlapped NUMERIC, communication NUMERIC, "
    "free NUMERIC, stage NUMERIC, bubble NUMERIC, communication_not_overlapped_and_exclude_receive NUMERIC, "
    "preparing NUMERIC"
)
_COMM_COLUMNS = (
    "hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC, elapse_time NUMERIC, transit_time NUMERIC, "
    "wait_time NUMERIC, synchronization_time NUMERIC, idle_time NUMERIC, step TEXT, type TEXT"
)
_LINK_COLUMNS = (
    "hccl_op_name TEXT, group_name TEXT, transport_type TEXT, transit_size NUMERIC, transit_time NUMERIC, "
    "bandwidth NUMERIC, large_packet_ratio NUMERIC, package_size NUMERIC, count NUMERIC, total_duration NUMERIC, "
    "step TEXT, type TEXT"
)
_MATRIX_COLUMNS = (
    "hccl_op_name TEXT, group_name TEXT, src_rank TEXT, dst_rank TEXT, transport_type TEXT, transit_size NUMERIC, "
    "transit_time NUMERIC, bandwidth NUMERIC, step TEXT, type TEXT, op_name TEXT"
)


def write_profiler(path: Path, rank: Rank, overlap: Overlap) -> None:
    """The profiler's database."""
    tables = {**host_rows(rank), **device_rows(rank), **_about(rank)}
    if rank.layout.memory:
        tables |= memory_rows(rank)
    if rank.layout.era == "2026":
        columns = "id INTEGER, deviceId INTEGER, startNs INTEGER, endNs INTEGER, type INTEGER"
        every = [(kind, span) for kind, spans in enumerate(overlap.spans.values()) for span in spans]
        rows = [(n, rank.layout.device, rank.base + a, rank.base + b, k) for n, (k, (a, b)) in enumerate(every)]
        tables["OVERLAP_ANALYSIS"] = columns, rows
    _write(path, tables)


def _about(rank: Rank) -> dict[str, tuple[str, Iterable[Sequence[Any]]]]:
    layout, schedule = rank.layout, rank.schedule
    end = rank.base + max(call.end for call in schedule.calls)
    env = json.dumps({"ASCEND_GLOBAL_LOG_LEVEL": "3"})
    number = schedule.rank if rank.world > 1 else -1
    steps = [(step.number, rank.base + step.start, rank.base + step.end) for step in schedule.steps]
    found: dict[str, tuple[str, Iterable[Sequence[Any]]]] = {
        "NPU_INFO": ("id INTEGER, name TEXT", [(layout.device, "Ascend910B")]),
        "SESSION_TIME_INFO": ("startTimeNs INTEGER, endTimeNs INTEGER", [(rank.base + schedule.begin, end)]),
        "RANK_DEVICE_MAP": ("rankId INTEGER, deviceId INTEGER", [(number, layout.device)]),
        "META_DATA": ("name TEXT, value TEXT", [("SCHEMA_VERSION", "1.0.0"), ("ENV_VARIABLES", env)]),
        "STEP_TIME": ("id INTEGER, startNs INTEGER, endNs INTEGER", steps),
    }
    for name, values in _ENUMS.items():
        words = values | ({5500: "communication"} if name == "ENUM_API_TYPE" and layout.era == "2026" else {})
        found[name] = "id INTEGER PRIMARY KEY, name TEXT", list(words.items())
    return found


def write_analysis(path: Path, rank: Rank, overlap: Overlap) -> None:
    """The vendor's own sums: steps in µs, collectives in ms."""
    device = rank.layout.number > 1
    rows = []
    for number, numbers in step_times(rank, overlap):
        padded = [*numbers, *([0] * (9 - len(numbers)))]
        rows.append(([rank.layout.device] if device else []) + [str(number), *padded])
    columns = ("deviceId INTEGER, " if device else "") + _STEP_COLUMNS
    tables: dict[str, tuple[str, Iterable[Sequence[Any]]]] = {"StepTraceTime": (columns, rows)}
    if rank.layout.level and rank.collectives:
        tables["CommAnalyzerTime"] = _COMM_COLUMNS, _times(rank)
        tables["CommAnalyzerBandwidth"] = _LINK_COLUMNS, _packets(rank)
        tables["CommAnalyzerMatrix"] = _MATRIX_COLUMNS, _matrix(rank)
    _write(path, tables)


def _times(rank: Rank) -> list[Sequence[Any]]:
    rows: list[Sequence[Any]] = []
    for step, kinds in json.loads(communication(rank)).items():
        for name, found in kinds["collective"].items():
            times = list(found["Communication Time Info"].values())[:6]
            rows.append([name.split("@")[0], str(GROUP_HASH), *times, step, "collective"])
    return rows


def _packets(rank: Rank) -> list[Sequence[Any]]:
    """One row a size of packet, each with the sums of its link; a link without packets has one all the same."""
    rows: list[Sequence[Any]] = []
    for step, kinds in json.loads(communication(rank)).items():
        for name, found in kinds["collective"].items():
            for link, sums in found["Communication Bandwidth Info"].items():
                size, time, rate, large, packets = sums.values()
                for packet, (count, taken) in packets.items() or [("0", (0, 0))]:
                    row = (name.split("@")[0], str(GROUP_HASH), link, size, time, rate, large, float(packet), count)
                    rows.append((*row, taken, step, "collective"))
    return rows


def _matrix(rank: Rank) -> list[Sequence[Any]]:
    rows: list[Sequence[Any]] = []
    for step, kinds in json.loads(communication_matrix(rank)).items():
        for name, pairs in kinds["collective"].items():
            for pair, found in pairs.items():
                link, size, time, rate = (found[key] for key in list(found)[:4])
                ends = (*pair.split("-"), link, size, time, rate)
                rows.append((name.split("@")[0], str(GROUP_HASH), *ends, step, "collective", found.get("Op Name", "")))
    return rows


def _write(path: Path, tables: dict[str, tuple[str, Iterable[Sequence[Any]]]]) -> None:
    """Make the database; tables without rows do not exist."""
    connection = sqlite3.connect(path)
    strings: dict[str, int] = {}
    for name, (columns, rows) in tables.items():
        kept = [[_coded(value, strings) for value in row] for row in rows]
        if kept:
            connection.execute(f"CREATE TABLE {name} ({columns})")
            marks = ", ".join("?" for _ in kept[0])
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", kept)
    if strings:
        connection.execute("CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT)")
        connection.executemany("INSERT INTO STRING_IDS VALUES (?, ?)", [(n, text) for text, n in strings.items()])
    connection.commit()
    connection.close()


def _coded(value: Any, strings: dict[str, int]) -> Any:
    """Texts marked as such become ids."""
    return strings.setdefault(value.text, len(strings)) if hasattr(value, "text") else value
