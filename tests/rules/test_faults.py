"""Injected faults on one GPU: the right rule first, its saving that of the simulation without the fault, and no other.

Every rule judges every run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.simulate.cost import faulty, lost, share, step_of, with_free_host
from tests.simulate.faults import FAULTS
from tests.simulate.healthy import A100, HEALTHY, LARGE, LIGHT, SLOW_LOG, SLOW_WAKE
from tests.simulate.judge import judge
from traceanalyze.rules.finding import Finding, Severity

if TYPE_CHECKING:
    from tests.simulate.workload import Workload

CASES = [
    *((HEALTHY, "slow_loader", size, "DAT101") for size in (10, 20, 80)),
    (LIGHT, "slow_loader", 6, "DAT101"),
    *((SLOW_LOG, "item_sync", size, "SYN101") for size in (1, 2, 6)),
    *((LIGHT, "item_sync", size, "SYN101") for size in (2, 4, 6, 9, 12)),
    *((SLOW_WAKE, "device_sync", size, "SYN103") for size in (2, 4, 8)),
    *((HEALTHY, "pageable_copy", size, "SYN105") for size in (2, 1, 0.5, 0.2)),
    *((HEALTHY, "gc_pause", size, "HST113") for size in (12, 20, 30, 80)),
    *((HEALTHY, "empty_cache", size, "MEM102") for size in (0.1, 0.3, 1)),
    *((HEALTHY, "host_slow", size, "HST101") for size in (6, 12, 24)),
]
SINGLE = 2, 2.5, 3, 4, 8
QUIET = [
    *((HEALTHY, "slow_loader", size) for size in (3, 6)),
    (LARGE, "item_sync", 1),
    *((HEALTHY, "device_sync", size) for size in (1, 4)),
    (LARGE, "pageable_copy", 19),
    *((HEALTHY, "gc_pause", size) for size in (0.1, 1)),
    (HEALTHY, "empty_cache", 0.01),
    *((HEALTHY, "host_slow", size) for size in (1.5, 3)),
    *((HEALTHY, "late_launch", size) for size in (1, 9, 60)),
]
"""So small that the steps hardly change."""
COVERED_ELSEWHERE = {"straggler", "exposed_comm", "host_barrier"}
"""In runs of several ranks: `test_faults_ranks`."""
ABOUT_THE_RECORDING = {"unlinked": (2, 9, 30), "leftover": (1, 4, 12)}


def told(workload: Workload) -> list[Finding]:
    """Findings about the program, not about the recording."""
    return [one for one in judge(workload).ranks[0] if not one.rule.startswith("CAP")]


def too_much(found: list[Finding], workload: Workload) -> list[tuple[str, int]]:
    """Findings that save more than 2 % of the step."""
    return [(one.rule, one.saving) for one in found if one.saving and one.saving > 0.02 * step_of(workload)]


@pytest.mark.parametrize(("plain", "fault", "size", "rule"), CASES)
def test_a_fault_is_found_with_its_price(plain: Workload, fault: str, size: float, rule: str) -> None:
    workload = faulty(plain, (fault, size))
    first, *others = told(workload)
    assert first.rule == rule
    assert first.saving == pytest.approx(lost(workload), rel=0.2)
    assert first.bound >= first.saving
    assert too_much(others, workload) == []
    assert [one.rule for one in others if one.severity > Severity.INFO and one.rule != "CGR104"] == []


@pytest.mark.parametrize(("plain", "fault", "size"), QUIET)
def test_a_fault_that_costs_next_to_nothing_is_not_told(plain: Workload, fault: str, size: float) -> None:
    workload = faulty(plain, (fault, size))
    assert share(workload) < 0.01
    assert judge(workload).loud == []


@pytest.mark.parametrize(
    ("fault", "size"), [(name, size) for name, sizes in ABOUT_THE_RECORDING.items() for size in sizes]
)
def test_what_only_the_recording_lacks_is_told_as_such(fault: str, size: float) -> None:
    workload = faulty(HEALTHY, (fault, size))
    assert share(workload) < 0.01
    assert set(judge(workload).loud) <= {"CAP103"}


def test_every_fault_is_tested_at_three_sizes() -> None:
    sizes: dict[str, int] = dict.fromkeys(FAULTS, 0)
    for _, fault, *_ in (*CASES, *QUIET):
        sizes[fault] += 1
    sizes["fp32"] = len(SINGLE)
    small = {name for name, count in sizes.items() if count < 3}
    assert small == COVERED_ELSEWHERE | set(ABOUT_THE_RECORDING) | {"small_kernels"}


@pytest.mark.parametrize("size", [32, 64, 256])
def test_small_kernels_leave_the_launches_to_blame(size: float) -> None:
    """Without the fault each step does more work; what is to be saved is what a host that costs nothing would save."""
    workload = faulty(HEALTHY, ("small_kernels", size))
    first, *others = told(workload)
    assert first.rule == "HST101"
    assert first.saving == pytest.approx(step_of(workload) - step_of(with_free_host(workload)), rel=0.2)
    assert too_much(others, workload) == []


@pytest.mark.parametrize("size", SINGLE)
def test_single_precision_saves_what_is_promised_and_no_more_than_its_bound(size: float) -> None:
    """Products are four times as fast, twice at least; the data sheet's ratio is the bound."""
    workload = faulty(A100, ("fp32", size))
    first, *others = told(workload)
    assert first.rule == "KRN101"
    assert first.least < lost(workload) < first.bound
    assert too_much(others, workload) == []
