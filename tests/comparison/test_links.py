"""The speed of a link is what it moved over the time in which anything moved, whatever ran in parallel."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

import traceanalyze
from traceanalyze.model.table import NotMeasured

_RANKS = "ascend/msinsight_2rank_torch/{}/level1/rank{}_ascend_pt"


@pytest.mark.parametrize("form", ["text", "db"])
def test_the_links_of_real_ranks_are_as_fast_as_such_links_are(shared_traces: Path, form: str) -> None:
    """HCCS moves 13–20 GB/s a link, and a rank of eight sends over seven of them at once."""
    sides = [shared_traces / _RANKS.format(form, rank) for rank in (0, 1)]
    table = traceanalyze.compare(*sides).tables["link_rates"]
    assert table.column("link") == ("HCCS",)
    (rate,) = table.column("base_rate_gbs")
    assert isinstance(rate, float)
    assert 13 < rate < 7 * 20


def test_the_rate_is_that_of_the_raw_timeline(shared_traces: Path) -> None:
    """Bytes of all transfers over HCCS by the time in which any of them ran, from the JSON, in plain Python."""
    side = shared_traces / _RANKS.format("text", 0)
    events = json.loads((side / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").read_text(encoding="utf-8"))
    moved = [one for one in events if one.get("args", {}).get("link type") == "HCCS" and one["args"]["size(Byte)"] > 0]
    spans = sorted((Decimal(one["ts"]), Decimal(one["ts"]) + Decimal(one["dur"])) for one in moved)
    busy, reach = Decimal(0), Decimal(0)
    for start, end in spans:
        busy += max(end - max(start, reach), Decimal(0))
        reach = max(reach, end)
    wanted = float(sum(one["args"]["size(Byte)"] for one in moved) / busy / 1000)
    (rate,) = traceanalyze.compare(side, side).tables["link_rates"].column("base_rate_gbs")
    assert rate == pytest.approx(wanted, rel=1e-5)


def test_a_side_that_does_not_tell_is_not_measured() -> None:
    sample = Path(__file__).resolve().parents[2] / "sample_traces" / "gpu_npu_pair"
    table = traceanalyze.compare(sample / "gpu", sample / "npu").tables["link_rates"]
    assert table.column("base_rate_gbs") == (NotMeasured("vendor_does_not_say"),)


def test_gpu_profiles_have_no_such_table() -> None:
    sample = Path(__file__).resolve().parents[2] / "sample_traces" / "gpu_two_ranks"
    assert "link_rates" not in traceanalyze.compare(sample, sample).tables
