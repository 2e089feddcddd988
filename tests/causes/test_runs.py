"""Whole run directories whose causes are known: made by hand, and by the simulator."""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import traceanalyze
from tests.causes.make import COMPUTE, MS, TRANSFER, write_run
from tests.simulate.simulate import simulate
from tests.simulate.truth.summary import step_time, without_faults
from tests.simulate.workload import Fault, Model, Ranks, Workload
from tests.simulate.writers.kineto import write
from traceanalyze.errors import InputError, UsageError
from traceanalyze.locales import texts
from traceanalyze.model.vocabulary import Detail
from traceanalyze.pipeline.choices import Choices
from traceanalyze.pipeline.postmortem import postmortem_reports
from traceanalyze.report.console import Style, on_screen, render
from traceanalyze.report.format import Formatter
from traceanalyze.report.view import View

SAMPLES = Path(__file__).parents[2] / "sample_traces"
SLOW = 40
"""ms of a step in which a rank waits for its loader."""


def rows(report, table="run_causes"):
    """Rows by name of the column."""
    found = report.tables[table]
    return [dict(zip((column.key for column in found.columns), row, strict=True)) for row in found.rows]


def said(report, language="en"):
    return Formatter(texts(language)).sentences(report.verdict_messages)


def causes(report):
    return [row["rule_id"] for row in rows(report)]


@pytest.fixture
def whole(tmp_path):
    return tmp_path / "run"


def test_a_loader_that_is_slow_on_all_ranks(whole):
    write_run(whole, [[SLOW] * 4] * 2)
    report = traceanalyze.postmortem(whole)
    first = rows(report)[0]
    assert (first["rule_id"], first["on_ranks"], first["since"]) == ("DAT101", "0-1", "since_every")
    assert first["gain_ns"] == pytest.approx(SLOW * MS, rel=0.01)
    assert first["share"] == pytest.approx(SLOW / (SLOW + COMPUTE + TRANSFER), rel=0.02)
    assert first["total_ns"] == pytest.approx(SLOW * MS * 8, rel=0.01)
    assert "on each of the 2 ranks: waiting for the data loader" in said(report)
    assert "in all 4 analysed steps" in said(report)
    assert "What to do: More workers or a larger prefetch_factor in the DataLoader" in said(report)


def test_a_loader_that_is_slow_from_a_step_on(whole):
    write_run(whole, [[3] * 2 + [30] * 5] * 2, first=10)
    report = traceanalyze.postmortem(whole)
    first = rows(report)[0]
    assert (first["rule_id"], first["since"], first["since_step"], first["affected"]) == (
        "DAT101",
        "since_from",
        "12",
        "5/7",
    )
    assert "from step 12 on, in 5 of 7 analysed steps" in said(report)


def test_a_straggler_because_of_its_loader_is_told_once(whole):
    """Rank 1 waits for its loader, the others wait for rank 1: mended there, the run gains all of it."""
    write_run(whole, [[0] * 4, [SLOW] * 4, [0] * 4])
    report = traceanalyze.postmortem(whole)
    found = {row["rule_id"]: row for row in rows(report)}
    first = rows(report)[0]
    assert first["rule_id"] == "RNK101"
    assert first["on_ranks"] == "1"
    assert first["gain_ns"] == pytest.approx(SLOW * MS, rel=0.01)
    assert (found["DAT101"]["part_of"], found["DAT101"]["on_ranks"]) == (1, "1")
    assert first["because"] == found["DAT101"]["position"]
    assert "Rank 1 limited this run" in said(report)
    assert "Behind it: waiting for the data loader" in said(report)
    assert "More workers or a larger prefetch_factor" in said(report)
    assert rows(report, "actions")[0]["finding"] == "rule_RNK101"


def test_since_when_a_rank_is_late(whole):
    write_run(whole, [[3] * 7, [3] * 3 + [SLOW] * 4])
    found = {row["rule_id"]: row for row in rows(traceanalyze.postmortem(whole))}
    late = found["RNK101"]
    assert (late["since"], late["since_step"], late["affected"]) == ("since_from", "3", "4/7")


