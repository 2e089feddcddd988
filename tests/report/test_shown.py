"""What a notebook shows of reports, tables, findings and runs: words, of bounded size."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from tests.catalogues import english_texts
from tests.declared import declared_tables
from traceanalyze.errors import UsageError
from traceanalyze.locales import heading_of, texts
from traceanalyze.model.table import Column, Kind, NotMeasured, declare
from traceanalyze.report.finding import as_table
from traceanalyze.report.format import Formatter
from traceanalyze.report.shown import ShownTable

SAMPLES = Path(__file__).parents[2] / "sample_traces"
SLOW, FAST = SAMPLES / "gpu_data_loading" / "trace.json.gz", SAMPLES / "gpu_healthy" / "trace.json.gz"
MADE = {
    "analyze": lambda: traceanalyze.analyze(SLOW),
    "ranks": lambda: traceanalyze.analyze(SAMPLES / "gpu_two_ranks"),
    "compare": lambda: traceanalyze.compare(FAST, SLOW),
    "gate": lambda: traceanalyze.gate(SLOW, FAST),
    "memory": lambda: traceanalyze.memory(SAMPLES / "memory" / "leak"),
    "postmortem": lambda: traceanalyze.postmortem(SAMPLES / "gpu_two_ranks"),
    "whatif": lambda: traceanalyze.whatif(SLOW, without="data_loading"),
}
KEY = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)*_(?:ns|bytes)\b|\bfinding_|\bMessage\(|\bNotMeasured\b|\{\w+\}")
EVERY = pytest.mark.parametrize("name", MADE)


@cache
def made(name):
    return MADE[name]()


@EVERY
def test_everything_is_short_and_can_be_compared(name):
    report = made(name)
    found = [report, *report.ranks, *report.analyses, report.findings, *report.findings, report.tables]
    for table in report.tables.values():
        found += [table, *(table[key] for key in table.keys)]
    found += [getattr(report, name) for name in ("comparison", "result", "baseline") if hasattr(report, name)]
    for one in found:
        assert len(repr(one)) <= 2000
        assert one == one
        assert one != object()
        assert isinstance(hash(one), int)
        # Tables are asked for by their keys.
        html = re.sub("<code>.*?</code>", "", one._repr_html_()) if hasattr(one, "_repr_html_") else ""
        assert len(html) < 40_000
        assert not KEY.search(html), KEY.search(html)


@EVERY
@pytest.mark.parametrize("language", ["en", "zh"])
def test_data_frames_speak(name, language):
    report = made(name).in_language(language)
    for key, table in report.tables.items():
        frame = table.to_pandas()
        assert len(frame) == len(table), key
        assert not frame.columns.duplicated().any(), key
        assert not any(re.search(r"[a-z]_[a-z]", column) for column in frame.columns), list(frame.columns)
        assert list(table.to_pandas(words=False)) == table.keys
        for column in table.columns:
            heading = texts(language).heading(table, column)
            if column.kind == Kind.TERM and heading in frame:
                known = {*texts(language).terms.values(), *texts(language).phrases.values()}
                assert set(frame[heading].dropna()) <= known | set(table.column(column.key)), (key, column.key)


def test_the_verdict_is_text_in_the_chosen_language():
    assert made("analyze").verdict.startswith("Step 31.71 ms: the device is idle 58 % of it")
    chinese = traceanalyze.analyze(SLOW, language="zh")
    assert chinese.verdict.startswith("单步 31.71 ms")
    assert chinese.findings[0].title == "等待数据加载"
    assert "数据加载" in set(chinese.tables["split"].to_pandas().iloc[:, 0])
    with pytest.raises(UsageError, match="this version speaks: en, zh"):
        chinese.in_language("xx")


def test_findings_are_a_table():
    frame = made("analyze").findings.to_pandas()
    assert frame.loc[0, ["rule", "title", "saving (ns)"]].tolist() == [
        "DAT101",
        "waiting for the data loader",
        18346753,
    ]
    assert "<b>waiting for the data loader</b>" in made("analyze").findings._repr_html_()


@pytest.mark.parametrize(("name", "near"), [("kernel", "kernels"), ("splits", "split"), ("gap", "gaps")])
def test_a_name_that_no_table_has(name, near):
    with pytest.raises(KeyError, match=f"no table '{name}'; did you mean '{near}'"):
        made("analyze").tables[name]
    assert made("analyze").tables.get(name) is None


def test_of_nonsense_nothing_is_the_nearest():
    with pytest.raises(KeyError, match="no table 'xyzzy'; there is ") as error:
        made("analyze").tables["xyzzy"]
    assert "did you mean" not in str(error.value)


def test_a_name_that_no_column_has():
    with pytest.raises(KeyError, match="no column 'mean'; did you mean 'mean_ns'"):
        made("analyze").tables["split"]["mean"]


def test_tables_of_another_rank():
    report = made("ranks")
    assert report.tables_of(0)["split"].column("mean_ns") != report.tables["split"].column("mean_ns")
    with pytest.raises(KeyError, match="no rank 5; there is 0, 1"):
        report.tables_of(5)


def test_what_was_not_measured_says_why():
    table = declare("gaps", "Gaps", Column("a_ns", Kind.DURATION), Column("b_ns", Kind.DURATION))
    reason = NotMeasured("no_device_events")
    shown = ShownTable.of(table.fill(a_ns=[1, reason], b_ns=reason), Formatter(texts()))
    said = texts().reasons["no_device_events"]
    assert (shown.why_not, shown["a_ns"].why_not, shown["b_ns"].why_not) == ("", said, said)
    assert shown.to_pandas().isna().sum().tolist() == [1, 2]
    assert said in shown._repr_html_()
    absent = ShownTable.of(table.missing("no_device_events"), Formatter(texts()))
    assert absent.why_not == said
    assert said in absent._repr_html_()
    assert made("analyze").tables["split"].why_not == ""


@pytest.mark.parametrize("table", declared_tables(), ids=lambda table: table.key)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_table_can_be_missing(table, language):
    shown = ShownTable.of(table.missing("no_device_events"), Formatter(texts(language)))
    assert texts(language).reasons["no_device_events"] in shown._repr_html_()


def test_names_of_a_trace_are_no_markup(tmp_path):
    trace = TraceBuilder()
    for number in range(3):
        trace.step(number, 1000.0 + 400 * number, 300)
        trace.launch(1002.0 + 400 * number, 4, 1010 + 400 * number, 50, kernel="<script>alert(1)</script>")
    path = trace.write(tmp_path / "<img src=x onerror=alert(1)>.json")
    report = traceanalyze.analyze(path)
    run = traceanalyze.load(path)
    for one in (report, run, report.tables["kernels"]):
        assert "<script" not in one._repr_html_()
        assert "<img" not in one._repr_html_()
    assert len(repr(run)) < 2000
    assert hash(run) == hash(run)
    assert run.traces[0].instants != run.traces[0].flows


@pytest.mark.parametrize("ending", ["html", "xlsx", "json", "md", "txt"])
def test_a_report_is_written_by_the_ending_of_the_name(ending, tmp_path):
    target = tmp_path / f"report.{ending}"
    made("gate").write(target)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert target.stat().st_size > 1000


def test_a_report_is_written_as_a_folder_of_tables(tmp_path):
    made("gate").write(f"{tmp_path}/tables/", language="zh")
    assert (tmp_path / "tables" / "gate_metrics.csv").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [("report.abc", "end the name in"), ("none/report.html", "does not exist"), ("x.svg", "end the name")],
)
def test_a_report_that_cannot_be_written(name, said, tmp_path):
    with pytest.raises(UsageError, match=said):
        made("gate").write(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@EVERY
def test_the_main_view_is_a_figure(name):
    pytest.importorskip("matplotlib").use("Agg")
    figure = made(name).figure()
    (axes,) = figure.axes
    assert axes.patches
    assert axes.get_title()
    assert not KEY.search(" ".join(label.get_text() for label in axes.get_yticklabels()))


def test_a_figure_without_matplotlib(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(UsageError, match="figures need matplotlib"):
        made("analyze").figure()


def test_events_are_a_data_frame(tmp_path):
    trace = TraceBuilder()
    trace.step(0, 1000.0, 100)
    trace.op("aten::mm", 1000.0, 10)
    trace.launch(1002.0, 4, 1010.0, 50)
    (one,) = traceanalyze.load(trace.write(tmp_path / "trace.json")).traces
    frame = one.to_pandas()
    assert len(frame) == len(one.events)
    kernel = frame[frame.cat == "kernel"].iloc[0]
    assert (kernel.dur_ns, kernel.ts_ns - frame.ts_ns.min()) == (50_000, 10_000)
    assert kernel.correlation in frame[frame.cat == "cuda_runtime"].correlation.tolist()
    assert frame[frame.cat == "cpu_op"].correlation.isna().all()
    assert len(repr(one)) < 300


def test_shapes_of_a_file_printed_for_people_are_one_line(tmp_path):
    trace = TraceBuilder()
    trace.op("aten::mm", 1000.0, 10, **{"Input Dims": [[4, 8], [8, 2]]})
    path = trace.write(tmp_path / "trace.json")
    path.write_text(json.dumps(json.loads(path.read_text()), indent=1))
    (one,) = traceanalyze.load(path).traces
    assert one.to_pandas().shapes.tolist() == ["[[4,8],[8,2]]"]


def test_filters_and_single_values_reach_the_analyses():
    kept = traceanalyze.analyze(SLOW, name_regex="flash", streams="7", time="0ms-10s", select="DAT101", ignore="CAP107")
    assert {name for name in kept.tables["kernels"].column("name") if "flash" not in name} == set()
    assert [one.rule for one in kept.findings] == ["DAT101"]
    assert traceanalyze.compare(FAST, SLOW, sections="kernel").tables["kernel_compare"].why_not == ""
    judged = traceanalyze.gate(SLOW, FAST, no_match="torch", exit_zero=True, labels=f"new={SLOW}", comm_regex="nccl")
    assert (judged.exit_code, judged.answer) == (0, "fail")
    assert "new" in judged.name
    snapshot = SAMPLES / "memory" / "leak"
    assert traceanalyze.memory(snapshot, base=SAMPLES / "memory" / "healthy").command == "memory"


@EVERY
@pytest.mark.parametrize("language", ["en", "zh"])
def test_tables_have_titles_in_words(name, language):
    for key, table in made(name).in_language(language).tables.items():
        assert table.title
        assert not re.search(r"\{\w+\}|…", table.title), (key, table.title)


def test_a_cause_of_several_ranks_is_one_finding():
    report = made("ranks")
    kinds = [(one.rule, one.scope.operators) for one in report.findings]
    assert len(kinds) == len(set(kinds)) < len(report.findings_in("en"))
    assert report.findings[0].scope.ranks == (0, 1)
    own = [report.findings_of(rank)[0] for rank in (0, 1)]
    assert [(one.rule, one.scope.ranks) for one in own] == [(report.findings[0].rule, (rank,)) for rank in (0, 1)]
    with pytest.raises(KeyError, match="no rank 5; there is 0, 1"):
        report.findings_of(5)


def test_memory_of_a_trace_tells_findings_on_memory():
    assert {one.rule[:3] for one in traceanalyze.memory(SLOW).findings} <= {"MEM", "CAP"}


def test_a_table_by_number_or_by_a_part_of_its_name():
    with pytest.raises(KeyError, match="no table 3; there is split, "):
        made("analyze").tables[3]
    with pytest.raises(KeyError, match="no table 'peak'; did you mean 'memory_peak_place'"):
        made("analyze").tables["peak"]


def test_a_table_is_a_figure():
    pytest.importorskip("matplotlib").use("Agg")
    (axes,) = made("analyze").tables["kernels"].figure().axes
    assert axes.get_yticklabels()[-1].get_text() == "gemm bf16 128×128×32 tn"
    assert len(made("memory").tables["allocator_curve"].figure().axes[0].lines) == 2
    with pytest.raises(UsageError, match="rules_not_judged has no numbers"):
        made("analyze").tables["rules_not_judged"].figure()


def test_headings_of_findings_are_their_own():
    contexts = english_texts()
    for column in as_table(()).columns:
        meant = contexts.get(f"columns.findings_in_words.{column.key}", contexts.get(f"columns.{column.key}"))
        assert meant == heading_of(column)
