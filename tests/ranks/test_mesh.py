"""Ranks of several groups: who is late, and what that costs, is what the simulation did."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.ranks.mesh import MS, Mesh, gained, run
from traceanalyze.ranks.compare import compare_ranks
from traceanalyze.ranks.results import ExposedWaits
from traceanalyze.ranks.stragglers import straggler_sentences
from traceanalyze.rules.across_ranks import evaluate_run, subtract_waiting
from traceanalyze.rules.evaluate import plan
from traceanalyze.rules.finding import Finding, Outcome, Severity

LATE = {
    "in its tensor group": (Mesh(layer_extra={3: MS // 2}), 3),
    "in a tensor group of four": (Mesh(tensor=4, layer_extra={7: MS // 2}), 7),
    "of four replicas": (Mesh(data=4, layer_extra={2: MS}), 2),
    "in its data group": (Mesh(step_extra={1: 2 * MS}), 1),
    "beside uneven layers": (Mesh(tensor=4, spread=0.05, step_extra={0: 4 * MS}), 0),
    "in each of uneven layers": (Mesh(tensor=4, data=4, spread=0.05, layer_extra={5: MS}), 5),
}


def late_findings(mesh):
    found = evaluate_run(compare_ranks(run(mesh)[0]), plan()).findings
    return [one for one in found if one.rule == "RNK101"]


@pytest.mark.parametrize("name", LATE)
def test_a_late_rank_is_named_once_and_no_rank_that_it_keeps_waiting(name):
    mesh, late = LATE[name]
    assert [one.scope.ranks for one in late_findings(mesh)] == [(late,)]


@pytest.mark.parametrize("name", LATE)
def test_it_costs_what_the_run_gains_without_it(name):
    mesh, _ = LATE[name]
    (one,) = late_findings(mesh)
    assert one.saving == pytest.approx(gained(mesh, replace(mesh, layer_extra={}, step_extra={})), rel=0.2)
    assert one.saving <= one.bound


def test_a_rank_that_is_late_in_one_step_is_not_named_for_those_in_which_it_waits_itself():
    """Rank 1 takes 2 ms longer in each of five steps, rank 0 of its group 12 ms in one: both are last elsewhere."""
    mesh = Mesh(data=4, steps=5, layer_extra={1: MS // 2}, once={0: 3 * MS})
    assert not late_findings(mesh)


def test_a_rank_that_others_wait_for_in_one_step_and_else_next_to_nothing_is_not_named():
    """Rank 0 takes 1 µs longer for each layer, and in one step 3 ms."""
    assert not late_findings(Mesh(data=4, steps=5, layer_extra={0: 1000}, once={0: 3 * MS}))


def test_two_late_ranks_cost_together_no_more_than_the_run_gains():
    mesh = Mesh(layer_extra={1: MS // 2, 3: MS // 2})
    found = late_findings(mesh)
    assert sorted(one.scope.ranks for one in found) == [(1,), (3,)]
    assert 0 < sum(one.saving for one in found) <= gained(mesh, replace(mesh, layer_extra={}))


@pytest.mark.parametrize("sends", [False, True])
def test_beside_another_late_rank_the_gain_without_one_is_within_its_range(sends):
    mesh = Mesh(layer_extra={1: MS, 3: MS // 2})
    cluster = compare_ranks(run(mesh)[0])
    if sends:
        # Then no replay tells what is gained.
        cluster = cluster._replace(between=ExposedWaits(np.ones_like(cluster.rows), bound=False))
    found = evaluate_run(cluster, plan(), object() if sends else None).findings
    for one in (each for each in found if each.rule == "RNK101"):
        (late,) = one.scope.ranks
        without = {rank: more for rank, more in mesh.layer_extra.items() if rank != late}
        assert one.least <= gained(mesh, replace(mesh, layer_extra=without)) <= one.most
        assert one.least < one.saving


def test_late_ranks_of_groups_that_run_for_themselves_cost_the_others_what_one_of_them_does():
    mesh = Mesh(tensor=4, data=3, apart=True, layer_extra={1: MS // 2, 6: MS // 2})
    (told,) = straggler_sentences(compare_ranks(run(mesh)[0]))
    values = {name: value for name, _, value in told.values}
    assert (values["rank"], values["exposed"]) == ("1,6", mesh.layers * MS // 2)


def test_a_rank_that_loses_more_itself_than_it_waits_is_late_by_itself():
    # Rank 3 is late in its tensor group; rank 2 waits for it there, and then needs much longer alone.
    mesh = Mesh(layer_extra={3: MS // 4}, step_extra={2: 6 * MS})
    assert (2,) in [one.scope.ranks for one in late_findings(mesh)]


def test_even_ranks_of_several_groups_wait_for_nobody():
    cluster = compare_ranks(run(Mesh())[0])
    assert cluster.stragglers == ()
    assert not cluster.exposed_waits.by_step.any()


@pytest.mark.parametrize("name", LATE)
def test_waiting_that_spreads_to_other_groups_is_no_saving_of_communication(name):
    mesh, late = LATE[name]
    ranks, _ = run(mesh)
    transfers = (mesh.layers + 1) * mesh.transfer
    exposed = [int(one.parts["communication"].sum()) // mesh.steps for one in ranks]
    before = [Outcome((Finding(saving=each, draws="comm_exposed", severity=Severity.HIGH),)) for each in exposed]
    after = subtract_waiting(before, compare_ranks(ranks), plan())
    assert min(exposed) == exposed[late] < 0.7 * sum(exposed) / len(exposed)
    for outcome in after:
        assert [one.saving for one in outcome.findings] == [pytest.approx(transfers, rel=0.1)]
