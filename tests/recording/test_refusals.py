"""What cannot be recorded, in one line each; none of this needs torch."""

from __future__ import annotations

import sys

import pytest

from traceanalyze.errors import UsageError
from traceanalyze.recording import bootstrap as tensorboard
from traceanalyze.recording import options as requirements
from traceanalyze.recording.bootstrap import BOOTSTRAP, recorded
from traceanalyze.recording.context import record
from traceanalyze.recording.options import RecordOptions

HEAVY = {"numpy", "torch", "pandas", "typer"}


@pytest.mark.parametrize(
    ("command", "becomes"),
    [
        (["train.py", "-x"], ["PY", "-m", BOOTSTRAP, "train.py", "-x"]),
        (["python", "train.py", "-m", "x"], ["python", "-m", BOOTSTRAP, "train.py", "-m", "x"]),
        (["/a/python3.11", "-u", "-X", "dev", "t.py"], ["/a/python3.11", "-u", "-X", "dev", "-m", BOOTSTRAP, "t.py"]),
        (["python", "-Wignore", "t.py"], ["python", "-Wignore", "-m", BOOTSTRAP, "t.py"]),
        (["python3", "-m", "a.b", "-c", "1"], ["python3", "-m", BOOTSTRAP, "-m", "a.b", "-c", "1"]),
        (["python3", "-ma.b"], ["python3", "-m", BOOTSTRAP, "-m", "a.b"]),
        (["python3", "-um", "a.b"], ["python3", "-u", "-m", BOOTSTRAP, "-m", "a.b"]),
        (["python3", "-uXdev", "t.py", "-c"], ["python3", "-uXdev", "-m", BOOTSTRAP, "t.py", "-c"]),
        (
            ["python3", "--check-hash-based-pycs", "always", "t.py"],
            ["python3", "--check-hash-based-pycs", "always", "-m", BOOTSTRAP, "t.py"],
        ),
        (["pypy3", "t.py"], ["pypy3", "-m", BOOTSTRAP, "t.py"]),
    ],
)
def test_where_the_script_stands(command, becomes):
    assert recorded(command, "PY") == becomes


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["bash", "run.sh"], "bash is neither python, a .py file nor torchrun"),
        (["python"], "no script to run"),
        (["python", "-u"], "no script to run"),
        (["python", "-m"], "names no module"),
        (["python", "-c", "print()"], "not python -c"),
        (["python", "-"], "standard input"),
    ],
)
def test_commands_that_cannot_be_recorded(command, why):
    with pytest.raises(UsageError, match=why):
        recorded(command, "PY")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"active": 0}, "active is 1 or more"),
        ({"wait": -1}, "0 or more steps"),
        ({"warmup": -1}, "0 or more steps"),
        ({"light": True, "memory": True}, "light is without stacks"),
        ({"light": True, "stacks": True}, "light is without stacks"),
    ],
)
def test_options_that_make_no_recording(options, why):
    with pytest.raises(UsageError, match=why):
        RecordOptions(**options)


def test_one_step_is_enough_to_record():
    assert RecordOptions(wait=0, warmup=0, active=1).steps == 1


def test_light_means_neither_shapes_nor_snapshot():
    light = RecordOptions(light=True)
    assert (light.with_shapes, light.with_snapshot) == (False, False)
    assert RecordOptions.from_json(light.to_json()) == light


def test_without_torch_one_line_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(requirements, "installed", lambda _package: False)
    with pytest.raises(UsageError, match=r"needs torch.*pip install 'traceanalyze\[torch\]'"):
        record(tmp_path / "run")
    with pytest.raises(UsageError, match=r"pip install 'traceanalyze\[torch\]'"):
        recorded(["torchrun", "t.py"], "PY")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["record"], "COMMAND"),
        (["record", "--", "bash", "x"], "error: record: bash is neither"),
        (["record", "--", "/nowhere/python", "x.py"], "error: record: /nowhere/python: command not found"),
        (["record", "-o", "used", "--", "x.py"], "error: used: holds a recording already"),
        (["tensorboard", "none"], "error: none: does not exist"),
        (["tensorboard", "empty"], "error: empty: holds no *.pt.trace.json"),
    ],
)
def test_the_command_says_it_in_one_line(start, tmp_path, arguments, why):
    (tmp_path / "used").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "used" / "rank1_h_1.1234567890123.pt.trace.json.gz").touch()
    process = start(*arguments)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert why in err


def test_a_python_without_this_package_is_named(start, tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    process = start("record", "--", str(bare), "train.py")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert f"record: {bare} does not have traceanalyze: install it there, or write {sys.executable} in" in err
    assert len(err.splitlines()) == 1


def test_tensorboard_opens_the_folder_or_says_what_is_missing(monkeypatch, tmp_path):
    (tmp_path / "rank0_h_1.1234567890123.pt.trace.json.gz").touch()
    monkeypatch.setattr(tensorboard, "installed", lambda _package: True)
    command = tensorboard.tensorboard_command(str(tmp_path), 0)
    assert command == [sys.executable, "-P", "-m", "tensorboard.main", "--logdir", str(tmp_path), "--port", "0"]
    monkeypatch.setattr(tensorboard, "installed", lambda package: package == "tensorboard")
    with pytest.raises(UsageError, match=r"^torch-tb-profiler not installed.*'traceanalyze\[tensorboard\]'"):
        tensorboard.tensorboard_command(str(tmp_path), 0)


def test_the_launcher_imports_nothing_heavy():
    import subprocess

    code = "import sys, traceanalyze.recording.bootstrap, traceanalyze.recording.context; print(*sys.modules)"
    from tests.recording.conftest import ROOT

    environment = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    assert {name.split(".")[0] for name in done.stdout.split()} & HEAVY == set()
