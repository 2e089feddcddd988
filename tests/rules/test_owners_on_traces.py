"""Real traces whose truth is known: the finding that must own the largest part of the step, and what none may claim."""

from __future__ import annotations

import pytest

import traceanalyze
from tests.rules.make import judged, known
from traceanalyze.pipeline import analyze, load
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


def test_at_level_0_the_hardware_says_what_the_parts_of_a_collective_do(shared_traces):
    """Their own table calls all of them N/A; by that of the tasks 72 are SDMA, 28.8 ms on several planes at once."""
    (trace,) = load(shared_traces / "ascend/msinsight_2rank_torch/db/level0/rank0_ascend_pt").traces
    facts = known(trace)
    (one,) = [each for each in judged(trace).findings if each.rule == "COM120"]
    moved = facts.amount_of("comm_exposed") - one.cost
    # At level 1 the same program moved data for 4.1 ms with nothing beside it.
    assert moved / MS == pytest.approx(4.1, abs=0.1)


@pytest.mark.parametrize("number", [3, 4])
def test_three_ranks_of_four_say_that_the_fourth_was_not_recorded(shared_traces, number):
    """All of them wait for rank 2, so that nothing in their recordings tells waiting from transfer."""
    folder = shared_traces / "pairs" / "torchrec_ladder" / f"sst_long_a2a_optimizer_{number}"
    paths = [path for path in sorted(folder.iterdir()) if load(path).traces[0].origin.rank != 2]
    report = analyze(paths)
    (one,) = report.run_findings
    assert (one.rule, one.scope.ops, one.saving, one.severity) == ("RNK105", ("rank 2",), None, Severity.MEDIUM)
    # Neither does it what more overlap would save.
    told = [each for rank in report.ranks for each in rank.findings if each.draws == "comm_exposed"]
    assert {each.saving for each in told} <= {None}
    causes = list(traceanalyze.postmortem(paths).tables["run_causes"].to_pandas()["rule_id"])
    # Only what has nothing to do with communication comes before it: float32 products on a V100.
    assert causes.index("RNK105") <= 1
    assert causes.index("RNK105") < causes.index("COM101")


@pytest.mark.parametrize("number", [3, 4])
def test_the_rank_that_the_others_wait_for_is_named_by_both_commands(shared_traces, number):
    folder = shared_traces / "pairs" / "torchrec_ladder" / f"sst_long_a2a_optimizer_{number}"
    (one,) = analyze(folder).run_findings
    assert (one.rule, one.scope.ranks) == ("RNK101", (2,))
    # The constant pause of 20 ms, or what the host does longer, less what of it the compute of the others hides.
    assert 8 * MS < one.saving < 20 * MS
    causes = traceanalyze.postmortem(folder).tables["run_causes"].to_pandas()
    (row,) = causes[causes["rule_id"] == "RNK101"].to_dict("records")
    assert row["on_ranks"] == "2"
    # No single rank is the cause of unequal work beside it, and no garbage collector of anything.
    assert not {"RNK102", "RNK106", "HST104"} & set(causes["rule_id"])


def test_one_rank_of_eight_shows_that_it_waits_and_the_late_one_that_it_does_not(shared_traces):
    """All eight together tell that the others wait about 9 ms a step for rank 1; one alone tells a part of that."""
    told = {}
    for path in (shared_traces / "kineto" / "modded_nanogpt" / "2025-12-11_NorMuonOptimsAndFixes").glob("*.json*"):
        (trace,) = load(path).traces
        told[trace.origin.rank] = [one.cost for one in judged(trace, "COM120").findings]
    assert told.pop(1) == []
    assert all(2 * MS < cost < 9 * MS for (cost,) in told.values())