def test_a_fault_that_only_a_later_recording_has(whole):
    write_run(whole, [[0] * 4] * 2, name="early_")
    write_run(whole, [[SLOW] * 4] * 2, first=500, at=100_000, name="late_")
    report = traceanalyze.postmortem(whole)
    first = rows(report)[0]
    assert (first["rule_id"], first["since"], first["since_step"], first["recording"]) == (
        "DAT101",
        "since_from",
        "500",
        2,
    )
    assert [(row["steps"], round(row["step_ns"] / MS)) for row in rows(report, "recordings")] == [
        ("0-3", COMPUTE + TRANSFER),
        ("500-503", COMPUTE + TRANSFER + SLOW),
    ]
    notes = Formatter(texts()).sentences(report.tables["run_causes"].notes)
    assert "waiting for the data loader: appears with recording 2" in notes
    assert "The step grew from" in said(report)
    assert " in recording 2; --ranks chooses others." in on_screen([report], texts(), Style(80))
    trend = [row["gain_ns"] for row in rows(report, "cause_trend") if row["finding"] == "rule_DAT101"]
    assert trend[0] == 0
    assert trend[1] == pytest.approx(SLOW * MS, rel=0.01)


def test_without_step_marks_nothing_is_said_about_steps(whole):
    write_run(whole, [[SLOW] * 4] * 2)
    report = traceanalyze.postmortem(whole, select=["DAT"], step_marker="no such range")
    first = rows(report)[0]
    assert (first["rule_id"], first["since"], first["affected"]) == ("DAT101", None, None)
    assert " step" not in said(report).partition("What to do")[0]


def test_a_healthy_run_has_no_culprit(whole):
    write_run(whole, [[0] * 4] * 2)
    report = traceanalyze.postmortem(whole, ignore=["COM", "KRN"])
    # A fifth is communication, which nothing explains without its rules: no clean bill of health.
    assert said(report).startswith("No rule found a cause that comes back and costs 1 % of the step")
    assert [row for row in rows(report) if row["severity"] in {"severity_high", "severity_medium"}] == []


def test_a_program_on_the_cpu_that_waits_for_its_data():
    report = traceanalyze.postmortem(SAMPLES / "cpu_slow_loader")
    first = rows(report)[0]
    assert (first["rule_id"], first["severity"], first["since"]) == ("DAT101", "severity_high", "since_every")
    split = {row["part"]: row["mean_ns"] for row in rows(report, "split")}
    # All but the 0.6 ms in which a batch is fetched that workers have ready.
    assert abs(first["gain_ns"] - (split["data_loading"] - 600_000)) <= 1
    assert "num_workers=" in said(report)


def test_a_program_whose_device_was_not_recorded_may_wait_for_its_data_all_the_same(whole):
    sample = json.loads(gzip.decompress((SAMPLES / "cpu_slow_loader" / "trace.json.gz").read_bytes()))
    sample["distributedInfo"] = {"backend": "nccl", "rank": 0, "world_size": 1}
    whole.mkdir()
    (whole / "rank0.json").write_text(json.dumps(sample))
    report = traceanalyze.postmortem(whole)
    first = rows(report)[0]
    assert (first["finding"], first["severity"]) == ("cause_host_loading", "severity_high")
    split = {row["part"]: row["mean_ns"] for row in rows(report, "split")}
    assert abs(first["gain_ns"] - split["data_loading"]) <= 1
    assert "num_workers=4" in said(report)


def test_every_file_is_accounted_for(whole):
    paths = write_run(whole, [[0] * 4] * 2)
    shutil.copy(paths[0], whole / "copy_of_rank0.json")
    (whole / "broken.json.gz").write_bytes(gzip.compress(b'{"traceEvents": [')[:-4])
    (whole / "notes.txt").write_text("lr 1e-4")
    (whole / "run.json").write_text('{"schema": "traceanalyze.run/1", "rank": 0, "files": ["rank0.json"]}')
    shutil.copy(SAMPLES / "memory" / "leak" / "snapshot.pickle.gz", whole / "rank1_snapshot.pickle.gz")
    (whole / "bad.pickle.gz").write_bytes((whole / "rank1_snapshot.pickle.gz").read_bytes()[:200])
    report = traceanalyze.postmortem(whole)
    fates = {Path(row["path"]).name: (row["file_kind"], row["fate"], row["rank"]) for row in rows(report, "run_files")}
    kept = {name: fates.pop(name) for name in list(fates) if "rank0" in name}
    assert sorted(fate for _, fate, _ in kept.values()) == ["fate_repeated", "fate_used"]
    (note,) = (Formatter(texts()).message(each) for each in report.note_messages if each.key == "files_lost")
    assert note == "2 files could not be used: see the table of files (console: -v)."
    assert fates == {
        "rank1.json": ("file_trace", "fate_used", 1),
        "rank1_snapshot.pickle.gz": ("file_snapshot", "fate_used", 1),
        "broken.json.gz": ("file_trace", "fate_left_out", None),
        "run.json": ("file_run_list", "fate_used", None),
        "notes.txt": ("file_other", "fate_passed_over", None),
        "bad.pickle.gz": ("file_snapshot", "fate_left_out", None),
    }


