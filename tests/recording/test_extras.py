"""What the extra `tensorboard` is for, and a job of many ranks: only where they are asked for, as by `.ci/extended`."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import traceanalyze
from tests.recording.conftest import LOOP
from traceanalyze.recording.bootstrap import tensorboard_command

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
RANKS, LATE = 6, 4
STEP = f"""
import time
torch.set_num_threads(1)
torch.distributed.init_process_group('gloo')
for _ in range(12):
    if torch.distributed.get_rank() == {LATE}: time.sleep(0.05)
    torch.distributed.all_reduce(weight.data)
    train(1)
torch.distributed.destroy_process_group()
"""


@pytest.mark.usefixtures("needs_tensorboard")
def test_tensorboard_shows_a_recording(tmp_path):
    shutil.copy(SAMPLES / "gpu_data_loading" / "trace.json.gz", tmp_path / "host_1.1234567890123.pt.trace.json.gz")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    runs = f"http://127.0.0.1:{port}/data/plugin/pytorch_profiler/runs"
    process = subprocess.Popen(
        tensorboard_command(str(tmp_path), port), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        deadline, shown = time.monotonic() + 120, {}
        while not shown.get("runs") and time.monotonic() < deadline and process.poll() is None:
            time.sleep(1)
            try:
                with urllib.request.urlopen(runs, timeout=10) as answer:
                    shown = json.load(answer)
            except urllib.error.URLError:
                continue
    finally:
        process.terminate()
        _, err = process.communicate()
    assert shown.get("runs"), err.decode()[-2000:]


@pytest.mark.usefixtures("needs_torch", "needs_cluster")
def test_every_rank_of_a_job_is_recorded_and_the_late_one_named(start, tmp_path):
    (tmp_path / "train.py").write_text(LOOP + STEP)
    run = (sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={RANKS}", "train.py")
    process = start("record", "-o", "run", "--wait", "2", "--warmup", "1", "--active", "8", "--", *run)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    report = traceanalyze.postmortem(tmp_path / "run")
    assert [rank.rank for rank in report.ranks] == list(range(RANKS))
    # The others wait in a collective of the host, of which the recording shows nothing: all steps are as long.
    (found,) = [(rank.rank, one.saving) for rank in report.ranks for one in rank.findings if one.rule == "HST107"]
    assert found == (LATE, pytest.approx(50_000_000, rel=0.2))
