"""Runs of which only some ranks were recorded: what is said of them is true of the whole run, or is said to be a bound.

The whole run is simulated (`tests.ranks.fleet`), so that what each rank waits, and for whom, is known of all sets.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.ranks.fleet import MS, fleet_ranks, fleet_summaries, late_fleet
from traceanalyze.causes.synthesize import synthesize
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.trace import Run
from traceanalyze.pipeline.postmortem import recording_part
from traceanalyze.pipeline.run_files import run_files
from traceanalyze.pipeline.run_report import run_report, side_by_side
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
