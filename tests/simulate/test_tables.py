"""Tables of device work and memory: what the product finds is what the simulation did."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings

from tests.simulate.compare import analysis
from tests.simulate.faults import without
from tests.simulate.simulate import simulate
from tests.simulate.strategies import workloads
from tests.simulate.truth.tables import (
    collectives,
    copies,
    families,
    kernels,
    matrix_products,
    memory_peak,
)
from tests.simulate.truth.windows import windows
from tests.simulate.workload import Fault, Model, Ranks, Script, Workload
from tests.simulate.writers.layouts import AMD, TODAY, YEAR_2021
from traceanalyze.analyses.results_device import DeviceWork

if TYPE_CHECKING:
    from tests.simulate.schedule import Schedule
    from tests.simulate.writers.layouts import Layout

_FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
_NAMED = {"loss": {"reduction", "other", "elementwise", "softmax"}, "embedding": {"embedding", "indexing"}}
"""Classes that the product may name otherwise: a loss kernel reduces, an embedding is an indexing."""


def device_work(schedule: Schedule, layout: Layout) -> DeviceWork:
    found = analysis(schedule, layout).device_work
    assert isinstance(found, DeviceWork)
    return found


@_FEW
@given(workload=workloads(tick=1000))
def test_kernels_of_every_layout(workload: Workload) -> None:
    schedule = simulate(workload)[-1]
    known = kernels(schedule, windows(schedule))
    for layout in (TODAY, YEAR_2021, AMD):
        found: dict[str, tuple[int, int]] = {}
        for row in device_work(schedule, layout).kernels:
            count, time = found.get(row.name, (0, 0))
            found[row.name] = (count + row.time.count, time + row.time.total)
        assert found == {layout.copy_name(name): row for name, row in known.items()}


@_FEW
@given(workload=workloads(tick=1).map(lambda workload: without(workload, "unlinked")))
def test_classes_of_kernels(workload: Workload) -> None:
    """Some names tell nothing without the operator that launched them."""
    schedule = simulate(workload)[0]
    found = {row.group.name.lower(): row.total for row in device_work(schedule, TODAY).groups}
    known = families(schedule, windows(schedule))
    assert sum(found.values()) == sum(known.values())
    loose = set().union(*_NAMED.values()) | set(_NAMED)
    assert {name: time for name, time in found.items() if name not in loose} == {
        name: time for name, time in known.items() if name not in loose
    }


@_FEW
@given(workload=workloads(tick=1))
def test_copies_and_fills(workload: Workload) -> None:
    schedule = simulate(workload)[0]
    found: dict[str, tuple[int, ...]] = {}
    rows = device_work(schedule, TODAY).copies
    for row in rows if isinstance(rows, tuple) else ():
        name = {"h2d": "HtoD", "d2h": "DtoH", "fill": "memset"}[row.direction]
        found[name] = (row.time.count, row.time.total, row.bytes, row.blocking)
    assert found == copies(schedule, windows(schedule))


@_FEW
@given(workload=workloads(tick=1))
def test_matrix_products(workload: Workload) -> None:
    schedule = simulate(workload)[0]
    found: dict[str, tuple[int, int, int]] = {}
    rows = device_work(schedule, TODAY).ops
    for row in rows if isinstance(rows, tuple) else ():
        if row.op in {"aten::mm", "aten::addmm"}:
            calls, time, flop = found.get(row.op, (0, 0, 0))
            assert isinstance(row.flop, int)
            found[row.op] = (calls + row.calls, time + row.time, flop + row.flop)
    assert found == matrix_products(schedule, windows(schedule))


@_FEW
@given(workload=workloads(tick=1).map(lambda workload: replace(workload, ranks=replace(workload.ranks, count=2))))
def test_collectives(workload: Workload) -> None:
    ranks = simulate(workload)
    for schedule in ranks:
        known: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0, 0])
        for each in collectives(ranks, schedule.rank):
            row = known[each.type, each.bytes]
            row[0] += 1
            row[1] += each.duration
            row[2] += each.exposed
        rows = device_work(schedule, TODAY).collectives
        assert isinstance(rows, tuple)
        assert {(each.kind, each.bytes): [each.time.count, each.time.total, each.exposed] for each in rows} == known
        assert {each.ranks for each in rows} == {2}


@pytest.mark.parametrize("fault", [(), (Fault("empty_cache", 0.2),)], ids=["plain", "empty_cache"])
def test_memory(fault: tuple[Fault, ...]) -> None:
    schedule = simulate(Workload(model=Model(layers=3), faults=fault))[0]
    found = analysis(schedule, TODAY).memory
    (device,) = found.devices
    assert (device.peak_allocated, device.peak_reserved) == memory_peak(schedule)
    assert device.records == len(schedule.memory)
    calls = {call.name: call.time.count for call in found.calls}
    assert calls.get("cudaFree", 0) == (3 if fault else 0)
    asked = [call for call in schedule.calls if call.name == "cudaMalloc"]
    assert calls.get("cudaMalloc", 0) == len(asked)


def test_transfer_is_what_the_last_rank_needs() -> None:
    """The rank that waits least sees the transfer alone; the others wait for it."""
    ranks = simulate(
        Workload(ranks=Ranks(2), script=Script(optimizer="foreach"), faults=(Fault("straggler", 1.6),), steps=4)
    )
    waits = [sum(each.wait for each in collectives(ranks, rank)) for rank in (0, 1)]
    assert waits[0] > 10 * waits[1]
