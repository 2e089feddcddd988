"""Injected faults: the right rule first, its saving that of the simulation without the fault, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.rules.make import judged
from tests.simulate.simulate import simulate
from tests.simulate.truth.summary import step_time, without_faults
from tests.simulate.workload import US, Fault, Host, Model, Script, Workload
from tests.simulate.writers.kineto import write
from tests.simulate.writers.layouts import TODAY
from traceanalyze.readers.kineto import read_text
from traceanalyze.rules.finding import Severity

HEALTHY = Workload(model=Model(layers=4), warmup=2, steps=4, seed=7)
LIGHT = replace(HEALTHY, model=Model(layers=4, batch=2), host=Host(op=2 * US, python=2 * US))
"""Short steps, in which a sync costs a notable part; the host still is fast enough."""
SLOW_LOG = replace(LIGHT, script=Script(log=400 * US))

CASES = [
    *((HEALTHY, "slow_loader", size, "DAT101") for size in (15, 20, 40, 80)),
    *((LIGHT, "slow_loader", size, "DAT101") for size in (6, 10, 30)),
    *((SLOW_LOG, "item_sync", size, "SYN101") for size in (1, 2, 6)),
    *((LIGHT, "item_sync", size, "SYN101") for size in (2, 6)),
    *((HEALTHY, "pageable_copy", size, "SYN105") for size in (2, 1, 0.5, 0.2)),
    *((HEALTHY, "gc_pause", size, "HST104") for size in (20, 30, 80)),
    (HEALTHY, "gc_pause", 12, "HST107"),
    *((HEALTHY, "empty_cache", size, "MEM102") for size in (0.1, 0.3, 1)),
    *((HEALTHY, "host_slow", size, "HST101") for size in (6, 12, 24)),
]


FAMILIES = ("DAT", "HST", "SYN", "MEM", "CAP")
"""Rules about kernels judge shapes and grids, which are no part of a fault."""


def said(workload: Workload):
    return judged(read_text(write(simulate(workload)[0], TODAY)), *FAMILIES).findings


@pytest.mark.parametrize(("plain", "fault", "size", "rule"), CASES)
def test_a_fault_is_found_with_its_price(plain: Workload, fault: str, size: float, rule: str) -> None:
    workload = replace(plain, faults=(Fault(fault, size),))
    whole = step_time(workload)
    true = (whole - without_faults(workload)[fault]) / workload.steps
    first, *others = (one for one in said(workload) if one.rule[:3] != "CAP")
    assert first.rule == rule
    assert first.saving == pytest.approx(true, rel=0.2)
    assert first.bound >= first.saving
    assert [(one.rule, one.saving) for one in others if (one.saving or 0) > 0.02 * whole / workload.steps] == []


@pytest.mark.parametrize("plain", [HEALTHY, LIGHT, SLOW_LOG, replace(HEALTHY, seed=3), replace(HEALTHY, steps=8)])
def test_a_healthy_run_has_no_finding_above_a_note(plain: Workload) -> None:
    assert [one.rule for one in said(plain) if one.severity > Severity.INFO] == []


@pytest.mark.parametrize("size", [64, 256])
def test_small_kernels_leave_the_launches_to_blame(size: float) -> None:
    """Without the fault each step does more work, so there is no time to compare with."""
    first, *others = said(replace(HEALTHY, faults=(Fault("small_kernels", size),)))
    assert first.rule == "HST101"
    assert [one.rule for one in others if one.saving] == []


@pytest.mark.parametrize("optimizer", ["for_loop", "foreach"])
@pytest.mark.parametrize("model", [Model(layers=4), Model(layers=12, hidden=512)], ids=["wide", "deep"])
def test_an_optimizer_that_is_not_fused_is_found_with_its_price(optimizer: str, model: Model) -> None:
    slow, fused = (replace(HEALTHY, model=model, script=Script(optimizer=each)) for each in (optimizer, "fused"))
    first, *others = said(slow)
    assert first.rule == "HST111"
    assert first.saving == pytest.approx((step_time(slow) - step_time(fused)) / slow.steps, rel=0.2)
    assert [one.rule for one in others if (one.saving or 0) > 0.02 * step_time(slow) / slow.steps] == []


MIXED = [
    (("slow_loader", 40), ("empty_cache", 0.3)),
    (("slow_loader", 30), ("pageable_copy", 0.5)),
    (("gc_pause", 30), ("pageable_copy", 0.5)),
    (("slow_loader", 30), ("item_sync", 6)),
]
RULES = {"slow_loader": "DAT101", "empty_cache": "MEM102", "pageable_copy": "SYN105", "gc_pause": "HST104"}


@pytest.mark.parametrize("faults", MIXED, ids=lambda faults: "+".join(name for name, _ in faults))
def test_savings_of_several_faults_never_add_to_more_than_the_step_loses(faults) -> None:
    plain = HEALTHY
    workload = replace(plain, faults=tuple(Fault(*one) for one in faults))
    lost = (step_time(workload) - step_time(plain)) / workload.steps
    found = said(workload)
    assert sum(one.saving or 0 for one in found) <= 1.1 * lost
    assert {RULES[name] for name, _ in faults if name in RULES} <= {one.rule for one in found}
