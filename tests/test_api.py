from __future__ import annotations

import pytest

import traceanalyze
from tests.builder import TraceBuilder


def rank_trace(rank, *, length=100):
    trace = TraceBuilder()
    for number in range(3):
        at = 1000.0 + 400 * number
        trace.step(number, at, length)
        trace.op("aten::mm", at, 10)
        trace.launch(at + 2, 4, at + 10, 50 + rank)
    return trace


@pytest.fixture
def folder(tmp_path):
    for rank in range(2):
        rank_trace(rank, length=100 + 50 * rank).write(tmp_path / f"trace_rank{rank}.json")
    return tmp_path


def test_load_and_analyze(folder):
    run = traceanalyze.load(folder)
    assert isinstance(run, traceanalyze.Run)
    assert run.ranks == (0, 1)
    report = traceanalyze.analyze(run)
    assert isinstance(report, traceanalyze.Report)
    assert report.tables["ranks"].column("step_ns") == (100_000, 150_000)
    assert report.focus == (1,)
    assert [analysis.steps.time.tolist() for analysis in report.analyses] == [[100_000] * 3, [150_000] * 3]


def test_paths_give_the_same_report_as_a_run(folder):
    by_run, by_path = traceanalyze.analyze(traceanalyze.load(folder)), traceanalyze.analyze(folder)
    assert by_run.ranks == by_path.ranks
    assert by_run.verdict == by_path.verdict
    assert len(by_path.analyses[0].trace.strings) == 1


def test_steps_and_ranks_can_be_chosen(folder):
    for source in (folder, traceanalyze.load(folder)):
        report = traceanalyze.analyze(source, steps="1:", ranks="1")
        assert [rank.rank for rank in report.ranks] == [1]
        assert report.tables["steps"].column("step") == ("1", "2")


def test_unknown_ranks_are_named(folder):
    with pytest.raises(traceanalyze.UsageError, match="--ranks 7: there is no rank 7; there is 0, 1"):
        traceanalyze.analyze(folder, ranks="7")


def test_several_runs_need_a_choice(tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        rank_trace(0, length=100 if name == "first" else 120).write(tmp_path / name / f"{name}.json")
    with pytest.raises(traceanalyze.UsageError, match="first, second"):
        traceanalyze.load(tmp_path)
    with pytest.raises(traceanalyze.UsageError, match="first, second"):
        traceanalyze.analyze(tmp_path)
    assert [run.name for run in traceanalyze.load_runs(tmp_path)] == ["first", "second"]


def test_regular_expressions_reach_the_analyses(folder):
    report = traceanalyze.analyze(folder / "trace_rank0.json", comm_regex="kernel")
    split = dict(zip(report.tables["split"].column("part"), report.tables["split"].column("sum_ns"), strict=True))
    assert split["compute"] == 0
    assert split["communication"] == 150_000


def test_categories_can_be_mapped(tmp_path):
    trace = rank_trace(0)
    for event in trace.events:
        event["cat"] = {"kernel": "My_Kernel"}.get(event["cat"], event["cat"])
    path = trace.write(tmp_path / "trace.json")
    assert traceanalyze.analyze(path).ranks[0].mode.name == "HOST_ONLY"
    assert traceanalyze.analyze(path, categories=["my_kernel=kernel"]).ranks[0].mode.name == "STEPS"


def test_the_only_input_must_be_usable(tmp_path):
    with pytest.raises(traceanalyze.InputError):
        traceanalyze.load(tmp_path / "missing.json")


def test_public_names_exist():
    assert set(traceanalyze.__all__) == set(dir(traceanalyze))
    for name in traceanalyze.__all__:
        assert getattr(traceanalyze, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = traceanalyze.nothing
