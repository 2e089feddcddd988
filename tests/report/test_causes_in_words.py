"""What a cause is called and says, made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.causes.make import MS, finding, ints, rank, recording, trouble
from traceanalyze.causes.results import Cause
from traceanalyze.causes.synthesize import synthesize
from traceanalyze.causes.waiting import ABSENT, ALONE, MISSING, WAITING
from traceanalyze.report.contents.causes import actions, causes_table, sentence, title
from traceanalyze.rules.finding import Severity


def waiting(said):
    found = replace(finding("", 5, sentence=said, wait=5_000_000), slug=WAITING)
    return Cause(found, Severity.LOW, ("0",), 1, 0)


@pytest.mark.parametrize(
    ("said", "name", "key"),
    [
        ("", "cause_waiting", "cause_waiting"),
        ("uneven_compute", "cause_waiting", "cause_waiting_uneven_compute"),
        (ABSENT, "cause_waiting_unrecorded", "cause_waiting_absent"),
        (MISSING, "cause_waiting_unrecorded", "cause_waiting_missing"),
        (ALONE, "cause_waiting_unrecorded", "cause_waiting_alone"),
    ],
)
def test_waiting_for_ranks_that_were_not_recorded_has_its_own_name(said, name, key):
    assert title(waiting(said)) == name
    assert sentence(waiting(said)).key == key


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


@pytest.mark.parametrize(("told", "advised"), [("info", []), ("warn", [()]), (0, []), (1, [("cheaper_samples",)])])
def test_advice_is_given_on_warnings_of_snapshots_and_on_what_costs_a_hundredth_of_the_step(told, advised):
    """Milliseconds of 100, or how severe a finding of a snapshot is."""
    if isinstance(told, str):
        found = synthesize([], [trouble(severity=told)])
    else:
        found = synthesize([recording(rank("0", finding("DAT101", told), costs=[ints(*[told * MS] * 4)]))], [])
    assert [keys for _, keys in actions(found)] == advised
