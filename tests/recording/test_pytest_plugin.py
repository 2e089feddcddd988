"""The fixture `traceanalyze_gate` in a run of pytest of its own, on a step that sleeps as long as it is told."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

TEST = """
import os, time, torch

def train_step():
    torch.ones(4).sum()
    time.sleep(float(os.environ["STEP"]))

def test_step(traceanalyze_gate):
    traceanalyze_gate(train_step, wait=0)
"""


@pytest.fixture
def run(torch_python, tmp_path: Path):
    (tmp_path / "test_speed.py").write_text(TEST)
    # Machines on which tests run side by side are noisy.
    (tmp_path / "traceanalyze.toml").write_text('[gate.metrics."step.time"]\nmax_increase = "100%"\n')

    def call(step: float, *options: str):
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
        done = torch_python.run(words, tmp_path, {**os.environ, "STEP": str(step)})
        return done.returncode, done.stdout

    return call


def test_a_step_is_gated_against_its_baseline(run, tmp_path: Path) -> None:
    status, told = run(0.02)
    assert status == 1
    assert "there is no baseline; pytest --traceanalyze-update writes one" in told
    assert run(0.02, "--traceanalyze-update")[0] == 0
    baseline = tmp_path / "traceanalyze_baselines" / "test_speed.test_step.json"
    written = baseline.read_bytes()
    status, told = run(0.02)
    assert status == 0, told
    status, told = run(0.2)
    assert status == 1
    assert "step.time" in told
    # Most of the step sleeps, which no operator is.
    assert "untraced" in told
    assert baseline.read_bytes() == written
    # The slower step is taken in as the new level.
    assert run(0.2, "--traceanalyze-update")[0] == 0
    status, told = run(0.2)
    assert status == 0, told


TWICE = """
def test_two(traceanalyze_gate, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        traceanalyze_gate(train_step, wait=0)
    assert not [*tmp_path.iterdir()]
    assert os.getcwd() == str(tmp_path)
"""


def test_the_folders_of_the_test_are_left_as_they_are(run, tmp_path: Path) -> None:
    (tmp_path / "test_speed.py").write_text(TEST.partition("def test_step")[0] + TWICE)
    status, told = run(0.02, "--traceanalyze-update", f"--basetemp={tmp_path / 'base'}")
    assert status == 0, told
    made = {path.name for path in tmp_path.iterdir()}
    assert made - {"__pycache__"} == {"base", "test_speed.py", "traceanalyze.toml", "traceanalyze_baselines"}


def test_loading_the_plugin_loads_nothing_else() -> None:
    code = (
        "import sys, pytest; had = set(sys.modules); import traceanalyze.pytest_plugin; print(*set(sys.modules) - had)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in loaded if name.startswith("traceanalyze")} <= {
        "traceanalyze", "traceanalyze.version", "traceanalyze.pytest_plugin",
    }  # fmt: skip
    assert not {"numpy", "torch", "typer"} & set(loaded)
