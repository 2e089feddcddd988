"""Many ranks: by machine, stage and group, and those that are worth a full analysis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import traceanalyze
from tests.ranks.fleet import MS, Fleet, fleet_ranks, fleet_summaries, late_fleet
from tests.ranks.simulated import workload
from tests.simulate.simulate import simulate
from tests.simulate.workload import Fault
from tests.simulate.writers.kineto import write
from traceanalyze.model.trace import Run
from traceanalyze.pipeline.run_report import run_report, side_by_side
from traceanalyze.ranks import results
from traceanalyze.ranks.compare import compare_ranks, rank_steps
from traceanalyze.ranks.overview import groupings, rank_groups, slower_kernels, worth_full
from traceanalyze.ranks.results import MANY, members_of, spans
from traceanalyze.ranks.waits import MOST_ROWS, collective_waits, rank_waits

PLAN = Fleet(tensor=8, data=8, stages=2, extra={37: MS}, slower={90: 1.04, 101: 1.8})
"""128 ranks; what rank 101 takes longer is more than what rank 37 does."""


@pytest.fixture(scope="module")
def cluster():
    return compare_ranks(fleet_summaries(PLAN))


@pytest.mark.parametrize("members", [1, 3])
def test_how_many_members_are_looked_at_together_changes_no_number(monkeypatch, members):
    fleet = late_fleet(64, extra={5: MS, 37: MS // 4})
    usual = compare_ranks(fleet_summaries(fleet))
    monkeypatch.setattr(results, "AT_ONCE", members)
    other = compare_ranks(fleet_summaries(fleet))
    assert len(usual.stragglers) > 0
    assert (other.stragglers, rank_waits(other).rows) == (usual.stragglers, rank_waits(usual).rows)
    assert collective_waits(other).rows == collective_waits(usual).rows
    assert np.array_equal(other.exposed_waits.by_step, usual.exposed_waits.by_step)


def test_ranks_are_grouped_by_machine_stage_and_process_group(cluster):
    found = {one.kind: one for one in groupings(cluster.ranks)}
    assert [*found] == ["by_host", "role_tensor", "role_data", "by_stage"]
    members = {
        kind: [[at for at, of in enumerate(one.of) if of == number] for number in range(len(one.names))]
        for kind, one in found.items()
    }
    assert members["by_host"] == members["role_tensor"] == [[*range(at, at + 8)] for at in range(0, 128, 8)]
    assert members["by_stage"] == [[*range(64)], [*range(64, 128)]]
    assert members["role_data"][0] == [*range(0, 64, 8)]
    assert found["by_host"].names[0] == "node00000"
    assert found["by_stage"].names == ("0", "1")


def test_groups_of_ranks_that_were_not_recorded_have_no_steps():
    first, *others = (replace(one, host="") for one in fleet_summaries(PLAN)[:72])
    named = {**first.group_names, "dp16": (200, 208)}
    known, found = (rank_steps(compare_ranks([one, *others])) for one in (first, replace(first, group_names=named)))
    assert list(found.rows) == list(known.rows)


def test_groups_are_told_the_slowest_first_with_their_slowest_rank(cluster):
    rows = list(rank_groups(cluster).records())
    first = {}
    for one in rows:
        first.setdefault(one.grouping, one)
    assert (first["by_host"].group, first["by_host"].ranks, first["by_host"].count) == ("node00012", "96-103", 8)
    assert {one.slowest_rank for one in first.values()} == {"101"}
    assert first["by_stage"].ranks == "64-127"
    own = list(cluster.own_time)
    assert first["by_host"].own_ns == sum(own[96:104]) // 8
    assert first["by_host"].slowest_ns == max(own)
    assert sum(one.count for one in rows if one.grouping == "role_data") == 128


def test_kernels_are_compared_with_those_of_the_other_ranks(cluster):
    found = slower_kernels(cluster.ranks)
    assert found.slower[101] == pytest.approx(1.8, abs=0.02)
    assert found.slower[90] == pytest.approx(1.04, abs=0.02)
    assert abs(found.slower[37] - 1) < 0.02


def test_the_ranks_that_tell_most_are_analysed_in_full(cluster):
    found = worth_full(cluster)
    assert MANY // 4 < len(found) <= 32
    assert found[101] == "why_slowest"
    assert [*found.values()].count("why_typical") == 1
    own = cluster.own_time
    slowest = {max(range(stage + at, stage + 64, 8), key=own.__getitem__) for stage in (0, 64) for at in range(8)}
    slowest |= {max(range(at, at + 8), key=own.__getitem__) for at in range(0, 128, 8)}
    assert slowest <= found.keys()


def test_a_rank_with_slow_kernels_is_analysed_in_full_though_it_is_not_slow():
    even, slow = (fleet_summaries(replace(PLAN, extra={}, slower=slower)) for slower in ({}, {90: 1.08}))
    even[90] = replace(even[90], kernels=slow[90].kernels)
    found = worth_full(compare_ranks(even))
    assert found[90] == "why_kernels"
    assert [*found.values()].count("why_kernels") == 1


def test_of_many_ranks_the_picture_shows_machines(cluster):
    table = rank_steps(cluster)
    assert len(table) == 16 * PLAN.steps
    assert table.column("rank")[:2] == ("0-7", "8-15")
    slow = [one for one in table.records() if one.rank == "96-103"]
    mean = sum(cluster.own_time) / 128
    assert slow[0].of_mean == pytest.approx(sum(cluster.own_time[96:104]) / 8 / mean, rel=0.02)


def test_of_many_ranks_those_that_others_wait_for_stand_first(cluster):
    table = rank_waits(cluster)
    rows = list(table.records())
    late = [one.straggler for one in rows]
    assert (table.ranked, rows[0].rank, late.index(False)) == (True, "101", sum(late))
    last = [one.times_last for one in rows if not one.straggler]
    assert last == sorted(last, reverse=True)
    assert last[0] > last[-1]


def test_of_many_collectives_those_with_most_waiting_are_told():
    many = compare_ranks(fleet_summaries(Fleet(tensor=8, data=450, layers=1, steps=2, kernels=1)))
    table = collective_waits(many)
    assert len(table) <= MOST_ROWS
    assert table.notes[-1].key.endswith("waits_of_some")
    waits = {}
    for one in table.records():
        waits.setdefault(one.group, []).append(one.wait_ns)
    assert {len(each) for each in waits.values()} == {2}
    assert all(most >= least for most, least in waits.values())


def test_the_report_says_which_ranks_were_analysed_in_full_and_why():
    fleet = late_fleet(128, extra={37: MS})
    ranks = fleet_ranks(fleet_summaries(fleet))
    whys = worth_full(compare_ranks([one.summary for one in ranks]))
    ranks = [one._replace(why=whys.get(at)) for at, one in enumerate(ranks)]
    report = run_report(Run("run", tuple(one.analysis.trace for one in ranks)), side_by_side(ranks, None))
    assert f"{len(whys)} of 128 ranks are analysed in full" in "\n".join(report.notes)
    table = report.tables["ranks"].to_pandas(words=False)
    assert table["rank"].iloc[0] == "37"
    assert list(table["in_full"].dropna()) == sorted(whys.values(), key=list(dict.fromkeys(table["in_full"])).index)
    assert report.ranks[report.focus[0]].rank == 37


@pytest.fixture(scope="module")
def many_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    for rank, schedule in enumerate(simulate(replace(workload(Fault("straggler", 3.0), ranks=MANY + 2), steps=3))):
        (folder / f"rank{rank}.json").write_bytes(write(schedule))
    return folder


def test_of_many_files_most_are_read_for_a_summary_only(many_files):
    report = traceanalyze.analyze(many_files)
    full = [one for one in report.ranks if len(one.tables) > 1]
    assert 2 < len(full) <= 32
    assert f"{len(full)} of {MANY + 2} ranks are analysed in full" in "\n".join(report.notes)
    assert report.ranks[report.focus[0]] in full
    # Each has its split, and is in all comparisons.
    assert {one.tables[0].key for one in report.ranks} == {"split"}
    assert len(report.tables["rank_waits"]) == MANY + 2
    chosen = traceanalyze.analyze(many_files, ranks="7,9")
    assert [len(one.tables) > 1 for one in chosen.ranks] == [True, True]


def test_a_postmortem_of_many_files_says_on_how_many_ranks_a_cause_was_looked_for(many_files):
    report = traceanalyze.postmortem(many_files)
    causes = report.tables["run_causes"]
    assert len(causes)
    # The late rank, and those that stand for all others.
    assert all(one.on_ranks != "0-65" for one in causes.records())


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ((), ()),
        ((3,), (3,)),
        ((1, 2), (1, 2)),
        ((0, 8, 16), range(0, 17, 8)),
        ((0, 8, 17), (0, 8, 17)),
        ((3, 2, 1), (3, 2, 1)),
        (range(4), range(4)),
    ],
)
def test_members_at_even_distances_are_a_range(ranks, expected):
    assert members_of(ranks) == expected
    assert tuple(members_of(ranks)) == tuple(ranks)


def test_many_pieces_are_told_by_their_ends():
    assert spans([str(at) for at in range(0, 100, 2)]) == "0,2,4,6,8,10,…,98 (50)"
    assert spans([str(at) for at in range(16_384)]) == "0-16383"
