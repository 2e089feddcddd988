from __future__ import annotations

import errno
import json
import signal
import subprocess
import sys

import pytest

import traceanalyze
from tests.cli.conftest import training_loop
from traceanalyze.cli.app import app
from traceanalyze.cli.main import COMMANDS, meant_command, plain, with_default_command


def test_a_path_is_short_for_analyze(run, sample):
    short, full = run(sample), run("analyze", sample)
    assert short == full
    assert short.code == 0
    assert short.out.startswith("Step 100 µs: the device is idle 75 % of it, mostly waiting for the data loader")
    assert short.err == ""


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["a.json"], ["analyze", "a.json"]),
        (["--top", "3", "a.json"], ["analyze", "--top", "3", "a.json"]),
        (["-"], ["analyze", "-"]),
        (["analyze", "a.json"], ["analyze", "a.json"]),
        (["--version"], ["--version"]),
        (["--help"], ["--help"]),
        ([], []),
    ],
)
def test_the_default_command(given, meant):
    assert with_default_command(given) == meant


def test_every_command_is_known_before_the_app_is_imported():
    assert {each.name for each in (*app.registered_commands, *app.registered_groups)} == COMMANDS


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["a.json"], (["a.json"], set())),
        (["a.json", "folder/"], (["a.json", "folder/"], set())),
        (["a.json", "-v"], (["a.json"], {"verbose"})),
        (["--all", "a.json"], (["a.json"], {"whole"})),
        (["--quiet", "a.json", "-v", "b.json"], (["a.json", "b.json"], {"quiet", "verbose"})),
        (["-v"], None),
        (["a.json", "--top", "3"], None),
        (["a.json", "-qv"], None),
        (["-"], None),
        (["rule", "HST101"], None),
        ([], None),
    ],
)
def test_plain_commands_are_made_out_without_typer(given, meant):
    assert plain(given) == meant


@pytest.mark.parametrize("flags", [["-q"], ["-v"], ["--all"], ["--all", "--verbose"]])
def test_flags_mean_the_same_to_both_readers_of_options(run, sample, flags):
    short, full = run(*flags, sample), run("analyze", *flags, sample)
    assert short == full
    assert short.code == 0


def test_version(run):
    assert run("--version").out == f"traceanalyze {traceanalyze.__version__}\n"


def test_help_names_the_short_form(run):
    result = run("--help")
    assert result.code == 0
    assert "traceanalyze PATH" in result.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.json"], "missing.json"),
        (["{sample}", "--steps", "9"], "--steps 9: there is no step 9; there are 5 to 7"),
        (["{sample}", "--steps", "x"], "--steps x: 'x' is not a number"),
        (["{sample}", "--ranks", "3"], "--ranks 3: the profile of trace does not tell any rank"),
        (["{sample}", "--comm-regex", "("], "--comm-regex (: not a regular expression"),
        (["{sample}", "--category", "x=y"], "--category x=y: write NAME=class"),
        (["{sample}", "--device-peaks", "{folder}/none"], "/none: cannot be read: No such file"),
        (["{sample}", "--lang", "xx"], "no texts in 'xx'; this version speaks: en, zh"),
        (["{sample}", "-o", "{folder}", "--format", "json"], "this is a folder; give a file name"),
        (["{folder}", "-o", "{folder}"], "this is an input"),
        (["{sample}", "-o", "{folder}/none/x/"], "does not exist"),
        (["{sample}", "-o", "{folder}/steps.csv"], "every table is a file of its own"),
        (["{sample}", "-o", "{folder}/tables.csv", "--format", "csv"], "every table is a file of its own"),
        (["{sample}", "-o", "{folder}/report.xlsx", "--format", "json"], "do not go together"),
        (["{sample}", "-o", "{folder}/report.txt", "--format", "xlsx"], "do not go together"),
        (["{sample}", "--format", "xlsx"], "give a file name"),
        (["{sample}", "--format", "csv"], "give a folder"),
        (["{sample}", "-o", "{sample}"], "this is an input"),
        (["{sample}", "-o", "{folder}/none/x.json"], "does not exist"),
        (["{sample}", "-o", "{folder}/report.pdf"], "end the name in .xlsx, .html, .md, .json, .svg, .txt or .prom"),
    ],
)
def test_errors_are_one_line_and_code_2(run, sample, arguments, message):
    result = run(*(text.format(sample=sample, folder=sample.parent) for text in arguments))
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    assert message in result.err


def test_wrong_options_are_code_2(run):
    result = run("trace.json", "--no-such-option")
    assert result.code == 2
    assert "--no-such-option" in result.err


