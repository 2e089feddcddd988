"""Memory of an allocator snapshot over time: at the end what the dump holds, at the top the peak of the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import traceanalyze
from traceanalyze.errors import UsageError

SAMPLES = Path(__file__).resolve().parents[3] / "sample_traces" / "memory"


@pytest.mark.parametrize("case", ["leak", "churn"])
def test_the_highest_value_is_the_peak_of_the_report(case, tmp_path):
    source = SAMPLES / case / "snapshot.pickle.gz"
    traceanalyze.annotate(source, tmp_path / "out.json")
    events = [e for e in json.loads((tmp_path / "out.json").read_text())["traceEvents"] if e["ph"] == "C"]
    table = traceanalyze.memory(source).tables["memory_moments"].to_pandas(words=False)
    peak = max(event["args"]["requested, MiB"] for event in events)
    assert peak == pytest.approx(table["requested_bytes"].max() / 2**20)
    assert max(event["args"]["reserved, MiB"] for event in events) == pytest.approx(
        table["reserved_bytes"].max() / 2**20
    )
    times = [event["ts"] for event in events]
    assert times == sorted(set(times))
    assert times[0] == 0


def test_snapshots_are_drawn_one_at_a_time(tmp_path):
    both = [SAMPLES / case / "snapshot.pickle.gz" for case in ("leak", "churn")]
    with pytest.raises(UsageError, match="one at a time"):
        traceanalyze.annotate(both, tmp_path / "out.json")
