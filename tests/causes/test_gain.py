"""What the run gains: the rank that needs most time of its own decides."""

from __future__ import annotations

import pytest

from tests.causes.make import MS, rank
from traceanalyze.causes.results import decider, run_gain


def gain(owns, savings):
    ranks = [rank(str(number), own=own) for number, own in enumerate(owns)]
    return run_gain(ranks, {str(number): saving * MS for number, saving in savings.items()}) / MS


@pytest.mark.parametrize(
    ("owns", "savings", "expected"),
    [
        ((100,), {0: 30}, 30),
        ((100, 100), {0: 30, 1: 30}, 30),
        ((100, 100), {0: 30}, 0),
        ((100, 60), {0: 30}, 30),
        ((100, 60), {0: 60}, 40),
        ((100, 60), {1: 30}, 0),
        ((100, 90, 40), {0: 20, 1: 20, 2: 20}, 20),
    ],
)
def test_only_what_the_slowest_rank_saves_shortens_the_step(owns, savings, expected):
    assert gain(owns, savings) == expected


def test_where_nothing_tells_what_ranks_need_the_longest_step_counts():
    ranks = [rank("0"), rank("1")]
    blind = [type(one)(one.label, one.steps, one.step_times, None) for one in ranks]
    assert run_gain(blind, {"0": 30 * MS}) == 0
    assert run_gain(blind, {"0": 30 * MS, "1": 20 * MS}) == 20 * MS


def test_the_rank_that_waits_least_decides():
    assert decider([rank("0", own=60), rank("1", own=90), rank("2", own=70)]) == 1
