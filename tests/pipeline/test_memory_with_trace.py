"""Snapshots and traces of one run, given together: each is read with the other, and nothing is lost in silence."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import traceanalyze
from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.of_schedule import GRANULE, snapshot_of
from tests.simulate.allocator.pool import Allocator
from tests.simulate.allocator.programs import Loop, train
from tests.simulate.simulate import simulate
from tests.simulate.workload import MS, US, Device, Host, Model, Ranks, Script, Workload
from tests.simulate.writers.kineto import write
from traceanalyze.errors import InputError
from traceanalyze.locales import texts
from traceanalyze.model.vocabulary import Detail
from traceanalyze.pipeline import Choices, reports
from traceanalyze.pipeline.memory import memory_reports
from traceanalyze.pipeline.memory_files import allocators_of, allocators_of_traces, expected_ranks, memory_files
from traceanalyze.pipeline.results import analysed_files
from traceanalyze.report import console
from traceanalyze.report.console.style import Style
from traceanalyze.report.view import View

if TYPE_CHECKING:
    from tests.simulate.schedule import Schedule
    from traceanalyze.report.model import Report

_MODEL = Model(layers=1, hidden=512, sequence=256, batch=8, vocabulary=2048)


def simulated(ranks: int = 1) -> tuple[Schedule, ...]:
    """A program that empties its cache after every step."""
    return simulate(
        Workload(
            model=_MODEL,
            device=Device(segment=GRANULE),
            host=Host(allocate=MS),
            script=Script(empty_cache=True),
            ranks=Ranks(ranks),
            tick=US,
        )
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace and a snapshot of one rank."""
    folder = tmp_path_factory.mktemp("run")
    (schedule,) = simulated()
    (folder / "trace.json").write_bytes(write(schedule))
    (folder / "snapshot.pickle").write_bytes(pickle.dumps(snapshot_of(schedule)))
    return folder


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traces and snapshots of two ranks, and a snapshot of a rank that was not recorded."""
    folder = tmp_path_factory.mktemp("two")
    for rank, schedule in enumerate(simulated(2)):
        (folder / f"trace_rank{rank}.json").write_bytes(write(schedule))
        (folder / f"snapshot_rank{rank}.pickle").write_bytes(pickle.dumps(snapshot_of(schedule)))
    other = pickle.dumps(dump(train(Loop(steps=2), Allocator())))
    (folder / "snapshot_rank7.pickle").write_bytes(other)
    return folder


def page(report: Report, lang: str = "en") -> str:
    return console.render(report, texts(lang), Style(width=200), View(Detail.VERBOSE))


def test_the_verdict_of_the_snapshot_names_the_place_of_the_peak(run: Path) -> None:
    report = traceanalyze.memory(run)
    # Where the simulation's peak is: see tests/simulate/allocator/test_in_trace.py.
    assert "in use at step 3, forward, in aten::_log_softmax; 100 MiB reserved" in page(report)
    assert "出现在第 3 步的前向阶段，算子 aten::_log_softmax 中" in page(report, "zh")
    table = report.tables["memory_in_trace"]
    first = dict(zip([column.key for column in table.columns], table.rows[0], strict=True))  # type: ignore[arg-type]
    assert (first["moment"], first["step"], first["phase"]) == ("moment_peak", "3", "phase_forward")
    assert first["module"] == "CrossEntropyLoss_0"
    assert sum(value for value in table.column("idle_ns") if isinstance(value, int)) > 5 * MS


def test_two_files_are_one_folder(run: Path) -> None:
    named = memory_reports([str(run / "snapshot.pickle"), str(run / "trace.json")])
    assert named[0].tables["memory_in_trace"].rows == traceanalyze.memory(run).tables["memory_in_trace"].rows
    # The trace was named, so what it says itself is there, too.
    assert [set(one.tables) & {"memory_moments", "allocator_calls"} for one in named] == [
        {"memory_moments"},
        {"allocator_calls"},
    ]


def test_a_snapshot_alone_has_no_place(run: Path) -> None:
    report = traceanalyze.memory(run / "snapshot.pickle")
    assert "memory_in_trace" not in report.tables
    assert "Peak 94.1 MiB in use, 100 MiB reserved" in page(report)


def test_an_analysis_of_the_folder_knows_the_snapshot(run: Path) -> None:
    beside, alone = traceanalyze.analyze(run), traceanalyze.analyze(run / "trace.json")
    unjudged = [set(one.tables["rules_not_judged"].column("rule_id")) for one in (beside, alone)]
    assert unjudged[1] - unjudged[0] >= {"MEM104", "MEM106", "MEM112", "MEM114", "MEM115", "MEM119", "MEM120"}
    found = [set(one.tables["findings"].column("rule_id")) for one in (beside, alone)]
    assert found[0] - found[1] == {"MEM114"}
    assert "memory_in_trace" in beside.tables
    assert "memory_in_trace" not in alone.tables
    text = page(beside)
    assert "Judged with 1 allocator snapshot" in text
    assert str(run / "snapshot.pickle") in text.replace("\n", "")


def test_the_rest_of_the_analysis_is_the_same_with_and_without(run: Path) -> None:
    beside, alone = traceanalyze.analyze(run), traceanalyze.analyze(run / "trace.json")
    changed = {"findings", "finding_evidence", "rules_not_judged", "memory_in_trace", "capture_findings"}
    for key, table in alone.tables.items():
        if key not in changed:
            assert beside.tables[key].rows == table.rows, key


@pytest.mark.parametrize("workers", [False, True])
def test_each_rank_is_judged_with_its_own_snapshot(
    two_ranks: Path, workers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if workers:
        monkeypatch.setattr("traceanalyze.pipeline.results.workers_for", lambda *_: 2)
    paths = [str(two_ranks)]
    files, notes = memory_files(paths, expected_ranks(paths))
    assert [(one.rank, one.rank_source, one.kind) for one in files] == [
        (rank, "file name", "snapshot") for rank in (0, 1, 7)
    ]
    assert notes == ()
    allocators = allocators_of_traces(files, paths)
    _, found = analysed_files(paths, Choices(), None, allocators=allocators)
    for one in found.values():
        placed = one.in_trace
        assert placed is not None
        assert not hasattr(placed, "reason")
        own = allocators_of(files)[one.analysis.trace.origin.rank]
        assert placed.all_calls == len(own.calls)  # type: ignore[union-attr]


def test_the_snapshot_of_another_run_is_not_taken_for_that_of_the_same_rank(two_ranks: Path, tmp_path: Path) -> None:
    """Two runs side by side, both with a rank 0, of which one left snapshots."""
    place = tmp_path / "runs"
    shutil.copytree(two_ranks, place / "with")
    shutil.copytree(two_ranks, place / "without", ignore=shutil.ignore_patterns("*.pickle*", "*snapshot*"))
    paths = [str(place)]
    files, _ = memory_files(paths, expected_ranks(paths))
    assert {Path(one.path).parent.name for one in files} == {"with"}
    allocators = allocators_of_traces(files, paths)
    _, found = analysed_files(paths, Choices(), None, allocators=allocators)
    placed = {Path(name).parent.name: one.in_trace is not None for name, one in found.items()}
    assert placed == {"with": True, "without": False}


def test_a_snapshot_that_is_used_is_not_said_to_be_passed_over(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "snapshot.pickle").rename(tmp_path / "run" / "snapshot.json")
    (tmp_path / "run" / "list.json").write_text("{}")
    (report,) = reports([str(tmp_path / "run")], Choices())
    assert [message.key for message in report.note_messages if message.key == "snapshot_used"] == ["snapshot_used"]
    texts_said = [value for message in report.note_messages for _, _, value in message.values]
    assert "files passed over: 1 (list.json (json))" in texts_said


def test_a_snapshot_of_a_rank_without_trace_is_named(two_ranks: Path) -> None:
    (report,) = reports([str(two_ranks)], Choices())
    said = [message for message in report.note_messages if message.key == "snapshot_unused"]
    assert [message.values[1][2] for message in said] == [str(two_ranks / "snapshot_rank7.pickle")]
    last = memory_reports([str(two_ranks)])[-1]
    assert "no trace of the same rank" in page(last)


def test_a_file_that_cannot_be_used_is_named_and_the_others_are_read(run: Path, tmp_path: Path) -> None:
    for name in ("trace.json", "snapshot.pickle"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    whole = (run / "snapshot.pickle").read_bytes()
    (tmp_path / "cut_rank3.pickle").write_bytes(whole[: len(whole) // 2])
    (first, *_) = memory_reports([str(tmp_path)])
    assert any("cut_rank3.pickle" in str(message.values) for message in first.note_messages)
    (report,) = reports([str(tmp_path)], Choices())
    assert any(
        "left out" in str(message.values) and "cut_rank3" in str(message.values) for message in report.note_messages
    )


def test_a_trace_that_cannot_be_used_does_not_take_the_snapshot_with_it(run: Path, tmp_path: Path) -> None:
    (tmp_path / "snapshot.pickle").write_bytes((run / "snapshot.pickle").read_bytes())
    (tmp_path / "trace.json").write_text('{"traceEvents": [{"ph": "X", "ts": ')
    report = traceanalyze.memory(tmp_path)
    assert "memory_moments" in report.tables


def test_only_damaged_snapshots_are_an_error_that_names_the_file(run: Path, tmp_path: Path) -> None:
    whole = (run / "snapshot.pickle").read_bytes()
    (tmp_path / "cut.pickle").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"cut\.pickle: this pickle"):
        traceanalyze.memory(tmp_path)


def test_a_timeline_has_neither_analyses_nor_findings(tmp_path: Path) -> None:
    path = tmp_path / "timeline.raw.json"
    path.write_text(json.dumps([[-1, 1, 100, 0], [2000, 2, 30, 4], [4000, 4, -100, 0]]))
    ((file,), notes) = memory_files([str(path)], [0])
    assert (file.kind, file.rank, file.analyses, file.findings, notes) == ("memory_timeline", 0, (), (), ())


def test_without_memory_files_there_are_none(run: Path) -> None:
    assert memory_files([str(run / "trace.json")], [0]) == ((), ())


def test_of_two_snapshots_of_a_rank_the_one_of_the_failed_request_counts(tmp_path: Path) -> None:
    """`traceanalyze record` leaves both."""
    full = train(Loop(activation=30 * 2**20), Allocator(capacity=200 * 2**20))
    (tmp_path / "snapshot_rank0.pickle").write_bytes(pickle.dumps(dump(train(Loop(steps=20), Allocator()))))
    (tmp_path / "snapshot_rank0_oom.pickle").write_bytes(pickle.dumps(dump(full)))
    files, _ = memory_files([str(tmp_path)], [0])
    assert [len(file.analyses[0].ooms) for file in files] == [0, 1]
    assert allocators_of(files) == {0: files[1].analyses[0]}


def test_a_snapshot_of_an_unknown_rank_is_used_by_nobody(tmp_path: Path) -> None:
    for name in ("a.pickle", "b.pickle"):
        (tmp_path / name).write_bytes(pickle.dumps(dump(train(Loop(steps=2), Allocator()))))
    files, _ = memory_files([str(tmp_path)], [0, 1])
    assert [file.rank for file in files] == [None, None]
    assert allocators_of(files) == {}


def test_of_several_devices_the_one_with_most_memory_counts(tmp_path: Path) -> None:
    small, large = (dump(train(Loop(layers=layers), Allocator())) for layers in (2, 8))
    segments = [*small["segments"], *({**one, "device": 1} for one in large["segments"])]
    both = {**small, "segments": segments, "device_traces": [small["device_traces"][0], large["device_traces"][0]]}
    path = tmp_path / "snapshot_rank0.pickle"
    path.write_bytes(pickle.dumps(both))
    files, _ = memory_files([str(path)], [0])
    assert [one.device for one in files[0].analyses] == [0, 1]
    assert allocators_of(files)[0].device == 1


def test_what_is_no_snapshot_leaves_the_only_snapshot_to_the_only_trace(run: Path, tmp_path: Path) -> None:
    (tmp_path / "snapshot.pickle").write_bytes((run / "snapshot.pickle").read_bytes())
    (tmp_path / "dataset.pkl").write_bytes(pickle.dumps([1, 2, 3]))
    (tmp_path / "timeline.raw.json").write_text(json.dumps([[-1, 1, 100, 0], [2000, 2, 30, 4], [4000, 4, -100, 0]]))
    files, notes = memory_files([str(tmp_path)], [None])
    assert [(file.kind, file.rank_source) for file in files] == [
        ("snapshot", "only one"),
        ("memory_timeline", "only one"),
    ]
    assert len(notes) == 1
    assert "dataset.pkl" in notes[0]


def test_the_trace_tells_the_device_s_memory(run: Path, tmp_path: Path) -> None:
    beside, alone = page(traceanalyze.memory(run)), page(traceanalyze.memory(run / "snapshot.pickle"))
    assert "does not tell how much memory the device has" in alone
    assert "does not tell how much memory the device has" not in beside
    small = (run / "trace.json").read_bytes().replace(str(80 * 2**30).encode(), str(101 * 2**20).encode())
    (tmp_path / "trace.json").write_bytes(small)
    (tmp_path / "snapshot.pickle").write_bytes((run / "snapshot.pickle").read_bytes())
    found = traceanalyze.memory(tmp_path).tables["memory_findings"]
    # 100 MiB are reserved at most, of 101.
    assert "near_limit" in found.column("memory_finding")
    assert "near_limit" not in traceanalyze.memory(tmp_path, capacity="80GiB").tables["memory_findings"].column(
        "memory_finding"
    )


def test_in_an_archive_a_snapshot_is_found_beside_the_trace(run: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        for file in sorted(run.iterdir()):
            archive.write(file, f"run/{file.name}")
    packed = memory_reports([str(tmp_path)])
    assert [one.verdict for one in packed] == [one.verdict for one in memory_reports([str(run)])]
    assert [one.verdict for one in memory_reports([str(tmp_path / "run.zip")])] == [one.verdict for one in packed]
    told = traceanalyze.analyze(tmp_path / "run.zip")
    assert [one.key for one in told.note_messages] == ["snapshot_used"]
    fates = traceanalyze.postmortem(tmp_path / "run.zip").tables["run_files"].to_pandas(words=False)
    assert set(fates["fate"]) == {"fate_used"}
    assert set(fates["file_kind"]) == {"file_trace", "file_snapshot"}


def test_a_damaged_snapshot_in_an_archive_is_named(run: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        for file in sorted(run.iterdir()):
            content = file.read_bytes()
            archive.writestr(file.name, content[:500] if "pickle" in file.name else content)
    files = traceanalyze.postmortem(tmp_path / "run.zip").tables["run_files"].to_pandas(words=False)
    (row,) = [row for _, row in files.iterrows() if row["fate"] == "fate_left_out"]
    assert (row["file_kind"], ".pickle" in row["path"], bool(row["why"])) == ("file_snapshot", True, True)


def test_in_a_linked_folder_a_snapshot_is_found_once(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "there" / "run")
    (tmp_path / "here").mkdir()
    for name in ("first", "again"):
        (tmp_path / "here" / name).symlink_to(tmp_path / "there" / "run")
    (tmp_path / "there" / "run" / "round").symlink_to(tmp_path / "there")
    assert len(memory_reports([str(tmp_path / "here")])) == 1
    told = traceanalyze.analyze(tmp_path / "here")
    assert [one.key for one in told.note_messages] == ["snapshot_used"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes of that kind")
def test_links_to_nothing_and_pipes_are_passed_over(run: Path, tmp_path: Path) -> None:
    for name in ("trace.json", "snapshot.pickle"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.pickle")
    assert "memory_in_trace" in traceanalyze.memory(tmp_path).tables
    assert "memory_in_trace" in traceanalyze.analyze(tmp_path).tables
