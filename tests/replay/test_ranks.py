"""Ranks in one replay: what all of them gain by a change on one, against the same run simulated without it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.ranks.simulated import traces, workload
from tests.simulate.workload import Fault
from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.idle.host_state import is_sync_call
from traceanalyze.analyses.options import Options
from traceanalyze.model import intervals
from traceanalyze.ranks.compare import compare_ranks
from traceanalyze.ranks.summary import summarize
from traceanalyze.replay.graph import program
from traceanalyze.replay.ranks import Joint, Meetings, agreed, gain_of, joint, steps_with
from traceanalyze.replay.replay import Change

if TYPE_CHECKING:
    from tests.simulate.workload import Workload


@cache
def run_of(work: Workload) -> Joint:
    contexts = [Context(trace, Options()) for trace in traces(work)]
    cluster = compare_ranks([summarize(one, analyze_context(one)) for one in contexts])
    return joint([one.once(program) for one in contexts], cluster)


def step_of(work: Workload) -> float:
    run = run_of(work)
    return float(np.mean([one.steps.time[rows] for one, rows in zip(run.programs, run.rows, strict=True)]))


@pytest.mark.parametrize("strategy", ["ddp", "sharded"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_without_a_change_every_step_is_as_recorded(strategy, ranks):
    run = run_of(workload(ranks=ranks, strategy=strategy, offset=1000))
    assert len(run.meetings.number) > ranks
    assert not steps_with(run, {}).any()


@pytest.mark.parametrize(("ranks", "strategy"), [(2, "ddp"), (3, "ddp"), (4, "sharded")])
def test_the_others_gain_what_they_wait_for_a_late_host(ranks, strategy):
    slow = workload(Fault("late_host", 3.0), ranks=ranks, strategy=strategy)
    true = step_of(slow) - step_of(workload(ranks=ranks, strategy=strategy))
    assert true > 0
    assert gain_of(run_of(slow), {}, like_others=[ranks - 1]) == pytest.approx(true, rel=0.1)


def test_a_rank_that_is_never_last_holds_nobody_back():
    slow = workload(Fault("late_host", 3.0), ranks=3)
    assert gain_of(run_of(slow), {}, like_others=[0]) == 0


def test_what_one_rank_gains_alone_the_run_does_not():
    """The first rank waits for the last: without its own pauses it only waits longer."""
    slow = run_of(workload(Fault("late_host", 3.0), ranks=2))
    began = slow.programs[0].began
    host = intervals.merge(np.array([began]), np.array([began + 1_000_000]))
    assert gain_of(slow, {0: Change(host=host)}) < 100_000


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_barrier_on_the_host_ends_when_the_last_rank_has_come(ranks):
    """The syncs hold the slow rank longest; without them on all ranks all leave each barrier as much sooner."""
    barrier = Fault("host_barrier", 6.0)
    slow = workload(barrier, Fault("device_sync", 2), ranks=ranks, offset=1000)
    run = run_of(slow)
    assert (run.meetings.event < 0).sum() == ranks * len(run.rows[0])
    assert not steps_with(run, {}).any()
    true = step_of(slow) - step_of(workload(barrier, ranks=ranks, offset=1000))
    syncs = {
        rank: Change(calls=np.flatnonzero(Context(one, Options()).once(is_sync_call)))
        for rank, one in enumerate(traces(slow))
    }
    assert true > 70_000
    assert gain_of(run, syncs) == pytest.approx(true, rel=0.12)
    assert gain_of(run, {0: syncs[0]}) < 0.2 * true


def test_collectives_that_ranks_come_to_in_different_orders_are_no_meetings():
    """Rank 0 comes to 0, 1, 2, rank 1 to 1, 0, 2: one of the first two can be kept."""
    meetings = Meetings(
        number=np.array([0, 1, 2, 0, 1, 2]),
        rank=np.array([0, 0, 0, 1, 1, 1]),
        event=np.arange(6),
        point=np.array([10, 20, 30, 20, 10, 30]),
        wait=np.zeros(6, np.int64),
        ahead=np.zeros(6, np.int64),
    )
    order = agreed(meetings, 2)
    assert order[-1] == 2
    assert len(order) == 2
