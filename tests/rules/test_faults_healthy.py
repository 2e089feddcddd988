"""Healthy runs, small and large, on one device and several, of every vendor, leave every rule silent above a note."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulate.cost import faulty, lost, step_of
from tests.simulate.healthy import RUNS, on_npu
from tests.simulate.judge import RULES, judge
from traceanalyze.rules.registry import every_rule
from traceanalyze.rules.rule import FAMILIES

OLD_FAULTS = [("slow_loader", 20, "DAT101"), ("item_sync", 20, "SYN101"), ("host_slow", 12, "HST101")]


@pytest.mark.parametrize("vendor", ["nvidia", "ascend"])
@pytest.mark.parametrize("name", RUNS)
def test_a_healthy_run_has_no_finding_above_a_note(name: str, vendor: str) -> None:
    workload = on_npu(RUNS[name]) if vendor == "ascend" else RUNS[name]
    found = judge(workload)
    assert found.loud == []
    assert [one.rule for one in found.ranks[0] if (one.saving or 0) > 0.02 * step_of(workload)] == []


@pytest.mark.parametrize("seed", range(11, 14))
def test_no_draw_of_the_scatter_makes_a_healthy_run_look_ill(seed: int) -> None:
    assert judge(replace(RUNS["two_ranks"], seed=seed)).loud == []
    assert judge(replace(RUNS["light"], seed=seed)).loud == []


@pytest.mark.parametrize(("layout", "vendor"), [("2022", "nvidia"), ("2021", "nvidia"), ("amd", "amd")])
@pytest.mark.parametrize("name", ["healthy", "two_ranks"])
def test_nor_does_the_profiler_of_other_years_and_vendors(name: str, layout: str, vendor: str) -> None:
    plain = RUNS[name]
    workload = replace(plain, device=replace(plain.device, vendor=vendor), tick=1000 if layout == "2021" else 1)
    assert judge(workload, layout).loud == []


@pytest.mark.parametrize(("layout", "vendor"), [("2022", "nvidia"), ("2021", "nvidia"), ("amd", "amd")])
@pytest.mark.parametrize(("fault", "size", "rule"), OLD_FAULTS)
def test_the_same_faults_are_found_there(fault: str, size: float, rule: str, layout: str, vendor: str) -> None:
    plain = replace(RUNS["healthy"], device=replace(RUNS["healthy"].device, vendor=vendor), tick=1000)
    workload = faulty(plain, (fault, size))
    first = judge(workload, layout).ranks[0][0]
    assert first.rule == rule
    assert first.saving == pytest.approx(lost(workload), rel=0.2)


def test_the_rules_of_all_families_judge() -> None:
    assert {rule.id for rule, _ in RULES.rules} == {rule.id for rule in every_rule()}
    assert {rule.family for rule, _ in RULES.rules} == set(FAMILIES)
