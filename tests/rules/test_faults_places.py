"""Where a finding sends its reader: the time, the line and the rank of the fault that was put in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.simulate.cost import faulty
from tests.simulate.healthy import A100, HEALTHY, SLOW_LOG, SLOW_WAKE
from tests.simulate.judge import judge
from tests.simulate.schedule import MAIN
from tests.simulate.simulate import simulate
from tests.simulate.workload import MS
from traceanalyze.model import intervals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.simulate.schedule import Schedule
    from tests.simulate.workload import Workload

    Span = tuple[int, int]
    Where = Callable[[Schedule], Iterable[Span]]


def loading(schedule: Schedule) -> Iterable[Span]:
    return ((one.start, one.end) for one in schedule.annotations if one.name.startswith("enumerate(DataLoader)"))


def pauses(schedule: Schedule) -> Iterable[Span]:
    quiet = (one for one in schedule.states[MAIN] if one.call is None and not one.op and not one.loading)
    return ((one.start, one.end) for one in quiet if one.end - one.start >= 10 * MS)


def calls(*names: str) -> Where:
    return lambda schedule: ((one.start, one.end) for one in schedule.calls if one.name in names)


def reading(schedule: Schedule) -> Iterable[Span]:
    """Until Python is done with the value."""
    return ((one.start, one.end + schedule.workload.script.log * 2) for one in schedule.ops if one.name == "aten::item")


def copying(schedule: Schedule) -> Iterable[Span]:
    return ((one.start, one.end + 50_000) for one in schedule.works if one.kind == "memcpy")


def products(schedule: Schedule) -> Iterable[Span]:
    return ((one.start, one.end) for one in schedule.works if one.family == "matmul")


CASES: list[tuple[Workload, str, float, Where, str | None]] = [
    (HEALTHY, "slow_loader", 40, loading, None),
    (HEALTHY, "gc_pause", 30, pauses, None),
    (SLOW_LOG, "item_sync", 2, reading, "train.py(22): log_loss"),
    (SLOW_WAKE, "device_sync", 4, calls("cudaDeviceSynchronize"), "train.py(41): step"),
    (HEALTHY, "pageable_copy", 1, copying, "train.py(41): step"),
    (HEALTHY, "empty_cache", 1, calls("cudaFree", "cudaMalloc"), "train.py(31): train"),
    (A100, "fp32", 3, products, None),
]
"""Workload, fault, size, where it was, line of the program that did it."""


@pytest.mark.parametrize(("plain", "fault", "size", "where", "line"), CASES)
def test_a_finding_shows_the_time_and_the_line_of_its_fault(
    plain: Workload, fault: str, size: float, where: Where, line: str | None
) -> None:
    workload = faulty(plain, (fault, size))
    (schedule,) = simulate(workload)
    first = judge(workload).ranks[0][0]
    start, end = np.array(sorted(where(schedule)), np.int64).T
    there = intervals.merge(start, end)
    told = intervals.merge(first.intervals[:, 0], first.intervals[:, 1])
    assert intervals.total(intervals.intersect(told, there)) >= 0.8 * intervals.total(told)
    shown = [(one.start, one.end) for one in first.evidence if one.start is not None]
    assert shown
    for begin, stop in shown:
        window = intervals.merge(np.array([begin]), np.array([stop]))
        assert intervals.total(intervals.intersect(window, there)) > 0
    if line is not None:
        assert line in {one.line for one in first.evidence} | set(first.scope.ops)


def test_a_slow_host_is_idle_time_in_operators_and_launches() -> None:
    workload = faulty(HEALTHY, ("host_slow", 12))
    (schedule,) = simulate(workload)
    first = judge(workload).ranks[0][0]
    busy = [(one.start, one.end) for one in schedule.works]
    start, end = np.array(sorted(busy), np.int64).T
    told = intervals.merge(first.intervals[:, 0], first.intervals[:, 1])
    assert intervals.total(intervals.intersect(told, intervals.merge(start, end))) == 0
