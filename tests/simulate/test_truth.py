"""The product finds exactly what the simulation knows, over random workloads, faults, layouts and vendors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from tests.examples import examples
from tests.simulate.compare import analysis, expected, measured
from tests.simulate.simulate import simulate
from tests.simulate.strategies import workloads
from tests.simulate.truth.host import host_split
from tests.simulate.truth.summary import truth
from tests.simulate.truth.windows import windows
from tests.simulate.workload import Fault, Model, Workload
from tests.simulate.writers.layouts import AMD, CPU_ONLY, LAYOUTS, PAIRS, TODAY, XPU, YEAR_2022
from traceanalyze.analyses.idle.host_state import HostSplit
from traceanalyze.model.vocabulary import Mode

if TYPE_CHECKING:
    from tests.simulate.writers.layouts import Layout

_FEW = examples(5)


@pytest.mark.parametrize("layout", [TODAY, YEAR_2022, AMD, XPU, PAIRS], ids=lambda layout: layout.name)
@_FEW
@given(workload=workloads(tick=1))
def test_numbers_of_every_rank_are_the_truth(layout: Layout, workload: Workload) -> None:
    for schedule in simulate(workload):
        assert measured(analysis(schedule, layout)) == expected(schedule, layout)


@_FEW
@given(workload=workloads(tick=1000))
def test_every_layout_of_a_schedule_on_whole_microseconds_says_the_same(workload: Workload) -> None:
    schedule = simulate(workload)[-1]
    for layout in LAYOUTS:
        assert measured(analysis(schedule, layout)) == expected(schedule, layout)


@_FEW
@given(workload=workloads(tick=1))
def test_host_split_without_the_device(workload: Workload) -> None:
    schedule = simulate(workload)[0]
    found = analysis(schedule, CPU_ONLY)
    assert found.mode == Mode.HOST_ONLY
    assert isinstance(found.host, HostSplit)
    words = ("data_loading", "sync", "peer_wait", "api", "host_op", "untraced")
    rows = [{word: int(getattr(found.host, word)[row]) for word in words} for row in range(len(found.steps))]
    assert [{word: time for word, time in row.items() if time} for row in rows] == list(host_split(schedule))


@_FEW
@given(workload=workloads(tick=1))
def test_truth_is_consistent(workload: Workload) -> None:
    for schedule in simulate(workload):
        known = truth(schedule)
        for step, part, causes in zip(known.steps, known.parts, known.idle, strict=True):
            whole = part["compute"] + part["comm_exposed"] + part["mem_exposed"] + part["idle"]
            assert whole == step.time
            assert sum(causes.values()) == part["idle"]


def test_work_that_begins_after_the_last_step_ends_no_gap_of_it() -> None:
    faults = (Fault("late_launch", 60), Fault("device_sync", 2))
    schedule = simulate(Workload(model=Model(layers=1, hidden=128, sequence=64), steps=1, faults=faults))[0]
    assert max(work.start for work in schedule.works) > windows(schedule)[-1].end
    assert measured(analysis(schedule, TODAY)) == expected(schedule, TODAY)
