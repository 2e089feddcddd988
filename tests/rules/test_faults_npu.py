"""The faults of a GPU program in the files of an NPU: the same rules, the advice of its own software."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from tests.simulate.cost import faulty, lost, share, step_of, with_slower_link
from tests.simulate.healthy import A100, HEALTHY, LIGHT, SLOW_LOG, SLOW_WAKE, TWO, on_npu
from tests.simulate.judge import judge
from tests.simulate.simulate import simulate
from tests.simulate.writers.ascend import write_ascend
from traceanalyze.cli.app import app
from traceanalyze.rules.finding import Severity

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulate.workload import Workload

CASES = [
    *((HEALTHY, "slow_loader", size, "DAT101") for size in (15, 20, 80)),
    *((SLOW_LOG, "item_sync", size, "SYN101") for size in (1, 2, 6)),
    *((LIGHT, "item_sync", size, "SYN101") for size in (2, 6, 12)),
    *((SLOW_WAKE, "device_sync", size, "SYN103") for size in (2, 8)),
    *((HEALTHY, "gc_pause", size, "HST113") for size in (12, 20, 80)),
    *((HEALTHY, "empty_cache", size, "MEM102") for size in (0.1, 0.3, 1)),
    # The fills are launched by a thread that no range of the program's is on.
    (A100, "zero_fill", 2, "HST112"),
    # Copies without direction, size and kind of memory, but for what their operators say.
    (A100, "pageable_copy", 0.6, "SYN105"),
    (A100, "small_copies", 60, "HST109"),
    *((HEALTHY, "host_slow", size, "HST101") for size in (6, 12, 24)),
]
ALIKE = {"CGR104", "NPU102", "NPU103"}
"""They add advice to HST101."""
QUIET = [
    (HEALTHY, "slow_loader", 6),
    (HEALTHY, "device_sync", 1),
    (HEALTHY, "gc_pause", 0.1),
    (HEALTHY, "empty_cache", 0.01),
    (HEALTHY, "host_slow", 3),
    (TWO, "straggler", 1.005),
]
ADVICE = [
    ("item_sync", 20, "torch_npu.npu.set_sync_debug_mode"),
    ("empty_cache", 0.3, "torch_npu.npu.empty_cache()"),
    ("host_slow", 12, "torch_npu"),
]


@pytest.mark.parametrize(("plain", "fault", "size", "rule"), CASES)
def test_a_fault_is_found_with_its_price(plain: Workload, fault: str, size: float, rule: str) -> None:
    workload = faulty(on_npu(plain), (fault, size))
    found = [one for one in judge(workload).ranks[0] if not one.rule.startswith("CAP")]
    assert found[0].rule == rule
    # Between the copies a launch queue drains that the replay does not know.
    assert found[0].saving == pytest.approx(lost(workload), rel=0.22 if rule == "HST109" else 0.2)
    assert [one.rule for one in found[1:] if (one.saving or 0) > 0.02 * step_of(workload)] == []
    assert {one.rule for one in found[1:] if one.severity > Severity.INFO} <= (ALIKE if rule == "HST101" else set())


@pytest.mark.parametrize(("plain", "fault", "size"), QUIET)
def test_a_fault_that_costs_next_to_nothing_is_not_told(plain: Workload, fault: str, size: float) -> None:
    workload = faulty(on_npu(plain), (fault, size))
    assert share(workload) < 0.01
    assert judge(workload).loud == []


@pytest.mark.parametrize("size", [1.1, 1.3, 2])
def test_the_slow_rank_is_named_and_no_communication(size: float) -> None:
    workload = faulty(on_npu(TWO), ("straggler", size))
    found = judge(workload)
    assert (found.run[0].rule, found.run[0].scope.ranks) == ("RNK101", (1,))
    assert found.run[0].saving == pytest.approx(lost(workload), rel=0.2)
    assert {one.rule for one in found.run[1:]} <= {"RNK102", "KRN118"}
    assert [one.rule for rank in found.ranks for one in rank if one.severity > Severity.INFO] == []


@pytest.mark.parametrize("size", [2, 4, 8])
def test_communication_that_nothing_hides_is_found_on_every_rank(size: float) -> None:
    workload, in_time = faulty(on_npu(TWO), ("exposed_comm", size)), with_slower_link(on_npu(TWO), size)
    found = judge(workload)
    assert found.run == ()
    for rank, (first, *others) in enumerate(found.ranks):
        assert first.rule == "COM101"
        assert first.saving == pytest.approx(step_of(workload, rank) - step_of(in_time, rank), rel=0.2)
        assert [one.rule for one in others if one.severity > Severity.INFO] == []


@pytest.mark.parametrize(("fault", "size", "words"), ADVICE)
def test_the_report_gives_the_advice_of_the_npu(fault: str, size: float, words: str, tmp_path: Path) -> None:
    workload = faulty(on_npu(HEALTHY), (fault, size))
    folder = write_ascend(tmp_path, simulate(workload)[0])
    said = CliRunner().invoke(app, ["analyze", str(folder), "--all"]).stdout
    assert words in said
    assert "torch.cuda" not in said
