"""Causes that are one thing seen twice."""

from __future__ import annotations

from dataclasses import replace

from tests.causes.make import MS, finding, rank, recording
from traceanalyze.causes.synthesize import synthesize
from traceanalyze.causes.waiting import DRAWS, WAITING


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


def _waiting_for_an_absent_rank(saving):
    told = finding("", saving, draws=DRAWS)
    return replace(told, slug=WAITING, sentence="absent")


def test_of_a_rank_alone_waiting_is_communication_that_nothing_hides():
    alone = rank("0", finding("COM101", 20, draws=DRAWS), own=100)
    first, second = causes(alone, about_ranks=[_waiting_for_an_absent_rank(30)])
    assert (first.finding.slug, second.finding.rule, second.part_of) == (WAITING, "COM101", 0)


def test_what_is_said_about_ranks_side_by_side_does_not_include_their_waiting():
    ranks = [rank(str(number), finding("COM101", 20, draws=DRAWS), own=100) for number in range(2)]
    first, second = causes(*ranks, about_ranks=[_waiting_for_an_absent_rank(30)])
    assert (first.finding.slug, second.finding.rule, second.part_of) == (WAITING, "COM101", None)
