"""Scripts to record, and the command that records them, in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOOP = """
import sys, torch
weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.AdamW([weight])
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        (weight * 2).sum().backward()
        optimizer.step()
        schedule.step()
"""
"""What the scripts of the tests begin with."""


@pytest.fixture(scope="session")
def needs_torch():
    if importlib.util.find_spec("torch") is None:
        if os.environ.get("TRACEANALYZE_REQUIRE_TORCH") == "1":
            pytest.fail("torch is required here and is not installed")
        pytest.skip("torch is not installed")


@pytest.fixture
def start(tmp_path):
    """Start the command in the test's folder."""
    # Tests in the background of a shell ignore SIGINT, and processes inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def call(*arguments, env=None):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", **(env or {})}
        return subprocess.Popen(
            [sys.executable, "-m", "traceanalyze", *arguments],
            cwd=tmp_path, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    return call


@pytest.fixture
def record(start, tmp_path):
    """Record a script that is `LOOP` and more, into `run`: exit status, stdout, stderr."""

    def call(text, *arguments, options=("--wait", "1", "--warmup", "1", "--active", "2"), env=None):
        (tmp_path / "train.py").write_text(LOOP + text)
        process = start("record", "-o", "run", *options, "--", sys.executable, "train.py", *arguments, env=env)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    return call
