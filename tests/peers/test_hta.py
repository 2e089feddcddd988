"""Holistic Trace Analysis on the samples: where its definitions are ours, its numbers are ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import traceanalyze

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
ASK = """
import json, sys
from hta.trace_analysis import TraceAnalysis
files = dict(enumerate(sys.argv[2:]))
hta = TraceAnalysis(trace_files=files, trace_dir=sys.argv[1], include_last_profiler_step=True)
times = hta.get_temporal_breakdown(visualize=False)
overlap = hta.get_comm_comp_overlap(visualize=False)
print(json.dumps([json.loads(table.to_json(orient="records")) for table in (times, overlap)]))
"""

pytestmark = pytest.mark.usefixtures("needs_hta")


def ask(folder: Path, *files: str) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    """Its tables of times and of overlaps, a row a rank."""
    command = [sys.executable, "-W", "ignore", "-c", ASK, str(folder), *files]
    # Else it cuts all times to whole microseconds.
    environment = {**os.environ, "HTA_DISABLE_NS_ROUNDING": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    times, overlaps = json.loads(done.stdout.splitlines()[-1])
    return times, overlaps


@pytest.mark.parametrize(
    ("sample", "waits"),
    [("gpu_two_ranks", {"rank0.json.gz": 5.977, "rank1.json.gz": 4.005}), ("gpu_data_loading", {"trace.json.gz": 0}),
     ("gpu_healthy", {"trace.json.gz": 0})],
)  # fmt: skip
def test_parts_of_the_device_span_are_its_temporal_breakdown(sample: str, waits: dict[str, float]) -> None:
    """Of the time of collectives it takes for compute what a stream waits for an event, which the trace records."""
    times, overlaps = ask(SAMPLES / sample, *waits)
    analyses = traceanalyze.analyze(SAMPLES / sample).analyses
    for row, overlap, wait, analysis in zip(times, overlaps, waits.values(), analyses, strict=True):
        (span,) = analysis.tables["device_spans"].records()
        assert row["kernel_time(us)"] == pytest.approx(span.span_ns / 1e3, abs=0.01)
        assert row["idle_time(us)"] == pytest.approx(span.idle_ns / 1e3, abs=0.01)
        assert row["compute_time(us)"] == pytest.approx(span.compute_ns / 1e3 + wait, abs=0.01)
        if span.communication_total_ns:
            hidden = 1 - span.communication_ns / span.communication_total_ns
            hidden += wait * 1e3 / span.communication_total_ns
            assert overlap["comp_comm_overlap_pctg"] == pytest.approx(100 * hidden, abs=0.01)
