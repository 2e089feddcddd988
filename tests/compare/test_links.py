"""The speed of a link is what it moved over the time in which anything moved, whatever ran in parallel."""

from __future__ import annotations

from pathlib import Path

import pytest

import traceanalyze

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


def test_gpu_profiles_have_no_such_table() -> None:
    sample = Path(__file__).resolve().parents[2] / "sample_traces" / "gpu_two_ranks"
    assert "link_rates" not in traceanalyze.compare(sample, sample).tables
