"""Tables of the host: operators, phases and modules as the simulation ran them, in every layout."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings

from tests.simulate.compare import analysis
from tests.simulate.simulate import simulate
from tests.simulate.strategies import workloads
from tests.simulate.truth.host import modules, operators, phases
from tests.simulate.truth.tables import inside
from tests.simulate.truth.windows import windows
from tests.simulate.writers.layouts import LAYOUTS, TODAY
from traceanalyze.analyses.results_host import BACKWARD_UNKNOWN, UNLINKED, HostWork
from traceanalyze.model.vocabulary import Phase

if TYPE_CHECKING:
    from tests.simulate.schedule import Schedule
    from tests.simulate.workload import Workload
    from tests.simulate.writers.layouts import Layout

_FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def host_work(schedule: Schedule, layout: Layout) -> HostWork:
    found = analysis(schedule, layout).host_work
    assert isinstance(found, HostWork)
    return found


@_FEW
@given(workload=workloads(tick=1000))
def test_operators_and_phases(workload: Workload) -> None:
    schedule = simulate(workload)[-1]
    steps = windows(schedule)
    known = {name: astuple(row) for name, row in operators(schedule, steps).items()}
    ran = phases(schedule, steps)
    unlinked = sum(time for work, time in inside(schedule.works, steps) if not work.linked)
    for layout in LAYOUTS:
        found = host_work(schedule, layout)
        assert isinstance(found.operators, tuple)
        assert _operators(found) == known
        assert sum(row.device_self for row in found.operators if row.name == UNLINKED) == unlinked
        assert sum(row.device_self for row in found.operators) == found.device_time
        assert _phases(found, len(steps)) == ran


def _operators(found: HostWork) -> dict[str, tuple[int, ...]]:
    return {
        row.name: (
            row.calls,
            row.host_total,
            row.host_self,
            row.api_time,
            row.device_self,
            row.device_total,
            row.launched,
        )
        for row in found.operators
        if not row.name.startswith("<")
    }


def _phases(found: HostWork, steps: int) -> tuple[dict[str, int], ...]:
    whole = [row for row in found.phases if row.phase not in {Phase.RECOMPUTE, Phase.ZERO_GRAD}]
    return tuple(
        {row.phase.name.lower(): int(row.device[step]) for row in whole if row.device[step]} for step in range(steps)
    )


@_FEW
@given(workload=workloads(tick=1).map(lambda each: replace(each, recording=replace(each.recording, stacks=True))))
def test_modules(workload: Workload) -> None:
    schedule = simulate(workload)[0]
    rows, unknown = modules(schedule, windows(schedule))
    found = host_work(schedule, TODAY).modules
    assert isinstance(found, tuple)
    named = {"/".join(name.removeprefix("nn.Module: ") for name in path): row for path, row in rows.items()}
    assert {
        row.path: (row.calls, row.host_total, row.host_self, row.forward_total, row.backward_total)
        for row in found
        if row.path != BACKWARD_UNKNOWN
    } == {path: astuple(row) for path, row in named.items()}
    assert sum(row.backward_total for row in found if row.path == BACKWARD_UNKNOWN) == unknown
