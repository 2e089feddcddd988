"""`traceanalyze record` passes on what it was given; what is recorded is tested in `tests/recording`."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from traceanalyze.cli.app import app
from traceanalyze.recording.options import RecordOptions


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ((), RecordOptions()),
        (("--wait", "0", "--warmup", "0", "--active", "1"), RecordOptions(0, 0, 1)),
        (("--no-shapes", "--stacks", "--memory", "--no-snapshot"), RecordOptions(5, 3, 5, False, True, True, False)),
        (("--light",), RecordOptions(light=True)),
    ],
)
def test_what_is_recorded_is_what_was_asked_for(monkeypatch, given, chosen):
    """Without options as in Python."""
    calls = []
    monkeypatch.setattr("traceanalyze.recording.bootstrap.launch", lambda *what, quiet: calls.append((*what, quiet)))
    assert CliRunner().invoke(app, ["record", *given, "--", "python", "train.py", "--wait", "9"]).exit_code == 0
    ((command, folder, options, quiet),) = calls
    assert (list(command), options, quiet) == (["python", "train.py", "--wait", "9"], chosen, False)
    assert re.fullmatch(r"run_\d{8}_\d{6}", str(folder))


def test_the_folder_and_silence_are_passed_on(monkeypatch):
    calls = []
    monkeypatch.setattr("traceanalyze.recording.bootstrap.launch", lambda *what, quiet: calls.append((*what, quiet)))
    CliRunner().invoke(app, ["record", "-o", "here", "-q", "--", "python", "train.py"])
    assert [(str(folder), quiet) for _, folder, _, quiet in calls] == [("here", True)]


@pytest.mark.parametrize("wrong", [("--wait", "-1"), ("--warmup", "-1"), ("--active", "0")])
def test_steps_that_cannot_be_are_refused(wrong):
    assert CliRunner().invoke(app, ["record", *wrong, "--", "python", "train.py"]).exit_code == 2
