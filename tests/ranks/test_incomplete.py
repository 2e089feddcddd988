"""Runs of which only some ranks were recorded: what is said of them is true of the whole run, or is said to be a bound.

The whole run is simulated (`tests.ranks.fleet`), so that what each rank waits, and for whom, is known of all sets.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

import traceanalyze
from tests.builder import TraceBuilder
from tests.ranks.fleet import MS, Fleet, fleet_ranks, fleet_summaries, late_fleet
from traceanalyze.causes.synthesize import synthesize
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.trace import Run
from traceanalyze.pipeline.postmortem import recording_part
from traceanalyze.pipeline.run_files import run_files
from traceanalyze.pipeline.run_report import run_report, side_by_side
from traceanalyze.ranks.compare import compare_ranks
from traceanalyze.report.contents.postmortem import JobParts, build_postmortem
from traceanalyze.rules.evaluate import plan

if TYPE_CHECKING:
    from traceanalyze.pipeline.run_report import SideBySide
    from traceanalyze.report.model import Report

LATE = 5
"""The rank that makes all others wait, in some of the runs."""
NEAR = 0.01
"""Of the truth: of each rank's noise, which the mean of some ranks does not have as the mean of all."""


class Recorded(NamedTuple):
    count: int
    """Ranks of the run."""
    ranks: tuple[int, ...]
    """Those that were recorded."""
    named: bool
    """Whether the members of all groups are told."""
    cut: int | None
    """Whose file is cut short."""
    late: bool

    @property
    def compared(self) -> set[int]:
        return {*self.ranks} - {self.cut}

    @property
    def late_here(self) -> bool:
        return self.late and LATE in self.compared

    @property
    def late_group_here(self) -> bool:
        """Whether all of the group that the late rank is late to first are here."""
        return self.late and {*range(8)} <= self.compared


