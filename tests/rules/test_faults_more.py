"""Faults in the model's code, the loader, the optimizer and the use of collectives: rule, saving and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.simulate.cost import faulty, step_of, with_slower_link
from tests.simulate.healthy import HEALTHY, LIGHT, SHARDED, TWO, on_npu
from tests.simulate.judge import judge
from tests.simulate.workload import US, Host
from traceanalyze.rules.finding import Severity

if TYPE_CHECKING:
    from tests.simulate.workload import Workload

FAST = replace(LIGHT, host=Host(op=US, python=US))
"""The host is far ahead, however many kernels there are."""
LARGE_VOCABULARY = replace(HEALTHY, model=replace(HEALTHY.model, vocabulary=49152))
MANY_BATCHES = replace(HEALTHY, steps=12)
ACCUMULATING = replace(
    TWO, host=FAST.host, model=replace(TWO.model, batch=2), script=replace(TWO.script, micro_steps=2)
)


def layers(workload: Workload, size: float) -> Workload:
    return replace(workload, model=replace(workload.model, layers=round(size)))


def tokens(workload: Workload, size: float) -> Workload:
    return replace(workload, model=replace(workload.model, sequence=round(size)))


ONE_DEVICE = [
    *((tokens(HEALTHY, size), "plain_attention", size, "KRN104") for size in (512, 768, 1024)),
    *((HEALTHY, "written_out", size, "KRN106") for size in (4, 6, 10)),
    *((LARGE_VOCABULARY, "odd_vocabulary", size, "KRN102") for size in (1.35, 1.5, 1.95, 2.4)),
    *((layers(HEALTHY, size), "loop_optimizer", size, "HST111") for size in (2, 3, 4)),
    *((layers(HEALTHY, size), "listed_optimizer", size, "HST111") for size in (2, 3, 4)),
    *((layers(FAST, size), "zero_fill", size, "HST112") for size in (2, 3, 4)),
    *((HEALTHY, "pinning", size, "DAT103") for size in (10, 14, 30)),
    *((MANY_BATCHES, "new_workers", size, "DAT102") for size in (40, 80, 150)),
    *((LIGHT, "norm_read", size, "SYN106") for size in (100, 400, 1000)),
    *((HEALTHY, "unused_search", size, "COM103") for size in (10, 14, 30)),
    *((LIGHT, "unused_search", size, "COM103") for size in (3, 10)),
    *((on_npu(HEALTHY), "layout_changes", size, "KRN107") for size in (20, 50, 100)),
    *((on_npu(HEALTHY), "scalar_kernel", size, "KRN116") for size in (300, 1000, 5000)),
]
"""Workload without the fault, fault, size, rule."""
SEVERAL_RANKS = [
    *((with_slower_link(ACCUMULATING, size), ACCUMULATING, "always_synced", size, "COM102") for size in (2, 4, 6)),
    *((layers(SHARDED, size), SHARDED, "list_gather", size, "COM106") for size in (1, 2, 3)),
]
"""Workload without the fault, what the fault is put into, fault, size, rule."""
QUIET = [
    (HEALTHY, "pinning", 0.1),
    (HEALTHY, "unused_search", 1),
    (HEALTHY, "norm_read", 1),
    (MANY_BATCHES, "new_workers", 10),
    (on_npu(HEALTHY), "layout_changes", 1),
    (on_npu(HEALTHY), "scalar_kernel", 30),
]


@pytest.mark.parametrize(("plain", "fault", "size", "rule"), ONE_DEVICE)
def test_a_fault_is_found_with_its_price(plain: Workload, fault: str, size: float, rule: str) -> None:
    workload = faulty(plain, (fault, size))
    first, *others = (one for one in judge(workload).ranks[0] if not one.rule.startswith("CAP"))
    assert first.rule == rule
    assert first.saving == pytest.approx(step_of(workload) - step_of(plain), rel=0.2)
    assert first.bound >= first.saving
    assert [one.rule for one in others if one.severity > Severity.INFO] == []
    assert [one.rule for one in others if (one.saving or 0) > 0.02 * step_of(workload)] == []
    assert judge(plain).loud == []


@pytest.mark.parametrize(("plain", "base", "fault", "size", "rule"), SEVERAL_RANKS)
def test_a_fault_of_several_ranks_is_found_on_each(
    plain: Workload, base: Workload, fault: str, size: float, rule: str
) -> None:
    workload = faulty(base, (fault, size))
    for rank, (first, *others) in enumerate(judge(workload).ranks):
        assert first.rule == rule
        assert first.saving == pytest.approx(step_of(workload, rank) - step_of(plain, rank), rel=0.2)
        # A slow link leaves some communication exposed without the fault, too.
        assert {one.rule for one in others if one.severity > Severity.INFO} <= {"COM101"}


@pytest.mark.parametrize(("plain", "fault", "size"), QUIET)
def test_a_fault_that_costs_next_to_nothing_is_not_told(plain: Workload, fault: str, size: float) -> None:
    workload = faulty(plain, (fault, size))
    assert step_of(workload) - step_of(plain) < 0.01 * step_of(workload)
    assert judge(workload).loud == []
