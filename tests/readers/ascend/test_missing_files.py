"""Each file of a profile taken away in turn: the report loses what that file tells, says so, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from functools import cache
from io import BytesIO
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pandas as pd
import pytest

import traceanalyze
from tests.ascend_builder import load
from tests.readers.ascend.test_comm_tables import RANKS
from tests.simulate.npu_kernels import described
from tests.simulate.truth.tables import transfers
from tests.simulate.truth.vendor import step_of, vendor_steps
from tests.simulate.truth.windows import parts
from tests.simulate.writers.ascend import OUTPUT, write_ascend, write_msprof
from tests.simulate.writers.ascend_layouts import AscendLayout, every_era
from traceanalyze.analyses.analyze import analyze_trace
from traceanalyze.locales import texts
from traceanalyze.model.table import NotMeasured
from traceanalyze.readers.ascend.folder import Profile, profile_of
from traceanalyze.report.console import Style, render_all
from traceanalyze.report.formats import renderer
from traceanalyze.report.view import View

if TYPE_CHECKING:
    from traceanalyze.report.model import Report

LAYOUT = AscendLayout("8.3", level=2)
WARNED = {"capture_findings", "finding_evidence"}
"""What warns of a loss that other numbers may feel."""
LOST = {
    "api_statistic.csv": set(),
    "communication.json": {"vendor_collectives"},
    "communication_matrix.json": {"vendor_links"},
    "kernel_details.csv": {"kernel_types", "rules_not_judged", *WARNED},
    "memory_record.csv": {"memory", "memory_curve", "module_memory", *WARNED},
    "npu_module_mem.csv": {"module_memory"},
    "op_statistic.csv": set(),
    "operator_details.csv": set(),
    "operator_memory.csv": {"memory", *WARNED},
    "step_trace_time.csv": {"vendor_steps"},
    "profiler_info_0.json": set(),
    "profiler_metadata.json": {"collectives", "rules_not_judged"},
    "analysis.db": {"vendor_collectives", "vendor_links", "vendor_steps"},
}
"""Tables of the report that differ without the file."""
SAID = {
    "kernel_details.csv": "kernel_details.csv is missing: no operator types",
    "memory_record.csv": "memory_record.csv is missing",
    "operator_memory.csv": "operator_memory.csv is missing",
    "step_trace_time.csv": "step_trace_time.csv is missing",
    "profiler_info_0.json": "profiler_info.json is missing",
    "profiler_metadata.json": "profiler_metadata.json is missing",
}
TEXT = [name for name in LOST if name != "analysis.db"]
BASE = ["analysis.db", "profiler_info_0.json", "profiler_metadata.json"]


def without(folder: Path, form: str, *names: str) -> Path:
    home = write_ascend(folder, RANKS[0], LAYOUT, form)
    for name in names:
        next(path for path in (home / name, home / OUTPUT / name) if path.exists()).unlink()
    return home


def notes(report: Report) -> str:
    return " ".join(
        str(value) for check in report.ranks[0].checks for _, _, value in check.message.values if check.id == "Q01"
    )


@cache
def whole(form: str) -> Report:
    with TemporaryDirectory() as folder:
        return traceanalyze.analyze(without(Path(folder), form))


@pytest.mark.parametrize(("form", "name"), [*(("text", name) for name in TEXT), *(("db", name) for name in BASE)])
def test_only_what_the_file_tells_is_lost(tmp_path: Path, form: str, name: str) -> None:
    report = traceanalyze.analyze(without(tmp_path, form, name))
    before = {key: table.rows for key, table in whole(form).tables.items() if key != "files"}
    after = {key: table.rows for key, table in report.tables.items() if key != "files"}
    changed = {key for key in before | after if before.get(key) != after.get(key)}
    assert changed == LOST[name]
    assert notes(whole(form)) == ""
    said = notes(report)
    assert (SAID[name] in said) if name in SAID else said == ""


def test_tables_that_nothing_reads_are_told(tmp_path: Path) -> None:
    home = without(tmp_path, "text")
    for name in ("l2_cache.csv", "data_preprocess.csv"):
        (home / OUTPUT / name).write_text("Stream Id,Task Id,Hit Rate,Victim Rate,Op Name\n2,1,N/A,0.1,Add1\n")
    report = traceanalyze.analyze(home)
    assert notes(report) == "data_preprocess.csv, l2_cache.csv: passed over, nothing of it is in any number here"
    assert report.tables["split"].rows == whole("text").tables["split"].rows
    (home / OUTPUT / "trace_view.json").unlink()
    assert "api_statistic.csv, data_preprocess.csv, l2_cache.csv, operator_details.csv: passed" in notes(
        traceanalyze.analyze(home)
    )


def compared(home: Path) -> list[tuple[object, ...]]:
    """What is said to agree in another table, and in how many numbers."""
    said = [check.message for check in traceanalyze.analyze(home).ranks[0].checks]
    return [tuple(value for *_, value in one.values) for one in said if one.key == "exports_agree"]


def test_a_table_is_not_held_against_itself(tmp_path: Path) -> None:
    """Without the timeline what kernels sum up to is in one other table; step times are those of one file."""
    home = without(tmp_path, "text", "trace_view.json")
    assert compared(home) == [("op_statistic.csv", 2)]
    (home / OUTPUT / "op_statistic.csv").unlink()
    assert compared(home) == []


def test_without_any_memory_table_memory_is_not_measured(tmp_path: Path) -> None:
    report = traceanalyze.analyze(without(tmp_path, "text", "memory_record.csv", "operator_memory.csv"))
    assert report.tables["memory"].rows == NotMeasured("no_memory_records")


def test_the_timeline_alone_gives_a_report(tmp_path: Path) -> None:
    """Steps and their parts need nothing else; what kernels and groups are is not known."""
    report = traceanalyze.analyze(without(tmp_path, "text", *TEXT))
    assert report.tables["split"].rows == whole("text").tables["split"].rows
    assert report.tables["kernel_types"].rows == NotMeasured("no_kernel_types")


@pytest.mark.parametrize(
    "names", [("trace_view.json", "kernel_details.csv", "step_trace_time.csv"), ("ascend_pytorch_profiler_0.db",)]
)
def test_without_its_main_file_there_is_one_clear_line(tmp_path: Path, names: tuple[str, ...]) -> None:
    done = run(without(tmp_path, "text" if len(names) > 1 else "db", *names))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "neither trace_view.json nor a database nor kernel_details.csv nor step_trace_time.csv" in done.stderr


HOST = {"memory_ops", "data_loading", "sync", "dispatch"}
STEPS = vendor_steps(RANKS[0])


ALL = [*every_era(), AscendLayout("8.0", level=0), AscendLayout("8.3", level=2, crlf=True)]


@pytest.mark.parametrize(
    ("layout", "form"), [*product(ALL, ("text", "db", "tables")), (AscendLayout("2023"), "msprof")], ids=str
)
def test_every_export_of_a_run_tells_what_its_device_did(tmp_path: Path, layout: AscendLayout, form: str) -> None:
    """As the schedule has it; without the timeline steps are those of the device, and nothing of the host is known."""
    works, moved = RANKS[0].works, transfers(RANKS[0])
    if form == "msprof":
        home = write_msprof(tmp_path, RANKS[0])
    else:
        home = write_ascend(tmp_path, RANKS[0], layout, "db" if form == "db" else "text")
    if form == "tables":
        (home / OUTPUT / "trace_view.json").unlink()
    report = traceanalyze.analyze(home)
    split = {row.part: row.sum_ns for row in report.tables["split"].records()}
    known = parts([work for work in works if work.kind != "memcpy"], 0, max(work.end for work in works))
    assert (split["compute"], split["communication"]) == (known["compute"], known["comm_exposed"])
    collectives = list(report.tables["collectives"].records())
    assert sum(row.device_time_ns for row in collectives) == sum(w.end - w.start for w in works if w.kind == "comm")
    if form == "tables" or (form == "text" and layout.level == 0):
        assert "wait_ns" not in {column.key for column in report.tables["collectives"].columns}
    else:
        assert sum(row.wait_ns for row in collectives) == sum(one.wait for one in moved)
        assert sum(row.exposed_wait_ns for row in collectives) == sum(one.exposed_wait for one in moved)
    kernels = [described(work.name) for work in works if work.kind == "compute"]
    types = report.tables["kernel_types"]
    if layout.level:
        assert {(row.op_type, row.core): row.count for row in types.records()} == Counter(
            (kernel.type, kernel.core) for kernel in kernels
        )
    else:
        assert types.rows == NotMeasured("no_kernel_types")
    if form in {"tables", "msprof"}:
        assert ("trace_view.json is missing" in report.verdict) == (form == "tables")
        host = HOST if form == "tables" else HOST - {"memory_ops"}
        assert {part for part, time in split.items() if isinstance(time, NotMeasured)} == host
        spans = [[w for w in works if step_of(STEPS, w.start) == step and w.kind != "memcpy"] for step in STEPS]
        assert report.tables["split"].total[-1] == sum(max(w.end for w in s) - min(w.start for w in s) for s in spans)


def test_what_only_one_side_of_a_comparison_recorded_is_no_zero_of_the_other(tmp_path: Path) -> None:
    whole, tables = (write_ascend(tmp_path / name, RANKS[0], LAYOUT, "text") for name in ("whole", "tables"))
    (tables / OUTPUT / "trace_view.json").unlink()
    found = traceanalyze.compare(whole, tables)
    for table, part in (("step_difference", "part"), ("overall_metrics", "index")):
        (row,) = (one for one in found.tables[table].records() if getattr(one, part) == "memory_ops")
        assert row.base_time_ns > 0
        assert row.candidate_time_ns == row.diff_ns == NotMeasured("no_timeline")
    screen = render_all((found,), texts(), Style(100), View()).splitlines()
    (shown,) = (line for line in screen if line.startswith("memory ops  "))
    assert "n/m" in shown


def damaged(folder: Path, how: str) -> Path:
    """A profile whose timeline lacks a process, or its second half."""
    home = without(folder, "text")
    timeline = home / OUTPUT / "trace_view.json"
    events = json.loads(timeline.read_text())
    if how == "cut":
        timeline.write_text(timeline.read_text()[: timeline.stat().st_size // 2])
        return home
    gone = {e["pid"] for e in events if e["name"] == "process_name" and e["args"]["name"] == how}
    assert gone
    timeline.write_text(json.dumps([event for event in events if event["pid"] not in gone]))
    return home


WORK = ("compute", "communication")


@pytest.mark.parametrize("how", ["Ascend Hardware", "Communication", "cut"])
def test_kernels_that_the_timeline_lacks_are_those_of_the_table(tmp_path: Path, how: str) -> None:
    """Compute and communication are those of the whole profile, and what is lost is said beside the verdict."""
    report = traceanalyze.analyze(damaged(tmp_path, how))
    known, split = ({row[0]: row[1] for row in one.tables["split"].rows} for one in (whole("text"), report))
    assert [split[part] for part in WORK] == [known[part] for part in WORK]
    assert "kernels and collectives are not in trace_view.json" in report.verdict
    assert isinstance(split["memory_ops"], NotMeasured) == (how != "Communication")


@pytest.mark.parametrize(("how", "part"), [("Ascend Hardware", "compute"), ("Communication", "communication")])
def test_work_that_only_the_step_times_tell_of_is_not_measured(tmp_path: Path, how: str, part: str) -> None:
    """Neither 0 nor idle, and no finding about it."""
    home = damaged(tmp_path, how)
    (home / OUTPUT / "kernel_details.csv").unlink()
    report, why = traceanalyze.analyze(home), NotMeasured("work_lost")
    split = {row[0]: row[1] for row in report.tables["split"].rows}
    assert split[part] == split["communication"] == split["idle"] == split["dispatch"] == why
    assert (split["memory_ops"] == why) == (part == "compute")
    assert f"neither {part} nor idle time is measured" in report.verdict
    assert not [one.rule for one in report.findings if one.saving]
    compared = traceanalyze.compare(write_ascend(tmp_path / "whole", RANKS[0], LAYOUT, "text"), home)
    times = {row.part: row.candidate_time_ns for row in compared.tables["step_difference"].records()}
    assert times[part] == times["idle"] == why
    exposed = {row.index: row.candidate_time_ns for row in compared.tables["overall_metrics"].records()}
    assert exposed["comm_wait"] == exposed["comm_transfer"] == why
    sheets = pd.read_excel(BytesIO(renderer("msprof")([compared], texts("en"))), sheet_name=None, header=2)
    # To who moves from a GPU it is no part that nothing is to win in.
    moved = traceanalyze.compare("sample_traces/gpu_npu_pair/gpu", home)
    rows = list(moved.tables["migration"].records())
    untold = [row for row in rows if row.win_ns == why]
    assert untold == rows[-len(untold) :]
    assert {row.op for row in untold} >= {"idle", "all_reduce"} | ({part} - {"communication"})
    # What is left of communication is not known to be exposed, and what is lost is not the base's alone.
    for found in (moved, compared):
        sent = list(found.tables["communication_compare"].records())
        assert {row.candidate_exposed_ns for row in sent} == {row.exposed_diff_ns for row in sent} == {why}
        totals = {(row.candidate_total_ns, row.diff_ns, row.match) for row in sent}
        assert (totals == {(why, why, why)}) == (part == "communication")
    # What is lost is an empty cell where a script would read 0, and a sheet says so.
    if part == "communication":
        work = sheets["CommunicationCompare"]
        assert work["Calls"].gt(0).all()
        assert work[["Calls.1", "Total Duration(us).1", work.columns[-1]]].isna().all(axis=None)
    assert ("KernelCompare" in sheets) == ("ModuleCompareStatistic" in sheets) == (part == "communication")
    # Nor has the base alone the kernels and operators of what is lost.
    for found in (moved, compared):
        for key in ("kernel_compare", "kernel_type_compare", "operator_compare_statistic"):
            rows = list(found.tables[key].records())
            assert (found.tables[key].absent == why, not rows) == (part == "compute", part == "compute")
            assert all((row.match == why) == (row.diff_ns == why) for row in rows)
            lost = [row for row in rows if row.match == why]
            assert len(lost) == (part == "communication")
        # Nor is it a cause that is gone; what no part tells is not explained.
        assert {row.part for row in found.tables["causes"].records()} <= {"memory_ops", "compute"} - {part}
    assert ("cannot be told" if part == "compute" else "is not ranked") in moved.verdict
    assert f"{part} of candidate" in sheets["Differences"].to_string()
    sheet = sheets["OverallMetrics"]
    told = sheet.set_index(sheet["Index"].str.strip())["Duration(ms).1"].dropna()
    assert ("Computing Time" in told) == (part == "communication")
    assert not {"Uncovered Communication Time", "Wait", "Transmit", "Free Time", "SDMA", "E2E Time"} & set(told.index)
    assert "the recording lacks work" in " ".join(map(str, compared.notes))


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("bare", [False, True])
def test_real_tables_alone_agree_with_their_own_step_times(
    shared_traces: Path, tmp_path: Path, rank: int, bare: bool
) -> None:
    """Computing, communication, what of it nothing hides and stage within 0.01 % of step_trace_time.csv."""
    home = shared_traces / f"ascend/msinsight_2rank_torch/text/level1/rank{rank}_ascend_pt" / OUTPUT
    if not home.is_dir():
        pytest.skip("the profiles are not here")
    output = tmp_path / ("copied" if bare else f"rank{rank}_ascend_pt/{OUTPUT}")
    output.mkdir(parents=True)
    for path in home.glob("*.csv"):
        (output / path.name).write_bytes(path.read_bytes())
    trace = load(tmp_path)
    found = analyze_trace(trace)
    assert trace.vendor is not None
    (said,) = trace.vendor.steps
    times = {row.part: row.mean_ns for row in found.records("split")}
    (work,) = found.partitions
    ours = times["compute"], int(work.comm_total.sum()), times["communication"], int(found.steps.time.sum())
    theirs = said.computing, said.communication, said.not_overlapped, said.stage
    assert ours == pytest.approx(theirs, rel=1e-4)
    assert {part for part, time in times.items() if isinstance(time, NotMeasured)} == HOST
    assert sum(row.count for row in found.records("kernels")) == 191


def run(path: Path) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "traceanalyze", str(path), "-v"]
    return subprocess.run(call, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("form", ["text", "db"])
def test_every_level_gives_the_same_steps(tmp_path: Path, level: int, form: str) -> None:
    """What a level leaves out is named; it never changes the parts of the step."""
    report = traceanalyze.analyze(write_ascend(tmp_path, RANKS[0], AscendLayout("8.3", level=level), form))
    split = {row[0]: row[1] for row in report.tables["split"].rows}
    known = {row[0]: row[1] for row in whole("text").tables["split"].rows}
    assert {part: split[part] for part in ("compute", "communication", "memory_ops")} == {
        part: known[part] for part in ("compute", "communication", "memory_ops")
    }
    keys = {check.message.key for check in report.ranks[0].checks}
    assert ("no_cann_calls" in keys) == (level == 0 and form == "text")


def test_a_profile_without_the_device_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """Level_none: the timeline has the host's events and no table."""
    home = write_ascend(tmp_path, RANKS[0], AscendLayout("8.3", level=0, damage="host_open"))
    for path in (home / OUTPUT).iterdir():
        if path.name != "trace_view.json":
            path.unlink()
    done = run(home)
    assert done.returncode == 0
    assert "has no device event" in done.stdout


