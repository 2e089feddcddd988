"""The product's critical path is the one that the simulation's own records give, over random workloads and faults."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given

from tests.examples import examples
from tests.simulate.faults import with_faults
from tests.simulate.simulate import simulate
from tests.simulate.strategies import workloads
from tests.simulate.truth.critical import critical_path
from tests.simulate.workload import US, Fault, Ranks, Recording, Workload
from tests.simulate.writers.kineto import write
from tests.simulate.writers.layouts import AMD, TODAY, YEAR_2022
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options
from traceanalyze.analyses.steps.critical_path import PathKind, PathSegments
from traceanalyze.analyses.steps.critical_path import critical_path as found_path
from traceanalyze.model.table import NotMeasured
from traceanalyze.readers.kineto import read_text

if TYPE_CHECKING:
    from tests.simulate.schedule import Schedule
    from tests.simulate.writers.layouts import Layout

_SOME = examples(8)


def context(schedule: Schedule, layout: Layout) -> Context:
    """What the product reads of the file."""
    return Context(read_text(write(schedule, layout)), Options())


def kinds(found: Context) -> list[dict[str, int]]:
    """Time of each kind on the path of each step, as the product found it; kinds without time are left out."""
    path = found.once(found_path)
    assert isinstance(path, PathSegments), path
    by_step = path.by_step(len(found.steps))
    return [{kind.name: int(row[kind]) for kind in PathKind if row[kind]} for row in by_step]


def assert_tiled(found: Context) -> None:
    """The segments of a step follow each other from its start to its end."""
    path, steps = found.once(found_path), found.steps
    assert isinstance(path, PathSegments)
    for step in range(len(steps)):
        mine = path.step == step
        start, end = path.start[mine].tolist(), path.end[mine].tolist()
        if int(steps.time[step]):
            assert [start[0], *end] == [*start, int(steps.end[step])]
            assert start[0] == int(steps.start[step])


@pytest.mark.parametrize("layout", [TODAY, YEAR_2022, AMD], ids=lambda layout: layout.name)
@_SOME
@given(workload=workloads(tick=1))
def test_path_of_one_stream_is_the_truth(layout: Layout, workload: Workload) -> None:
    faulty = with_faults(replace(workload, ranks=Ranks()))
    assume(not faulty.script.side_kernels and not faulty.recording.unlinked)
    recording = replace(faulty.recording, behind=0, drift=0.0)  # what a moved clock may hide is no path's matter
    schedule = simulate(replace(faulty, recording=recording, faults=()))[0]
    found = context(schedule, layout)
    assert_tiled(found)
    assert kinds(found) == critical_path(schedule)


@_SOME
@given(workload=workloads(tick=1))
def test_path_over_streams_is_the_truth_when_waits_were_recorded(workload: Workload) -> None:
    faulty = with_faults(replace(workload, ranks=replace(workload.ranks, count=2)))
    # A call that waits for one stream of several is not told apart from one that waits for all without its record.
    script = replace(faulty.script, items=0, pinned=True, side_kernels=0, empty_cache=False)
    recording = replace(faulty.recording, unlinked=0, behind=0, drift=0.0)
    for schedule in simulate(replace(faulty, script=script, recording=recording, faults=())):
        found = context(schedule, TODAY)
        assert_tiled(found)
        assert kinds(found) == critical_path(schedule)


def test_without_records_of_waits_several_streams_are_refused() -> None:
    schedule = simulate(Workload(ranks=Ranks(count=2)))[0]
    assert found_path(context(schedule, YEAR_2022)) == NotMeasured("no_stream_waits")


def test_with_too_few_launches_it_is_refused() -> None:
    schedule = simulate(Workload(recording=Recording(unlinked=3)))[0]
    assert found_path(context(schedule, TODAY)) == NotMeasured("few_linked_launches")


def _shares(schedule: Schedule) -> dict[str, float]:
    found = context(schedule, TODAY)
    rows = kinds(found)[1:]
    whole = sum(sum(row.values()) for row in rows)
    return {kind.name: sum(row.get(kind.name, 0) for row in rows) / whole for kind in PathKind}


@pytest.mark.parametrize(
    ("fault", "kind", "least"),
    [
        (None, ("COMPUTE",), 0.95),
        (Fault("slow_loader", 40), ("DATA_LOADING",), 0.7),
        (Fault("small_kernels", 512), ("HOST_OP", "RUNTIME_CALL", "UNTRACED"), 0.6),
        (Fault("gc_pause", 20), ("UNTRACED",), 0.6),
    ],
    ids=["device", "loader", "host", "pause"],
)
def test_the_path_is_where_the_workload_is_slow(fault: Fault | None, kind: tuple[str, ...], least: float) -> None:
    shares = _shares(simulate(Workload(faults=(fault,) if fault else ()))[0])
    assert sum(shares[each] for each in kind) > least


@pytest.mark.parametrize("fault", [Fault("slow_loader", 30), Fault("gc_pause", 10)], ids=lambda fault: fault.name)
def test_what_a_fault_adds_to_the_path_is_what_it_costs(fault: Fault) -> None:
    """Known by running it without. More cannot be saved than is on the path; 1 % of it is other host work."""
    kind = {"slow_loader": "DATA_LOADING", "gc_pause": "UNTRACED"}[fault.name]
    slow, fast = (simulate(Workload(faults=faults))[0] for faults in ((fault,), ()))
    paths = [critical_path(schedule) for schedule in (slow, fast)]
    found = kinds(context(slow, TODAY))
    for row, with_fault, without in zip(found, *paths, strict=True):
        cost = sum(with_fault.values()) - sum(without.values())
        assert cost > 1_000 * US
        assert row[kind] - without.get(kind, 0) >= 0.99 * cost
