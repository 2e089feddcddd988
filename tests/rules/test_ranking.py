"""Savings of different findings come from different time; what is not worth telling is not told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.rules.make import busy, facts_of, half, kernel, program
from traceanalyze.model.intervals import merge
from traceanalyze.pipeline import load
from traceanalyze.replay.replay import Change
from traceanalyze.rules.config import RuleConfig
from traceanalyze.rules.evaluate import evaluate, plan
from traceanalyze.rules.finding import Confidence, Finding, NotApplicable, Severity, Unexplained
from traceanalyze.rules.owners import owned
from traceanalyze.rules.registry import every_rule
from traceanalyze.rules.rule import measured, rule

SAMPLES = Path(__file__).parents[2] / "sample_traces"
US = 1000
STEP = 2_000_000
"""ns; four of them."""


def times(*pairs):
    """The same intervals (µs from its begin) in every step."""
    return np.array([(n * STEP + a * US, n * STEP + b * US) for n in range(4) for a, b in pairs], np.int64)


def rule_of(code, *found, **more):
    @rule(code, f"rule-{code}", **({"confidence": Confidence.HIGH, "needs": "", "advice": ("larger_batch",)} | more))
    def find(facts, options):
        yield from found

    return find


def saving(us, *pairs, **more):
    """Of time that no replay knows."""
    return Finding(**({"saving": us * US, "draws": "host", "intervals": times(*pairs)} | more))


@pytest.fixture
def facts():
    return facts_of(program(half).trace())


def told(facts, *rules):
    return evaluate(facts, plan(rules=rules)).findings


def savings(facts, *rules):
    return {one.rule: one.saving // US for one in told(facts, *rules)}


def cost(us, *pairs, **more):
    return Finding(cost=us * US, draws="idle", intervals=times(*pairs), **more)


def test_a_cost_without_a_measured_saving_stands_where_a_saving_as_large_would(facts):
    found = told(
        facts,
        rule_of("AAA101", saving(300, (0, 300))),
        rule_of("BBB101", cost(400, (300, 700), severity=Severity.HIGH)),
        rule_of("CCC101", cost(280, (700, 980))),
        rule_of("DDD101", saving(100, (980, 1000)), confidence=Confidence.LOW),
    )
    assert [(one.rule, one.severity.name) for one in found][:2] == [("BBB101", "HIGH"), ("AAA101", "MEDIUM")]
    assert found[-1].rule == "CCC101", "a rule that says nothing of it makes a note"
    assert found[-1].severity == Severity.INFO


def test_what_is_done_once_is_a_note_whatever_it_cost(facts):
    once = cost(900, (0, 100), once=True, severity=Severity.HIGH)
    first, second = told(facts, rule_of("AAA101", once), rule_of("BBB101", saving(300, (500, 800))))
    assert (first.rule, second.rule, second.severity) == ("BBB101", "AAA101", Severity.INFO)
    assert second.cost == 900 * US


def test_cost_and_least_saving_are_cut_with_the_time_that_others_claim(facts):
    general = saving(400, (0, 400), cost=800 * US, low=300 * US)
    found = told(facts, rule_of("AAA101", saving(200, (0, 100))), rule_of("BBB101", general, order=9))
    (one,) = [each for each in found if each.rule == "BBB101"]
    assert (one.saving // US, one.cost // US, one.low // US) == (300, 600, 225)


def test_what_costs_time_says_how_much_of_it_others_leave(facts):
    """Of 400 µs another finding claims 100; other times that it tells, and a saving's cost, stay."""
    waits = cost(400, (0, 400), severity=Severity.LOW, evidence=measured(idle=400 * US, host=500 * US))
    found = told(facts, rule_of("AAA101", saving(200, (0, 100))), rule_of("BBB101", waits, order=9))
    (one,) = [each for each in found if each.rule == "BBB101"]
    assert [one.cost // US, *(each.value // US for each in one.evidence)] == [300, 300, 500]


def test_findings_of_one_place_add_their_costs_where_only_one_has_its_own(facts):
    (one,) = told(facts, rule_of("AAA101", saving(200, (0, 200), cost=500 * US), saving(100, (200, 300), low=50 * US)))
    assert (one.saving // US, one.cost // US, one.low // US) == (300, 600, 250)


def test_most_saving_first(facts):
    assert list(
        savings(facts, rule_of("AAA101", saving(50_0, (0, 500))), rule_of("BBB101", saving(600, (500, 1000))))
    ) == [
        "BBB101",
        "AAA101",
    ]


def test_the_same_time_is_saved_once(facts):
    """The safer finding keeps it; the other is left with a proportional part."""
    safe = rule_of("BBB101", saving(400, (0, 400)))
    unsafe = rule_of("AAA101", saving(800, (200, 1000)), confidence=Confidence.MEDIUM)
    assert savings(facts, safe, unsafe) == {"BBB101": 400, "AAA101": 600}


def test_a_finding_that_others_have_mostly_explained_is_not_told(facts):
    safe = rule_of("BBB101", saving(400, (0, 400)))
    low = rule_of("AAA101", saving(480, (0, 480)), confidence=Confidence.LOW)
    assert savings(facts, safe, low) == {"BBB101": 400}


def test_what_others_leave_of_a_finding_is_told_where_it_is_a_twentieth_of_the_step(facts):
    safe = rule_of("BBB101", saving(400, (0, 400)))
    low = rule_of("AAA101", saving(600, (0, 600)), confidence=Confidence.LOW)
    assert savings(facts, safe, low) == {"BBB101": 400, "AAA101": 200}


def ahead(b, at, number):
    """Of two steps the first one's kernel runs into the second, whose host works until its end."""
    if number % 2:
        kernel(b, at, 50, host=STEP / US - 100)
    else:
        b.launch(at + 20, 5, at + 30, STEP / US + 470)


def test_what_only_the_first_recorded_step_gains_saves_a_long_run_nothing():
    """The kernels 0.5 ms shorter: every first step of two gains that, and every second one loses it."""
    facts = facts_of(program(ahead, steps=5).trace())
    long = np.flatnonzero(facts.context.device.end - facts.context.device.start > STEP)
    change = Change(events=long, shorter=np.full(len(long), 500 * US))
    one = Finding(saving=100 * US, change=change, draws="compute", intervals=times((0, 1000)))
    assert [each.rule for each in told(facts, rule_of("AAA101", one))] == []


def test_what_others_claim_of_a_finding_it_saves_at_most(facts):
    """The device waits for a launch that is over after 750 µs; 400 of that are the other finding's."""

    def host(us, begin):
        change = Change(merge(*times((begin, begin + us)).T))
        return Finding(change=change, draws="idle", intervals=times((begin, begin + us)))

    found = told(facts, rule_of("AAA101", host(400, 0)), rule_of("BBB101", host(990, 0), order=9))
    (one,) = [each for each in found if each.rule == "BBB101"]
    assert (one.saving / US, one.bound / US) == (350, 750)


def test_a_particular_rule_comes_before_a_general_one(facts):
    general = rule_of("AAA101", saving(900, (0, 900)), order=1)
    assert savings(facts, general, rule_of("BBB101", saving(300, (0, 300)))) == {"AAA101": 600, "BBB101": 300}


def test_savings_of_a_class_never_exceed_it(facts):
    """Half of the step is idle: 1000 µs."""
    first, second = (rule_of(code, Finding(saving=800 * US, draws="idle")) for code in ("AAA101", "BBB101"))
    assert savings(facts, first, second) == {"AAA101": 800, "BBB101": 200}


@pytest.mark.parametrize(
    ("us", "severity"), [(400, Severity.HIGH), (399, Severity.MEDIUM), (100, Severity.LOW + 1), (99.9, None)]
)
def test_severity_is_the_share_of_the_step(facts, us, severity):
    """Step 2 ms: 20 % are 400 µs, 5 % are 100 µs, the least worth telling."""
    found = told(facts, rule_of("AAA101", Finding(saving=round(us * US), draws="host")))
    assert [one.severity for one in found] == ([] if severity is None else [severity])


def test_of_very_short_steps_less_is_worth_telling():
    """A twentieth of 1 ms."""
    facts = facts_of(program(lambda b, at, number: kernel(b, at, 500), length=1000).trace())
    for us, number in ((50, 1), (49, 0)):
        assert len(told(facts, rule_of("AAA101", Finding(saving=us * US, draws="host")))) == number


@pytest.mark.parametrize(("us", "number"), [(200, 1), (199.9, 0)])
def test_what_saves_less_than_a_hundredth_of_the_step_is_not_told(us, number):
    """Of a step of 20 ms."""
    facts = facts_of(program(half, length=20_000).trace())
    assert len(told(facts, rule_of("AAA101", Finding(saving=round(us * US), draws="host")))) == number


@pytest.mark.parametrize(("us", "severity"), [(1000, "MEDIUM"), (999, "LOW"), (4000, "HIGH"), (3999, "MEDIUM")])
def test_severity_changes_at_a_twentieth_and_at_a_fifth_of_the_step(us, severity):
    facts = facts_of(program(half, length=20_000).trace())
    (one,) = told(facts, rule_of("AAA101", Finding(saving=us * US, draws="host")))
    assert one.severity.name == severity


LONG = 20_000 * US


def in_long_steps(us, *pairs):
    """As `saving`, in steps of 20 ms."""
    spans = [(n * LONG + a * US, n * LONG + b * US) for n in range(4) for a, b in pairs]
    return Finding(saving=us * US, draws="host", intervals=np.array(spans, np.int64))


def test_a_finding_of_which_others_have_explained_just_half_keeps_the_rest():
    """Of a step of 20 ms: 900 µs are less than a twentieth."""
    facts = facts_of(program(half, length=20_000).trace())
    safe, other, less = (
        rule_of(name, in_long_steps(us, (0, us)), confidence=confidence)
        for name, us, confidence in (("BBB101", 450, 2), ("AAA101", 900, 0), ("AAA101", 898, 0))
    )
    assert savings(facts, safe, other) == {"BBB101": 450, "AAA101": 450}
    assert savings(facts, safe, less) == {"BBB101": 450}


@pytest.mark.parametrize(("largest", "amounts"), [(990, (610, 610, "LOW")), (1000, None)])
def test_a_finding_of_which_small_ones_leave_little_is_told_at_what_they_leave(largest, amounts):
    """Of 2400 µs two findings below a twentieth of the step have 1790; one of a twentieth is enough by itself."""
    facts = facts_of(program(half, length=20_000).trace())
    first = rule_of("AAA101", in_long_steps(largest, (0, largest)))
    second = rule_of("BBB101", in_long_steps(800, (1000, 1800)))
    whole = rule_of("CCC101", in_long_steps(2400, (0, 2400)), order=9)
    found = {one.rule: one for one in told(facts, first, second, whole)}
    assert set(found) == {"AAA101", "BBB101"} | ({"CCC101"} if amounts else set())
    if amounts:
        one = found["CCC101"]
        assert (one.saving // US, one.explains // US, one.severity.name) == amounts


def test_of_findings_of_equal_confidence_the_larger_keeps_the_time(facts):
    small, large = rule_of("AAA101", saving(300, (0, 300))), rule_of("BBB101", saving(400, (100, 500)))
    assert savings(facts, small, large) == {"BBB101": 400, "AAA101": 100}


def test_a_bound_is_no_more_than_the_time_of_its_class(facts):
    """Half of the step is idle."""
    (one,) = told(facts, rule_of("AAA101", Finding(saving=950 * US, bound=5000 * US, draws="idle")))
    assert (one.low, one.saving, one.bound) == (836 * US, 950 * US, 1000 * US)


def test_small_savings_are_told_where_the_rule_wants_it(facts):
    assert savings(facts, rule_of("AAA101", saving(5, (0, 5)), threshold=False)) == {"AAA101": 5}


def test_a_pattern_holds_in_half_of_the_steps(facts):
    once = Finding(saving=250 * US, draws="host", intervals=np.array([[0, STEP // 2]]))
    assert savings(facts, rule_of("AAA101", once)) == {}
    assert savings(facts, rule_of("AAA101", once, rare=True)) == {"AAA101": 250}
    twice = replace(once, intervals=np.array([[0, STEP // 4], [STEP, STEP + STEP // 4]]))
    assert savings(facts, rule_of("AAA101", twice)) == {"AAA101": 250}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((1, 5, 9), (220 * US, "HIGH")),  # Every fourth.
        ((2, 3, 9), (0, "LOW")),
        ((1, 4), (0, "LOW")),
        ((7,), None),
    ],
)
def test_what_comes_again_in_few_steps_saves_for_certain_only_where_it_comes_regularly(steps, expected):
    facts = facts_of(program(half, steps=10).trace())
    spans = np.array([[at * STEP, at * STEP + STEP // 2] for at in steps])
    found = told(facts, rule_of("AAA101", Finding(saving=250 * US, draws="host", intervals=spans)))
    assert [(one.low, one.confidence.name) for one in found] == ([] if expected is None else [expected])


@pytest.mark.parametrize(("certain", "left"), [(False, 600), (True, 500)])
def test_what_may_save_nothing_takes_nothing_from_what_does(facts, certain, left):
    """Of 1000 µs of idle time the particular rule saves 500, at worst nothing; the other one may 600."""
    change = Change(merge(*times((0, 500)).T))
    one = Finding(change=change, between=(change if certain else Change(), change), draws="idle.sync", cost=500 * US)
    second = rule_of("BBB101", saving(600, (0, 600), draws="idle"), order=2)
    assert savings(facts, rule_of("AAA101", one), second)["BBB101"] == left


def test_findings_of_one_cause_are_one(facts):
    each = rule_of("AAA101", *(saving(100, (n * 100, n * 100 + 100)) for n in range(5)))
    (one,) = told(facts, each)
    assert (one.saving, one.count) == (500 * US, 5)


def test_what_saves_no_time_comes_last(facts):
    note = rule_of("AAA101", Finding(severity=Severity.HIGH))
    assert list(savings_or_none(facts, note, rule_of("BBB101", saving(200, (0, 200))))) == ["BBB101", "AAA101"]


def savings_or_none(facts, *rules):
    return {one.rule: one.saving for one in told(facts, *rules)}


def test_rules_without_their_inputs_say_so(facts):
    outcome = evaluate(
        facts, plan(rules=(rule_of("AAA101", needs="DLP"), rule_of("BBB101", NotApplicable("no_shapes"))))
    )
    assert [(one.rule, one.reason) for one in outcome.not_applicable] == [
        ("AAA101", "no_python"),
        ("BBB101", "no_shapes"),
    ]


def test_rules_of_another_platform_are_silent(facts):
    assert told(facts, rule_of("AAA101", saving(400, (0, 400)), platforms=("ascend",))) == ()


def test_a_healthy_program_is_idle_for_less_than_a_tenth():
    """What the cases call healthy."""
    facts = facts_of(program(busy).trace())
    assert facts.share(facts.idle_mean(*range(12))) < 0.1


def test_what_only_adds_to_another_rule_is_told_beside_it_alone(facts):
    """Advice on launches means nothing where other findings explain what the launches seemed to cost."""
    hint = rule_of("CCC101", Finding(), beside="BBB101")
    slow = rule_of("BBB101", saving(400, (0, 400)), order=1)
    sync = rule_of("AAA101", saving(400, (0, 400)))
    assert {one.rule for one in told(facts, hint, slow)} == {"BBB101", "CCC101"}
    assert {one.rule for one in told(facts, hint, slow, sync)} == {"AAA101"}
    # The user has chosen the hint without the rule it belongs to.
    assert {one.rule for one in told(facts, hint)} == {"CCC101"}


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("gpu_*/*.json.gz")), ids=lambda path: path.parent.name)
def test_no_finding_saves_more_than_there_is_of_its_time(path):
    (trace,) = load(path).traces
    facts = facts_of(trace)
    for one in evaluate(facts, plan()).findings:
        whole = facts.amount_of(one.draws)
        assert (one.saving or 0) <= (one.bound or one.saving or 0)
        assert whole is None or (one.bound or 0) <= whole


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("gpu_*/*.json.gz")), ids=lambda path: path.parent.name)
def test_a_threshold_of_zero_stops_no_rule(path):
    """A user may ask for everything: nothing to tell is no error even then."""
    options = {
        one.id: {name: 0 for name, value in one.defaults().items() if isinstance(value, float)} for one in every_rule()
    }
    (trace,) = load(path).traces
    found = evaluate(facts_of(trace), plan(RuleConfig(options=options))).findings
    assert found
    assert all((one.saving or 0) >= 0 for one in found)


@pytest.mark.parametrize(
    ("parts", "draws", "told", "grades"),
    [
        ((260, 240, 20), "idle", (), "MLL"),  # They explain 520 of 1000 µs of idle time.
        ((240, 220, 20), "idle", (), "LLL"),  # Not half of it.
        ((260, 240, 20), "compute", (), "LLL"),  # Work that must be done.
        ((260, 240, 20), "idle", (Unexplained("untraced", 0.3, "untraced"),), "LLL"),
    ],
)
def test_of_small_findings_that_explain_a_large_part_together_one_is_medium(parts, draws, told, grades):
    small = [Finding(saving=us * US, draws=draws, severity=Severity.LOW, rule=f"X{us}") for us in parts]
    found = owned(facts_of(program(half, length=2000).trace()), small, told)
    assert "".join("-LMH"[each.severity] for each in found) == grades
    noted = [*small, Finding(cost=900 * US, once=True, severity=Severity.INFO, rule="ONCE")]
    assert all(each.severity < Severity.MEDIUM for each in owned(facts_of(program(half).trace()), noted, told))


@pytest.mark.parametrize(("cost", "grades"), [(20, "LML"), (None, "MLL"), (0, "LLL")])
def test_it_is_the_one_that_explains_most_of_it(cost, grades):
    """The first saves 300 µs, 20 of them idle time; with the other two 510 of 1000 µs. Or 490, where it is none."""
    first = Finding(saving=300 * US, cost=None if cost is None else cost * US, draws="idle", severity=Severity.LOW)
    others = [replace(first, saving=us * US, cost=None) for us in (250, 240)]
    found = owned(facts_of(program(half, length=2000).trace()), [first, *others], ())
    assert "".join("-LMH"[each.severity] for each in found) == grades