def test_a_list_of_files_tells_them_apart_on_a_narrow_page(whole):
    write_run(whole, [[0] * 4] * 2)
    page = render(traceanalyze.postmortem(whole), texts(), Style(width=80), View(detail=Detail.VERBOSE))
    (listed,) = [part.splitlines() for part in page.split("\n\n") if part.startswith("Files\n")]
    assert [line.split()[0] for line in listed[3:5]] == ["rank0.json", "rank1.json"]
    assert "".join(listed[5:]).replace(" ", "") == f"allin{whole}/".replace(" ", "")


def test_a_list_of_files_that_cannot_be_read_is_said_with_the_reason(whole):
    write_run(whole, [[0] * 4] * 2)
    (whole / "run.json").write_text('{"schema": "traceanalyze.run/1", "rank": 0, "fil')
    (whole / "run_rank1.json").write_text('{"of": "another program"}')
    report = traceanalyze.postmortem(whole)
    told = {Path(row["path"]).name: (row["file_kind"], row["fate"], row["why"]) for row in rows(report, "run_files")}
    assert told["run.json"] == ("file_run_list", "fate_left_out", "no JSON: damaged or cut short")
    assert told["run_rank1.json"] == ("file_other", "fate_passed_over", "json")
    assert [each.values[0][2] for each in report.note_messages if each.key == "files_lost"] == [1]


def test_a_snapshot_beside_traces_is_a_cause_on_its_rank(whole):
    write_run(whole, [[SLOW] * 4] * 2)
    shutil.copy(SAMPLES / "memory" / "out_of_memory" / "snapshot.pickle.gz", whole / "rank1_snapshot.pickle.gz")
    report = traceanalyze.postmortem(whole, capacity="1100MiB")
    first, second = rows(report)[:2]
    assert (first["finding"], first["on_ranks"], first["rule_id"]) == ("oom_capacity", "1", "MEM112")
    assert second["rule_id"] == "DAT101"
    assert said(report).startswith("The run ran out of memory on rank 1.")
    assert causes(report).count("MEM112") == 1


def test_the_traces_tell_how_much_memory_the_device_has(whole):
    write_run(whole, [[SLOW] * 4] * 2)  # on devices of 80 GiB, of which the request that failed had no share
    shutil.copy(SAMPLES / "memory" / "out_of_memory" / "snapshot.pickle.gz", whole / "rank1_snapshot.pickle.gz")
    assert rows(traceanalyze.postmortem(whole))[0]["finding"] == "oom_other_processes"


def test_files_with_odd_names_are_told_once_each(whole):
    paths = write_run(whole, [[0] * 4] * 2)
    good = SAMPLES / "memory" / "leak" / "snapshot.pickle.gz"
    shutil.copy(good, whole / "rank1_list.json")
    (whole / "list.json").write_text('{"a": 1}')
    (whole / "list (1).json").write_text('{"a": 1}')
    (whole / "odd: name.pickle.gz").write_bytes(good.read_bytes()[:200])
    (whole / "rank7.json").symlink_to("nowhere")
    every = {path.name: 1 for path in whole.iterdir()}
    told = rows(traceanalyze.postmortem(f"{whole.parent}/./{whole.name}/"), "run_files")
    assert {Path(row["path"]).name: 1 for row in told} == every
    assert len(told) == len(every)
    fates = {Path(row["path"]).name: (row["fate"], row["why"]) for row in told}
    assert fates["list (1).json"] == fates["list.json"] == ("fate_passed_over", "json")
    assert fates["odd: name.pickle.gz"][0] == "fate_left_out"
    assert fates["rank7.json"][0] == "fate_passed_over"
    named = [f"./{path}" if not path.startswith("/") else path.replace("/rank", "//rank") for path in map(str, paths)]
    named.append(f"{whole}//rank1_list.json")
    assert [row["fate"] for row in rows(traceanalyze.postmortem(named), "run_files")] == ["fate_used"] * 3


