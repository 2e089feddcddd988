"""Faults of runs of several ranks: the late rank is named, and waiting for it is nobody's exposed communication."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from tests.simulate.cost import faulty, lost, share, step_of, with_slower_link
from tests.simulate.healthy import SHARDED, TWO, on_npu
from tests.simulate.judge import judge
from tests.simulate.simulate import simulate
from tests.simulate.writers.kineto import write
from traceanalyze.cli.app import app
from traceanalyze.rules.finding import Severity

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulate.workload import Workload

LARGE = replace(TWO, model=replace(TWO.model, layers=4))
STRAGGLERS = [
    *((TWO, "straggler", size) for size in (1.03, 1.1, 1.3, 2)),
    *((SHARDED, "straggler", size) for size in (1.1, 1.5)),
    *((TWO, "host_barrier", size) for size in (1.1, 1.5, 2)),
]
EXPOSED = [*((TWO, size) for size in (1.5, 2, 4, 8, 16)), (LARGE, 4)]
LATE = [
    *((TWO, "late_batches", size, "data_loading", "DAT101") for size in (8, 20, 40)),
    *((TWO, "late_host", size, "pause", "HST113") for size in (6, 12, 30)),
    (on_npu(TWO), "late_batches", 15, "data_loading", "DAT101"),
    (on_npu(TWO), "late_host", 30, "pause", "HST113"),
]
"""Workload, fault of the last rank, size, what makes it late, and the rule that finds it on that rank."""
QUIET = [(TWO, "straggler", 1.005), (TWO, "host_barrier", 1.005), (TWO, "exposed_comm", 0.1)]


@pytest.mark.parametrize(("plain", "fault", "size"), STRAGGLERS)
def test_the_slow_rank_is_named_with_what_all_lose_by_it(plain: Workload, fault: str, size: float) -> None:
    workload = faulty(plain, (fault, size))
    found = judge(workload)
    first = found.run[0]
    assert (first.rule, first.scope.ranks) == ("RNK101", (plain.ranks.count - 1,))
    assert {one.label: one.value for one in first.evidence}["phase"] == "late_compute"
    # As the ranks that are not late see it.
    assert first.saving == pytest.approx(lost(workload), rel=0.2)
    assert first.bound >= first.saving
    # That the kernels of one rank are slower is the fault itself.
    assert {one.rule for one in found.run[1:]} <= {"RNK102", "KRN118"}
    assert [one.saving for one in found.run[1:] if one.saving] == []


@pytest.mark.parametrize(("plain", "fault", "size"), STRAGGLERS)
def test_waiting_for_the_slow_rank_is_not_told_again_as_communication(plain: Workload, fault: str, size: float) -> None:
    """Nothing that overlaps or joins messages would save it."""
    found = judge(faulty(plain, (fault, size)))
    assert [(one.rule, one.severity) for rank in found.ranks for one in rank if one.severity > Severity.INFO] == []
    assert [one.rule for rank in found.ranks for one in rank if (one.saving or 0) > 0.02 * step_of(plain)] == []


@pytest.mark.parametrize(("plain", "size"), EXPOSED)
def test_communication_that_nothing_hides_is_found_on_every_rank(plain: Workload, size: float) -> None:
    """The link stays as slow as it is: what is saved is what the backward pass can hide."""
    workload, in_time = faulty(plain, ("exposed_comm", size)), with_slower_link(plain, size)
    found = judge(workload)
    assert found.run == ()
    for rank, (first, *others) in enumerate(found.ranks):
        assert first.rule == "COM101"
        assert first.saving == pytest.approx(step_of(workload, rank) - step_of(in_time, rank), rel=0.2)
        assert first.bound >= first.saving
        assert [one.rule for one in others if one.severity > Severity.INFO] == []


@pytest.mark.parametrize(("plain", "fault", "size"), QUIET)
def test_a_fault_that_costs_next_to_nothing_is_not_told(plain: Workload, fault: str, size: float) -> None:
    workload = faulty(plain, (fault, size))
    assert share(workload) < 0.01
    assert judge(workload).loud == []


@pytest.mark.parametrize(("plain", "fault", "size", "phase", "rule"), LATE)
def test_a_rank_that_is_late_for_another_reason_than_compute(
    plain: Workload, fault: str, size: float, phase: str, rule: str
) -> None:
    """The run names the rank and what makes it late; on that rank the cause has its own finding; on the others none."""
    workload = faulty(plain, (fault, size))
    found = judge(workload)
    (first,) = found.run
    assert (first.rule, first.scope.ranks) == ("RNK101", (1,))
    assert {one.label: one.value for one in first.evidence}["phase"] == f"late_{phase}"
    assert first.saving == pytest.approx(lost(workload), rel=0.2)
    others, late = ([one for one in rank if one.severity > Severity.INFO] for rank in found.ranks)
    assert others == []
    assert [one.rule for one in late] == [rule]
    assert late[0].saving == pytest.approx(lost(workload, rank=1), rel=0.2)


def test_the_report_of_a_run_names_the_slow_rank_and_not_the_communication(tmp_path: Path) -> None:
    for schedule in simulate(faulty(TWO, ("straggler", 1.3))):
        (tmp_path / f"rank{schedule.rank}.json").write_bytes(write(schedule))
    said = CliRunner().invoke(app, ["analyze", str(tmp_path)]).stdout
    assert "RNK101" in said
    assert "COM101" not in said
