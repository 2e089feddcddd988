"""Real traces whose truth is known: the finding that must own the largest part of the step, and what none may claim."""

from __future__ import annotations

import pytest

from tests.rules.make import judged
from traceanalyze.pipeline import load
from traceanalyze.rules.finding import Severity

MS = 1_000_000


@pytest.mark.parametrize(("rank", "waits"), [(0, 98.03), (1, 92.41)])
def test_an_npu_waits_for_a_rank_that_was_not_recorded(shared_traces, rank, waits):
    """Exposed time without any Memcpy or Reduce task; all four collectives wait longest for rank 5."""
    folder = shared_traces / "ascend" / "msinsight_2rank_torch" / "text" / "level1" / f"rank{rank}_ascend_pt"
    (trace,) = load(folder).traces
    first, *others = judged(trace).findings
    assert (first.rule, first.severity, first.saving) == ("COM120", Severity.HIGH, None)
    assert first.cost / MS == pytest.approx(waits, abs=0.01)
    assert {each.label: each.value for each in first.evidence}["rank"] == "5"
    # What is left of the communication is transfer: a hundredth of the step or two.
    assert sum(one.saving or 0 for one in others if one.draws == "comm_exposed") < 4 * MS
