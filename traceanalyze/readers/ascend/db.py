"""The database form of an Ascend profile: ascend_pytorch_profiler_*.db as a `Trace`."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import InputError, Lost, Phrase
from traceanalyze.model.trace import Device, Flows, Origin, ReadReport, Trace
from traceanalyze.readers.ascend import db_host
from traceanalyze.readers.ascend.db_device import collectives, device_tasks
from traceanalyze.readers.ascend.db_file import HOST, Columns, Database, Reading, open_database, pairs, read_strings
from traceanalyze.readers.ascend.folder import Profile
from traceanalyze.readers.ascend.info import About, read_about
from traceanalyze.readers.ascend.other_export import communication_tables, step_times, text_beside
from traceanalyze.readers.ascend.sampled_memory import module_memory_of, process_memory_of
from traceanalyze.readers.ascend.shared import ABSENT, Block, completed, joined_events, memory_instants, no_instants


def flows(reading: Reading, ops: Block, key: NDArray[np.int64], connections: Columns, device: Sequence[Block]) -> Flows:
    """`async_npu` from operators to the device events they launched, `fwdbwd` from forward to backward operators.

    An operator has one key into CONNECTION_IDS, there one row a connection: of every launch, and one that the
    operator of the backward pass has as well. Hence two operators with one connection are such a pair.
    Of `device`, kernels, copies and collectives, `correlation` is the connection.
    """
    op, row = pairs(key, connections["id"])
    of_op = connections["connectionId"][row]
    starts = np.concatenate([part.ts for part in device])
    tracks = np.concatenate([part.track for part in device])
    source, target = pairs(of_op, np.concatenate([part.fields["correlation"] for part in device]))
    source = _innermost(ops.ts, op[source], target)
    forward, backward = _couples(ops, op, of_op)
    code, counts = reading.strings.texts.code, (len(source), len(forward))
    cat = np.repeat(np.array([code("async_npu"), code("fwdbwd")], np.int32), counts)
    begins = np.concatenate((source, forward))
    return Flows(
        ts=np.concatenate((ops.ts[begins], starts[target], ops.ts[backward])),
        track=np.concatenate((ops.track[begins], tracks[target], ops.track[backward])),
        cat=np.tile(cat, 2),
        id=np.tile(np.concatenate([np.arange(count, dtype=np.int64) for count in counts]), 2),
        phase=np.repeat(np.array([ord("s"), ord("f")], np.uint8), len(cat)),
    )


def _innermost(start: NDArray[np.int64], op: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of several operators that name one device event the one that begins last, for every pair."""
    order = np.lexsort((start[op], target))
    last = np.searchsorted(target[order], target, "right") - 1
    chosen: NDArray[np.int64] = op[order[last]]
    return chosen


