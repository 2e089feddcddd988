"""Rules about ranks fire on what they are about, and are silent on what looks like it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.ranks.make import rank
from tests.ranks.simulated import summaries, workload
from tests.ranks.test_compare import STEPS
from tests.rules.make import busy, judged, program
from tests.simulate.simulate import simulate
from tests.simulate.truth.summary import without_faults
from tests.simulate.truth.windows import windows
from tests.simulate.workload import Fault, Model, Ranks
from traceanalyze.ranks.compare import compare_ranks
from traceanalyze.ranks.results import Group, LinkTraffic
from traceanalyze.rules.across_ranks import evaluate_run, subtract_waiting
from traceanalyze.rules.config import RuleConfig
from traceanalyze.rules.evaluate import plan
from traceanalyze.rules.finding import Confidence, Evidence, Finding, Outcome, Severity, Unexplained
from traceanalyze.rules.waiting import alone

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


def outlasted(length, early=0, late=2 * MS + MS // 2):
    """Ranks 0 and 1 of four in one step: of four all-reduces of 0.1 ms one takes longer, on rank 0 more so."""
    times = [[MS // 10] * 3 + [MS // 10 + late + more] for more in (early, 0)]
    return [
        rank(
            number,
            *[(0, "all_reduce", 64, 10 * MS * at - time, 10 * MS * at) for at, time in enumerate(own, start=1)],
            length=length,
            group=Group("0-3", (0, 1, 2, 3), 4),
            world=4,
        )
        for number, own in enumerate(times)
    ]


@pytest.mark.parametrize("early", [0, 20 * MS])
def test_a_missing_rank_is_not_blamed_for_what_recorded_ones_wait_for_each_other(early):
    """Whoever is missing came no later than 2.6 ms before the end: longer nobody waited for it."""
    (one,) = said(outlasted(50 * MS, early), "RNK105").findings
    assert (one.cost, one.severity) == (29 * MS // 10, Severity.MEDIUM)
    assert {each.label: each.value for each in one.evidence}["least"] == 5 * MS // 2
    # Rank 1 did not wait at all, and so the other for nobody else.
    assert said(outlasted(50 * MS, early, late=0), "RNK105").findings == ()


def test_waiting_that_all_recorded_ranks_share_is_for_the_missing_one():
    assert [one.severity for one in said(outlasted(25 * MS // 2), "RNK105").findings] == [Severity.HIGH]
    assert [one.severity for one in said(outlasted(25 * MS // 2 + 1), "RNK105").findings] == [Severity.MEDIUM]


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
    (one,) = said(pair(MS, 0, compute=(1 * MS, 2 * MS)), "RNK102").findings
    # (2 - 1.5) / 1.5
    assert {each.label: each.value for each in one.evidence}["imbalance"] == pytest.approx(1 / 3)
    # With 1.5 ms on both, the step is half a millisecond shorter; that is also what both wait on average.
    assert (one.saving, one.bound) == (MS // 2, MS // 2)
    assert said(pair(MS, 0, compute=(19 * MS, 21 * MS)), "RNK102").findings == ()


def test_unequal_work_saves_no_more_than_the_ranks_wait():
    (one,) = said(pair(MS // 2, 0, compute=(1 * MS, 2 * MS)), "RNK102").findings
    assert (one.saving, one.bound) == (MS // 4, MS // 2)
    assert said(pair(0, 0, compute=(1 * MS, 2 * MS)), "RNK102").findings == ()


def test_where_waiting_cannot_be_told_unequal_work_is_a_note_without_saving():
    (one,) = said(
        pair(MS, 0, group=Group("0-3", (0, 1, 2, 3), 4), world=4, compute=(1 * MS, 2 * MS)), "RNK102"
    ).findings
    assert (one.saving, one.bound, one.severity) == (None, MS // 2, Severity.LOW)


def alternating(first, second):
    """Two ranks of which each is the last in turn, over four steps; waits in ms."""
    steps = tuple(f"ProfilerStep#{number}" for number in range(4))
    waits = [[first if step % 2 else 0, 0 if step % 2 else second] for step in range(4)]
    return [
        rank(
            number,
            *[
                (step, "all_reduce", 64, 10 * MS * step + MS - waits[step][number] * MS, 10 * MS * step + 2 * MS)
                for step in range(4)
            ],
            steps=steps,
            length=10 * MS,
            compute=[(5 - waits[step][number]) * MS for step in range(4)],
            communication=[(1 + waits[step][number]) * MS for step in range(4)],
        )
        for number in range(2)
    ]


def test_ranks_that_pause_in_turn_wait_for_each_other():
    """Each waits 2 of 10 ms in every other step: none waits longer over the run, and 1 ms a step is too much."""
    (one,) = said(alternating(2, 2), "RNK106").findings
    assert (one.low, one.saving, one.bound, one.sentence) == (88 * MS // 100, MS, 112 * MS // 100, "")


@pytest.mark.parametrize(("more", "sentence"), [(0.49, ""), (0.51, "compute")])
def test_unequal_work_is_why_ranks_wait_where_it_explains_half_of_it(more, sentence):
    first, second = alternating(2, 2)
    uneven = replace(first, parts={**first.parts, "compute": first.parts["compute"] + round(more * MS)})
    (one,) = said([uneven, second], "RNK106").findings
    assert one.sentence == sentence


@pytest.mark.parametrize(("steps", "late"), [(2, (0,)), (4, (0, 1, 2))])
def test_waiting_of_few_steps_or_in_turn_within_a_step_has_a_cost_alone(steps, late):
    """A rank that is late lets two others wait for 2 of the 10 ms: in two steps only, or each of them in every step."""
    ranks = [
        rank(
            number,
            *[
                (step, "all_reduce", 64, begin + 2 * MS * (number == last), begin + 3 * MS)
                for step in range(steps)
                for last in late
                for begin in [(10 * step + 3 * last) * MS]
            ],
            steps=tuple(f"ProfilerStep#{step}" for step in range(steps)),
            length=10 * MS,
        )
        for number in range(3)
    ]
    (one,) = said(ranks, "RNK106").findings
    assert (one.saving, one.cost, one.advice) == (
        None,
        len(late) * 4 * MS // 3,
        ("steps_tell" if steps < 3 else "even_pauses",),
    )


def test_where_only_the_host_is_slower_no_balance_of_tokens_is_advised():
    (one,) = said(pair(MS, 0, compute=(4 * MS, 4 * MS), dispatch=(0, 2 * MS), data_loading=(0, 0)), "RNK102").findings
    assert (one.sentence, one.advice) == ("dispatch", ("diff_ranks",))
    told = {each.label: each.value for each in one.evidence}
    # Of 6 ms, 1 more than the mean, 2 are those of the host.
    assert (told["most"], told["least"], told["compute_alone"]) == (2 * MS, 0, 0)
    assert told["imbalance"] == pytest.approx(0.2)
    assert (one.saving, one.cost) == (MS // 2, MS // 2)


def test_of_unequal_loading_the_loader_is_named_and_of_compute_with_some_host_work_the_work():
    (one,) = said(pair(MS, 0, compute=(4 * MS, 4 * MS), dispatch=(MS, MS), data_loading=(0, 2 * MS)), "RNK102").findings
    assert (one.sentence, one.scope.ops) == ("data_loading", ("rank 1",))
    (one,) = said(pair(MS, 0, compute=(5 * MS, 6 * MS), dispatch=(0, MS // 2), data_loading=(0, 0)), "RNK102").findings
    assert {each.label: each.value for each in one.evidence}["most"] == 6 * MS
    assert one.sentence == ""


def test_work_that_is_unequal_now_here_now_there_is_told_by_the_imbalance_alone():
    (one,) = said(alternating(2, 2)).findings
    assert (one.rule, one.saving) == ("RNK102", MS)


@pytest.mark.parametrize(("wait", "told"), [(MS // 2, {"RNK102"}), (2 * MS, {"RNK102", "RNK106"})])
def test_waiting_in_turn_within_a_step_is_told_beside_an_imbalance_that_explains_less_than_half(wait, told):
    """In each of three steps each rank of three lets the others wait; rank 2 computes 3 ms, the others 2.

    Even work would gain 2/3 ms a step; each waits twice a step, as ranks with even work in each step would.
    """
    ranks = [
        rank(
            number,
            *[
                (step, "all_reduce", 64, begin + wait * (number == last), begin + 3 * MS)
                for step in range(3)
                for last in range(3)
                for begin in [(10 * step + 3 * last) * MS]
            ],
            steps=STEPS,
            length=10 * MS,
            compute=(3 if number == 2 else 2) * MS,
        )
        for number in range(3)
    ]
    found = {one.rule: one for one in said(ranks).findings}
    assert {rule for rule in found if rule in {"RNK102", "RNK106"}} == told
    if "RNK106" in told:
        assert (found["RNK106"].saving, found["RNK106"].cost) == (None, 2 * wait)


@pytest.mark.parametrize("wait", [2, 4])
def test_waiting_for_each_other_in_turn_is_no_saving_of_communication(wait):
    """In half of the steps each rank waits so many ms; a transfer takes one."""
    cluster = compare_ranks(alternating(wait, wait))
    one = Finding(saving=(2 + wait) * MS // 2, draws="comm_exposed", rule="COM101", severity=Severity.HIGH)
    for found in subtract_waiting([Outcome((one,))] * 2, cluster, plan()):
        assert [each.saving for each in found.findings] == [MS]


def test_waiting_in_a_run_is_told_and_is_no_cost_of_communication():
    """Each waits 1 of the 2 ms a step."""
    one = Finding(saving=MS, cost=2 * MS, draws="comm_exposed", rule="COM101", severity=Severity.HIGH)
    for outcome in subtract_waiting([Outcome((one,))] * 2, compare_ranks(alternating(2, 2)), plan()):
        (found,) = outcome.findings
        assert (found.cost, found.sentence, found.evidence) == (
            MS,
            "waiting",
            (Evidence("wait_exposed", MS, "DURATION"),),
        )


def test_what_layers_wait_for_in_a_run_is_told_where_nothing_is_saved():
    """The same of collectives between layers, which have a cost alone."""
    one = Finding(cost=2 * MS, draws="comm_exposed", rule="COM101", sentence="chain", severity=Severity.MEDIUM)
    for outcome in subtract_waiting([Outcome((one,))] * 2, compare_ranks(alternating(2, 2)), plan()):
        (found,) = outcome.findings
        assert (found.cost, found.sentence, found.evidence) == (
            2 * MS,
            "chain_waiting",
            (Evidence("wait_exposed", MS, "DURATION"),),
        )
        assert found.key == one.key


@pytest.mark.parametrize(("wait", "why"), [(0, "moving"), (2, "waiting")])
def test_beside_all_ranks_it_is_known_whether_communication_moves_data(wait, why):
    """Of 1 ms nothing is waiting, of 2 half."""
    before = Outcome((), unexplained=(Unexplained("communication", 0.5, "communication"),))
    for outcome in subtract_waiting([before] * 2, compare_ranks(alternating(wait, wait)), plan()):
        assert [one.why for one in outcome.unexplained] == [why]


def test_stages_that_only_send_tell_each_other_what_is_waiting():
    """The one moves data for its 2 ms, the other waits for it for 4 of 6."""
    stages = (
        rank(at, (0, kind, 64, (8 - time) * MS, 8 * MS), length=10 * MS, communication=time * MS)
        for at, (kind, time) in enumerate((("send", 2), ("recv", 6)))
    )
    one = Finding(cost=2 * MS, draws="comm_exposed", rule="COM101", sentence="chain", severity=Severity.MEDIUM)
    before = Outcome((one,), unexplained=(Unexplained("communication", 0.5, "communication"),))
    told = subtract_waiting([before] * 2, compare_ranks(list(stages)), plan())
    assert [(each.findings[0].sentence, each.unexplained[0].why) for each in told] == [
        ("chain", "moving"),
        ("chain_waiting", "waiting"),
    ]


def test_savings_of_communication_without_waiting_stay():
    cluster = compare_ranks(alternating(0, 0))
    before = Outcome((Finding(saving=MS, draws="comm_exposed", rule="COM101", severity=Severity.MEDIUM),))
    assert subtract_waiting([before] * 2, cluster, plan()) == [before] * 2


def test_of_ranks_that_were_not_all_recorded_communication_has_a_cost_and_no_saving():
    """Of ranks 0 to 3 two are there: one waits 2 ms for the other, and both perhaps for the rest."""
    group = Group("0-3", (0, 1, 2, 3), 4)
    cluster = compare_ranks(pair(2 * MS, 0, group=group, world=4, communication=(3 * MS, MS)))
    assert cluster.exposed_waits.bound
    one = Finding(saving=3 * MS, draws="comm_exposed", rule="COM105", severity=Severity.HIGH)
    first, second = subtract_waiting([Outcome((one,)), Outcome((replace(one, saving=MS),))], cluster, plan())
    assert [(each.saving, each.cost) for each in (*first.findings, *second.findings)] == [(None, 3 * MS), (None, MS)]
    assert [each.severity for each in first.findings] == [Severity.MEDIUM]


@pytest.mark.parametrize("possible", [4, 3, 1])
def test_of_all_communication_nothing_is_saved_for_certain_where_it_may_be_waiting(possible):
    """Of 4 ms so much may be waiting, for one rank alone as for three of four; that the rest is not is no proof.

    Of one rank alone the middle is told; where most may be waiting, that it is uncertain.
    """
    group = Group("0-3", (0, 1, 2, 3), 4)
    evidence = [Evidence(label, each * MS, "DURATION") for label, each in (("exposed", 4), ("wait_possible", possible))]
    one = Finding(saving=3 * MS, draws="comm_exposed", rule="COM101", severity=Severity.HIGH, evidence=tuple(evidence))
    before = Outcome((replace(one, confidence=Confidence.HIGH),), together=(2 * MS, 3 * MS, 3 * MS))
    cluster = compare_ranks(pair(0, 0, group=group, world=4, communication=(4 * MS, 4 * MS)))
    by_itself = alone(before)
    for outcome in (by_itself, *subtract_waiting([before] * 2, cluster, plan())):
        (found,) = outcome.findings
        middle = 1.5 if outcome is by_itself else 3
        assert (found.saving, found.low, found.most) == (middle * MS, 0, 3 * MS)
        sure = possible < 2
        assert found.severity == (Severity.MEDIUM if sure else Severity.LOW)
        assert found.confidence == (Confidence.MEDIUM if sure else Confidence.LOW)
    assert by_itself.together == (0, 1.5 * MS, 3 * MS)
    # Beside all others it is known what is waiting.
    whole = compare_ranks(pair(0, 0, communication=(4 * MS, 4 * MS)))
    for outcome in subtract_waiting([before] * 2, whole, plan()):
        (found,) = outcome.findings
        assert (found.low, found.confidence, len(found.evidence)) == (None, Confidence.HIGH, 1)


@pytest.mark.parametrize(
    ("rule", "waits", "low"), [("HST113", 5, 0), ("KRN101", 5, 0), ("HST101", 1, 4), ("COM105", 5, 5)]
)
def test_what_one_rank_does_may_be_hidden_by_waiting(rule, waits, low):
    """It works 6 ms a step before collectives in which so much may be waiting; cutting messages is no such work.

    Where the waiting is less than half of it, it is as large and sure as it was.
    """
    one = Finding(saving=6 * MS, low=5 * MS, rule=rule, severity=Severity.HIGH, confidence=Confidence.HIGH)
    told = alone(Outcome((one,), together=(5 * MS, 6 * MS, 7 * MS), waits=waits * MS))
    (found,) = told.findings
    large = low > 0
    assert (found.saving, found.low, found.severity) == (6 * MS, low * MS, Severity.HIGH if large else Severity.MEDIUM)
    assert found.confidence == (Confidence.HIGH if waits == 1 else Confidence.MEDIUM)
    assert told.together == (low * MS, 6 * MS, 7 * MS)


def test_of_one_rank_communication_that_little_could_hide_has_a_cost_and_is_no_part_without_an_owner():
    """36 % of a step, of which 1 ms at best could be hidden: the other ranks' recordings come before all else."""
    evidence = (
        *(Evidence(label, 6 * MS, "DURATION") for label in ("exposed", "wait_possible")),
        Evidence("share", 0.36, "SHARE"),
    )
    one = Finding(
        rule="COM101",
        saving=1 * MS,
        cost=6 * MS,
        draws="comm_exposed",
        severity=Severity.MEDIUM,
        confidence=Confidence.HIGH,
        evidence=evidence,
        advice=("overlap_reductions", "compare_ranks_first"),
    )
    left = Unexplained("communication", 0.36, "communication")
    told = alone(Outcome((one,), (), (1 * MS, 1 * MS, 1 * MS), (left,)))
    (found,) = told.findings
    assert (found.saving, found.cost, found.severity, found.confidence) == (
        None,
        6 * MS,
        Severity.MEDIUM,
        Confidence.LOW,
    )
    assert found.advice[0] == "compare_ranks_first"
    assert told.unexplained == ()
    half = alone(Outcome((replace(one, saving=4 * MS),))).findings[0]
    assert (half.least, half.saving, half.most) == (0, 2 * MS, 4 * MS)


