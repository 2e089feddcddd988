"""Thresholds of the post-mortem: just at and just below each, answers on paper. Steps take 100 ms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.causes.make import MS, STEP, finding, ints, rank, recording, trouble
from tests.ranks.make import rank as summary
from traceanalyze.causes.causes import Spell, host_loading, onset
from traceanalyze.causes.results import Cause, RankPart, comparable, run_gain
from traceanalyze.causes.synthesize import DRAWS, synthesize, worth_telling
from traceanalyze.ranks.compare import compare_ranks
from traceanalyze.ranks.results import Group, spans
from traceanalyze.rules.across_ranks import evaluate_run
from traceanalyze.rules.config import RuleConfig
from traceanalyze.rules.evaluate import plan
from traceanalyze.rules.finding import Confidence, Severity
from traceanalyze.rules.ranking import LEAST_NS


def spells(*recordings):
    return [
        Spell(at, tuple(map(str, range(len(costs)))), np.full(len(costs), STEP), np.array(costs, np.int64))
        for at, costs in enumerate(recordings)
    ]


@pytest.mark.parametrize(
    ("costs", "kind", "affected"),
    [
        # A hundredth of the step, where a quarter of the mean is less.
        ((MS, MS, MS - 1, 0), "until", 2),
        ((MS, MS, MS, 0), "some", 3),
        # A quarter of the mean of those that have any: (70 + 10) / 8 = 10.
        ((70 * MS, 70 * MS, 10 * MS, 10 * MS), "every", 4),
        ((70 * MS, 70 * MS, 10 * MS - 1, 10 * MS - 1), "until", 2),
        ((0, 0, 30 * MS), "from", 1),
        ((0, 30 * MS), "some", 1),
        ((30 * MS, 0, 0), "until", 1),
        ((30 * MS, 0), "some", 1),
        ((30 * MS, 30 * MS), "every", 2),
    ],
)
def test_the_steps_in_which_it_is_there(costs, kind, affected):
    found = onset(spells(costs))
    assert (found.kind, found.affected, found.steps) == (kind, affected, len(costs))


def test_steps_of_single_steps_make_a_history():
    found = onset(spells([30 * MS], [30 * MS]))
    assert (found.kind, found.affected, found.steps) == ("every", 2, 2)
    assert onset(spells([30 * MS], [])).kind == "unknown"


@pytest.mark.parametrize(
    ("loading", "time", "expected"),
    [
        (5 * MS, 100 * MS, (5 * MS, Severity.MEDIUM)),
        (5 * MS - 1, 100 * MS, None),
        (20 * MS, 100 * MS, (20 * MS, Severity.HIGH)),
        (20 * MS - 1, 100 * MS, (20 * MS - 1, Severity.MEDIUM)),
        (LEAST_NS, 2 * LEAST_NS, (LEAST_NS, Severity.HIGH)),
    ],
)
def test_waiting_for_data_on_the_host_alone(loading, time, expected):
    found = host_loading(ints(loading, loading), ints(time, time))
    assert (found and (found.saving, found.severity)) == expected
    if found:
        assert (found.count, found.bound, found.confidence) == (2, loading, Confidence.HIGH)
        assert [each.value for each in found.evidence] == [loading, loading / time]


@pytest.mark.parametrize(
    ("saving", "severity"),
    [
        (20 * MS, Severity.HIGH),
        (20 * MS - 1, Severity.MEDIUM),
        (5 * MS, Severity.MEDIUM),
        (5 * MS - 1, Severity.LOW),
        (None, Severity.HIGH),
    ],
)
def test_a_cause_is_as_severe_as_what_the_run_gains(saving, severity):
    one = replace(finding("DAT101", 30, severity=Severity.HIGH), saving=saving)
    (cause,) = synthesize([recording(rank("0", one))], []).causes
    assert (cause.severity, cause.gain) == (severity, saving)
    assert cause.share == (None if saving is None else saving / STEP)


def test_a_cause_is_no_more_severe_than_on_its_ranks():
    (cause,) = synthesize([recording(rank("0", finding("DAT101", 30, severity=Severity.LOW)))], []).causes
    assert cause.severity == Severity.LOW


@pytest.mark.parametrize(
    ("gain", "share", "severity", "worth"),
    [
        (LEAST_NS, 0.01, Severity.LOW, True),
        (LEAST_NS - 1, 0.0499, Severity.LOW, False),
        (LEAST_NS - 1, 0.05, Severity.MEDIUM, True),
        (LEAST_NS, 0.0099, Severity.LOW, False),
        (LEAST_NS, 0.01, Severity.INFO, False),
        (LEAST_NS, None, Severity.LOW, False),
        (None, None, Severity.HIGH, False),
    ],
)
def test_what_is_worth_telling(gain, share, severity, worth):
    cause = Cause(None, severity, (), evaluated=1, recording=0, gain=gain, share=share)
    assert worth_telling(cause) is worth


@pytest.mark.parametrize(
    ("before", "after", "grown"), [(10, 15, True), (10, 14, False), (4, 9, True), (4, 8, False), (20, 29, False)]
)
def test_a_cause_has_grown_by_half_and_a_twentieth_of_the_step(before, after, grown):
    parts = [recording(rank("0", finding("DAT101", saving))) for saving in (before, before, after)]
    found = synthesize(parts, []).growths
    assert found == (((0, 2, before * MS, after * MS),) if grown else ())


def test_what_a_run_gains_in_each_recording():
    parts = [
        recording(rank("0", finding("DAT101", 30)), rank("1", own=80)),
        recording(rank("0"), rank("1", own=80)),
        recording(rank("0", not_evaluated=[("DAT101", "no_host_ops")]), rank("1")),
        recording(*(rank(label, not_evaluated=[("DAT101", "no_host_ops")]) for label in "01")),
    ]
    (one,) = synthesize(parts, []).causes
    assert one.gains == (20 * MS, 0, 0, None)
    assert (one.recording, one.gain, one.largest, one.mean, one.total) == (0, 20 * MS, 30 * MS, 15 * MS, 120 * MS)


def test_what_is_said_about_the_ranks_side_by_side_counts_once():
    told = finding("RNK101", 10, ranks=(1,)), finding("RNK101", 6, ranks=(2,), ops=("b",))
    parts = [recording(rank("0"), rank("1", steps=3), rank("2"), about_ranks=told), recording(rank("0"), rank("1"))]
    first, second = synthesize(parts, []).causes
    assert (first.ranks, second.ranks) == (("1",), ("2",))
    assert (first.gains, second.gains) == ((10 * MS, 0), (6 * MS, 0))
    assert (first.mean, first.total, first.rank, first.about_ranks) == (10 * MS, 40 * MS, "", True)
    alone = recording(rank("0"))
    assert synthesize([parts[0], alone], []).causes[0].gains == (10 * MS, None)
    missing = recording(rank("0"), rank("1"), about_ranks_not_evaluated=[("RNK101", "few_steps")])
    assert synthesize([parts[0], missing], []).causes[0].gains == (10 * MS, None)


def _late(excess, saving, phase="late_data_loading"):
    return finding("RNK101", saving, draws=DRAWS, ranks=(1,), phase=phase, excess=excess * MS)


@pytest.mark.parametrize(("excess", "explains"), [(30, True), (31, False)])
def test_a_finding_explains_a_straggler_that_saves_half_of_its_excess_more_than_on_others(excess, explains):
    """45 ms on the late rank, 30 on the two others: 15 more."""
    ranks = [rank(str(at), finding("DAT101", 30 + 15 * (at == 1)), own=100) for at in range(3)]
    found = synthesize([recording(*ranks, about_ranks=[_late(excess, 5)])], []).causes
    (late,) = (one for one in found if one.finding.rule == "RNK101")
    assert (late.because is not None) is explains


@pytest.mark.parametrize(("saving", "first"), [(32, "RNK101"), (31, "DAT101")])
def test_a_straggler_that_costs_four_fifths_of_its_reason_stands_for_it(saving, first):
    ranks = rank("0", own=60), rank("1", finding("DAT101", 40), own=100), rank("2", own=60)
    found = synthesize([recording(*ranks, about_ranks=[_late(40, saving)])], []).causes
    assert found[0].finding.rule == first
    assert (found[0].part_of, found[1].part_of) == (None, 0)


def test_of_several_reasons_the_one_that_saves_most_explains():
    ranks = rank("0", own=60), rank("1", finding("DAT101", 25), finding("DAT102", 30), own=100), rank("2", own=60)
    found = synthesize([recording(*ranks, about_ranks=[_late(40, 40)])], []).causes
    assert [one.finding.rule for one in found] == ["RNK101", "DAT102", "DAT101"]
    assert (found[0].because, [one.part_of for one in found]) == (1, [None, 0, 0])


def test_causes_that_gain_alike_are_ordered_by_what_ranks_save_and_then_by_rule():
    ranks = (
        rank("0", finding("KRN102", 10), finding("KRN101", 10), finding("DAT101", 4), own=100),
        rank("1", finding("DAT101", 10), own=50),
        rank("2", finding("SYN101", 10), own=50),
    )
    found = synthesize([recording(*ranks)], []).causes
    assert [(one.finding.rule, one.gain, one.mean) for one in found] == [
        ("KRN101", 10 * MS, 10 * MS // 3),
        ("KRN102", 10 * MS, 10 * MS // 3),
        ("DAT101", 4 * MS, 14 * MS // 3),
        ("SYN101", 0, 10 * MS // 3),
    ]


def test_causes_that_gain_the_run_nothing_come_after_those_it_notices():
    """A gain of just a hundredth is worth telling; then come notes that gain less, whatever a rank saves."""
    one = replace(finding("DAT101", 30), saving=MS)
    ranks = (
        rank("0", one, finding("KRN101", None, severity=Severity.LOW), own=100),
        rank("1", finding("SYN101", 30), own=80),
    )
    found = synthesize([recording(*ranks)], [trouble("churn"), trouble("spike", "info")])
    keys = [one.finding.rule if one.finding else one.trouble.finding.key for one in found.causes]
    assert keys == ["DAT101", "churn", "SYN101", "KRN101", "spike"]


def test_the_rank_that_decides_is_that_of_the_recording_in_which_the_first_cause_costs_most():
    one = recording(rank("0", own=50), rank("1", finding("DAT101", 5), own=90))
    other = recording(rank("0", finding("DAT101", 20), own=90), rank("1", own=60))
    assert synthesize([one, other], []).decider == (1, 0)
    assert synthesize([other, one], []).decider == (0, 0)
    plain = recording(rank("0", own=50), rank("1", own=90))
    assert synthesize([plain, plain], [trouble("leak")]).decider == (1, 1)
    assert synthesize([], []).decider is None


def test_memory_is_ordered_by_severity_and_amount():
    found = synthesize([], [trouble("spike", amount=5), trouble("churn", amount=9), trouble("leak", "info", amount=99)])
    assert [one.trouble.finding.key for one in found.causes] == ["churn", "spike", "leak"]
    same = [trouble("spike", amount=5, rank="1", file=1), trouble("spike", "info", amount=9, rank="0")]
    (one,) = synthesize([], same).causes
    assert (one.rank, one.ranks, one.evaluated, one.severity) == ("1", ("0", "1"), 2, Severity.MEDIUM)


def waiters(*late, length=100 * MS, group=3, world=3, **parts):
    """What the rules say of ranks that come so many ns before the end of an all-reduce of 5 ms in both steps."""
    of = Group("0-2", (0, 1, 2), group)
    ranks = [
        summary(
            number,
            *((step, "all_reduce", 8, (100 * step + 50) * MS - by, (100 * step + 55) * MS) for step in range(2)),
            steps=("ProfilerStep#1", "ProfilerStep#2"),
            length=length,
            world=world,
            group=of,
            **{key: values[number] for key, values in parts.items()},
        )
        for number, by in enumerate(late)
    ]
    found = evaluate_run(compare_ranks(ranks), plan(RuleConfig(select=("RNK105", "RNK106")))).findings
    return found[0] if found else None


@pytest.mark.parametrize("early", [5 * MS, 10 * MS, 40 * MS])
def test_with_a_rank_missing_all_communication_with_it_may_be_waiting(early):
    found = waiters(early, 5 * MS)
    assert (found.rule, found.saving, found.cost, found.severity) == ("RNK105", None, 10 * MS, Severity.MEDIUM)
    told = {each.label: each.value for each in found.evidence}
    assert (told["missing"], told["share"], "least" in told) == ("2", 10 * MS / STEP, False)
    assert (found.count, found.scope.ops) == (2, ("rank 2",))


def test_with_a_rank_missing_little_communication_is_nothing_to_tell():
    assert waiters(40 * MS, 5 * MS - 2) is None


def test_two_steps_tell_what_ranks_wait_for_each_other_and_no_saving():
    found = waiters(30 * MS, 0, 12 * MS, compute=[40 * MS, 60 * MS, 50 * MS])
    assert (found.rule, found.saving, found.cost, found.sentence) == ("RNK106", None, 14 * MS, "cost")
    assert {each.label: each.value for each in found.evidence} == {"waiting": 14 * MS, "share": 0.14}
    assert found.scope.ops == ()
    assert waiters(14 * MS, 0, 0) is None


def _part(label, *times, own=None):
    return RankPart(label, tuple(map(str, range(len(times)))), np.array(times, np.int64), own)


def test_the_step_of_a_rank_and_of_a_recording_are_means():
    assert (_part("0", 1, 2, 4).step_time, _part("0").step_time) == (2, 0)
    assert recording(_part("0", 10, 20), _part("1", 20, 21)).step_time == (15 + 20) // 2
    assert recording().step_time == 0


def test_without_own_times_the_step_of_the_run_is_that_of_its_longest_rank():
    ranks = [_part("0", 10), _part("1", 10, own=5), _part("2", 9)]
    assert run_gain(ranks, {"0": 6, "1": 4}) == 1


def test_what_ranks_need_decides_where_their_waiting_is_not_known():
    """Rank 1 makes five others wait: what it loses all of them gain."""
    ranks = [replace(_part(str(number), 100), needs=90 if number == 1 else 40) for number in range(6)]
    assert run_gain(ranks, {"1": 30}) == 30
    assert run_gain(ranks, {"1": 60}) == 50
    assert run_gain(ranks, {"0": 30}) == 0


def test_recordings_can_be_compared_that_are_whole_and_have_most_ranks():
    two, one = (rank("0"), rank("1")), (rank("0"),)
    parts = [recording(*one), recording(*two), recording(*two, whole=False), recording(*two), recording(rank("1"))]
    assert comparable(parts) == (1, 3)
    assert comparable([recording(*one, whole=False), recording(*two, whole=False)]) == (1,)
    assert comparable([]) == ()


@pytest.mark.parametrize(
    ("labels", "text"),
    [(("0", "1", "2", "5"), "0-2,5"), (("3",), "3"), ((), ""), (("0", "2"), "0,2"), (("0", "1", "?2"), "0,1,?2")],
)
def test_ranks_in_a_row_are_joined(labels, text):
    assert spans(labels) == text
