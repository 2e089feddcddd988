"""Garbage collection stops the host: suspected with its size, and only where there was one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulate.compare import analysis
from tests.simulate.simulate import simulate
from tests.simulate.workload import MS, Fault, Host, Model, Workload
from tests.simulate.writers.kineto import write
from tests.simulate.writers.layouts import TODAY
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.idle.pauses import pauses as stretches
from traceanalyze.analyses.options import Options
from traceanalyze.readers.kineto import read_text

HEALTHY = Workload(model=Model(layers=4), warmup=2, steps=4, seed=7)


def pauses(workload, layout=TODAY):
    return analysis(simulate(workload)[0], layout).tables["gc_pauses"]


@pytest.mark.parametrize("size", [40, 220])
def test_a_pause_that_every_step_makes_alike_is_none_of_the_collector(size):
    paused = replace(HEALTHY, faults=(Fault("gc_pause", size),))
    assert pauses(paused).rows == ()
    found = Context(read_text(write(simulate(paused)[0], TODAY)), Options()).once(stretches)
    assert found.constant.tolist() == [True] * 4
    # The program's own Python around the pause is silent, too.
    assert all(size * MS <= length < (size + 0.2) * MS for length in (found.end - found.start).tolist())


@pytest.mark.parametrize("fault", [None, "slow_loader", "item_sync", "device_sync", "host_slow", "pageable_copy"])
def test_nothing_else_is_taken_for_one(fault):
    size = {"slow_loader": 60, "item_sync": 2, "device_sync": 1, "host_slow": 12, "pageable_copy": 2}
    faults = () if fault is None else (Fault(fault, size[fault]),)
    assert pauses(replace(HEALTHY, faults=faults)).rows == ()


@pytest.mark.parametrize("size", [30, 45])
def test_pauses_here_and_there_are_suspected(size):
    """In two of three steps, at another operator each time, and for between half and one and a half times `size`."""
    found = pauses(replace(HEALTHY, steps=6, faults=(Fault("collections", size),))).records()
    assert [each.evidence for each in found] == ["gc_suspected"] * 4
    assert all(0.5 * size * MS <= each.length_ns < (1.5 * size + 0.3) * MS for each in found)


@pytest.mark.parametrize(("seed", "shown"), [(1, 1), (14, 1), (0, 1)])
def test_those_beside_which_the_device_has_other_work_tell_what_the_others_are(seed, shown):
    """Three collections, of which the device waits 2 ms for one at most; the first may be the longest by chance."""
    slow = replace(HEALTHY, steps=5, seed=seed, host=Host(op=5_000, python=5_000), faults=(Fault("collections", 8),))
    found = pauses(slow).records()
    assert [each.evidence for each in found] == ["gc_suspected"] * shown


def test_new_workers_now_and_then_are_none_of_the_collector():
    written = replace(HEALTHY, steps=9, faults=(Fault("new_workers", 8),))
    assert pauses(written).rows == ()
