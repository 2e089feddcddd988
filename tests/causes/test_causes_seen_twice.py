"""Causes that are one thing seen twice."""

from __future__ import annotations

from dataclasses import replace

from tests.causes.make import MS, finding, rank, recording
from traceanalyze.causes.synthesize import DRAWS, synthesize, worth_telling
from traceanalyze.rules.finding import Severity


def late(phase, excess, saving):
    told = {"phase": phase, "excess": excess * MS}
    return finding("RNK101", saving, sentence="phase", draws=DRAWS, ranks=(1,), **told)


def causes(*ranks, about_ranks):
    return synthesize([recording(*ranks, about_ranks=about_ranks)], []).causes


def test_a_straggler_because_of_its_loader_is_one_line():
    ranks = rank("0", own=60), rank("1", finding("DAT101", 40), own=100), rank("2", own=60)
    first, second = causes(*ranks, about_ranks=[late("late_data_loading", 40, 40)])
    assert (first.finding.rule, first.because, first.part_of) == ("RNK101", 1, None)
    assert (second.finding.rule, second.part_of) == ("DAT101", 0)


def test_what_all_ranks_have_is_more_than_the_straggler():
    ranks = (
        rank("0", finding("DAT101", 30), own=90),
        rank("1", finding("DAT101", 45), own=100),
        rank("2", finding("DAT101", 30), own=90),
    )
    first, second = causes(*ranks, about_ranks=[late("late_data_loading", 15, 10)])
    assert (first.finding.rule, first.gain, first.part_of) == ("DAT101", 40 * MS, None)
    assert (second.finding.rule, second.because, second.part_of) == ("RNK101", 0, 0)


def test_what_all_ranks_have_alike_makes_none_of_them_late():
    ranks = [rank(str(number), finding("DAT101", 30), own=100 - 10 * (number != 1)) for number in range(3)]
    found = {one.finding.rule: one for one in causes(*ranks, about_ranks=[late("late_data_loading", 10, 10)])}
    assert found["RNK101"].because is None


def test_a_finding_of_another_kind_explains_nothing_but_is_the_same_time_on_the_late_rank():
    ranks = rank("0", own=60), rank("1", finding("SYN101", 41), own=100)
    first, second = causes(*ranks, about_ranks=[late("late_data_loading", 40, 40)])
    assert (first.finding.rule, first.because) == ("RNK101", None)
    assert (second.finding.rule, second.part_of) == ("SYN101", 0)


def test_uneven_work_is_why_a_rank_is_late():
    ranks = rank("0", own=60), rank("1", own=100)
    first, second = causes(*ranks, about_ranks=[late("late_compute", 40, 40), finding("RNK102", None)])
    assert (first.finding.rule, second.finding.rule, second.part_of) == ("RNK101", "RNK102", 0)


def _waiting_for_an_absent_rank(sentence):
    told = finding("RNK105", None, sentence=sentence, draws=DRAWS, severity=Severity.HIGH)
    return replace(told, cost=30 * MS)


def test_what_may_be_waiting_for_an_absent_rank_is_the_communication_that_nothing_hides():
    ranks = [rank(str(number), finding("COM101", 40, draws=DRAWS), own=100) for number in range(2)]
    first, second = causes(*ranks, about_ranks=[_waiting_for_an_absent_rank("")])
    assert (first.finding.rule, first.gain, first.cost, first.share) == ("RNK105", None, 30 * MS, 0.3)
    assert (second.finding.rule, second.part_of) == ("COM101", 0)


def test_what_is_said_about_ranks_side_by_side_does_not_include_known_waiting():
    ranks = [rank(str(number), finding("COM101", 20, draws=DRAWS), own=100) for number in range(2)]
    first, second = causes(*ranks, about_ranks=[_waiting_for_an_absent_rank("rank")])
    assert (first.finding.rule, second.finding.rule, second.part_of) == ("RNK105", "COM101", None)


def test_what_has_only_a_cost_comes_before_what_gains_less():
    waits = replace(finding("COM120", None, severity=Severity.HIGH), cost=30 * MS)
    found = causes(rank("0", finding("SYN101", 20), waits, own=100), about_ranks=[])
    assert [(one.finding.rule, one.gain, one.cost) for one in found] == [
        ("COM120", None, 30 * MS),
        ("SYN101", 20 * MS, None),
    ]
    assert all(map(worth_telling, found))
    once = replace(waits, once=True, severity=Severity.INFO)
    _, last = causes(rank("0", finding("SYN101", 20), once, own=100), about_ranks=[])
    assert (last.finding.rule, last.cost, worth_telling(last)) == ("COM120", None, False)