def _sets():
    for count in (8, 64, 1024):
        rows = {"all": range(count)}
        for some in (32, 8):
            if some < count:
                rows |= {
                    f"{some} in a row": range(some),
                    f"{some} apart": range(LATE % (count // some), count, count // some),
                    f"{some} apart, without the late": range(LATE % (count // some) + 1, count, count // some),
                    f"{some} of the others": range(count - some, count),
                }
        for name, ranks in rows.items():
            for named in (True, False):
                for cut in (None, LATE, ranks[-1]):
                    for late in (True, False):
                        large = count > 64 and (not late or cut not in {None, LATE})
                        if (cut is None or cut in ranks) and not large:
                            title = f"{count}: {name}, {'named' if named else 'cut lists'}, cut {cut}, {late=}"
                            yield pytest.param(Recorded(count, tuple(ranks), named, cut, late), id=title)


SETS = list(_sets())


@cache
def everything(count: int, *, named: bool, late: bool):
    return fleet_summaries(late_fleet(count, extra={LATE: MS} if late else {}, named=named))


@cache
def truth(count: int, *, late: bool):
    """All ranks, with all that can be known."""
    return side_by_side(fleet_ranks(everything(count, named=True, late=late)), plan())


@cache
def seen(one: Recorded) -> tuple[SideBySide, Report]:
    every = everything(one.count, named=one.named, late=one.late)
    ranks = fleet_ranks([every[rank] for rank in one.ranks], () if one.cut is None else (one.cut,))
    found = side_by_side(ranks, plan())
    return found, run_report(Run("run", tuple(rank.analysis.trace for rank in ranks)), found)


def open_share(one: Recorded) -> float:
    """The largest part of the step of a compared rank that is in collectives of groups that may not be all here."""
    found = []
    for rank in (everything(one.count, named=one.named, late=one.late)[rank] for rank in one.compared):
        own = rank.collectives
        whole = [
            set(group.ranks) <= one.compared if group.ranks else group.size == one.count == len(one.compared)
            for group in rank.groups
        ]
        found.append(sum((own.exposed[own.group == at]).sum() for at, known in enumerate(whole) if not known))
    return max(found) / int(everything(one.count, named=one.named, late=one.late)[0].step_time.sum())


def said(report: Report) -> dict[str, dict[str, object]]:
    return {one.key: {name: value for name, _, value in one.values} for one in report.verdict_messages}


@pytest.mark.parametrize("one", SETS)
def test_damaged_ranks_are_in_no_comparison(one):
    found, report = seen(one)
    if found.cluster is None:
        assert len(one.compared) < 2
        return
    assert {rank.rank for rank in found.cluster.ranks} == one.compared
    for key in ("rank_waits", "collective_waits", "clock_offsets"):
        table = report.tables[key]
        if table.absent is None:
            assert {int(rank) for rank in table.column("rank")} <= one.compared
    assert all(one.cut not in each.scope.ranks for each in report.run_findings)


@pytest.mark.parametrize("one", SETS)
def test_the_late_rank_is_named_wherever_it_was_recorded_and_no_other(one):
    _, report = seen(one)
    named = {rank for each in report.run_findings if each.rule == "RNK101" for rank in each.scope.ranks}
    assert named <= ({LATE} if one.late_here else set())
    assert (LATE in named) >= one.late_group_here
    head = said(report)
    longest = next((head[key]["rank"] for key in ("ranks_own", "ranks_own_bound", "ranks_uneven") if key in head), None)
    assert longest == (str(LATE) if one.late_here else None)


@pytest.mark.parametrize("one", SETS)
def test_what_is_told_exactly_is_true_of_the_whole_run(one):
    found, report = seen(one)
    whole, cluster = truth(one.count, late=one.late), found.cluster
    true_waits = dict(zip(range(one.count), whole.cluster.exposed_waits.mean.tolist(), strict=True))
    if isinstance(cluster.exposed_waits, NotMeasured):
        return
    bound = cluster.exposed_waits.bound
    for rank, wait in zip(cluster.ranks, cluster.exposed_waits.mean.tolist(), strict=True):
        true = true_waits[rank.rank]
        assert wait <= true + 1
        assert bound or wait == pytest.approx(true, abs=1)
    head = said(report)
    assert not (bound and "ranks_own" in head)
    assert not (open_share(one) >= 0.05 and {"ranks_even", "ranks_equal"} & head.keys())
    assert bound == any(report.tables["collective_waits"].column("is_bound"))
    assert bound == (len(report.tables["rank_waits"].notes) > 0)
    true_gain = next((each.saving for each in whole.across.findings if each.rule == "RNK101"), 0)
    for each in report.run_findings:
        if each.rule == "RNK101":
            assert each.least <= true_gain * (1 + NEAR)
            assert each.most >= true_gain * (1 - NEAR)
            assert not bound or each.least < each.most
        elif each.rule == "RNK105":
            assert each.saving is None


@pytest.mark.parametrize("one", SETS)
def test_no_problem_is_found_only_where_nothing_large_is_a_bound(one):
    found, report = seen(one)
    part, run = recording_part(found), Run("run", tuple(each.analysis.trace for each in found.ranks))
    job = JobParts("run", "cuda", (report,), (), run_files((run,), (part,), (), None))
    keys = {each.key for each in build_postmortem(synthesize([part], ()), job, version="0").verdict_messages}
    waits = found.cluster.exposed_waits
    unsure = (isinstance(waits, NotMeasured) or waits.bound) and open_share(one) >= 0.05
    assert not ("healthy" in keys and (unsure or one.late_here))
    if not one.late and not (isinstance(waits, NotMeasured) or waits.bound):
        assert "healthy" in keys


def steps_of(one, rows):
    """A summary of some of its steps only."""
    own, rows = one.collectives, list(rows)
    place = np.full(len(one.steps), -1)
    place[rows] = range(len(rows))
    kept = place[own.step] >= 0
    columns = {name: column[kept] for name, column in vars(own).items() if isinstance(column, np.ndarray)}
    return replace(
        one,
        steps=tuple(one.steps[row] for row in rows),
        counted=one.counted[rows],
        step_time=one.step_time[rows],
        parts={name: times[rows] for name, times in one.parts.items()},
        collectives=replace(own, **(columns | {"step": place[own.step][kept]})),
    )


def seconds_apart(one):
    own, ahead = one.collectives, 10**9 * ((one.rank * 7) % 11 - 5)
    return replace(one, collectives=replace(own, start=own.start + ahead, end=own.end + ahead))


def members_untold(one):
    return replace(one, groups=tuple(group._replace(ranks=()) for group in one.groups), group_names={})


NODE, OTHER, ALL = range(8), range(8, 16), range(64)
ODD = {
    # Late ranks, ranks recorded, and what else is unlike.
    "nobody else on the machine of the late": ((5,), NODE, None),
    "another machine": ((5,), OTHER, None),
    "all but the late": ((5,), [rank for rank in ALL if rank != 5], None),
    "one of each machine, with the late": ((5,), range(5, 64, 8), None),
    "one of each machine": ((5,), range(0, 64, 8), None),
    "the first stage": ((5,), range(32), None),
    "the last stage": ((5,), range(32, 64), None),
    "the late and a neighbour": ((5,), (5, 6), None),
    "the late and a stranger": ((5,), (5, 60), None),
    "two late on one machine": ((5, 6), ALL, None),
    "two late on two machines": ((5, 40), ALL, None),
    "two late of one data group": ((5, 13), ALL, None),
    "two late, one not here": ((5, 40), NODE, None),
    "fewer steps on some": ((5,), ALL, lambda one: steps_of(one, range(3)) if one.rank % 3 == 0 else one),
    "fewer steps on the late": ((5,), ALL, lambda one: steps_of(one, (1, 2, 3)) if one.rank == 5 else one),
    "a step missing": ((5,), ALL, lambda one: steps_of(one, (0, 2, 3)) if one.rank == 7 else one),
    "no step in common": ((5,), ALL, lambda one: steps_of(one, (0, 1) if one.rank < 32 else (2, 3))),
    "clocks seconds apart": ((5,), ALL, seconds_apart),
    "clocks seconds apart on a machine": ((5,), NODE, seconds_apart),
    "number of ranks untold": ((5,), OTHER, lambda one: replace(one, world_size=None)),
    "members told by some": ((5,), ALL, lambda one: members_untold(one) if one.rank % 2 else one),
}


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("name", ODD)
def test_odd_sets_of_ranks_and_steps(name, named):
    late, recorded, change = ODD[name]
    fleet = late_fleet(64, extra=dict.fromkeys(late, MS), named=named)
    every, true = fleet_summaries(fleet), compare_ranks(fleet_summaries(replace(fleet, named=True)))
    ranks = fleet_ranks([change(every[rank]) if change else every[rank] for rank in recorded])
    found, run = side_by_side(ranks, plan()), Run("run", tuple(rank.analysis.trace for rank in ranks))
    report, cluster = run_report(run, found), found.cluster
    blamed = {rank for each in report.run_findings if each.rule == "RNK101" for rank in each.scope.ranks}
    # Who is late to ranks that are all here is named, and nobody else.
    whole = {rank for rank in late if any({*group.ranks} <= {*recorded} for group in true.ranks[rank].groups)}
    assert blamed == (whole if cluster.steps else set())
    files = run_files((run,), (recording_part(found),), (), None)
    told = build_postmortem(
        synthesize([recording_part(found)], ()), JobParts("run", "cuda", (report,), (), files), version="0"
    )
    assert "healthy" not in {each.key for each in told.verdict_messages}
    waits = cluster.exposed_waits
    if isinstance(waits, NotMeasured):
        assert not cluster.steps
        return
    assert waits.bound == (len(recorded) < 64)
    rows = [true.steps.index(step) for step in cluster.steps]
    for rank, own in zip(cluster.ranks, waits.by_step.sum(axis=1).tolist(), strict=True):
        exact = int(true.exposed_waits.by_step[rank.rank, rows].sum())
        assert own <= exact if waits.bound else own == exact
    head = said(report)
    several = [head[key]["rank"] for key in ("stragglers", "stragglers_because") if key in head]
    assert several == ([{6: "5-6", 13: "5,13", 40: "5,40"}[max(whole)]] if len(whole) > 1 else [])
    assert len(whole) > 1 or {head[key]["rank"] for key in head if key.startswith("straggler")} == set(map(str, whole))
    assert not (waits.bound and "ranks_own" in head)
    assert {int(head[key]["rank"]) for key in ("ranks_own", "ranks_own_bound") if key in head} <= {*late}


@pytest.mark.parametrize("count", [64, 128])
@pytest.mark.parametrize(
    ("extra", "spread"),
    [
        ({5: MS}, 0.002),
        ({5: MS}, 0.1),
        ({5: MS, 40: MS}, 0.002),
        ({5: MS, 40: MS // 2}, 0.002),
        ({5: MS, 40: MS // 2, 6: MS // 3}, 0.1),
        ({5: MS} | dict.fromkeys(range(8, 16), MS * 3 // 4), 0.002),
        ({5: MS // 2}, 0.3),
        ({5: MS // 3}, 0.3),
        ({5: MS}, 0.5),
    ],
)
def test_what_many_ranks_gain_where_a_late_one_is_mended_is_within_the_range(extra, spread, count):
    """The run is simulated again without it; ranks are too many for a replay of all of them."""
    fleet = late_fleet(count, spread=spread, extra=extra)
    found = side_by_side(fleet_ranks(fleet_summaries(fleet)), plan())
    (one,) = (each for each in found.across.findings if each.rule == "RNK101" and each.scope.ranks == (5,))
    mended = replace(fleet, extra={rank: more for rank, more in extra.items() if rank != 5})
    before, after = (np.mean([each.step_time for each in fleet_summaries(each)]) for each in (fleet, mended))
    assert one.least <= before - after <= one.most
    assert one.least < one.saving


def test_what_all_ranks_wait_for_a_slow_link_is_not_gained_for_certain_where_a_late_one_is_mended():
    """Ranks 5 and 6 of a tensor group come late alike; all then wait 0.9 ms for the second data group."""
    fleet = Fleet(tensor=8, data=5, extra={5: MS // 2, 6: MS * 12 // 25}, slow={"dp1": MS * 9 // 10})
    found = side_by_side(fleet_ranks(fleet_summaries(fleet)), plan()).across.findings
    least = {one.scope.ranks: one.least for one in found if one.rule == "RNK101"}
    step = np.mean([each.step_time for each in fleet_summaries(fleet)])
    for (late,), certain in least.items():
        mended = replace(fleet, extra={rank: more for rank, more in fleet.extra.items() if rank != late})
        assert certain <= step - np.mean([each.step_time for each in fleet_summaries(mended)]) + 1
    assert {*least} == {(5,), (6,)}


@pytest.mark.parametrize("late", [None, 3, 40])
@pytest.mark.parametrize("recorded", [range(64), range(16), range(32)])
def test_ranks_at_a_slow_link_are_not_late(late, recorded):
    """All collectives of the first tensor group take longer, so that its ranks come last to their data groups."""
    fleet = late_fleet(64, slow={"tp0": MS // 2}, extra={} if late is None else {late: MS})
    ranks = fleet_ranks(fleet_summaries(fleet, recorded))
    found = side_by_side(ranks, plan())
    report = run_report(Run("run", tuple(rank.analysis.trace for rank in ranks)), found)
    named = {rank for each in report.run_findings if each.rule == "RNK101" for rank in each.scope.ranks}
    assert named == {late} & {*recorded}
    head = said(report)
    assert {head[key]["rank"] for key in head if key.startswith("straggler")} == set(map(str, named))


@pytest.mark.parametrize(("longer", "key"), [(3, "ranks_unjudged"), (1, "ranks_equal")])
def test_ranks_that_differ_by_what_they_wait_are_not_called_equally_fast(longer, key):
    """Of eight ranks seven are here; for 4 % of the step each may wait for the other one: none is the longest."""
    fleet = replace(late_fleet(8, spread=0.0), compute=10 * MS, transfer=4 * MS // 10)
    late = replace(fleet, extra={LATE: longer * fleet.compute // 100})
    ranks = fleet_ranks(fleet_summaries(late, [0, *range(2, 8)]))
    found = run_report(Run("run", tuple(rank.analysis.trace for rank in ranks)), side_by_side(ranks, plan()))
    assert key in said(found)


@pytest.mark.parametrize("recorded", [4, 8])
def test_ranks_whose_steps_differ_by_waiting_are_not_called_equally_fast(recorded, tmp_path):
    """In one of five steps two begin 4 ms before the others, and wait as long: all work as long, steps differ."""
    for number in range(recorded):
        trace = TraceBuilder()
        trace.header["distributedInfo"] = {"rank": number, "world_size": 8, "backend": "nccl"}
        for step in range(5):
            early = 4000 if number < 2 and step == 3 else 0
            at, end = 12000 * step - early, 12000 * step + 5200
            trace.step(step, at, end + 800 - at)
            trace.api("cudaDeviceSynchronize", at + 50, end + 100 - at)
            trace.launch(at + 1, 1, at + 100, 5000, name="gemm", grid=[4, 1, 1])
            about = {"Collective name": "allreduce", "In msg nelems": 1024, "dtype": "Float"}
            about |= {"Process Group Name": "all", "Process Group Ranks": str([*range(8)]), "Group size": 8}
            name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
            trace.launch(at + 3, 1, at + 5100, end - at - 5100, name=name, **about)
        trace.write(tmp_path / f"rank{number}.json")
    head = said(traceanalyze.analyze(tmp_path))
    assert {"ranks_even", "ranks_equal"}.isdisjoint(head)
    assert (head["ranks_step_uneven"]["fastest"], head["ranks_step_uneven"]["time"]) == (6_000_000, 6_800_000)


@pytest.mark.parametrize("recorded", [4, 8])
def test_a_late_rank_saves_nothing_for_certain_where_others_may_be_as_late(recorded, tmp_path):
    """Of eight ranks in two groups of four the last of each computes 2 ms longer: either alone gains nothing."""
    for number in range(recorded):
        trace = TraceBuilder()
        trace.header["distributedInfo"] = {"rank": number, "world_size": 8, "backend": "nccl"}
        group, extra = number // 4 * 4, 2000 if number % 4 == 3 else 0
        for step in range(4):
            at = 6000 * step
            trace.step(step, at, 6000)
            trace.api("cudaDeviceSynchronize", at + 50, 5300)
            trace.launch(at + 1, 1, at + 100, 3000 + extra, name="gemm", grid=[4, 1, 1])
            met = at + 100 + 3000 + extra
            for place, ranks in enumerate([[*range(group, group + 4)], [*range(8)]]):
                about = {"Collective name": "allreduce", "In msg nelems": 1024, "dtype": "Float"}
                about |= {"Process Group Name": f"group {place}", "Process Group Ranks": str(ranks)}
                about["Group size"] = len(ranks)
                end = at + 5200 + 100 * place
                trace.launch(at + 3 + place, 1, met, end - met, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL", **about)
                met = end
        trace.write(tmp_path / f"rank{number}.json")
    found = [one for one in traceanalyze.analyze(tmp_path).run_findings if one.rule == "RNK101"]
    assert [(one.scope.ranks, one.least) for one in found] == ([((3,), 0)] if recorded == 4 else [])


@pytest.mark.parametrize("sized", ["header", "events"])
def test_waits_are_bounds_where_the_header_lists_a_part_of_a_group(sized, tmp_path):
    """Of 40 ranks those that the list names were recorded; nothing tells of the others but the size of the group."""
    for number in (0, 1, 39):
        trace = TraceBuilder()
        group = {"pg_name": "all", "ranks": [0, 1, "...", 39]} | ({"pg_size": 40} if sized == "header" else {})
        trace.header["distributedInfo"] = {"rank": number, "world_size": 40, "backend": "nccl", "pg_config": [group]}
        about = {"Collective name": "allreduce", "In msg nelems": 1024, "dtype": "Float", "Process Group Name": "all"}
        about |= {"Group size": 40} if sized == "events" else {}
        for step in range(3):
            trace.step(step, 1000 * step, 900)
            trace.api("cudaDeviceSynchronize", 1000 * step + 50, 800)
            name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
            trace.launch(1000 * step + 1, 1, 1000 * step + 100 + number, 700 - number, name=name, **about)
        trace.write(tmp_path / f"rank{number}.json")
    report = traceanalyze.analyze(tmp_path)
    assert set(report.tables["collective_waits"].column("is_bound")) == {True}
    assert report.tables["rank_waits"].column("straggler")[0] == NotMeasured("ranks_missing")


def test_a_step_and_what_of_it_is_no_waiting_are_of_the_same_steps(tmp_path):
    """Rank 1 recorded the three steps of 6 ms only, the others two of 4 ms as well; rank 2 comes 2 ms late."""
    for number in range(3):
        trace = TraceBuilder()
        trace.header["distributedInfo"] = {"rank": number, "world_size": 3, "backend": "nccl"}
        for step, length in enumerate([6000] * 3 + [4000] * (0 if number == 1 else 2)):
            at, work = 6000 * step, length - (500 if number == 2 else 2500)
            trace.step(step, at, length)
            trace.api("cudaDeviceSynchronize", at + 50, length - 200)
            trace.launch(at + 1, 1, at + 100, work, name="gemm", grid=[4, 1, 1])
            about = {"Collective name": "allreduce", "In msg nelems": 1024, "dtype": "Float"}
            about |= {"Process Group Name": "all", "Process Group Ranks": "[0, 1, 2]", "Group size": 3}
            name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
            trace.launch(at + 3, 1, at + 100 + work, length - 200 - work, name=name, **about)
        trace.write(tmp_path / f"rank{number}.json")
    report = traceanalyze.analyze(tmp_path)
    head = said(report)["ranks_own"]
    assert (head["rank"], head["own"], head["time"], head["least"]) == ("2", 6_000_000, 6_000_000, 4_000_000)
    assert report.tables["ranks"].column("step_ns") == (5_200_000, 6_000_000, 5_200_000)
