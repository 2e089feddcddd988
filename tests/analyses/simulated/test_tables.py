"""Tables of device work and memory: what the product finds is what the simulation did."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from tests.examples import examples
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

if TYPE_CHECKING:
    from tests.simulate.schedule import Schedule
    from tests.simulate.writers.layouts import Layout

_FEW = examples(5)
_NAMED = {"loss": {"reduction", "other", "elementwise", "softmax"}, "embedding": {"embedding", "indexing"}}
"""Classes that the product may name otherwise: a loss kernel reduces, an embedding is an indexing."""


def rows(schedule: Schedule, layout: Layout, key: str) -> list[Any]:
    found = analysis(schedule, layout)
    assert key in found.tables
    return list(found.records(key))


@_FEW
@given(workload=workloads(tick=1000))
def test_kernels_of_every_layout(workload: Workload) -> None:
    schedule = simulate(workload)[-1]
    known = kernels(schedule, windows(schedule))
    for layout in (TODAY, YEAR_2021, AMD):
        found: dict[str, tuple[int, int]] = {}
        for row in rows(schedule, layout, "kernels"):
            count, time = found.get(row.name, (0, 0))
            found[row.name] = (count + row.count, time + row.device_time_ns)
        assert found == {layout.copy_name(name): row for name, row in known.items()}


@_FEW
@given(workload=workloads(tick=1).map(lambda workload: without(workload, "unlinked")))
def test_classes_of_kernels(workload: Workload) -> None:
    """Some names tell nothing without the operator that launched them."""
    schedule = simulate(workload)[0]
    found = {row.work.removeprefix("work_"): row.device_time_ns for row in rows(schedule, TODAY, "kernel_groups")}
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
    for row in rows(schedule, TODAY, "copies"):
        name = {"copy_h2d": "HtoD", "copy_d2h": "DtoH", "copy_fill": "memset"}[row.direction]
        found[name] = (row.count, row.device_time_ns, row.bytes, row.blocking)
    assert found == copies(schedule, windows(schedule))


@_FEW
@given(workload=workloads(tick=1))
def test_matrix_products(workload: Workload) -> None:
    schedule = simulate(workload)[0]
    found: dict[str, tuple[int, int, int]] = {}
    for row in rows(schedule, TODAY, "op_rates"):
        if row.op in {"aten::mm", "aten::addmm"}:
            calls, time, flop = found.get(row.op, (0, 0, 0))
            assert isinstance(row.flop, int)
            found[row.op] = (calls + row.calls, time + row.device_time_ns, flop + row.flop)
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
        found = rows(schedule, TODAY, "collectives")
        assert {
            (each.collective, each.size_bytes): [each.count, each.device_time_ns, each.exposed_ns] for each in found
        } == known
        assert {each.ranks for each in found} == {2}


@pytest.mark.parametrize("fault", [(), (Fault("empty_cache", 0.2),)], ids=["plain", "empty_cache"])
def test_memory(fault: tuple[Fault, ...]) -> None:
    schedule = simulate(Workload(model=Model(layers=3), faults=fault))[0]
    (device,) = rows(schedule, TODAY, "memory")
    assert (device.peak_allocated_bytes, device.peak_reserved_bytes) == memory_peak(schedule)
    assert device.records == len(schedule.memory)
    calls = {each.call: each.count for each in rows(schedule, TODAY, "allocator_calls")}
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
