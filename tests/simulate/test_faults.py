"""Each fault moves the numbers it should, and only those; without it the step is shorter by what it cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulate.compare import analysis, measured
from tests.simulate.faults import FAULTS, with_faults, without
from tests.simulate.simulate import simulate
from tests.simulate.truth.summary import critical_resource, step_time, total, truth, without_faults
from tests.simulate.truth.tables import unlinked
from tests.simulate.workload import MS, Fault, Model, Ranks, Script, Workload
from tests.simulate.writers.layouts import TODAY

HEALTHY = Workload(model=Model(layers=4), warmup=2, steps=4, seed=7)
TWO = replace(HEALTHY, ranks=Ranks(2))
CASES: dict[str, tuple[Workload, float]] = {
    "slow_loader": (HEALTHY, 40),
    "item_sync": (HEALTHY, 2),
    "device_sync": (HEALTHY, 1),
    "pageable_copy": (HEALTHY, 2),
    "small_kernels": (HEALTHY, 256),
    "gc_pause": (HEALTHY, 30),
    "straggler": (TWO, 1.5),
    "exposed_comm": (TWO, 4),
    "empty_cache": (HEALTHY, 0.3),
    "host_slow": (HEALTHY, 12),
    "fp32": (HEALTHY, 4),
    "unlinked": (HEALTHY, 4),
    "leftover": (HEALTHY, 4),
    "late_launch": (HEALTHY, 12),
    "host_barrier": (replace(TWO, script=Script(device_syncs=1)), 3),
}
MAY_MOVE = {
    "small_kernels": {"dispatch.latency", "untraced", "data_loading"},
    "item_sync": {"untraced", "host_op", "dispatch.launch", "dispatch.latency"},
    "device_sync": {"untraced", "host_op", "dispatch.launch", "dispatch.latency", "data_loading"},
    "pageable_copy": {"untraced", "sync", "host_op", "dispatch.launch"},
    "empty_cache": {"host_op", "dispatch.launch", "untraced", "dispatch.latency"},
    "host_slow": {"dispatch.launch", "dispatch.latency", "data_loading"},
    "leftover": {"unlinked"},
    "straggler": {"comm_exposed"},
    "late_launch": {"host_op"},
    "host_barrier": {"compute", "comm_exposed"},
}
"""What a fault also raises, by its nature: a drained queue shows all that the host does until it is full again."""
NOISE = MS // 10


def numbers(workload: Workload, rank: int) -> dict[str, int]:
    """Parts and causes summed over the steps, and what the causes of two faults are seen by."""
    schedule = simulate(workload)[rank]
    known = truth(schedule)
    found = {**total(known.parts), **total(known.idle)}
    found["sync_idle_caused"] = sum(cost.idle_caused for place, cost in known.syncs.items() if not place[3])
    found["compute_dur"] = sum(work.end - work.start for work in schedule.works if work.kind == "compute")
    found["unlinked"] = unlinked(schedule)[1]
    found["lead_in"] = max(0, known.steps[0].start - schedule.steps[0].start)
    return found


def test_every_fault_is_tested() -> None:
    assert set(CASES) == set(FAULTS)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_moves_what_it_should_and_leaves_the_rest(name: str) -> None:
    plain, size = CASES[name]
    faulty = replace(plain, faults=(Fault(name, size),))
    # Who waits at a barrier is the faster rank.
    rank = 0 if name == "host_barrier" else plain.ranks.count - 1
    before, after = numbers(plain, rank), numbers(faulty, rank)
    grown = {key for key in after if after[key] - before.get(key, 0) > NOISE}
    moves = set(FAULTS[name].moves)
    sums = {"idle", "mem_total", "comm_total", "compute_dur"}
    assert moves <= grown
    assert grown - moves - sums <= MAY_MOVE.get(name, set())


def test_the_healthy_workload_keeps_the_device_busy() -> None:
    known = truth(simulate(HEALTHY)[0])
    parts = total(known.parts[1:])
    assert parts["idle"] < 0.03 * sum(step.time for step in known.steps[1:])
    assert critical_resource(HEALTHY) == "device"


@pytest.mark.parametrize(
    ("name", "size", "resource"),
    [
        ("slow_loader", 60, "loader"),
        ("small_kernels", 256, "host"),
        ("fp32", 4, "device"),
        ("exposed_comm", 20, "comm"),
    ],
)
def test_the_critical_resource_is_the_faulty_one(name: str, size: float, resource: str) -> None:
    assert critical_resource(replace(TWO, faults=(Fault(name, size),))) == resource


def test_time_without_a_fault_is_that_of_the_workload_without_it() -> None:
    both = replace(HEALTHY, faults=(Fault("slow_loader", 40), Fault("item_sync", 2)))
    apart = without_faults(both)
    assert apart["item_sync"] == step_time(replace(HEALTHY, faults=(Fault("slow_loader", 40),)))
    assert apart["slow_loader"] == step_time(replace(HEALTHY, faults=(Fault("item_sync", 2),)))
    assert without(without(both, "slow_loader"), "item_sync") == HEALTHY
    assert apart["slow_loader"] < step_time(both)


def test_a_fault_elsewhere_shifts_no_scatter() -> None:
    """Kernels that a fault does not touch take the same time with and without it."""
    plain, faulty = (simulate(replace(HEALTHY, faults=each))[0] for each in ((), (Fault("item_sync", 2),)))
    durations = [[work.end - work.start for work in one.works if work.kind == "compute"] for one in (plain, faulty)]
    assert durations[0] == durations[1]


def test_collectives_end_together() -> None:
    ranks = simulate(replace(TWO, faults=(Fault("straggler", 1.5),)))
    ends = [[work.end for work in each.works if work.kind == "comm"] for each in ranks]
    assert ends[0] == ends[1]
    assert ends[0]


def test_two_simulations_are_equal_to_the_byte() -> None:
    from tests.simulate.writers.kineto import write

    workload = replace(TWO, faults=(Fault("straggler", 1.5), Fault("item_sync", 1)))
    first, second = (tuple(write(each, TODAY) for each in simulate.__wrapped__(workload)) for _ in range(2))
    assert first == second
    assert with_faults(workload) == with_faults(workload)


def test_the_product_sees_each_pageable_copy_as_one_sync_point() -> None:
    schedule = simulate(replace(HEALTHY, faults=(Fault("pageable_copy", 2),)))[0]
    places = measured(analysis(schedule, TODAY))["syncs"]
    assert places["aten::copy_", "train.py(41): step", "cudaMemcpyAsync + cudaStreamSynchronize", False][0] == 4
