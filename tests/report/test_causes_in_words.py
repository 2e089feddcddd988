"""What a cause is called and says, made by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.causes.make import MS, finding, ints, rank, recording, trouble
from traceanalyze.causes.results import Cause
from traceanalyze.causes.synthesize import synthesize
from traceanalyze.locales import texts
from traceanalyze.model.table import Kind, NotMeasured
from traceanalyze.report.contents.causes import actions, actions_table, as_finding, causes_table, title, trend_table
from traceanalyze.report.contents.words import Setting
from traceanalyze.rules.finding import Severity


@pytest.mark.parametrize(("said", "name"), [("", "rule_RNK105"), ("rank", "rule_RNK105_rank")])
def test_a_sentence_with_a_title_of_its_own_is_called_so(said, name):
    found = Cause(finding("RNK105", 5, sentence=said), Severity.LOW, ("0",), 1, 0)
    assert title(found) == name


def test_the_cause_of_a_rule_is_called_as_the_rule():
    one = Cause(finding("DAT101", 5), Severity.LOW, ("0",), 1, 0)
    assert title(one) == "rule_DAT101"


def test_only_of_several_recordings_a_cause_tells_which_one_it_is_of():
    fault = finding("DAT101", 20)
    late = recording(rank("0", fault, costs=[ints(*[20 * MS] * 4)], first=100))

    def place(*recordings):
        (one,) = causes_table(synthesize(recordings, [])).records()
        return one.recording, one.since_recording, one.since_step

    assert place(late) == (None, None, None)
    assert place(recording(rank("0")), late) == (2, 2, "100")


def test_numbers_of_another_recording_than_the_one_in_detail_say_so():
    one = Cause(replace(finding("XYZ1", 5), text="slow"), Severity.LOW, ("0",), 1, 0)
    told = [as_finding(one, Setting(recording=at)).in_words(texts()).sentence for at in (0, 3)]
    assert told == ["slow", "In recording 3: slow"]


@pytest.mark.parametrize(("told", "advised"), [("info", []), ("warn", [()]), (0, []), (1, [("cheaper_samples",)])])
def test_advice_is_given_on_warnings_of_snapshots_and_on_what_costs_a_hundredth_of_the_step(told, advised):
    """Milliseconds of 100, or how severe a finding of a snapshot is."""
    if isinstance(told, str):
        found = synthesize([], [trouble(severity=told)])
    else:
        found = synthesize([recording(rank("0", finding("DAT101", told), costs=[ints(*[told * MS] * 4)]))], [])
    assert [keys for _, keys in actions(found)] == advised


def test_what_a_cause_costs_in_every_recording_is_told_by_its_number_and_theirs():
    def cause(rule, *gains):
        return Cause(finding(rule, 5), Severity.LOW, ("0",), 1, 0, gains=gains)

    steps = [SimpleNamespace(step_time=time) for time in (100 * MS, 200 * MS, 0)]
    causes = (cause("DAT101", 10 * MS, 10 * MS, 0), cause("SYN101", None, None, None), cause("KRN101", None, 0, 5))
    found = trend_table(SimpleNamespace(causes=causes, recordings=steps))
    unknown = NotMeasured("rule_not_judged")
    assert found.rows == (
        (1, "rule_DAT101", 1, 10 * MS, 0.1),
        (1, "rule_DAT101", 2, 10 * MS, 0.05),
        (1, "rule_DAT101", 3, 0, 0.0),
        (3, "rule_KRN101", 1, unknown, unknown),
        (3, "rule_KRN101", 2, 0, 0.0),
        (3, "rule_KRN101", 3, 5, 0.0),
    )


@pytest.mark.parametrize(
    ("because", "about_ranks", "advised"),
    [(None, False, ["own", "part"]), (None, True, ["own"]), (1, False, ["other"])],
)
def test_a_late_rank_is_helped_by_what_explains_it_else_also_by_what_was_found_on_it(because, about_ranks, advised):
    """The second cause stands for itself; the third is part of the first."""

    def cause(rule, key, **more):
        found = replace(finding(rule, 20), advice=(key,))
        return Cause(found, Severity.HIGH, ("0",), 1, 0, gain=20 * MS, share=0.2, **more)

    late = cause("RNK101", "own", because=because)
    causes = (late, cause("DAT101", "other"), cause("SYN101", "part", part_of=0, about_ranks=about_ranks))
    found = SimpleNamespace(causes=causes, troubles=(), recordings=())
    assert [key for one, keys in actions(found) for key in keys if one is late] == advised


def test_only_a_late_rank_is_helped_by_what_was_found_on_it():
    causes = (
        Cause(replace(finding("DAT101", 20), advice=("own",)), Severity.HIGH, ("0",), 1, 0, gain=20 * MS, share=0.2),
        Cause(replace(finding("SYN101", 20), advice=("part",)), Severity.HIGH, ("0",), 1, 0, part_of=0),
    )
    assert [keys for _, keys in actions(SimpleNamespace(causes=causes))] == [("own",)]


def test_a_cause_with_a_cost_only_is_ranked_by_it_and_says_that_its_saving_was_not_measured():
    """50 of 100 ms against a gain of 20."""
    cost = replace(finding("COM120", 0), saving=None, bound=None, cost=50 * MS, severity=Severity.HIGH)
    found = synthesize([recording(rank("0", cost, finding("DAT101", 20)))], [])
    first, second = causes_table(found).records()
    assert (first.rule_id, first.gain_ns, first.cost_ns, first.share) == (
        "COM120",
        NotMeasured("saving_not_replayed"),
        50 * MS,
        0.5,
    )
    assert (second.rule_id, second.gain_ns, second.cost_ns) == ("DAT101", 20 * MS, None)
    (note, *_) = actions_table(found, "cuda").notes
    assert (note.key, note.values[-1]) == ("action_for_cost", ("cost", Kind.DURATION, 50 * MS))
