"""Wrong usage in the tool's own words; options in variables and in the configuration file."""

from __future__ import annotations

import json

import pytest

from traceanalyze.cli.app import app
from traceanalyze.cli.guard import CONFIGURED
from traceanalyze.cli.help import _wrong
from traceanalyze.regression.budget import OPTIONS, SECTIONS


@pytest.fixture(autouse=True)
def _here(monkeypatch, sample):
    monkeypatch.chdir(sample.parent)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--top", "abc"], "--top abc: give a whole number, such as 5"),
        (["--top=abc"], "--top abc: give a whole number, such as 5"),
        (["--top", "0"], "--top 0: give a whole number from 1 on"),
        (
            ["--format", "pdf"],
            "--format pdf: give one of console, json, xlsx, csv, parquet, svg, html, markdown, brief, openmetrics",
        ),
        (["--tpo", "3"], "--tpo: there is no such option; did you mean --top?"),
        (["--zzz"], "--zzz: there is no such option"),
        (["--steps"], "--steps: give a value"),
        (["--quiet=1"], "--quiet: takes no value"),
        (["-q", "-v"], "--quiet and --verbose: give one of them"),
    ],
)
def test_wrong_usage_names_what_to_give(run, sample, arguments, said):
    assert run(sample, *arguments).err == f"error: {said}\n"
    assert run(sample, *arguments).code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["baseline", "updat"], "updat: there is no such command; did you mean update?"),
        (["convert"], "give PATH…; --help says more"),
        (["trace"], "trace: no such file or folder; did you mean trace.json?"),
        (["rank1.json"], "rank1.json: no such file or folder"),
        (["gate", "trace.json", "--baseline", "nosuch"], "--baseline nosuch: no such file or folder"),
    ],
)
def test_what_is_not_there_is_named(run, sample, arguments, said):
    (sample.parent / "rank2.json").write_bytes(sample.read_bytes())
    assert run(*arguments).err == f"error: {said}\n"


def test_a_group_alone_shows_its_page(run):
    assert run("baseline").err.startswith("Usage: traceanalyze baseline")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Invalid value for '--top': 'abc' is not a valid integer.", "--top abc: give a whole number, such as 5"),
        ("Invalid value for '--top': 'abc' is not a valid int range.", "--top abc: give a whole number, such as 5"),
        ("Missing option '--annotate'.", "give --annotate; --help says more"),
        ("Invalid value for '--top' / '-t': 0 is not in the range x>=1.", "--top abc: give a whole number from 1 on"),
        ("No such option '--topp'. Did you mean '--top'?", "--topp: there is no such option; did you mean --top?"),
        ("Something else", "Something else"),
    ],
)
def test_words_of_other_versions_of_the_library(text, said):
    from typer.main import get_command

    command = get_command(app).commands["analyze"]
    assert _wrong(text, command, {"--top": "--top abc"}) == said


def test_several_outputs(run, sample):
    html, json_ = sample.parent / "a.html", sample.parent / "b.json"
    for command in ((), ("compare", sample), ("gate", "--baseline", sample)):
        twice = run(*command, sample, "-o", html, "-o", html)
        assert twice.err == f"error: -o {html}: given twice; give every file once\n"
    result = run(sample, "-o", html, "-o", json_)
    assert (result.out, result.err) == ("", f"Wrote {html}\nWrote {json_}\n")
    assert json.loads(json_.read_text())["command"] == "analyze"
    compared = run("compare", sample, sample, "-o", html, "-o", json_)
    assert compared.err == f"Wrote {html}\nWrote {json_}\n"
    assert compared.out.startswith("No difference")


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version(run, option):
    assert run(option).out.startswith("traceanalyze ")


def test_a_shell_completes_commands_and_options(run_process):
    for words, found in (("compa", "compare"), ("compare --base-r", "--base-rank")):
        environment = {
            "_TRACEANALYZE_COMPLETE": "complete_bash",
            "COMP_WORDS": f"traceanalyze {words}",
            "COMP_CWORD": str(words.count(" ") + 1),
        }
        assert found in run_process(env=environment).stdout.split()


@pytest.mark.parametrize(
    ("option", "near"), [("--tpo", "--top"), ("--formt", "--format"), ("--peak", None), ("--port", None), ("--x", None)]
)
def test_an_option_is_suggested_where_more_than_its_dashes_is_alike(run, sample, option, near):
    hint = f"; did you mean {near}?" if near else ""
    assert run(sample, option, "3").err == f"error: {option}: there is no such option{hint}\n"


@pytest.mark.parametrize("other", ["--verbose", "--all"])
def test_one_line_and_more_are_not_asked_for_at_once(run, sample, other):
    assert run(sample, "-q", other).err == f"error: --quiet and {other}: give one of them\n"


