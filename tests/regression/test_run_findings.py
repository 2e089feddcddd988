"""What the rules say about the ranks of a run counts, as what they say about one rank does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.ranks.simulated import workload
from tests.simulate.cost import faulty
from tests.simulate.healthy import SHARDED
from tests.simulate.simulate import simulate
from tests.simulate.workload import Fault, Model
from tests.simulate.writers.kineto import write
from traceanalyze.pipeline import analyze
from traceanalyze.pipeline.gate_runs import Reading, read_runs

STRAGGLER = replace(workload(Fault("straggler", 2.0), ranks=2), model=Model())
HEALTHY = workload(ranks=2)


@pytest.fixture
def folder(tmp_path):
    def made(run):
        for rank, schedule in enumerate(simulate(run)):
            (tmp_path / f"rank{rank}.pt.trace.json").write_bytes(write(schedule))
        return str(tmp_path)

    return made


def test_a_straggler_of_the_run_is_a_finding_of_the_gate(folder):
    path = folder(STRAGGLER)
    (run,) = read_runs([path], Reading())
    assert run.findings["RNK101"] == 1
    report = analyze(path)
    assert {one.rule for one in report.run_findings} <= set(run.findings)
    most = max(len(rank.findings) for rank in report.ranks)
    assert run.metrics["findings.total"].value == most + len(report.run_findings)
    severe = max(sum(one.severity.name == "HIGH" for one in rank.findings) for rank in report.ranks)
    severe_of_run = sum(one.severity.name == "HIGH" for one in report.run_findings)
    assert run.metrics["findings.high"].value == severe + severe_of_run


def test_waiting_for_the_straggler_is_not_counted_again_as_communication(folder):
    path = folder(faulty(SHARDED, ("straggler", 1.3)))
    alone = read_runs([f"{path}/rank0.pt.trace.json"], Reading())[0]
    (run,) = read_runs([path], Reading())
    assert "COM120" in alone.findings  # Without the other rank it is waiting for one that was not recorded.
    assert not {"COM101", "COM120"} & set(run.findings)
    assert run.findings["RNK101"] == 1
    report = analyze(path)
    assert {one.rule for rank in report.ranks for one in (*rank.findings, *report.run_findings)} == set(run.findings)
    most = max(len(rank.findings) for rank in report.ranks)
    assert run.metrics["findings.total"].value == most + len(report.run_findings)


def test_a_run_of_equal_ranks_has_none(folder):
    path = folder(HEALTHY)
    (run,) = read_runs([path], Reading())
    assert [rule for rule in run.findings if rule.startswith("RNK")] == []
    assert analyze(path).run_findings == ()


def test_one_rank_or_no_rules_give_none(folder):
    path = folder(STRAGGLER)
    (run,) = read_runs([path + "/rank0.pt.trace.json"], Reading())
    assert "RNK101" not in run.findings
    (plain,) = read_runs([path], Reading(findings=False))
    assert plain.findings is None