def test_of_a_straggler_the_imbalance_is_not_told_again():
    found = said(pair(MS, 0, compute=(1 * MS, 2 * MS))).findings
    assert [one.rule for one in found] == ["RNK101"]


@pytest.mark.parametrize(("size", "ranks"), [(1.5, 3), (2.0, 2)])
def test_the_saving_is_what_the_run_gains_with_equal_work(size, ranks):
    """The same work, spread over the ranks: all of them are slower by the mean."""
    run = replace(workload(Fault("straggler", size)), model=Model(), ranks=Ranks(count=ranks))
    (one,) = said(summaries(run), "RNK102").findings
    mean = 1 + (size - 1) / ranks
    device = run.device
    equal = replace(
        run,
        faults=(),
        device=replace(
            device, flops=device.flops / mean, bandwidth=device.bandwidth / mean, floor=round(device.floor * mean)
        ),
    )
    gained = sum(step.time for step in windows(simulate(run)[0])) - sum(
        step.time for step in windows(simulate(equal)[0])
    )
    assert one.saving * run.steps == pytest.approx(gained, rel=0.2)
    assert one.saving <= one.bound


def test_a_slow_link_is_found_among_enough_of_its_kind():
    ranks = pair(0, 0)
    links = tuple(LinkTraffic(0, target, "HCCS", 20, 1000, time) for target, time in ((1, 100), (2, 100), (3, 110)))
    (one,) = said([replace(ranks[0], links=links), ranks[1]], "RNK103").findings
    assert one.scope.ranks == (0, 3)
    # 110 ns at 9 % less than usual, over three steps; all communication of these ranks is exposed.
    assert (one.saving, one.bound) == (3, 3)
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


@pytest.mark.parametrize(("name", "sends", "sentence"), [("pp", True, "stages"), ("pp", False, ""), ("dp", True, "")])
def test_stages_of_a_pipeline_that_send_to_each_other_may_have_unequal_work_by_design(name, sends, sentence):
    """That is told, as a matter of where layers are, and without a saving."""
    ranks = [
        rank(
            number,
            *[(step, "all_reduce", 64, 10 * MS * step + MS * number, 10 * MS * step + 2 * MS) for step in range(3)],
            *[(step, "send", 8, 10 * MS * step + 3 * MS, 10 * MS * step + 4 * MS) for step in range(3) if sends],
            steps=STEPS,
            length=10 * MS,
            group=Group(name, (0, 1), 2),
            compute=MS * (number + 1),
        )
        for number in range(2)
    ]
    (one,) = said(ranks, "RNK102").findings
    assert (one.sentence, one.saving is None) == (sentence, sentence == "stages")