def test_a_folder_of_snapshots_only(tmp_path):
    shutil.copytree(SAMPLES / "memory" / "leak", tmp_path / "run")
    report = traceanalyze.postmortem(tmp_path / "run", capacity="400MiB")
    assert said(report).startswith("The run is about to run out of memory.")
    assert "train.py:31" in said(report)
    assert "recordings" not in report.tables
    assert rows(report, "memory_files")[0]["file_kind"] == "file_snapshot"


def test_of_several_snapshots_the_verdict_is_that_of_the_worst(tmp_path):
    for name in ("healthy", "leak", "fragmentation"):
        shutil.copytree(SAMPLES / "memory" / name, tmp_path / "run" / name)
    report = traceanalyze.postmortem(tmp_path / "run")
    assert "Every step leaves 24.0 MiB behind" in said(report)
    assert rows(report)[0]["finding"] == "leak"


def test_a_folder_with_nothing(tmp_path):
    with pytest.raises(InputError, match="there is no file in this folder"):
        traceanalyze.postmortem(tmp_path)
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(InputError, match="no trace in this folder"):
        traceanalyze.postmortem(tmp_path)


def test_several_jobs_are_told_apart(tmp_path):
    write_run(tmp_path / "two", [[0] * 4] * 2)
    write_run(tmp_path / "three", [[SLOW] * 4] * 3)
    with pytest.raises(UsageError, match="the input holds 2 jobs"):
        traceanalyze.postmortem(tmp_path)


def test_of_several_jobs_each_has_its_own_files(tmp_path):
    for name, ranks in (("two", 2), ("three", 3)):
        write_run(tmp_path / name, [[0] * 4] * ranks)
        shutil.copy(SAMPLES / "memory" / "leak" / "snapshot.pickle.gz", tmp_path / name / "rank0_s.pickle.gz")
    found = postmortem_reports([str(tmp_path)], Choices())
    files = [
        sorted(Path(row["path"]).relative_to(tmp_path).as_posix() for row in rows(one, "run_files")) for one in found
    ]
    assert files == [
        ["three/rank0.json", "three/rank0_s.pickle.gz", "three/rank1.json", "three/rank2.json"],
        ["two/rank0.json", "two/rank0_s.pickle.gz", "two/rank1.json"],
    ]


def test_remarks_on_one_of_several_recordings_name_it(whole):
    """Also in other languages, in which the remark itself is known again."""
    write_run(whole, [[0] * 4] * 2, name="early_")
    (late, other) = write_run(whole, [[0] * 4] * 2, first=500, at=100_000, name="late_")
    Path(other).unlink()
    report = traceanalyze.postmortem(whole)
    (remark,) = (each for each in report.note_messages if "no recording" in str(each.values))
    assert Formatter(texts("en")).message(remark) == f"{Path(late).stem}: no recording of 1 of 2 ranks: 1"
    assert Formatter(texts("zh")).message(remark) == f"{Path(late).stem}：共 2 个 Rank，缺少 1 个：Rank 1"


@pytest.mark.parametrize(("text", "fate"), [('{"num_alloc_retries": 3}', "used"), ("[" * 100_000, "passed_over")])
def test_statistics_of_the_allocator_are_used_if_they_can_be_read(tmp_path, text, fate):
    shutil.copytree(SAMPLES / "memory" / "leak", tmp_path / "run")
    (tmp_path / "run" / "memory_stats.json").write_text(text)
    fates = {
        Path(row["path"]).name: row["fate"] for row in rows(traceanalyze.postmortem(tmp_path / "run"), "run_files")
    }
    assert fates["memory_stats.json"] == f"fate_{fate}"


def test_only_some_ranks(whole):
    write_run(whole, [[SLOW] * 4] * 3)
    report = traceanalyze.postmortem(whole, ranks="0,2")
    assert rows(report)[0]["on_ranks"] == "0,2"
    fates = {row["rank"]: row["fate"] for row in rows(report, "run_files")}
    assert fates == {0: "fate_used", 1: "fate_not_chosen", 2: "fate_used"}
    assert len(report.focus) == 2