def test_an_unexpected_error_is_one_line_and_code_2(run, sample, monkeypatch):
    def broken(*_args, **_options):
        raise RuntimeError("first\nsecond")

    monkeypatch.setattr("traceanalyze.pipeline.recordings.analyze_context", broken)
    result = run(sample)
    assert result.code == 2
    assert result.err == ("internal error: RuntimeError: first second (set TRACEANALYZE_DEBUG=1 for the traceback)\n")
    monkeypatch.setenv("TRACEANALYZE_DEBUG", "1")
    assert "Traceback" in run(sample).err


def test_an_interrupt_is_code_130(run, sample, monkeypatch):
    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("traceanalyze.pipeline.recordings.analyze_context", interrupted)
    assert run(sample).code == 130


_LOST = """
import signal, time
from traceanalyze import __main__
from traceanalyze.cli import guard, main

# Whoever started the tests in the background lets them ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)

class Freed:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)

def dropped():
    try:
        signal.raise_signal(signal.SIGHUP)
    except KeyboardInterrupt:
        pass

@guard.guarded
def command():
    {what}
    for _ in range(3000):
        time.sleep(0.01)

main.main = command
__main__.run()
"""


@pytest.mark.parametrize("what", ["Freed()", "dropped()", "exec('signal.raise_signal(signal.SIGINT)')"])
def test_an_interrupt_ends_a_command_wherever_it_comes(what):
    # Python drops it while it frees something, as NumPy may, and thinks that nobody handles it where it runs a text.
    program = [sys.executable, "-c", _LOST.replace("{what}", what)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="no pipes that break")
def test_a_closed_pipe_is_no_error(sample):
    code = "from traceanalyze.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(sample), "-v", "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 0
    assert error == b""


def test_quiet_is_the_verdict(run, sample):
    assert run(sample, "-q").out.count("\n") == 1


def test_steps_are_chosen_by_their_own_number(run, sample):
    result = run(sample, "--steps", "6:", "--format", "json")
    rows = json.loads(result.out)["reports"][0]["ranks"][0]["tables"]["steps"]["rows"]
    assert [row["step"] for row in rows] == ["6", "7"]


def test_standard_input(run_process, sample):
    result = run_process("-", input=sample.read_text())
    assert result.returncode == 0
    assert result.stdout.startswith("Step 100 µs")


def test_several_runs_are_reported_one_after_another(run, tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        training_loop().write(tmp_path / name / f"{name}.json")
    training_loop(slow=50).write(tmp_path / "second" / "second.json")
    result = run(tmp_path)
    assert result.code == 0
    assert result.out.count("══ ") == 2
    assert len(json.loads(run(tmp_path, "--format", "json").out)["reports"]) == 2


def test_a_recording_that_cannot_be_used_is_named_and_the_others_are_analysed(run, tmp_path, sample):
    bad = tmp_path / "bad.json"
    bad.write_text('{"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {}}]}')
    result = run(tmp_path)
    assert result.code == 0
    assert "left out:" in result.out
    assert "bad.json" in result.out
    assert run(bad).code == 2


def test_no_line_is_wider_than_80_columns(run, sample):
    for arguments in ([sample], [sample, "-v"]):
        assert max(map(len, run(*arguments).out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["analyse", "a.json"], "analyze"),
        (["memmory"], "memory"),
        (["compare"], None),
        (["trace.json"], None),
        (["--top", "3"], None),
        ([], None),
    ],
)
def test_a_mistyped_command_is_told_from_a_path(given, meant):
    assert meant_command(given) == meant


def test_a_folder_named_almost_like_a_command_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert meant_command(["records"]) == "record"
    (tmp_path / "records").mkdir()
    assert meant_command(["records"]) is None


def test_a_full_disk_behind_stdout_is_no_internal_error(run, sample, monkeypatch):
    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("traceanalyze.cli.output.write", full)
    result = run(sample)
    assert result.code == 2
    assert result.err == "error: the output: cannot be written: No space left on device\n"


@pytest.mark.parametrize(("given", "code"), [("trace.json", 0), ("lost.json", 2), ("compaer", 2), ("rule X", 2)])
@pytest.mark.parametrize("closed", ["2>&-", ">&-"])
def test_closed_outputs_change_nothing_else(given, code, closed, sample):
    command = f"exec {sys.executable} -m traceanalyze {given} {closed}"
    ended = subprocess.run(command, shell=True, cwd=sample.parent, capture_output=True, check=False)
    assert ended.returncode == code
    assert b"Traceback" not in ended.stderr
