"""A profile that the installed torch has just recorded, from the profiler to the report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import traceanalyze
from traceanalyze.analyses.analyze import analyze_trace
from traceanalyze.analyses.idle.host_state import HostSplit
from traceanalyze.analyses.options import Options
from traceanalyze.model.vocabulary import Mode

if TYPE_CHECKING:
    from tests.torch_python import TorchPython

SCRIPT = Path(__file__).parent / "make_samples" / "record_cpu.py"
TRAINING = Path(__file__).parent / "ladder" / "train.py"
SMALL = {"steps": 8, "threads": 1, "merges": 2, "layers": 2, "width": 32, "heads": 2, "length": 64, "vocabulary": 256}


@pytest.fixture(scope="module")
def recordings(torch_python: TorchPython, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The CPU samples, recorded anew."""
    folder = tmp_path_factory.mktemp("recordings")
    done = torch_python.run([str(SCRIPT), str(folder)], folder, dict(os.environ))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("name", ["cpu_slow_loader", "cpu_training"])
def test_a_new_recording_is_understood(recordings: Path, name: str) -> None:
    (trace,) = traceanalyze.load(recordings / name / "trace.json.gz").traces
    analysis = analyze_trace(trace, Options())
    host = analysis.host
    assert analysis.mode == Mode.HOST_ONLY
    assert analysis.steps.name == ("ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4")
    assert isinstance(host, HostSplit)
    whole = host.data_loading + host.sync + host.peer_wait + host.api + host.host_op + host.untraced
    assert whole.tolist() == analysis.steps.time.tolist()
    assert not trace.read.truncated
    assert trace.read.fault is None


def test_a_slow_loader_is_seen(recordings: Path) -> None:
    report = traceanalyze.analyze(recordings / "cpu_slow_loader")
    (trace,) = traceanalyze.load(recordings / "cpu_slow_loader").traces
    host = analyze_trace(trace, Options()).host
    assert isinstance(host, HostSplit)
    assert (host.data_loading >= 16_000_000).all()
    first = report.ranks[0].findings[0]
    assert (first.rule, first.sentence) == ("DAT101", "host_single")
    assert first.saving >= 15_000_000
    assert report.tables


def told(torch_python: TorchPython, folder: Path, *switches: str) -> dict[str, int]:
    """Rules and their savings in a training recorded on the host."""
    sizes = (word for name, value in SMALL.items() for word in (f"--{name}", str(value)))
    options = ["-o", str(folder), "--wait", "2", "--warmup", "1"]
    done = torch_python.record([*options, "--", str(TRAINING), "--device", "cpu", *sizes, *switches], folder.parent)
    assert done.returncode == 0, done.stderr
    (rank,) = traceanalyze.analyze(folder).ranks
    return {one.rule: one.saving for one in rank.findings if one.saving}


def test_causes_on_the_host_are_named_and_gone_once_mended(torch_python: TorchPython, tmp_path: Path) -> None:
    before = told(torch_python, tmp_path / "before")
    after = told(torch_python, tmp_path / "after", "--optimizer", "fused", "--sdpa")
    assert {"HST111", "KRN104"} <= set(before)
    assert set(after).isdisjoint({"HST111", "KRN104"})