def test_only_some_steps_leave_recordings_without_them_out(whole):
    write_run(whole, [[0] * 4] * 2, name="early_")
    write_run(whole, [[SLOW] * 4] * 2, first=500, at=100_000, name="late_")
    report = traceanalyze.postmortem(whole, steps="500:")
    assert [row["steps"] for row in rows(report, "recordings")] == ["500-503"]
    fates = {Path(row["path"]).name: row["fate"] for row in rows(report, "run_files")}
    assert fates == {
        "early_rank0.json": "fate_left_out",
        "early_rank1.json": "fate_left_out",
        "late_rank0.json": "fate_used",
        "late_rank1.json": "fate_used",
    }
    with pytest.raises(InputError, match="there is no step 900"):
        traceanalyze.postmortem(whole, steps="900")


def test_recordings_without_the_chosen_ranks_are_left_out(whole):
    write_run(whole, [[0] * 4] * 2, name="two_")
    three = write_run(whole.parent / "three", [[0] * 4] * 3, at=100_000)
    report = traceanalyze.postmortem([whole, *three], ranks="2")
    assert [row["fate"] for row in rows(report, "run_files")].count("fate_not_chosen") == 4
    with pytest.raises(UsageError, match="there is no rank 9"):
        traceanalyze.postmortem(whole, ranks="9")


def test_ranks_without_a_common_wait_are_told_what_is_missing(whole):
    write_run(whole, [[SLOW] * 2] * 2)
    missing = {row["because_of"]: row for row in rows(traceanalyze.postmortem(whole), "not_judged")}
    few = missing["reason_few_steps_for_stragglers"]
    assert "RNK101" in few["rule_ids"]
    assert few["record_with"] == "option_few_steps_for_stragglers.cuda"


SIMULATED = Workload(model=Model(layers=2), ranks=Ranks(count=3), warmup=2, steps=4, seed=5)


def simulated(folder, workload):
    folder.mkdir()
    for schedule in simulate(workload):
        (folder / f"rank{schedule.rank}.json").write_bytes(write(schedule))
    return traceanalyze.postmortem(folder, select=["DAT", "RNK"])


def test_the_gain_is_what_the_simulation_gains_without_the_fault(whole):
    workload = replace(SIMULATED, faults=(Fault("slow_loader", 60),))
    true = (step_time(workload) - without_faults(workload)["slow_loader"]) / workload.steps
    first = rows(simulated(whole, workload))[0]
    assert (first["rule_id"], first["on_ranks"]) == ("DAT101", "0-2")
    assert first["gain_ns"] == pytest.approx(true, rel=0.2)


def test_a_slow_rank_costs_what_the_simulation_gains_without_it(whole):
    workload = replace(SIMULATED, faults=(Fault("straggler", 2),))
    true = (step_time(workload) - without_faults(workload)["straggler"]) / workload.steps
    report = simulated(whole, workload)
    first = rows(report)[0]
    assert (first["rule_id"], first["on_ranks"]) == ("RNK101", "2")
    assert first["gain_ns"] == pytest.approx(true, rel=0.25)
    assert "Rank 2 limited this run" in said(report)


def test_why_the_only_file_cannot_be_used_is_said(tmp_path):
    (tmp_path / "bad.pickle").write_bytes(b"\x80\x04broken")
    with pytest.raises(InputError, match=r"bad\.pickle: this pickle is truncated or damaged"):
        traceanalyze.postmortem(tmp_path)


def test_what_one_rank_of_six_loses_while_all_wait_for_it_the_run_gains(whole):
    run = replace(SIMULATED, ranks=Ranks(count=6), faults=(Fault("late_host", 12),))
    whole.mkdir()
    for number, one in enumerate(simulate(run)):
        (whole / f"rank{number}.json").write_bytes(write(one))
    by_rule = {row["rule_id"]: row for row in rows(traceanalyze.postmortem(whole))}
    lost = (step_time(run) - without_faults(run)["late_host"]) / run.steps
    assert by_rule["RNK101"]["on_ranks"] == by_rule["HST113"]["on_ranks"] == "5"
    assert by_rule["HST113"]["gain_ns"] == pytest.approx(lost, rel=0.1)
    assert by_rule["HST113"]["part_of"] == by_rule["RNK101"]["position"]
