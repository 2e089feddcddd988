"""Ranks in processes of their own."""

from __future__ import annotations

import os

import pytest

from traceanalyze.cluster.run import LARGE, map_ranks, workers_for


def squared(number):
    return number * number, os.getpid()


def killed_elsewhere(home):
    if os.getpid() != home:
        os._exit(1)
    return home


@pytest.mark.parametrize(
    ("sizes", "workers"),
    [([], 1), ([LARGE], 1), ([LARGE // 2 - 1] * 2, 1), ([None, None], 1)],
)
def test_one_input_or_little_input_is_worth_no_process(sizes, workers):
    assert workers_for(sizes) == workers


def test_large_ranks_go_two_at_a_time_at_most():
    assert workers_for([LARGE] * 8) == min(2, os.cpu_count())


def test_results_come_in_order_from_other_processes():
    found = list(map_ranks(squared, [5, 3, 4], 2))
    assert [value for value, _ in found] == [25, 9, 16]
    assert os.getpid() not in {process for _, process in found}
    assert [value for value, _ in map_ranks(squared, [5, 3, 4], 1)] == [25, 9, 16]


def test_where_processes_die_this_one_does_the_work():
    assert list(map_ranks(killed_elsewhere, [os.getpid()] * 2, 2)) == [os.getpid()] * 2