@pytest.mark.parametrize("form", ["text", "db", "both"])
def test_reading_leaves_a_folder_that_cannot_be_written_as_it_is(tmp_path: Path, form: str) -> None:
    """Neither -wal nor -shm nor anything else beside the files, whose times and sizes stay."""
    home = write_ascend(tmp_path, RANKS[0], LAYOUT, form)

    def state() -> dict[str, tuple[int, int]]:
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in home.rglob("*")}

    before = state()
    for folder in (home, home / OUTPUT):
        folder.chmod(0o555)
    try:
        traceanalyze.analyze(home)
    finally:
        for folder in (home, home / OUTPUT):
            folder.chmod(0o755)
    assert state() == before


def test_pipes_in_place_of_files_are_not_waited_for(tmp_path: Path) -> None:
    """Run apart: a pipe that is opened waits without end."""
    home = without(tmp_path, "text", *(name for name in TEXT))
    for name in TEXT:
        place = home if name.startswith("profiler_") else home / OUTPUT
        os.mkfifo(place / name)
    command = [sys.executable, "-m", "traceanalyze", str(home), "-v"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "profiler_info_0.json cannot be read and was left out" in " ".join(done.stdout.split())


def test_beside_a_file_in_a_folder_that_cannot_be_listed_is_nothing(tmp_path: Path, monkeypatch) -> None:
    timeline = without(tmp_path, "text") / OUTPUT / "trace_view.json"
    assert profile_of(timeline).info is not None
    monkeypatch.setattr(Path, "iterdir", lambda folder: (_ for _ in ()).throw(PermissionError(folder)))
    assert profile_of(timeline) == Profile(timeline, timeline.parent, timeline=timeline)


@pytest.mark.parametrize("bare", [(0, 1), (1,)])
def test_tables_alone_of_two_ranks_of_eight_claim_neither_transfer_nor_the_longest_work(
    shared_traces: Path, tmp_path: Path, bare: tuple[int, ...]
) -> None:
    """The table of links names eight ranks; steps of a device alone are not those of a program."""
    source = shared_traces / "ascend/msinsight_2rank_torch/text/level1"
    if not source.is_dir():
        pytest.skip("the profiles are not here")
    for rank in (0, 1):
        output = tmp_path / f"rank{rank}_ascend_pt/{OUTPUT}"
        output.mkdir(parents=True)
        for path in (source / output.relative_to(tmp_path)).iterdir():
            if not (rank in bare and path.name == "trace_view.json"):
                (output / path.name).symlink_to(path)
        (info,) = (source / f"rank{rank}_ascend_pt").glob("profiler_info_*.json")
        (output.parent / info.name).symlink_to(info)
    said = traceanalyze.analyze(tmp_path).verdict
    assert "moves data rather than" not in said
    assert "not recorded (2–7)" in said
    assert ("are not compared: of rank 1 they are" in said) == (bare == (1,))
    assert "works longest" not in said


SUMS = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,Preparing"


def stage(folder: Path, rank: int, computing: int, bubble: int) -> None:
    """What people copy of a rank of a pipeline: sums of two steps of 810 ms, and who it belongs to."""
    output = folder / f"rank{rank}_ascend_pt" / OUTPUT
    output.mkdir(parents=True)
    bare, hidden = 660_000 - computing, 20_000
    rows = [
        f"{step},{computing},{bare},{hidden},{bare + hidden},150000,{810_000 - bubble},{bubble},0" for step in (7, 8)
    ]
    (output / "step_trace_time.csv").write_text("\n".join((SUMS, *rows, "9,1,N/A,1,1,1,1,1,1")))
    (output.parent / f"profiler_info_{rank}.json").write_text(json.dumps({"rank_id": rank}))
    groups = {"group_name_1": {"group_name": "pp", "global_ranks": [0, 1]}}
    metadata = {"distributed_args": {"rank": rank, "world_size": 2}, "parallel_group_info": groups}
    (output.parent / "profiler_metadata.json").write_text(json.dumps(metadata))


def test_sums_of_steps_alone_are_rows_of_the_ranks_and_tell_uneven_stages(tmp_path: Path) -> None:
    stage(tmp_path, 0, 231_000, 400_000)
    stage(tmp_path, 1, 400_000, 210_000)
    report = traceanalyze.analyze(tmp_path)
    rows = list(report.tables["ranks"].records())
    assert [(row.rank, row.step_ns, round(row.compute_share * 810)) for row in rows] == [
        ("0", 810_000_000, 231),
        ("1", 810_000_000, 400),
    ]
    # Of rank 1, which waits less and so works longer.
    split = {row[0]: row[1] for row in report.tables["split"].rows}
    assert (split["communication"], split["idle"]) == (260_000_000, 150_000_000)
    assert {part for part, time in split.items() if isinstance(time, NotMeasured)} == HOST
    (found,) = (one for one in report.findings if one.rule == "RNK102")
    assert found.saving is None
    assert "stages of the pipeline have unequal work: rank 1 computes 400.0 ms" in found.sentence
    assert "kernels" not in report.tables
    assert [one.rule for one in report.findings if one.rule[:3] in {"KRN", "COM", "HST", "SYN"}] == []
    assert "only step_trace_time.csv tells of the device's work" in report.verdict
    assert "1 row(s)" in notes(report)


def test_sums_of_steps_do_not_tell_what_limits_the_step(tmp_path: Path) -> None:
    stage(tmp_path, 0, 640_000, 0)
    rows = [f"{step},400000,10000,0,10000,400000,810000,0,0" for step in (7, 8)]
    (tmp_path / "rank0_ascend_pt" / OUTPUT / "step_trace_time.csv").write_text("\n".join((SUMS, *rows)))
    verdict = traceanalyze.analyze(tmp_path).verdict
    assert verdict.startswith("Step 810.0 ms")
    assert "faster kernels" not in verdict
    assert "excerpt" not in verdict


@pytest.mark.parametrize("place", ["rank1_ascend_pt", ".", f"rank0_ascend_pt/{OUTPUT}"])
def test_a_rank_as_text_and_a_rank_as_database_are_one_job(tmp_path: Path, place: str) -> None:
    """As exported, beside the folder of the other rank, or in it; by itself it does not name its groups."""
    texts = [write_ascend(tmp_path / "texts", rank, LAYOUT, "text") for rank in RANKS]
    mixed = write_ascend(tmp_path / "mixed", RANKS[0], LAYOUT, "text").parent
    other = write_ascend(mixed if place == "rank1_ascend_pt" else tmp_path, RANKS[1], LAYOUT, "db")
    if place != "rank1_ascend_pt":
        (database,) = other.rglob("ascend_pytorch_profiler_1.db")
        database.rename(mixed / place / database.name)
    known, found = traceanalyze.analyze(texts[0].parent), traceanalyze.analyze(mixed)
    assert found.tables["ranks"].rows == known.tables["ranks"].rows
    if place == "rank1_ascend_pt":
        assert found.tables["rank_waits"].rows == known.tables["rank_waits"].rows
