"""What other distributions add is found by entry points, does its part, and harms nothing where it fails."""

from __future__ import annotations

import importlib.metadata
import json
import re
import tomllib

import pytest
from typer.testing import CliRunner

from tests import documents
from tests.builder import TraceBuilder
from tests.plugin_site import EXAMPLE, example, installed
from traceanalyze import plugins
from traceanalyze.cli.app import app
from traceanalyze.pipeline import Choices, analyze, reports, results

LOG = """\
acme kernel log, rank {rank} of 2
start_us,duration_us,stream,kernel
0,100,7,acme_mix_heads_fp16
100,50,7,acme_gate
120,100,13,acme_ring_sum
300,{last},7,gemm
"""
"""On paper: communication is alone from 150 to 220, nothing runs from 220 to 300."""


@pytest.fixture
def acme(tmp_path):
    with example(tmp_path):
        yield


def log(folder, rank=0, last=40):
    folder.mkdir(exist_ok=True)
    path = folder / f"kernels{rank}.csv"
    path.write_text(LOG.format(rank=rank, last=last))
    return path


def run(*arguments):
    shown = CliRunner().invoke(app, [str(each) for each in arguments])
    return shown.exit_code, " ".join(shown.output.split())


def test_the_example_reads_a_format_of_its_own_and_knows_its_names(acme, tmp_path):
    split = analyze(log(tmp_path / "run")).tables["split"]
    time = dict(zip(split.column("part"), split.column("sum_ns"), strict=True))
    assert (time["compute"], time["communication"], time["idle"]) == (190_000, 70_000, 80_000)


def test_who_read_the_file_and_told_names_is_said(acme, tmp_path):
    code, shown = run("analyze", log(tmp_path / "run"), "-v")
    assert code == 0
    assert "read by the plug-in acme-log" in shown
    assert "The plug-in acme told the kind of work of 2 device events by their names or operators." in shown
    assert "acme_ring_sum communication plug-in acme 1 100" in shown
    code, shown = run("analyze", log(tmp_path / "run"), "-v", "--lang", "zh")
    assert "由插件 acme-log 读取" in shown
    assert "插件 acme 按名称或算子给出了 2 个设备事件的工作类型" in shown


def test_logs_of_a_folder_are_the_ranks_of_a_run(acme, tmp_path):
    folder = tmp_path / "run"
    log(folder), log(folder, rank=1, last=50)
    (folder / "notes.csv").write_text("what,else\n1,2\n")
    report = analyze(folder)
    assert sorted(rank.rank for rank in report.ranks) == [0, 1]


def test_its_rule_judges_what_its_reader_read(acme, tmp_path):
    short, long = log(tmp_path / "short"), log(tmp_path / "long", last=60_000)
    assert [one.text for one in analyze(long, select=["ACM101"]).ranks[0].findings] == [
        "a step takes 60.3 ms, the budget is 50 ms"
    ]
    assert analyze(short, select=["ACM101"]).ranks[0].findings == ()


def test_tracks_are_drawn_without_a_text_to_draw_them_over(acme, tmp_path):
    code, shown = run("convert", log(tmp_path / "run"), "--annotate", tmp_path / "drawn.json")
    assert code == 0
    assert "kernels0.csv" in shown
    assert '"idle' in (tmp_path / "drawn.json").read_text().lower()


def test_without_the_package_such_a_file_is_refused_as_before(tmp_path):
    code, shown = run("analyze", log(tmp_path / "run"))
    assert code == 2
    assert shown.endswith("not a trace; give the .json file export_chrome_trace wrote")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_shows_the_example(language):
    text = documents.text(language)
    (shown,) = (block for block in re.findall("```toml\n(.*?)```", text, re.DOTALL) if "entry-points" in block)
    stated = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())
    assert tomllib.loads(shown)["project"]["entry-points"] == stated["project"]["entry-points"]
    names = (EXAMPLE / "acme_trace" / "names.py").read_text()
    (classifier,) = (block for block in re.findall("```python\n(.*?)```", text, re.DOTALL) if "Classifier(" in block)
    assert re.sub("  #.*", "", classifier).partition("\nNAMES")[2].strip() == names.partition("\nNAMES")[2].strip()


def kineto(folder):
    b = TraceBuilder()
    b.launch(0, 5, 10, 20)
    return b.write(folder / "rank0.pt.trace.json")


@pytest.mark.parametrize("group", [plugins.RULES, plugins.CLASSIFIERS])
def test_a_package_that_cannot_be_imported_is_told_and_the_rest_goes_on(group, tmp_path):
    with installed(tmp_path, {group: {"acme": "acme_lost:IT"}}):
        code, shown = run("analyze", kineto(tmp_path))
        assert code == 0
        told = f"the plug-in acme ({group}) failed, so what it adds is missing: ModuleNotFoundError: No module named"
        assert told in shown
        assert "插件 acme" in run("analyze", kineto(tmp_path), "--lang", "zh")[1]


def test_every_command_that_analyses_tells_what_failed(tmp_path):
    entries = {plugins.CLASSIFIERS: {"acme": "acme_lost:IT"}}
    path = kineto(tmp_path)
    with installed(tmp_path, entries):
        for command in (["postmortem", path], ["compare", path, path], ["gate", path, "--baseline", path]):
            code, shown = run(*command, "--all")
            assert code == 0
            assert shown.count("the plug-in acme (traceanalyze.classifiers) failed, so what it adds is missing") >= 1


RULE = """
from traceanalyze.rules.finding import Confidence, Finding
from traceanalyze.rules.rule import rule

@rule("ACM102", "fussy", confidence=Confidence.HIGH, needs="D", advice=())
def find(facts, options):
    '''Fails with the second rank.'''
    if facts.context.trace.origin.rank == 1:
        raise KeyError("rank 1")
    yield Finding(text="fine")
"""


def test_what_it_prints_is_no_part_of_a_report(tmp_path):
    module = RULE.replace("    yield", "    print('looking')\n    yield").replace("@rule", "print('hello')\n\n@rule", 1)
    with installed(tmp_path, {plugins.RULES: {"acme": "acme_chatty"}}, {"acme_chatty": module}):
        shown = CliRunner().invoke(app, ["analyze", str(kineto(tmp_path)), "--format", "json"])
    assert json.loads(shown.stdout)["schema"].startswith("traceanalyze.report/")
    assert "ACM102" in shown.stdout
    assert shown.stderr.split() == ["hello", "looking"]


def test_what_fails_in_another_process_is_told_here(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    folder.mkdir()
    for rank in (0, 1):
        b = TraceBuilder()
        b.header["distributedInfo"] = {"rank": rank, "world_size": 2}
        b.launch(0, 5, 10, 20)
        b.write(folder / f"rank{rank}.pt.trace.json")
    monkeypatch.setattr(results, "workers_for", lambda *_: 2)
    with installed(tmp_path, {plugins.RULES: {"acme": "acme_fussy"}}, {"acme_fussy": RULE}):
        (report,) = reports([str(folder)], Choices())
    told = [text for note in report.note_messages for name, _, text in note.values if name == "text"]
    assert told == [
        "the plug-in acme (traceanalyze.rules) failed, so what it adds is missing: ACM102: KeyError: 'rank 1'"
    ]


def test_installed_packages_are_looked_through_once(monkeypatch, tmp_path):
    asked, ask = [], importlib.metadata.entry_points
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **groups: asked.append(groups) or ask(**groups))
    with example(tmp_path):
        folder = tmp_path / "run"
        log(folder), log(folder, rank=1)
        analyze(folder)
        analyze(kineto(folder))
    assert len(asked) == 1
