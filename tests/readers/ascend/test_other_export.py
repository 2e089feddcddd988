"""A profile exported as text and as a database: one is read, the other's headline numbers are held against it."""

from __future__ import annotations

import csv
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import traceanalyze
from tests.readers.ascend.test_comm_tables import RANKS
from tests.simulate.writers.ascend import OUTPUT, write_ascend
from tests.simulate.writers.ascend_layouts import AscendLayout, every_era
from traceanalyze.analyses.analyze import analyze_trace

if TYPE_CHECKING:
    from pathlib import Path

    from traceanalyze.model.trace import Trace

DATABASE = "ascend_pytorch_profiler_0.db"


def both(folder: Path, layout: AscendLayout | None = None) -> Path:
    return write_ascend(folder, RANKS[0], layout or AscendLayout("8.3"), "both")


def load(path: Path) -> Trace:
    (trace,) = traceanalyze.load(path).traces
    return trace


def said(path: Path) -> dict[str, dict[str, float | str]]:
    checks = analyze_trace(load(path)).checks
    return {check.message: dict(check.values) for check in checks if check.message.startswith("exports_")}


@pytest.mark.parametrize("layout", every_era(), ids=lambda layout: layout.era)
def test_both_exports_of_one_run_agree(tmp_path: Path, layout: AscendLayout) -> None:
    """Steps and their time on the host, three of the profile's own step times, compute kernels and their time."""
    home = both(tmp_path, layout)
    assert load(home).origin.form == "text"
    assert said(home) == {"exports_agree": {"source": f"{DATABASE}, analysis.db", "count": 7}}
    assert said(home / OUTPUT / "trace_view.json") == said(home)
    given = home / OUTPUT / DATABASE
    assert load(given).origin.form == "db"
    assert said(given) == {"exports_agree": {"source": "step_trace_time.csv, op_statistic.csv", "count": 5}}


@pytest.mark.parametrize("level", [0, 1, 2])
def test_both_exports_of_every_level_agree(tmp_path: Path, level: int) -> None:
    home = both(tmp_path, AscendLayout("8.3", level=level, planes=level > 0))
    assert set(said(home)) == set(said(home / OUTPUT / DATABASE)) == {"exports_agree"}


def test_collectives_in_the_statistic_are_no_compute_kernels(tmp_path: Path) -> None:
    home = both(tmp_path)
    with (home / OUTPUT / "op_statistic.csv").open("a") as file:
        width = (home / OUTPUT / "op_statistic.csv").read_text().splitlines()[0].split(",")
        row = {"OP Type": "hcom_allReduce_", "Core Type": "COMMUNICATION", "Count": "7", "Total Time(us)": "900.5"}
        file.write(",".join(row.get(name, "0") for name in width) + "\n")
    assert set(said(home / OUTPUT / DATABASE)) == {"exports_agree"}


def test_one_export_says_nothing_of_another(tmp_path: Path) -> None:
    for form in ("text", "db"):
        assert said(write_ascend(tmp_path / form, RANKS[0], AscendLayout("8.3"), form)) == {}


def edit(home: Path, name: str, statement: str) -> None:
    with closing(sqlite3.connect(home / OUTPUT / name)) as base, base:
        base.execute(statement)


@pytest.mark.parametrize(
    ("name", "statement", "differs"),
    [
        (DATABASE, "DELETE FROM STEP_TIME WHERE id = 3", {"step_count", "step_time"}),
        (DATABASE, "UPDATE STEP_TIME SET endNs = endNs + 100000", {"step_time"}),
        (DATABASE, "DELETE FROM COMPUTE_TASK_INFO WHERE rowid % 2 = 1", {"kernel_count", "kernel_time"}),
        ("analysis.db", "UPDATE StepTraceTime SET computing = computing * 1.02", {"computing"}),
        ("analysis.db", "UPDATE StepTraceTime SET computing = computing * 1.005", set()),
        ("analysis.db", "UPDATE StepTraceTime SET free = free * 3", {"free"}),
        ("analysis.db", "UPDATE StepTraceTime SET communication_not_overlapped = 0", {"not_overlapped"}),
    ],
)
def test_a_difference_is_told_with_both_numbers(tmp_path: Path, name: str, statement: str, differs: set[str]) -> None:
    home = both(tmp_path)
    edit(home, name, statement)
    found = said(home)
    if not differs:
        assert set(found) == {"exports_agree"}
    for what in differs:
        values = found[f"exports_differ_{what}"]
        ours, theirs = (values[key] for key in values if key != "source")
        assert ours != theirs
    assert {key.removeprefix("exports_differ_") for key in found if key != "exports_agree"} == differs


