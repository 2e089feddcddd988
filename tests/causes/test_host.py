"""A program without a device."""

from __future__ import annotations

from tests.causes.make import MS, ints
from traceanalyze.causes.causes import host_loading
from traceanalyze.rules.finding import Severity


def test_waiting_for_data_from_a_twentieth_of_the_step_on():
    times = ints(100 * MS, 100 * MS)
    assert host_loading(ints(4 * MS, 4 * MS), times) is None
    some = host_loading(ints(4 * MS, 8 * MS), times)
    assert (some.saving, some.severity) == (6 * MS, Severity.MEDIUM)
    assert host_loading(ints(30 * MS, 30 * MS), times).severity == Severity.HIGH


def test_very_short_steps_wait_as_well():
    assert host_loading(ints(50_000), ints(100_000)).severity == Severity.HIGH
