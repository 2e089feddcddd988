"""`traceanalyze rule`, and the choice of rules on the command line and in configuration files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner
from wcwidth import wcswidth

from traceanalyze.cli.app import app
from traceanalyze.rules.registry import every_rule

SAMPLE = str(Path(__file__).parents[2] / "sample_traces" / "gpu_data_loading")


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_all_rules_are_listed():
    lines = run("rule", "--all").stdout.splitlines()
    assert len(lines) == len(every_rule())
    assert "DAT101  loader-wait               waiting for the data loader" in lines


@pytest.mark.parametrize("name", ["DAT101", "loader-wait", "dat101"])
def test_a_rule_is_explained(name):
    text = run("rule", name).stdout
    assert text.startswith("DAT101 loader-wait: waiting for the data loader\n")
    for part in ("What it finds", "Why it costs time", "share = 0.05    # TensorBoard plugin", "→ "):
        assert part in text


def test_rules_that_judge_programs_without_a_device_say_so():
    assert "; on cuda, ascend, cpu\n" in run("rule", "DAT101").stdout
    assert "; on cuda, ascend\n" in run("rule", "HST101").stdout


def test_explanations_fit_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    what = run("rule", "DAT101").stdout.partition("\nReferences")[0]
    assert max(map(len, what.splitlines())) <= 80


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_page_sends_its_reader_only_to_definitions_that_the_command_prints(language):
    pages = run("rule", "DAT", "SYN", "MEM", "KRN", "--lang", language).stdout
    printed = re.findall(r"^## (\d+)", run("rule", "--definitions").stdout, re.MULTILINE)
    named = re.findall(r"definitions\s+§(\d+)", pages)
    assert "7" in named
    assert set(named) <= set(printed)
    assert not re.search("specification|规格，|规则规范", pages)


@pytest.mark.parametrize(("language", "notes"), [("en", 0), ("zh", 1)])
def test_definitions_are_in_english_and_other_languages_are_told_so(language, notes):
    result = run("rule", "--definitions", "--lang", language)
    assert len(result.stderr.splitlines()) == notes
    assert result.stdout == run("rule", "--definitions").stdout


def test_a_family_is_explained_rule_by_rule():
    assert run("rule", "SYN").stdout.count("What it finds") == sum(each.family == "SYN" for each in every_rule())


def test_a_rule_is_explained_in_chinese(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = run("rule", "DAT103", "--lang", "zh").stdout
    assert text.startswith("DAT103 pinning-in-loop: 在训练循环中锁页\n")
    for part in ("\n发现什么\n    ", "\n如何测量\n", "\n概况\n    置信度高；", "\n建议\n    → "):
        assert part in text
    assert max(map(wcswidth, text.splitlines())) <= 80
    assert not re.search("[\u4e00-\u9fff] [\u4e00-\u9fff]", text)
    assert "What it finds" not in text


def test_a_catalogue_is_read_only_for_its_language(run_process):
    code = "import sys, pathlib; known = pathlib.Path.read_text; "
    code += (
        "pathlib.Path.read_text = lambda at, *a, **k: print('read', at.name, file=sys.stderr) or known(at, *a, **k); "
    )
    code += "from traceanalyze.cli.main import main; main()"

    def read(*arguments):
        return {line[5:] for line in run_process(*arguments, code=code).stderr.splitlines() if line.startswith("read ")}

    assert read("rule", "DAT103", "SYN101") == set()
    assert read("rule", "DAT103", "--lang", "zh") == {"zh.po"}


@pytest.mark.parametrize("arguments", [["rule"], ["rule", "--all", "DAT101"], ["rule", "nonsense"]])
def test_wrong_usage_is_told(arguments, capsys):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "error: " in result.stderr


def found(*arguments):
    return [
        line.split()[1]
        for line in run("analyze", SAMPLE, "--all", *arguments).stdout.splitlines()
        if line.startswith("high ")
    ]


def test_rules_are_selected_and_ignored():
    assert found() == ["DAT101"]
    assert found("--ignore", "DAT") == []
    assert found("--select", "SYN,HST", "--select", "loader-wait") == ["DAT101"]
    assert "no rule is called X9" in run("analyze", SAMPLE, "--select", "X9").stderr


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("traceanalyze.toml", "[rules]\nignore = ['DAT101']\n"),
        ("pyproject.toml", "[tool.traceanalyze.rules]\nignore = ['DAT101']\n"),
        ("traceanalyze.toml", "[rules.loader-wait]\nshare = 0.9\nleast_ms = 1000\n"),
    ],
)
def test_a_configuration_file_above_the_current_folder_counts(name, text, tmp_path, monkeypatch):
    (tmp_path / name).write_text(text)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert found() == []
    assert found("--select", "DAT") == ([] if "ignore" in text or "share" in text else ["DAT101"])


def test_a_broken_configuration_is_told(tmp_path, monkeypatch):
    (tmp_path / "traceanalyze.toml").write_text("[rules")
    monkeypatch.chdir(tmp_path)
    result = run("analyze", SAMPLE)
    assert result.exit_code == 2
    assert "traceanalyze.toml" in result.stderr


@pytest.mark.parametrize("more", [(), ("DAT101", "--all"), ("--all", "--definitions"), ("DAT101", "--definitions")])
def test_one_thing_is_asked_for(run, more):
    said = "give the rules to explain, --all for a list, or --definitions: one of these"
    assert run("rule", *more).err == f"error: {said}\n"


def test_platforms_are_listed_as_the_language_does(run):
    assert "cuda、ascend" in run("rule", "DAT101", "--lang", "zh").out
