"""Simulated runs: what the product says is what the simulation did."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.ranks.simulated import summaries, true_waits, workload
from tests.simulate.workload import Fault
from traceanalyze.ranks.compare import compare_ranks, imbalance
from traceanalyze.ranks.match import clock_offsets
from traceanalyze.ranks.waits import collective_waits, rank_waits

RUNS = {
    "healthy": workload(),
    "straggler": workload(Fault("straggler", 1.5), ranks=3),
    "sharded": workload(Fault("straggler", 1.3), ranks=4, strategy="sharded", seed=3),
    "slow link": workload(Fault("exposed_comm", 10), ranks=2, seed=1),
    "clocks apart": workload(Fault("straggler", 2.0), ranks=3, offset=7_000_000),
}


@pytest.mark.parametrize("name", RUNS)
def test_waits_are_those_of_the_simulation(name):
    found = compare_ranks(summaries(RUNS[name]))
    table = collective_waits(found)
    sums = dict.fromkeys(table.column("rank"), 0)
    for rank, wait in zip(table.column("rank"), table.column("wait_ns"), strict=True):
        sums[rank] += wait
    assert list(sums.values()) == true_waits(RUNS[name])
    steps = RUNS[name].steps
    assert list(rank_waits(found).column("wait_ns")) == [(2 * wait + steps) // (2 * steps) for wait in sums.values()]
    assert found.stops == ()
    assert found.outside == 0


@pytest.mark.parametrize("name", ["straggler", "clocks apart"])
def test_the_slow_rank_is_named_and_its_compute_blamed(name):
    run = RUNS[name]
    (one,) = compare_ranks(summaries(run)).stragglers
    others = true_waits(run)[:-1]
    assert (one.label, one.phase) == (str(run.ranks.count - 1), "compute")
    assert one.wait == sum(others) // len(others) // run.steps


def test_clock_offsets_are_those_of_the_simulation():
    found = clock_offsets(compare_ranks(summaries(RUNS["clocks apart"])))
    assert found.column("offset_ns") == (0, 7_000_000, 14_000_000)
    assert found.column("residual_ns") == (0, 0, 0)


@examples(4)
@given(st.tuples(*[st.integers(-(10**15), 10**15)] * 3))
def test_moving_a_clock_changes_nothing_but_its_offset(shifts):
    run = RUNS["straggler"]
    plain, moved = compare_ranks(summaries(run)), compare_ranks(summaries(run, shifts))
    for table in (collective_waits, rank_waits, imbalance):
        assert table(moved).rows == table(plain).rows
    assert moved.stragglers == plain.stragglers
    before, after = clock_offsets(plain), clock_offsets(moved)
    assert after.column("skew_ns") == before.column("skew_ns")
    assert list(after.column("offset_ns")) == [
        offset + shift - shifts[0] for offset, shift in zip(before.column("offset_ns"), shifts, strict=True)
    ]


@pytest.mark.parametrize("name", RUNS)
def test_waits_are_never_negative_and_parts_sum_to_the_step(name):
    found = compare_ranks(summaries(RUNS[name]))
    assert all((group.wait(slice(None)) >= 0).all() and (group.transfer > 0).all() for group in found.groups)
    exclusive = ("compute", "communication", "memory_ops", "data_loading", "dispatch", "sync", "device_gap", "untraced")
    assert (np.sum([found.part(key) for key in exclusive], axis=0) == found.step_time).all()


def test_a_summary_is_small_and_survives_being_sent():
    before = summaries(RUNS["straggler"])
    sent = pickle.dumps(before)
    assert len(sent) < 100_000
    assert rank_waits(compare_ranks(pickle.loads(sent))).rows == rank_waits(compare_ranks(before)).rows
