"""A small recording on disk, and ways to run the command on it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

from tests.builder import TraceBuilder
from traceanalyze.cli.main import main


def training_loop(*, slow=0.0, where=(2,)):
    """Three steps of 100 µs that wait 60 µs for data; the third, or others, may be slower."""
    trace = TraceBuilder()
    for number in range(3):
        at = 1000.0 + 200 * number
        trace.step(number + 5, at, 100 + slow * (number in where))
        trace.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 60)
        trace.op("aten::mm", at + 61, 10)
        trace.launch(at + 62, 4, at + 70, 25)
    return trace


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture
def sample(tmp_path):
    return training_loop().write(tmp_path / "trace.json")


@pytest.fixture
def run(monkeypatch, capsys):
    """The command line in this process."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("TRACEANALYZE_DEBUG", raising=False)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["traceanalyze", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        return Result(int(end.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture
def run_process():
    """The command line in a process of its own."""

    def call(*arguments, code="from traceanalyze.cli.main import main; main()", **options):
        environment = {**os.environ, "COLUMNS": "80", **options.pop("env", {})}
        command = [sys.executable, "-c", code, *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=60, check=False, **options
        )

    return call
