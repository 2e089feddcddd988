"""Level 0 records the task queue but no call of CANN: what needs calls is not measured, never 0 (definitions §7)."""

from __future__ import annotations

import pytest

import traceanalyze
from tests.rules.make import judged
from tests.simulate.simulate import simulate
from tests.simulate.workload import Device, Fault, Model, Workload
from tests.simulate.writers.ascend import write_ascend
from tests.simulate.writers.ascend_layouts import AscendLayout
from traceanalyze.model.table import NotMeasured

READS, STEPS = 3, 2
WORKLOAD = Workload(
    model=Model(layers=2),
    device=Device(vendor="ascend"),
    warmup=1,
    steps=STEPS,
    tick=10,
    faults=(Fault("item_sync", READS),),
)


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    (rank,) = simulate(WORKLOAD)
    return write_ascend(tmp_path_factory.mktemp("level0"), rank, AscendLayout(level=0))


def test_operators_that_need_a_value_are_listed_as_suspected_without_a_cost(profile):
    table = traceanalyze.analyze(profile).tables["sync_points"]
    assert table.column("op") == ("aten::_local_scalar_dense",)
    assert table.column("kind") == ("sync_suspected",)
    assert table.column("count") == (READS * STEPS,)
    assert isinstance(table.column("blocked_ns")[0], NotMeasured)
    assert isinstance(table.column("idle_caused_ns")[0], NotMeasured)


def test_waiting_is_not_measured_and_the_parts_still_sum_to_the_step(profile):
    split = traceanalyze.analyze(profile).tables["split"]
    parts = dict(zip(split.column("part"), split.column("sum_ns"), strict=True))
    assert isinstance(parts.pop("sync"), NotMeasured)
    assert sum(parts.values()) == split.total[-1]


def test_rules_about_syncs_are_not_judged(profile):
    (trace,) = traceanalyze.load(profile).traces
    outcome = judged(trace)
    unjudged = {one.rule: one.reason for one in outcome.not_applicable}
    assert unjudged["SYN101"] == unjudged["SYN103"] == "no_cann_calls"
    assert "SYN101" not in {one.rule for one in outcome.findings}
