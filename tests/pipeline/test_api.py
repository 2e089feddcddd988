from __future__ import annotations

import gzip
import weakref
from importlib import import_module
from pathlib import Path

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from traceanalyze.cli.main import main
from traceanalyze.locales import texts
from traceanalyze.report import json
from traceanalyze.report.console import Style, render_all
from traceanalyze.report.view import View

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"


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
    assert json.render([by_run], texts()) == json.render([by_path], texts())
    assert by_run.verdict == by_path.verdict
    assert len(by_path.analyses[0].trace.strings) == 1


def test_a_report_of_paths_keeps_nothing_of_the_memory_of_the_traces(folder, monkeypatch):
    ranks = import_module("traceanalyze.pipeline.recordings")
    columns, reader = [], ranks.read_trace

    def watched(source, *arguments, **options):
        trace = reader(source, *arguments, **options)
        large = trace.events.ts, trace.events.dur, trace.events.name, trace.flows.ts, trace.strings.blob
        columns.append([weakref.ref(column) for column in large])
        return trace

    monkeypatch.setattr(ranks, "read_trace", watched)
    report = traceanalyze.analyze(folder)
    assert len(report.analyses) == len(columns) == 2
    assert [[column() for column in each] for each in columns] == 2 * [5 * [None]]


def test_of_one_recording_what_tells_what_belongs_to_what_is_gone_before_the_rules_run(folder, monkeypatch, capsys):
    recordings, rules = (import_module(f"traceanalyze.{name}") for name in ("pipeline.recordings", "rules.evaluate"))
    columns, reader, evaluate, left = [], recordings.read_trace, rules.evaluate, []

    def watched(source, *arguments, **options):
        trace = reader(source, *arguments, **options)
        columns.extend(weakref.ref(trace.events.fields[name].value) for name in ("correlation", "stream"))
        columns.append(weakref.ref(trace.events.ts))
        return trace

    def judged(*arguments):
        left.extend(column() is not None for column in columns)
        return evaluate(*arguments)

    monkeypatch.setattr(recordings, "read_trace", watched)
    monkeypatch.setattr(rules, "evaluate", judged)
    monkeypatch.setattr("sys.argv", ["traceanalyze", str(folder / "trace_rank0.json")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert "Step" in capsys.readouterr().out
    assert left == [False, False, True]


def test_steps_and_ranks_can_be_chosen(folder):
    for source in (folder, traceanalyze.load(folder)):
        report = traceanalyze.analyze(source, steps="1:", ranks="1")
        assert [rank.rank for rank in report.ranks] == [1]
        assert report.tables["steps"].column("step") == ("1", "2")


def test_unknown_ranks_are_named(folder):
    with pytest.raises(traceanalyze.UsageError, match="ranks=7: there is no rank 7; there are 0, 1"):
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


def test_runs_of_the_same_name_are_told_apart_by_the_folders_above(tmp_path):
    for number, place in enumerate(("gpu/before", "gpu/after", "npu/before", "alone")):
        (tmp_path / place).mkdir(parents=True)
        name = "other.json" if place == "alone" else "trace.json"
        rank_trace(0, length=100 + 10 * number).write(tmp_path / place / name)
    names = [run.name for run in traceanalyze.load_runs(tmp_path)]
    assert sorted(names) == ["gpu/after/trace", "gpu/before/trace", "npu/before/trace", "other"]


def test_runs_of_the_same_name_in_one_folder_are_told_apart_by_their_endings(tmp_path):
    rank_trace(0).write(tmp_path / "trace.json")
    packed = rank_trace(0, length=120).write(tmp_path / "other.json").read_bytes()
    (tmp_path / "other.json").unlink()
    (tmp_path / "trace.json.gz").write_bytes(gzip.compress(packed))
    assert sorted(run.name for run in traceanalyze.load_runs(tmp_path)) == ["trace.json", "trace.json.gz"]


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


def table(report, key, *columns):
    return list(zip(*(report.tables[key].column(column) for column in columns), strict=True))


def test_compare_takes_the_rank_that_decides(folder, tmp_path):
    other = rank_trace(0, length=130).write(tmp_path.parent / "other.json")
    report = traceanalyze.compare(folder, other)
    assert isinstance(report, traceanalyze.CompareReport)
    base, candidate = report.comparison.base, report.comparison.candidate
    assert (base.rank, base.ranks, base.rank_choice, base.step_time) == (1, 2, "decides", 450_000)
    assert (candidate.ranks, candidate.rank_choice) == (1, "only")
    diffs = dict(table(report, "step_difference", "part", "diff_ns"))
    assert {part: diff for part, diff in diffs.items() if diff} == {"compute": -1_000, "untraced": -19_000}


@pytest.mark.parametrize("rank", [0, 1])
def test_compare_takes_the_rank_asked_for(folder, rank):
    report = traceanalyze.compare(folder, folder, base_rank=rank, comparison_rank=0)
    assert (report.comparison.base.rank, report.comparison.base.rank_choice) == (rank, "asked")
    assert report.comparison.base.step_time == 3 * (100_000 + 50_000 * rank)
    assert report.comparison.candidate.rank == 0


def test_compare_names_ranks_that_are_not_there(folder):
    with pytest.raises(traceanalyze.UsageError, match="comparison_rank=7: there is no rank 7; there are 0, 1"):
        traceanalyze.compare(folder, folder, comparison_rank=7)


def test_compare_needs_one_run_a_side(folder, tmp_path):
    for name in ("first", "second"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        rank_trace(0, length=100 if name == "first" else 120).write(tmp_path / "runs" / name / f"{name}.json")
    with pytest.raises(traceanalyze.UsageError, match=r"candidate .*runs: holds 2 runs \(first, second\)"):
        traceanalyze.compare(folder / "trace_rank0.json", tmp_path / "runs")


def test_compare_leaves_the_function_in_its_place():
    import traceanalyze.comparison.results

    assert callable(traceanalyze.compare)
    from traceanalyze.comparison import results

    assert results.Comparison.__name__ == "Comparison"


def test_record_is_the_function_and_the_package():
    import traceanalyze.recording.options

    assert callable(traceanalyze.record)
    from traceanalyze.recording import options

    assert options.RecordOptions().steps == 13


def test_compare_reads_each_recording_once(folder, monkeypatch):
    gathering = import_module("traceanalyze.pipeline.gather")
    read = []
    reader = gathering.read_trace

    def counted(source, *arguments):
        read.append(source.name)
        return reader(source, *arguments)

    monkeypatch.setattr(gathering, "read_trace", counted)
    traceanalyze.compare(folder, folder)
    assert len(read) == 4


def test_compare_checks_its_sections(folder):
    with pytest.raises(traceanalyze.UsageError, match="no section kernels; there is profiling"):
        traceanalyze.compare(folder, folder, sections=["kernels"])


def test_numbers_may_be_given_as_numbers(folder):
    for one in ("0,2", [0, 2], (0, 2)):
        assert len(traceanalyze.analyze(folder, steps=one, ranks=1).analyses[0].steps) == 2
    assert traceanalyze.analyze(folder, steps=0).tables["steps"].column("step") == ("0",)


@pytest.mark.parametrize(
    ("ask", "say"),
    [
        (lambda path: traceanalyze.analyze(path, steps=1.5), "steps=1.5: write a number, a list of numbers"),
        (lambda path: traceanalyze.analyze(path, ranks={"a": 1}), "ranks={'a': 1}: write a number"),
        (lambda path: traceanalyze.analyze(path, time=(1, 2)), r"time=\(1, 2\): write two times"),
        (lambda path: traceanalyze.analyze(path, name_regex=3), "name_regex=3: not a regular expression"),
        (lambda path: traceanalyze.analyze(path, select=3), "3: write a text, or a list of texts"),
        (lambda path: traceanalyze.analyze(3), "3: write a path, or a list of paths"),
        (lambda path: traceanalyze.analyze([]), "give a path"),
        (lambda path: traceanalyze.memory([]), "give a path"),
        (lambda path: traceanalyze.postmortem([]), "give a path"),
        (lambda path: traceanalyze.gate([]), "give a path"),
        (lambda path: traceanalyze.whatif([], without="sync"), "give a path"),
        (lambda path: traceanalyze.compare([], path), "give a path"),
        (lambda path: traceanalyze.compare(path, [path, path]), "write one path"),
        (lambda path: traceanalyze.analyze(path).write(5), "5: write one path"),
        (lambda path: traceanalyze.whatif(path, faster="x=2"), 'faster=x=2: write it as faster={"communication": 1.5}'),
        (lambda path: traceanalyze.whatif(path, ranks={"1": "median"}), 'write it as ranks={3: "median"}'),
    ],
)
def test_what_is_no_choice_is_said_in_one_line(folder, ask, say):
    with pytest.raises(traceanalyze.UsageError, match=say.replace("{", r"\{")) as error:
        ask(folder)
    assert "\n" not in str(error.value)


def test_every_command_takes_the_filters(folder):
    early = {"time": "-700us", "name_regex": "."}
    reports = (
        traceanalyze.analyze(folder, **early),
        traceanalyze.whatif(folder, without=["dispatch"], **early),
        traceanalyze.postmortem(folder, **early),
    )
    assert [{name: value for name, _, value in one.ranks[0].headline.values}["steps"] for one in reports] == [2] * 3
    assert len(traceanalyze.compare(folder, folder, **early).comparison.base.steps) == 2


@pytest.mark.parametrize("ask", [traceanalyze.whatif, traceanalyze.postmortem, traceanalyze.gate])
def test_a_filter_that_there_is_not_is_an_error(folder, ask):
    with pytest.raises(TypeError, match="no argument 'comm_rexeg'; did you mean 'comm_regex'"):
        ask(folder, **({"without": "sync"} if ask is traceanalyze.whatif else {}), comm_rexeg="x")
    with pytest.raises(TypeError, match="no argument 'streams'"):
        traceanalyze.gate(folder, streams=7)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda path: traceanalyze.analyze(path, categories="x"), "categories=x: "),
        (lambda path: traceanalyze.whatif(path, faster={"compute": 0.5}), "faster={compute: 0.5}: write a factor"),
        (traceanalyze.whatif, "without, faster, overlap or ranks"),
        (lambda path: traceanalyze.gate(path, "nosuch"), "baseline=nosuch: no such file"),
    ],
)
def test_errors_name_arguments_in_python(call, said):
    with pytest.raises(traceanalyze.TraceAnalyzeError) as caught:
        call(SAMPLES / "gpu_sync")
    assert said in str(caught.value)
    assert "--" not in str(caught.value)


def test_a_comparison_says_what_matches_nothing():
    report = traceanalyze.compare(SAMPLES / "gpu_sync", SAMPLES / "gpu_sync", name_regex="nosuch")
    text = render_all([report], texts(), Style(), View())
    assert "! base: --name-regex nosuch matches nothing." in text


def test_a_snapshot_alone_is_told_what_the_gate_judges():
    with pytest.raises(traceanalyze.UsageError, match="peaks; give baseline another snapshot"):
        traceanalyze.gate(SAMPLES / "memory" / "healthy")