def _couples(
    ops: Block, op: NDArray[np.int64], connection: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of operators of different threads with one connection, the earlier one first."""
    order = np.lexsort((ops.ts[op], connection))
    op, connection = op[order], connection[order]
    same = (connection[1:] == connection[:-1]) & (connection[1:] != ABSENT)
    same &= ops.track[op[1:]] != ops.track[op[:-1]]
    return op[:-1][same], op[1:][same]


_TABLES = {
    "STRING_IDS": "all names",
    "PYTORCH_API": "operators",
    "CANN_API": "launch calls",
    "CONNECTION_IDS": "which operator launched what",
    "TASK": "device work",
}
"""Tables that a profile has at least one of, and what is lost without each."""
_TOTALS = ("STEPTRACETIME", "COMMANALYZERTIME")
_CLUSTER = ("CLUSTERSTEPTRACETIME", "CLUSTERCOMMUNICATIONTIME")
_GIVE = Phrase("give ascend_pytorch_profiler_*.db or its folder")


def read_database(profile: Profile, progress: Callable[[int], None] | None = None) -> Trace:
    """Read the database of one rank's profile, or its main file, whatever that is named."""
    path = profile.database or profile.main
    if path is None:
        raise InputError("{folder}: this Ascend profile has no database", profile.folder)
    with open_database(path) as database:
        _check_tables(path, database)
        about = _with_rank(read_about(profile), database)
        reading = Reading(database, read_strings(database), about, Counter(), _missing(database))
        tables = _tables(reading)
    beside = profile.table("analysis.db")
    vendor: dict[str, Any] = {
        "vendor": None if beside is None else step_times(beside, reading.notes),
        "vendor_collectives": None if beside is None else communication_tables(beside, about, reading.notes),
        "other_export": text_beside(profile, reading.notes),
    }
    size = path.stat().st_size
    if progress is not None:
        progress(size)
    events, instants = tables["events"], tables["instants"]
    if not len(events) + len(instants.ts):
        raise InputError("{path}: the database holds no event; was anything recorded between start and stop?", path)
    read = ReadReport(
        counts={key: n for key, n in reading.counts.items() if n},
        phases={"X": len(events), "i": len(instants.ts)},
        notes=tuple(reading.notes),
        nameless=len(reading.strings.ids) == 0,
    )
    pid = next((int(pid) for pid, name in reading.process_names.items() if name == HOST and pid.isdecimal()), None)
    origin = Origin(path=str(profile.folder), form="db", size_bytes=size, pid=pid)
    return completed(Trace(origin, read, **tables, **vendor), about)


def _check_tables(path: Path, database: Database) -> None:
    """Say what a database is that is no profile."""
    present = database.tables
    if any(table in present for table in _TABLES):
        return
    if any(table in present for table in _TOTALS):
        raise InputError("{path}: this is the database of totals beside a profile; {give}", path, _GIVE)
    if any(table in present for table in _CLUSTER):
        raise InputError(
            "{path}: this is the analysis of a cluster, not a profile; give the folders of the ranks", path
        )
    raise InputError(
        "{path}: this SQLite database (Nsight Systems?) is no Ascend profile, it has none of {tables}; {give}",
        path,
        ", ".join(_TABLES),
        _GIVE,
    )


def _missing(database: Database) -> list[str]:
    lost = ", ".join(f"{table} ({what})" for table, what in _TABLES.items() if database.is_empty(table))
    return [Lost("not in the database, because nothing was recorded or it was lost: {tables}", lost)] if lost else []


def _with_rank(about: About, database: Database) -> About:
    """The rank from the database where nothing else names it; there -1 stands for "not distributed"."""
    ranks = database.integers("RANK_DEVICE_MAP", ["rankId"])["rankId"]
    if about.rank is not None or len(ranks) != 1 or ranks[0] < 0:
        return about
    return replace(about, rank=int(ranks[0]), rank_source="RANK_DEVICE_MAP")


def _tables(reading: Reading) -> dict[str, Any]:
    """All tables as members of a `Trace`; the collectives come first, because their parts name them by row."""
    connections = reading.database.integers("CONNECTION_IDS", ["id", "connectionId"])
    framework, key = db_host.framework_events(reading, connections)
    calls = db_host.cann_calls(reading)
    table, tasks = device_tasks(reading)
    groups, planes = collectives(reading, table)
    blocks = [groups, planes, *framework, calls, *tasks, db_host.garbage_collections(reading), db_host.marks(reading)]
    blocks.append(db_host.step_markers(reading, framework))
    records, texts = db_host.allocator_records(reading), reading.strings.texts
    thread = db_host.main_thread(reading)
    track = reading.track(thread, thread)
    return {
        "tracks": np.array([texts.codes(ids) for ids in reading.tracks], np.int32).reshape(-1, 2),
        "events": joined_events(blocks, texts),
        "instants": memory_instants(records, texts, track) if len(records["ts"]) else no_instants(),
        "flows": flows(reading, framework[0], key, connections, (*tasks[:2], groups)),
        "process_names": reading.process_names,
        "thread_names": reading.thread_names,
        "devices": _devices(reading, table),
        "module_memory": module_memory_of(reading),
        "process_memory": process_memory_of(reading),
        "strings": texts.table(),
    }


def _devices(reading: Reading, tasks: Columns) -> tuple[Device, ...]:
    """Devices with tasks, by the names of NPU_INFO; without any tasks those that it lists."""
    named = reading.database.vocabulary("NPU_INFO")
    used = set(tasks["deviceId"].tolist()) or set(named)
    return tuple(Device(number, named.get(number, "")) for number in sorted(used))
