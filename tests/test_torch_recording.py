"""A profile that the installed torch has just recorded, from the profiler to the report."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import traceanalyze
from traceanalyze.analyses.analyze import analyze_trace
from traceanalyze.analyses.options import Options
from traceanalyze.analyses.results import HostSplit
from traceanalyze.model.vocabulary import Mode

SCRIPT = Path(__file__).parent / "make_samples" / "record_cpu.py"


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The CPU samples, recorded anew."""
    if importlib.util.find_spec("torch") is None:
        if os.environ.get("TRACEANALYZE_REQUIRE_TORCH") == "1":
            pytest.fail("torch is required here and is not installed")
        pytest.skip("torch is not installed")
    folder = tmp_path_factory.mktemp("recordings")
    subprocess.run([sys.executable, str(SCRIPT), str(folder)], check=True, capture_output=True)
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
    assert report.tables
