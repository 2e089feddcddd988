"""Garbage collection stops the host: suspected with its size, and only where there was one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulate.compare import analysis
from tests.simulate.simulate import simulate
from tests.simulate.workload import MS, Fault, Model, Workload
from tests.simulate.writers.layouts import TODAY

HEALTHY = Workload(model=Model(layers=4), warmup=2, steps=4, seed=7)


def pauses(workload, layout=TODAY):
    return analysis(simulate(workload)[0], layout).tables["gc_pauses"]


@pytest.mark.parametrize("size", [40, 220])
def test_each_pause_is_found_with_its_size(size):
    found = pauses(replace(HEALTHY, faults=(Fault("gc_pause", size),)))
    assert found.column("step") == ("3", "4", "5", "6")
    for pause in found.records():
        # The program's own Python around the pause is silent, too.
        assert size * MS <= pause.length_ns < (size + 0.2) * MS
        assert 10 * MS <= pause.idle_ns <= pause.length_ns
        assert pause.evidence == ("gc_strongly_suspected" if pause.idle_ns >= 200 * MS else "gc_suspected")


@pytest.mark.parametrize("fault", [None, "slow_loader", "item_sync", "device_sync", "host_slow", "pageable_copy"])
def test_nothing_else_is_taken_for_one(fault):
    size = {"slow_loader": 60, "item_sync": 2, "device_sync": 1, "host_slow": 12, "pageable_copy": 2}
    faults = () if fault is None else (Fault(fault, size[fault]),)
    assert pauses(replace(HEALTHY, faults=faults)).rows == ()
