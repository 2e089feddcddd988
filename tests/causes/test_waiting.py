"""How long ranks wait for each other: hand-made ranks, answers on paper."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.causes.make import finding
from tests.ranks.make import ints, rank
from traceanalyze.causes.synthesize import DRAWS, cost_of, needs_of
from traceanalyze.model.table import NotMeasured
from traceanalyze.ranks.compare import compare_ranks
from traceanalyze.ranks.results import Group

MS = 1_000_000
STEPS = ("ProfilerStep#1", "ProfilerStep#2")
"""Too few for anybody to be called a straggler."""
TRIO = Group("0-2", (0, 1, 2), 3)


def late_by(number, *arrivals, **parts):
    """All-reduces of 5 ms that end at 90 ms of each step of 100 ms, in which this rank comes at its arrivals (ms)."""
    calls = [
        (step, "all_reduce", 1000, (100 * step + at) * MS, (100 * step + 90) * MS) for step, at in enumerate(arrivals)
    ]
    return rank(number, *calls, steps=STEPS, length=100 * MS, world=3, group=TRIO, **parts)


@pytest.fixture
def trio():
    """Rank 2 is last in the first step, rank 1 in the second."""
    return [
        late_by(0, 50, 60, compute=50 * MS),
        late_by(1, 60, 85, compute=70 * MS),
        late_by(2, 85, 60, compute=70 * MS),
    ]


def test_waiting_is_the_exposed_time_beyond_the_shortest_on_any_rank(trio):
    cluster = compare_ranks(trio)
    assert cluster.exposed_waits.by_step.tolist() == [[35 * MS, 25 * MS], [25 * MS, 0], [0, 25 * MS]]
    assert cluster.exposed_waits.mean.tolist() == [30 * MS, 12.5 * MS, 12.5 * MS]
    assert not cluster.exposed_waits.bound
    assert cluster.own_time == (70 * MS, 87.5 * MS, 87.5 * MS)


def test_what_one_waits_on_the_host_longer_than_another_is_no_time_of_its_own():
    """Of a barrier of 2 ms before each step rank 2, the last one, pays no more than that."""
    waits = (20, 22, 2)
    cluster = compare_ranks([late_by(at, 50, 50, peer_wait=wait * MS) for at, wait in enumerate(waits)])
    assert cluster.own_time == (82 * MS, 80 * MS, 100 * MS)


def test_what_compute_hides_is_no_waiting(trio):
    hidden = replace(trio[0], collectives=replace(trio[0].collectives, exposed=ints([15 * MS, 30 * MS])))
    assert compare_ranks([hidden, *trio[1:]]).exposed_waits.by_step[0].tolist() == [10 * MS, 25 * MS]


def test_without_collectives_nothing_is_known():
    cluster = compare_ranks([rank(number, length=100 * MS) for number in range(2)])
    assert cluster.exposed_waits == NotMeasured("no_matched_collectives")
    assert cluster.own_time == (None, None)
    assert needs_of(cluster) == (None, None)


def test_in_each_step_the_others_wait_for_a_late_rank(trio):
    late = finding("RNK101", 10, draws=DRAWS, ranks=(2,))
    assert cost_of(late, compare_ranks(trio)).tolist() == [30 * MS, 12.5 * MS]
    assert cost_of(finding("RNK104", 10), compare_ranks(trio)) is None


def test_what_a_rank_needs_is_its_step_without_waiting(trio):
    assert needs_of(compare_ranks(trio)) == (70 * MS, 87.5 * MS, 87.5 * MS)


def test_with_a_rank_missing_it_is_the_step_without_communication_and_without_waiting_on_the_host(trio):
    pair = [replace(one, parts=one.parts | {"communication": ints([40 * MS, 30 * MS])}) for one in trio[:2]]
    assert needs_of(compare_ranks(pair)) == (65 * MS, 65 * MS)
    hosts = [replace(one, parts=one.parts | {"peer_wait": ints([10 * MS, 0])}) for one in pair]
    assert needs_of(compare_ranks(hosts)) == (60 * MS, 60 * MS)
    assert needs_of(compare_ranks(trio[:2])) == (None, None)
