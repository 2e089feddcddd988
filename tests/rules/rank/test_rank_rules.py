"""Rules about ranks fire on what they are about, and are silent on what looks like it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cluster.make import rank
from tests.cluster.simulated import summaries, workload
from tests.cluster.test_compare import STEPS
from tests.rules.make import busy, judged, program
from tests.simulate.simulate import simulate
from tests.simulate.truth.summary import without_faults
from tests.simulate.truth.windows import windows
from tests.simulate.workload import Fault, Model, Ranks
from traceanalyze.cluster.compare import compare_ranks
from traceanalyze.cluster.results import Group, LinkTraffic
from traceanalyze.rules.config import RuleConfig
from traceanalyze.rules.evaluate import plan
from traceanalyze.rules.finding import Severity
from traceanalyze.rules.of_run import evaluate_run

MS = 1_000_000


def said(ranks, rule=None):
    return evaluate_run(compare_ranks(ranks), plan(RuleConfig(select=(rule,) if rule else ())))


def pair(*waits, length=10 * MS, group=None, world=2, **parts):
    """Ranks that wait so long in each of three steps; parts are a value a rank."""
    return [
        rank(
            number,
            *[(step, "all_reduce", 64, length * step + MS - wait, length * step + 2 * MS) for step in range(3)],
            steps=STEPS,
            length=length,
            group=group,
            world=world,
            **{key: value[number] for key, value in parts.items()},
        )
        for number, wait in enumerate(waits)
    ]


def test_a_straggler_costs_what_the_others_wait():
    (one,) = said(pair(MS, 0, compute=(3 * MS, 4 * MS)), "RNK101").findings
    assert (one.saving, one.bound, one.severity, one.scope.ranks) == (MS, MS, Severity.MEDIUM, (1,))
    assert {each.label: each.value for each in one.evidence}["phase"] == "late_compute"


def test_small_waits_are_no_straggler():
    assert said(pair(MS // 3, 0), "RNK101").findings == ()


def test_without_all_ranks_a_straggler_cannot_be_judged():
    found = said(pair(MS, 0, group=Group("0-3", (0, 1, 2, 3), 4), world=4), "RNK101")
    assert found.findings == ()
    assert [one.reason for one in found.not_applicable] == ["ranks_missing"]


@pytest.mark.parametrize(("size", "ranks"), [(1.15, 2), (1.5, 3), (2.0, 2)])
def test_the_saving_is_what_the_run_gains_without_the_straggler(size, ranks):
    run = replace(workload(Fault("straggler", size)), model=Model(), ranks=Ranks(count=ranks))
    (one,) = [each for each in said(summaries(run)).findings if each.rule == "RNK101"]
    gained = sum(step.time for step in windows(simulate(run)[0])) - without_faults(run)["straggler"]
    assert one.saving * run.steps == pytest.approx(gained, rel=0.2)
    assert one.scope.ranks == (ranks - 1,)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_healthy_runs_have_no_finding(seed):
    found = said(summaries(workload(ranks=3, seed=seed))).findings
    assert [one for one in found if one.severity > Severity.INFO] == []


def test_unequal_work_is_found_from_a_tenth_on():
    (one,) = said(pair(0, 0, compute=(1 * MS, 2 * MS)), "RNK102").findings
    # (2 - 1.5) / 1.5
    assert {each.label: each.value for each in one.evidence}["imbalance"] == pytest.approx(1 / 3)
    assert one.saving is None
    assert said(pair(0, 0, compute=(19 * MS, 21 * MS)), "RNK102").findings == ()


def test_a_slow_link_is_found_among_enough_of_its_kind():
    ranks = pair(0, 0)
    links = tuple(LinkTraffic(0, target, "HCCS", 20, 1000, time) for target, time in ((1, 100), (2, 100), (3, 110)))
    (one,) = said([replace(ranks[0], links=links), ranks[1]], "RNK103").findings
    assert one.scope.ranks == (0, 3)
    assert said([replace(ranks[0], links=links[1:]), ranks[1]], "RNK103").findings == ()
    assert [one.reason for one in said(ranks, "RNK103").not_applicable] == ["no_collective_tasks"]


def test_pauses_at_different_steps_are_found_and_at_the_same_are_not():
    (one,) = said(pair(0, 0, gc=([3 * MS, 0, 0], [0, 3 * MS, 0])), "RNK104").findings
    assert one.saving == MS
    assert said(pair(0, 0, gc=([3 * MS, 0, 0], [3 * MS, 0, 0])), "RNK104").findings == ()
    assert [one.reason for one in said(pair(0, 0), "RNK104").not_applicable] == ["no_recorded_pauses"]


def test_of_a_single_rank_rules_about_ranks_say_what_they_need():
    found = judged(program(busy), "RNK101")
    assert [one.reason for one in found.not_applicable] == ["no_other_ranks"]
