"""Ranks in processes of their own."""

from __future__ import annotations

import os

import pytest

from traceanalyze.ranks.run import LARGE, map_ranks, workers_for


def squared(number):
    return number * number, os.getpid()


def inverse(number):
    return 1 / number


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
    numbers = list(range(9))
    found = list(map_ranks(squared, numbers, 2))
    assert [value for value, _ in found] == [number * number for number in numbers]
    # This process begins with the first; the last is the other's, which starts at the end.
    assert found[0][1] == os.getpid() != found[-1][1]
    assert len({process for _, process in found}) == 2
    assert {process for _, process in map_ranks(squared, numbers, 1)} == {os.getpid()}


def test_two_ranks_are_done_side_by_side():
    (_, here), (_, elsewhere) = map_ranks(squared, [1, 2], 2)
    assert here == os.getpid() != elsewhere


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_what_the_work_raises_is_raised(number):
    with pytest.raises(ZeroDivisionError):
        list(map_ranks(inverse, [number - place for place in range(4)], 2))


def test_who_wants_no_more_results_waits_for_no_more_work():
    results = map_ranks(squared, list(range(1000)), 2)
    assert next(results) == (0, os.getpid())
    results.close()


def test_where_processes_die_this_one_does_the_work():
    assert list(map_ranks(killed_elsewhere, [os.getpid()] * 2, 2)) == [os.getpid()] * 2


@pytest.mark.parametrize(
    ("sizes", "cores", "workers"), [([LARGE // 2] * 2, 8, 2), ([LARGE] * 5, 8, 2), ([LARGE] * 5, 1, 1)]
)
def test_two_processes_at_most_are_worth_their_start(monkeypatch, sizes, cores, workers):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert workers_for(sizes) == workers
