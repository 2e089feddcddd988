"""A simulated workload against the same with a fault: what did not change is matched, what did is told."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from tests.comparison.make import compared
from tests.simulate.simulate import simulate
from tests.simulate.test_faults import CASES
from tests.simulate.workload import Fault
from tests.simulate.writers.kineto import write
from tests.simulate.writers.layouts import TODAY
from traceanalyze.comparison.side import side
from traceanalyze.readers.kineto import read_text


@cache
def recorded(workload):
    return side(read_text(write(simulate(workload)[0], TODAY)))


@pytest.mark.parametrize("name", ["slow_loader", "gc_pause"])
def test_faults_of_the_host_leave_all_work_matched(name):
    plain, size = CASES[name]
    found = compared(recorded(plain), recorded(replace(plain, faults=(Fault(name, size),))))
    rows = [row for row in found.unmatched if row.of_time]
    assert rows
    assert all(row.count == 0 for row in rows)
    assert all(row.base["device_ns"] == row.candidate["device_ns"] for row in found.operators)


@pytest.mark.parametrize("name", CASES)
def test_every_table_has_all_device_time(name):
    plain, size = CASES[name]
    sides = recorded(plain), recorded(replace(plain, faults=(Fault(name, size),)))
    found = compared(*sides)
    for side_name, one in zip(("base", "candidate"), sides, strict=True):
        calls = [getattr(row, side_name) for row in found.operator_pairs]
        kernels = [getattr(row, side_name) for row in found.kernels]
        operators = [getattr(row, side_name) for row in found.operators]
        assert sum(call["device_ns"] for call in calls if call) == one.info.device_time
        assert sum(kernel["total_ns"] for kernel in kernels if kernel) == one.info.device_time
        assert sum(each["device_ns"] for each in operators if each) == one.info.device_time