def test_variables_stand_for_options_and_the_command_line_wins(run, monkeypatch, sample):
    monkeypatch.setenv("TRACEANALYZE_LANG", "zh")
    monkeypatch.setenv("TRACEANALYZE_QUIET", "1")
    assert run(sample).out.startswith("单步 100 µs")
    assert len(run(sample).out.splitlines()) == 1
    assert run(sample, "--lang", "en").out.startswith("Step 100 µs")
    # How much is shown is one choice.
    assert len(run(sample, "--all").out.splitlines()) > 1
    monkeypatch.setenv("TRACEANALYZE_QUIET", "no")
    monkeypatch.setenv("TRACEANALYZE_ALL", "true")
    assert len(run(sample, "-q").out.splitlines()) == 1
    monkeypatch.setenv("TRACEANALYZE_ALL", "maybe")
    assert run(sample, "--lang", "en").err == "error: TRACEANALYZE_ALL=maybe: give true or false\n"
    monkeypatch.delenv("TRACEANALYZE_ALL")
    monkeypatch.setenv("TRACEANALYZE_TOP", "abc")
    assert run(sample, "--lang", "en").err == "error: TRACEANALYZE_TOP=abc: give a whole number, such as 5\n"
    assert run(sample, "--lang", "en", "--top", "x").err == "error: --top x: give a whole number, such as 5\n"


def test_what_is_wrong_in_a_recording_names_where_it_was_given(run, monkeypatch, sample):
    (sample.parent / "traceanalyze.toml").write_text("[analyze]\nsteps = 99\ncategory = ['x=y']\n")
    assert run(sample, "--category", "x=kernel").err.startswith("error: traceanalyze.toml: [analyze] steps = 99: the")
    assert "[analyze] category = ['x=y']: x=y: write NAME=class" in run(sample).err
    monkeypatch.setenv("TRACEANALYZE_STEPS", "20:")
    assert run(sample, "--category", "x=kernel").err.startswith("error: TRACEANALYZE_STEPS=20:: ")
    monkeypatch.setenv("TRACEANALYZE_STEPS", "zz")
    said = run(sample, "--category", "x=kernel", "--lang", "zh").err
    assert said.startswith("错误：TRACEANALYZE_STEPS=zz")
    assert run(sample, "--category", "x=kernel", "--steps", "77").err.startswith("error: --steps 77: ")


def test_an_output_without_a_name_writes_nothing(run, sample):
    before = sorted(sample.parent.iterdir())
    assert run(sample, "-o", "").err == "error: give a path\n"
    assert sorted(sample.parent.iterdir()) == before


def test_switches_are_true_or_false(run, monkeypatch, sample):
    monkeypatch.setenv("TRACEANALYZE_QUIET", "off")
    assert len(run(sample).out.splitlines()) > 1
    monkeypatch.setenv("TRACEANALYZE_QUIET", "maybe")
    assert run(sample).err == "error: TRACEANALYZE_QUIET=maybe: give true or false\n"
    monkeypatch.setenv("TRACEANALYZE_QUIET", "1")
    (sample.parent / "traceanalyze.toml").write_text("[analyze]\nall = 2\n")
    assert run(sample).err == "error: traceanalyze.toml: [analyze] all = 2: give true or false\n"


@pytest.mark.parametrize("name", ["traceanalyze.toml", "pyproject.toml"])
def test_options_in_a_file_come_after_variables(run, monkeypatch, sample, name):
    above = "tool.traceanalyze." if name == "pyproject.toml" else ""
    (sample.parent / name).write_text(f'[{above}analyze]\nformat = "json"\nselect = ["SYN"]\nlang = "zh"\nall = true\n')
    found = json.loads(run(sample).out)["reports"][0]
    assert found["verdict"][0]["text"].startswith("单步 100 µs")
    assert found["findings"] == []
    monkeypatch.setenv("TRACEANALYZE_LANG", "en")
    assert json.loads(run(sample).out)["reports"][0]["verdict"][0]["text"].startswith("Step 100 µs")
    assert run(sample, "--format", "markdown").out.startswith("# ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[analyse]\ntop = 3", "there is no section [analyse]; did you mean analyze?"),
        ("[analyze]\ntop = 'abc'", "traceanalyze.toml: [analyze] top = abc: give a whole number, such as 5"),
        ("[analyze]\ntop = = 3", "traceanalyze.toml: not TOML: look at line 2"),
        (f"[analyze]\ntop = {'[' * 3000}", "nested too deeply"),
        ("[analyze]\ntopp = 3", "traceanalyze.toml: [analyze]: there is no topp; did you mean top?"),
        ("analyze = 3", "analyze is not a table"),
        ("top = 3", "top stands in no section; options stand below [analyze], [gate]"),
        ("[analyze]\nquiet = 'perhaps'", "[analyze] quiet = perhaps: give true or false"),
    ],
)
def test_what_nothing_reads_is_refused(run, sample, text, said):
    (sample.parent / "traceanalyze.toml").write_text(text)
    assert run(sample).code == 2
    assert said in run(sample).err


def test_options_of_the_gate_stand_beside_its_budget(run, sample):
    (sample.parent / "traceanalyze.toml").write_text("[gate]\nquiet = true\nexit-zero = true\nconfidence = 0.9\n")
    result = run("gate", sample, "--baseline", sample)
    assert (result.code, len(result.out.splitlines())) == (0, 1)
    (sample.parent / "traceanalyze.toml").write_text("[gate]\nstrictt = true\n")
    assert "there is no strictt; did you mean strict?" in run("gate", sample, "--baseline", sample).err


def test_every_option_of_the_gate_may_stand_in_a_file():
    from typer.main import get_command

    named = {name for param in get_command(app).commands["gate"].params for name in param.opts if name[:2] == "--"}
    assert {*SECTIONS} == CONFIGURED | {"rules"}
    # What the budget file itself says, or says where it is.
    assert {name[2:].replace("-", "_") for name in named} - {"budget", "warmup", "overwrite"} == OPTIONS
