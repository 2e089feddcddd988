"""Tables of the host: operators, phases and modules as the simulation ran them, in every layout."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import TYPE_CHECKING

from hypothesis import given

from tests.examples import examples
from tests.simulate import compare
from tests.simulate.compare import analysis
from tests.simulate.simulate import simulate
from tests.simulate.strategies import workloads
from tests.simulate.truth.host import modules, operators, phases
from tests.simulate.truth.tables import inside
from tests.simulate.truth.windows import windows
from tests.simulate.writers.layouts import LAYOUTS, TODAY
from traceanalyze.analyses.host.modules import BACKWARD_UNKNOWN
from traceanalyze.analyses.host.operators import UNLINKED

if TYPE_CHECKING:
    from tests.simulate.workload import Workload
    from traceanalyze.analyses.results import RankAnalysis

_FEW = examples(5)


@_FEW
@given(workload=workloads(tick=1000))
def test_operators_and_phases(workload: Workload) -> None:
    schedule = simulate(workload)[-1]
    steps = windows(schedule)
    known = {name: astuple(row) for name, row in operators(schedule, steps).items()}
    ran = phases(schedule, steps)
    works = list(inside(schedule.works, steps))
    unlinked = sum(time for work, time in works if not work.linked)
    for layout in LAYOUTS:
        found = analysis(schedule, layout)
        rows = list(found.records("operators"))
        assert rows
        assert compare.operators(found) == known
        assert sum(row.device_self_ns for row in rows if row.op == UNLINKED) == unlinked
        assert sum(row.device_self_ns for row in rows) == sum(time for _, time in works)
        assert _phases(found, len(steps)) == ran


def _phases(found: RankAnalysis, steps: int) -> tuple[dict[str, int], ...]:
    rows = list(found.records("step_phases"))
    times: dict[str, dict[str, int]] = {row.step: {} for row in rows}
    for row in rows:
        if row.device_ns and row.phase not in {"phase_recompute", "phase_zero_grad"}:
            times[row.step][row.phase.removeprefix("phase_")] = row.device_ns
    assert len(times) in {0, steps}
    return tuple(times.values()) or ({},) * steps


@_FEW
@given(workload=workloads(tick=1).map(lambda each: replace(each, recording=replace(each.recording, stacks=True))))
def test_modules(workload: Workload) -> None:
    schedule = simulate(workload)[0]
    rows, unknown = modules(schedule, windows(schedule))
    found = analysis(schedule, TODAY)
    named = {"/".join(name.removeprefix("nn.Module: ") for name in path): row for path, row in rows.items()}
    assert named
    assert compare.modules(found) == {path: astuple(row) for path, row in named.items()}
    left = [row.backward_total_ns for row in found.records("modules") if row.module == BACKWARD_UNKNOWN]
    assert sum(left) == unknown
