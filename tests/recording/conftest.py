"""Scripts to record, and the command that records them, in a process of its own."""

from __future__ import annotations

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
def record(torch_python, tmp_path):
    """Record a script that is `LOOP` and more, into `run`: exit status, stdout, stderr."""

    def call(text, *arguments, options=("--wait", "1", "--warmup", "1", "--active", "2")):
        (tmp_path / "train.py").write_text(LOOP + text)
        words = ("-o", "run", *options, "--", sys.executable, "train.py", *arguments)
        done = torch_python.record(words, tmp_path)
        return done.returncode, done.stdout, done.stderr

    return call
