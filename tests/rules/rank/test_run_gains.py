"""What findings of single ranks are worth to the run: the same run simulated without their cause."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.builder import TraceBuilder
from tests.ranks.simulated import traces, workload
from tests.rules.comm.cases import compute, reduce
from tests.simulate.workload import Fault, Model
from traceanalyze.analyses.options import Options
from traceanalyze.pipeline.recordings import analysed_rank
from traceanalyze.pipeline.run_report import SideBySide, side_by_side
from traceanalyze.report.contents import build_report
from traceanalyze.rules.config import RuleConfig
from traceanalyze.rules.evaluate import plan

PAUSE = "HST113"


@cache
def beside(*faults: Fault, ranks: int = 3) -> SideBySide:
    rules = plan()
    return side_by_side([analysed_rank(one, Options(), rules) for one in traces(workload(*faults, ranks=ranks))], rules)


def step_of(found: SideBySide) -> float:
    return float(np.mean(found.cluster.step_time))


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_pause_on_one_rank_is_a_gain_of_all(ranks):
    found = beside(Fault("late_host", 4.0), ranks=ranks)
    true = step_of(found) - step_of(beside(ranks=ranks))
    (pause,) = (one for outcome in found.outcomes for one in outcome.findings if one.rule == PAUSE)
    assert pause.saving == pytest.approx(true, rel=0.05)
    assert pause.low <= true <= pause.bound
    (late,) = (one for one in found.across.findings if one.rule == "RNK101")
    assert late.saving == pytest.approx(true, rel=0.05)


def test_of_a_rank_that_computes_longer_at_least_even_shares_are_saved():
    """Two that share what one has more of gain half of it."""
    rules = plan(RuleConfig(select=("RNK101",)))
    run = replace(workload(Fault("straggler", 2.0), ranks=2), model=Model())
    (late,) = side_by_side([analysed_rank(one, Options(), rules) for one in traces(run)], rules).across.findings
    assert late.low == pytest.approx(0.88 * late.saving / 2, rel=0.01)


def test_faster_links_gain_what_later_work_comes_sooner():
    """256 MiB take 4 ms, beside 2 ms of compute: at 150 GB/s they take 1.8 ms, and the compute hides them."""
    ranks = []
    for number in range(2):
        b = TraceBuilder()
        b.header["distributedInfo"] = {"rank": number, "world_size": 2, "backend": "nccl"}
        b.header["deviceProperties"] = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}]
        for step in range(12):
            at = 1_000 + 5_000 * step
            b.step(step, at, 4_900)
            compute(b, at + 10, at + 40, 2_000)
            reduce(b, at + 20, at + 50, 4_000, size=256 * 2**20, ranks=2)
            b.api("cudaDeviceSynchronize", at + 60, 4_000)
        ranks.append(analysed_rank(b.trace(), Options(), plan(RuleConfig(select=("COM119",)))))
    run = side_by_side(ranks, plan(RuleConfig(select=("COM119",))))
    (one,) = run.across.findings
    assert (one.saving, one.bound) == pytest.approx((2_000_000, 2_240_000), rel=0.03)
    report = build_report("", [one.analysis for one in ranks], version="", cluster=run.cluster, across=run.across)
    assert "reach 67.1 GB/s, where 300 GB/s are usual: that costs 2.0" in report.verdict


def test_what_only_ranks_that_wait_anyway_would_gain_is_no_finding():
    """The last rank pauses; what the other ones could do sooner, they would wait longer for it."""
    found = beside(Fault("late_host", 4.0), ranks=2)
    early = found.outcomes[0]
    assert all(one.alone is None or one.saving >= 0.01 * step_of(found) for one in early.findings)
    together = found.outcomes[1].together
    assert together is not None
    assert together[0] <= together[1] <= together[2]


def test_a_slow_host_is_priced_without_it_on_all_ranks():
    """Rank 1 comes to the collective 5 ms late for its operators; rank 0 has as many while its device waits there."""
    ranks = []
    for rank in range(2):
        b = TraceBuilder()
        b.header["distributedInfo"] = {"rank": rank, "world_size": 2, "backend": "nccl"}
        for step in range(4):
            at = 1_000 + 7_000 * step
            b.step(step, at, 6_900)
            for part in range(10):
                b.op("aten::view", at + 20 + 500 * part, 499)
            b.launch(
                at + 5_030 * rank + 5,
                5,
                at + 5_070 * rank + 30,
                5_170 - 5_070 * rank,
                name="ncclDevKernel_AllReduce",
                stream=20,
            )
            b.op("aten::mm", at + 5_060, 20)
            b.launch(at + 5_065, 10, at + 5_210, 1_600)
            b.api("cudaDeviceSynchronize", at + 5_090, 1_730)
        ranks.append(analysed_rank(b.trace(), Options(), plan(RuleConfig(select=("HST101", "RNK")))))
    found = side_by_side(ranks, plan(RuleConfig(select=("HST101", "RNK"))))
    assert [one.rule for one in found.outcomes[0].findings] == []
    (late,) = found.outcomes[1].findings
    assert late.saving == pytest.approx(5_000_000, rel=0.05)