def test_the_numbers_are_those_of_the_files(tmp_path: Path) -> None:
    home = both(tmp_path)
    edit(home, DATABASE, "DELETE FROM STEP_TIME WHERE id = 3")
    found = said(home)
    lengths = [step.end - step.start for step in RANKS[0].steps]
    assert found["exports_differ_step_time"] == {
        "source": f"{DATABASE}, analysis.db",
        "ours_ns": sum(lengths),
        "theirs_ns": lengths[1],
    }
    assert (found["exports_differ_step_count"]["ours"], found["exports_differ_step_count"]["theirs"]) == (2, 1)


@pytest.mark.parametrize("name", [DATABASE, "analysis.db"])
def test_a_damaged_second_export_costs_nothing_else(tmp_path: Path, name: str) -> None:
    home = both(tmp_path)
    path = home / OUTPUT / name
    path.write_bytes(path.read_bytes()[:5000])
    analysis = analyze_trace(load(home))
    assert any(name in note for note in analysis.trace.read.notes)
    assert len(analysis.steps) == 2
    assert not any("exports_differ" in check.message for check in analysis.checks)


def test_a_second_export_that_is_open_elsewhere_is_left_alone(tmp_path: Path) -> None:
    """To read it with its changes all of it would have to be copied."""
    home = both(tmp_path)
    (home / OUTPUT / f"{DATABASE}-wal").write_bytes(b"x" * 100)
    trace = load(home)
    assert any("has left changes beside it" in note for note in trace.read.notes)
    assert trace.other_export is not None
    assert trace.other_export.source == "analysis.db"


def with_database_of_rank_1(folder: Path) -> Path:
    """The profile of rank 0 with the database of rank 1 beside its own."""
    home = both(folder)
    other = write_ascend(folder / "other", RANKS[1], AscendLayout("8.3"), "both")
    shutil.move(other / OUTPUT / "ascend_pytorch_profiler_1.db", home / OUTPUT)
    shutil.rmtree(folder / "other")
    return home


def recorded(folder: Path) -> list[tuple[int | None, str]]:
    traces = [one.origin for run in traceanalyze.load_runs(folder) for one in run.traces]
    return sorted(((one.rank, one.form) for one in traces), key=str)


def test_the_database_of_another_rank_is_a_recording_of_its_own(tmp_path: Path) -> None:
    home = with_database_of_rank_1(tmp_path)
    assert recorded(home) == recorded(tmp_path) == [(0, "text"), (1, "db")]
    assert said(home / OUTPUT / "trace_view.json") == {
        "exports_agree": {"source": f"{DATABASE}, analysis.db", "count": 7}
    }
    # The tables are those of rank 0.
    assert said(home / OUTPUT / "ascend_pytorch_profiler_1.db") == {}


def test_the_timeline_is_not_held_against_the_database_of_another_rank(tmp_path: Path) -> None:
    home = with_database_of_rank_1(tmp_path)
    (home / OUTPUT / DATABASE).unlink()
    assert recorded(home) == [(0, "text"), (1, "db")]
    ((_, values),) = said(home / OUTPUT / "trace_view.json").items()
    assert values["source"] == "analysis.db"


def test_where_nothing_tells_whose_the_timeline_is_it_is_held_against_none(tmp_path: Path) -> None:
    home = with_database_of_rank_1(tmp_path)
    for name in ("profiler_info_0.json", "profiler_metadata.json"):
        (home / name).unlink()
    assert [form for _, form in recorded(home)].count("db") == 2
    ((_, values),) = said(home / OUTPUT / "trace_view.json").items()
    assert values["source"] == "analysis.db"


def test_two_runs_in_one_folder_are_noticed(shared_traces: Path, tmp_path: Path) -> None:
    """The two real recordings are of one program but not of one run; sums by hand over the raw rows."""
    real = shared_traces / "ascend/msinsight_2rank_torch"
    home = tmp_path / "rank0_ascend_pt"
    shutil.copytree(real / "text/level1/rank0_ascend_pt", home)
    for path in (real / "db/level1/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT").iterdir():
        shutil.copyfile(path, home / OUTPUT / path.name)
    found = said(home)
    with (home / OUTPUT / "step_trace_time.csv").open(newline="") as file:
        ours = sum(float(row["Communication(Not Overlapped)"]) for row in csv.DictReader(file))
    with closing(sqlite3.connect(home / OUTPUT / "analysis.db")) as base:
        ((theirs,),) = base.execute("SELECT SUM(communication_not_overlapped) FROM StepTraceTime").fetchall()
    values = found["exports_differ_not_overlapped"]
    assert (values["ours_ns"], values["theirs_ns"]) == (round(1000 * ours), round(1000 * theirs))
    # Both ran the same 187 kernels, in nearly the same time.
    assert not {"exports_differ_kernel_count", "exports_differ_kernel_time"} & set(found)
