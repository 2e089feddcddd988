"""Real run directories: what must come out, and what must not."""

from __future__ import annotations

import pytest

import traceanalyze
from tests.causes.test_runs import rows, said
from traceanalyze.model.table import NotMeasured


def test_two_recordings_of_a_run_whose_loader_is_too_slow(shared_traces):
    report = traceanalyze.postmortem(shared_traces / "kineto/kineto_tb/samples/resnet50_num_workers_0")
    first = rows(report)[0]
    assert (first["rule_id"], first["since"], first["affected"]) == ("DAT101", "since_every", "12/12")
    # definitions §16: 352,401 µs of data loading in six steps.
    assert first["low_ns"] < first["gain_ns"] < first["bound_ns"] == pytest.approx(352_401_000 / 6, rel=0.01)
    assert [row["steps"] for row in rows(report, "recordings")] == ["5-10", "16-21"]
    assert "num_workers=4 or more" in said(report)


def test_ranks_that_wait_for_each_other_in_one_step(shared_traces):
    report = traceanalyze.postmortem(shared_traces / "kineto/param/dlrm_8rank")
    by_name = {row["finding"]: row for row in rows(report)}
    # Rank 5 does most, but waits longer than the mean itself: nobody is blamed.
    assert {name for name in by_name if "RNK" in name} == {"rule_RNK106"}
    assert not by_name["rule_RNK106"]["where"]
    assert len([row for row in rows(report, "run_files") if row["fate"] == "fate_used"]) == 8


def test_the_rank_that_makes_the_others_wait(shared_traces):
    report = traceanalyze.postmortem(shared_traces / "pairs/torchrec_ladder/resnet18")
    # Both are launch-bound, 84 and 88 % of their step; that one is so a little more makes the other wait.
    first, second, *_ = rows(report)
    assert (first["rule_id"], first["on_ranks"]) == ("HST101", "0-1")
    assert (second["rule_id"], second["on_ranks"], second["part_of"]) == ("RNK101", "1", 1)


def test_an_absent_rank_is_waited_for(shared_traces):
    report = traceanalyze.postmortem(shared_traces / "ascend/msinsight_2rank_torch/text/level1")
    first = rows(report)[0]
    assert first["finding"] == "rule_RNK105_rank"
    assert first["share"] > 0.6
    assert "waiting for a missing rank. It costs " in said(report)
    assert "longest for rank 5, which was not recorded" in said(report)


def test_both_commands_tell_the_same_wait(shared_traces):
    folder = shared_traces / "ascend/msinsight_2rank_torch/text/level1"
    (told,) = [one for one in traceanalyze.analyze(folder).verdict_messages if one.key == "waited_for_absent"]
    amounts = {name: value for name, _, value in told.values}
    first = rows(traceanalyze.postmortem(folder))[0]
    assert (amounts["wait"], amounts["share"]) == (first["cost_ns"], pytest.approx(first["share"]))


def test_one_rank_alone_tells_that_it_waits(shared_traces):
    report = traceanalyze.postmortem(shared_traces / "ascend/msinsight_2rank_torch/text/level1/rank0_ascend_pt")
    first = rows(report)[0]
    assert (first["finding"], first["on_ranks"]) == ("rule_COM120", "0")
    assert first["gain_ns"] == NotMeasured("saving_not_replayed")
    # 98.03 of 156.0 ms are waiting for others.
    assert abs(first["cost_ns"] - 98_030_000) < 10_000
