"""How the device is used, just at and just beyond each limit: answers on paper."""

from __future__ import annotations

import pytest

from tests.builder import TraceBuilder
from traceanalyze.model.table import NotMeasured


def test_only_kernels_of_the_headline_device_are_judged() -> None:
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 40, **{"blocks per SM": 0.5, "est. achieved occupancy %": 50})
    b.device(60, 2, cat="gpu_memcpy", name="Memcpy DtoH (Device -> Pinned)")
    b.device(0, 5, device=1, **{"blocks per SM": 1, "est. achieved occupancy %": 100})
    (row,) = b.rows("device_summary")
    assert (row.kernels, row.short_kernels, row.short_kernels_ns) == (1, 0, 0)
    assert (row.gpu_utilisation, row.sm_efficiency, row.occupancy) == (0.4, 0.2, 0.5)


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        (0, 0.0),
        (1, 0.4),
        (1.5, 0.4),
        (1e9, 0.4),
        (1e9 + 1, NotMeasured("no_occupancy")),
        (-0.5, NotMeasured("no_occupancy")),
    ],
)
def test_blocks_that_no_device_can_have_are_no_measurement(blocks: float, expected: object) -> None:
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 40, **{"blocks per SM": blocks})
    (row,) = b.rows("device_summary")
    assert row.sm_efficiency == expected


@pytest.mark.parametrize(("busy", "stretches"), [(0.5, 0), (0.499, 1)])
def test_use_is_low_below_half_of_the_time(busy: float, stretches: int) -> None:
    """A step of 30 µs in pieces of 1 µs, of which the third runs for less."""
    b = TraceBuilder()
    b.step(1, 0, 30)
    b.device(0, 2)
    b.device(2, busy)
    b.device(3, 27)
    assert [(row.at_ns, row.length_ns, row.busy_share) for row in b.rows("low_utilisation")] == [
        (2_000, 1_000, busy)
    ] * stretches


def test_equally_long_stretches_come_in_order_of_time_and_longer_ones_first() -> None:
    b = TraceBuilder()
    b.step(1, 0, 30)
    for at, length in ((0, 5), (7, 3), (12, 8), (23, 7)):
        b.device(at, length)
    found = [(row.at_ns, row.start_ns, row.length_ns) for row in b.rows("low_utilisation")]
    assert found == [(20_000, 20_000, 3_000), (5_000, 5_000, 2_000), (10_000, 10_000, 2_000)]


@pytest.mark.parametrize(
    ("at", "length", "kernels"),
    [(99, 1, 0), (99, 1.001, 1), (100, 0, 1), (99.999, 0, 0), (199, 5, 1), (200, 5, 0), (200, 0, 1), (200.001, 0, 0)],
)
def test_a_kernel_counts_with_its_time_inside_the_steps_and_without_length_where_it_lies(
    at: float, length: float, kernels: int
) -> None:
    b = TraceBuilder()
    b.step(1, 100, 100)
    b.launch(100, 1, 100, 10, name="gemm")
    b.device(at, length, name="relu", stream=8)
    inside = max(0, min(at + length, 200) - max(at, 100))
    found = {row.name: (row.count, row.device_time_ns) for row in b.rows("kernels")}
    assert found == {"gemm": (1, 10_000)} | ({"relu": (1, round(inside * 1000))} if kernels else {})


def test_a_step_is_told_in_thirty_pieces_of_which_fewer_where_it_is_short() -> None:
    b = TraceBuilder()
    b.step(1, 0, 0.031)
    b.device(0, 0.031)
    chunks = b.rows("utilisation")
    assert [row.chunk for row in chunks] == list(range(1, 31))
    assert [row.length_ns for row in chunks] == [1] * 29 + [2]
    assert {row.busy_share for row in chunks} == {1.0}
