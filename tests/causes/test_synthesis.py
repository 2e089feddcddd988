"""Findings of ranks and recordings as one ranked list."""

from __future__ import annotations

from dataclasses import replace

from tests.causes.make import MS, finding, ints, rank, recording, trouble
from traceanalyze.causes.results import in_order
from traceanalyze.causes.synthesize import synthesize
from traceanalyze.ranks.results import spans
from traceanalyze.rules.finding import Severity


def titles(found):
    return [(one.finding.rule if one.finding else one.trouble.finding.key) for one in found.causes]


def test_one_cause_for_all_ranks_with_what_each_saves():
    ranks = [rank(str(n), finding("DAT101", 20 + n), own=100) for n in range(3)]
    (one,) = synthesize([recording(*ranks, rank("3", own=90))], []).causes
    assert one.ranks == ("0", "1", "2")
    assert one.evaluated == 4
    assert (one.largest, one.mean) == (22 * MS, (20 + 21 + 22) * MS // 4)
    assert one.rank == "2"
    assert one.total == (20 + 21 + 22) * 4 * MS
    # Own times are then 80, 79, 78 and 90.
    assert one.gain == 10 * MS
    assert one.share == 0.1
    # High on each of the ranks, but the run gains a tenth of its step.
    assert one.severity == Severity.MEDIUM


def test_of_ranks_that_were_replayed_together_each_is_shown_with_what_it_gains_for_itself():
    """The run gains 30 ms without it, whichever rank says so; rank 1 alone would gain most."""
    found = [replace(finding("HST101", 30), alone=own * MS) for own in (20, 40)]
    (one,) = synthesize([recording(*(rank(str(n), each, own=100) for n, each in enumerate(found)))], []).causes
    assert (one.gain, one.largest, one.mean, one.rank) == (30 * MS, 40 * MS, 30 * MS, "1")
    assert one.total == (20 + 40) * 4 * MS


def test_a_rank_for_which_it_could_not_be_judged_does_not_count():
    ranks = rank("0", finding("DAT101", 20)), rank("1", not_evaluated=[("DAT101", "no_host_ops")])
    (one,) = synthesize([recording(*ranks)], []).causes
    assert (one.evaluated, one.mean) == (1, 20 * MS)


def test_places_tell_findings_apart_only_where_one_rank_has_several():
    alike = recording(rank("0", finding("SYN101", 5, ops=("a",))), rank("1", finding("SYN101", 5, ops=("b",))))
    assert len(synthesize([alike], []).causes) == 1
    apart = recording(rank("0", finding("SYN101", 5, ops=("a",)), finding("SYN101", 4, ops=("b",))))
    assert len(synthesize([apart], []).causes) == 2


def test_what_the_run_gains_most_from_comes_first_and_what_it_gains_nothing_from_late():
    ranks = (
        rank("0", finding("DAT101", 30), finding("KRN101", 8), own=100),
        rank("1", finding("KRN101", 8), finding("SYN105", 60), own=95),
    )
    found = synthesize([recording(*ranks)], [])
    assert titles(found) == ["KRN101", "DAT101", "SYN105"]
    assert [one.gain for one in found.causes] == [8 * MS, 5 * MS, 0]


def test_memory_that_ends_the_run_comes_first_and_other_memory_after_the_time():
    found = synthesize(
        [recording(rank("0", finding("DAT101", 30), finding("KRN101", None)))],
        [trouble("churn"), trouble("spike", "info"), trouble("leak", "critical"), trouble("oom_full", "critical")],
    )
    assert titles(found) == ["oom_full", "leak", "DAT101", "churn", "spike", "KRN101"]


def test_one_place_on_several_ranks_is_one_cause_of_memory():
    found = synthesize([], [trouble(rank="3", amount=10), trouble(rank="1", amount=20), trouble(line="b.py:1 g")])
    assert sorted(one.ranks for one in found.causes) == [(), ("1", "3")]
    (both,) = (one for one in found.causes if one.ranks)
    assert both.trouble.finding.amount == 20
    assert found.decider is None


def test_what_a_rule_says_about_a_snapshot_is_not_said_twice():
    part = recording(rank("1", finding("MEM108", None)), rank("2", finding("MEM108", None)))
    both = synthesize([part], [trouble("leak", rank="1"), trouble("leak", rank="2")])
    assert titles(both) == ["leak"]
    elsewhere = synthesize([recording(rank("0", finding("MEM108", None)))], [trouble("leak", rank="5")])
    assert sorted(titles(elsewhere)) == ["MEM108", "leak"]
    of_any = synthesize([recording(rank("0", finding("MEM108", None)))], [trouble("leak")])
    assert titles(of_any) == ["leak"]


def test_findings_on_the_recording_limit_nothing():
    found = synthesize([recording(rank("0", finding("CAP103", None), finding("DAT101", 30)))], [])
    assert titles(found) == ["DAT101"]
    assert [one.finding.rule for one in found.capture] == ["CAP103"]


def test_since_when_and_in_which_recording_it_grew():
    early = recording(rank("0", finding("DAT101", 10), costs=[ints(*[10 * MS] * 4)]))
    late = recording(rank("0", finding("DAT101", 40), costs=[ints(*[40 * MS] * 4)], first=500))
    found = synthesize([early, late], [])
    (one,) = found.causes
    assert (one.onset.kind, one.onset.steps) == ("every", 8)
    assert one.gains == (10 * MS, 40 * MS)
    assert one.recording == 1
    (growth,) = found.growths
    assert (growth.recording, growth.before, growth.after) == (1, 10 * MS, 40 * MS)


def test_a_cause_that_appears_in_a_later_recording():
    late = recording(rank("0", finding("DAT101", 40), costs=[ints(*[40 * MS] * 4)], first=500))
    found = synthesize([recording(rank("0")), late], [])
    assert (found.causes[0].onset.kind, found.causes[0].onset.step) == ("from", "500")
    assert [(one.before, one.after) for one in found.growths] == [(0, 40 * MS)]
    unknown = recording(rank("0", not_evaluated=[("DAT101", "no_host_ops")]))
    told = synthesize([unknown, late], [])
    assert told.causes[0].gains == (None, 40 * MS)
    assert told.causes[0].onset.kind == "every"
    assert told.growths == ()


def test_a_damaged_recording_does_not_lead():
    cut = recording(rank("0", finding("DAT101", 90)), whole=False)
    found = synthesize([recording(rank("0", finding("DAT101", 30))), cut], [])
    assert (found.causes[0].recording, found.causes[0].gain, found.decider) == (0, 30 * MS, (0, 0))
    alone = synthesize([recording(rank("0")), cut], [])
    assert alone.causes[0].gain == 90 * MS


def test_what_could_not_be_judged_by_reason():
    ranks = (
        rank("0", not_evaluated=[("KRN101", "no_shapes"), ("KRN102", "no_shapes"), ("HST104", "no_python")]),
        rank("1", not_evaluated=[("KRN101", "no_shapes")]),
    )
    found = synthesize([recording(*ranks, about_ranks_not_evaluated=[("RNK101", "ranks_missing")])], []).not_evaluated
    assert [(one.reason, one.rules, one.ranks) for one in found] == [
        ("no_shapes", ("KRN101", "KRN102"), ("0", "1")),
        ("no_python", ("HST104",), ("0",)),
        ("ranks_missing", ("RNK101",), ("0", "1")),
    ]


def test_nothing_found_is_nothing_told():
    found = synthesize([recording(rank("0"), rank("1"))], [])
    assert (found.causes, found.capture, found.growths) == ((), (), ())


def test_ranks_by_what_they_are_called():
    assert in_order(["10", "2", "?1", "2"]) == ("2", "10", "?1")
    assert spans(in_order(["0", "1", "2", "3", "5", "7", "8"])) == "0-3,5,7-8"
    assert spans([]) == ""
    assert spans(["a", "b"]) == "a,b"
