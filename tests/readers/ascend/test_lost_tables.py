"""Databases without some of their tables: what these would have told is not measured, never 0."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import traceanalyze
from tests.ascend_db_builder import Builder, read_profile
from traceanalyze.analyses.analyze import analyze_trace
from traceanalyze.errors import Lost
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Cause, Mode

if TYPE_CHECKING:
    from pathlib import Path

    from traceanalyze.analyses.results import RankAnalysis

US = 1_000
OP, LAUNCH = 50001, 10000


def working() -> Builder:
    """An operator from 0 to 1000 µs; a kernel from 200 to 300, a copy from 320 to 350, an all-reduce from 400 to 600.

    On its one plane the all-reduce waits for 120 µs and moves data for 80.
    """
    build = Builder()
    build.row("ENUM_API_TYPE", id=LAUNCH, name="node")
    build.row("ENUM_API_TYPE", id=OP, name="op")
    build.api(OP, "aten::mm", 0, 1000 * US)
    build.api(OP, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 20 * US, 50 * US)
    build.call(LAUNCH, "launch", 100 * US, 5 * US, 1)
    build.kernel("MatMul", 200 * US, 100 * US, 1)
    build.task("MEMCPY_ASYNC", 320 * US, 30 * US, 2)
    build.collective("hcom_allReduce__001_0_1", 400 * US, 200 * US, 3, 7)
    build.part("Notify_Wait", 400 * US, 120 * US, 3, 7, plane=0)
    build.part("Memcpy", 520 * US, 80 * US, 3, 7, plane=0)
    return build


def split(found: RankAnalysis) -> dict[str, object]:
    return {row.part: row.mean_ns for row in found.records("split")}


def test_the_program_is_read_whole(tmp_path: Path) -> None:
    found = analyze_trace(working().read(tmp_path / "a_ascend_pt"))
    parts = split(found)
    assert (parts["compute"], parts["communication"], parts["memory_ops"]) == (100 * US, 200 * US, 30 * US)
    assert parts["data_loading"] == 0  # the window begins with the kernel


@pytest.mark.parametrize("named", [True, False])
def test_planes_without_a_type_are_what_their_tasks_are(tmp_path: Path, named: bool) -> None:
    build = working()
    for row in build.rows["COMMUNICATION_TASK_INFO"]:
        row["taskType"] = build.text("N/A")
    for row in build.rows["TASK"] if not named else ():
        row["taskType"] = build.text("N/A") if row["streamId"] == 9 else row["taskType"]
    (found,) = analyze_trace(build.read(tmp_path / "a_ascend_pt")).records("collectives")
    if named:
        assert (found.transfer_ns, found.wait_ns, found.exposed_wait_ns) == (80 * US, 120 * US, 120 * US)
    else:
        assert not hasattr(found, "wait_ns")


@pytest.mark.parametrize("how", ["DROP TABLE TASK", "DELETE FROM TASK"])
def test_without_tasks_there_is_no_device_work(tmp_path: Path, how: str) -> None:
    """Collectives have a table of their own; beside them compute would be 0 and all else idle."""
    with closing(sqlite3.connect(working().write(tmp_path / "a_ascend_pt"))) as database, database:
        database.execute(how)
    found = analyze_trace(read_profile(tmp_path / "a_ascend_pt"))
    said = traceanalyze.analyze(tmp_path / "a_ascend_pt").verdict
    assert said.startswith("What is left of the recording has no device event: compute is not measured.")
    assert "TASK (device work)" in said
    assert found.mode == Mode.HOST_ONLY
    assert found.idle == NotMeasured("no_device_events")
    assert "compute" not in split(found)
    assert any("TASK is missing" in note for note in found.trace.read.notes)
    assert "no_device_events" in {check.message for check in found.checks}


@pytest.mark.parametrize("how", ["DROP TABLE STRING_IDS", "DELETE FROM STRING_IDS"])
def test_without_names_what_names_tell_is_not_measured(tmp_path: Path, how: str) -> None:
    with closing(sqlite3.connect(working().write(tmp_path / "a_ascend_pt"))) as database, database:
        database.execute(how)
    found = analyze_trace(read_profile(tmp_path / "a_ascend_pt"))
    why, parts = NotMeasured("no_names"), split(found)
    assert {key for key, time in parts.items() if time == why} == {"memory_ops", "data_loading", "sync", "dispatch"}
    assert (parts["compute"], parts["communication"]) == (100 * US, 200 * US)
    assert found.idle.missing[Cause.PEER_WAIT] == found.tables["sync_points"].absent == why
    assert found.tables["copies"].absent == why
    assert next(iter(found.records("launches"))).late == why
    assert "no_names" in {check.message for check in found.checks}


@pytest.mark.parametrize("how", ["DROP TABLE COMMUNICATION_OP", "DELETE FROM COMMUNICATION_OP"])
def test_collectives_without_their_table_are_what_their_parts_are(tmp_path: Path, how: str) -> None:
    """The first part begins when the collective does, the last one ends with it."""
    with closing(sqlite3.connect(working().write(tmp_path / "a_ascend_pt"))) as database, database:
        database.execute(how)
    found = analyze_trace(read_profile(tmp_path / "a_ascend_pt"))
    parts = split(found)
    assert (parts["compute"], parts["communication"], parts["memory_ops"]) == (100 * US, 200 * US, 30 * US)
    (one,) = found.records("collectives")
    assert (one.collective, one.wait_ns, one.transfer_ns) == ("all_reduce", 120 * US, 80 * US)
    assert any(isinstance(note, Lost) and "COMMUNICATION_OP" in note for note in found.trace.read.notes)


def test_a_real_database_of_level_0_tells_waiting_from_transfer(shared_traces: Path) -> None:
    """Exposed transfer, ms: the SDMA tasks of TASK outside of computing, worked out from the tables."""
    home = shared_traces / "ascend/msinsight_2rank_torch/db/level0/rank0_ascend_pt"
    if not home.is_dir():
        pytest.skip("the databases are not here")
    found = analyze_trace(read_profile(home))
    waits = sum(one.exposed_wait_ns for one in found.records("collectives"))
    assert split(found)["communication"] - waits == pytest.approx(4.09e6, abs=5000)


OPERATIONS, PARTS = "COMMUNICATION_OP", "COMMUNICATION_TASK_INFO"


@pytest.mark.parametrize("lost", [(OPERATIONS,), (PARTS,), (OPERATIONS, PARTS)])
def test_a_real_profile_without_tables_of_collectives(
    shared_traces: Path, tmp_path: Path, lost: tuple[str, ...]
) -> None:
    """Uncovered communication and waiting of the reference (ms), worked out apart from this program."""
    home = shared_traces / "ascend/msinsight_2rank_torch/db/level1/rank0_ascend_pt"
    if not home.is_dir():
        pytest.skip("the databases are not here")
    name = "ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db"
    copy = tmp_path / "rank0_ascend_pt" / name
    copy.parent.mkdir(parents=True)
    copy.write_bytes((home / name).read_bytes())
    with closing(sqlite3.connect(copy)) as database, database:
        for table in lost:
            database.execute(f"DROP TABLE {table}")
    found = analyze_trace(read_profile(tmp_path / "rank0_ascend_pt"))
    assert split(found)["communication"] == pytest.approx(98.0719e6, abs=1000)
    assert sum(one.exposed_wait_ns for one in found.records("collectives")) == pytest.approx(94.0055e6, abs=1000)
    assert any(isinstance(note, Lost) and lost[-1] in note for note in found.trace.read.notes)
