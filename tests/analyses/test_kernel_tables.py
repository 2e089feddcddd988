"""Whole tables of the kernels of small programs, worked out on paper."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builder import TraceBuilder
from traceanalyze.analyses.kernels.sequences import LONGEST
from traceanalyze.model.table import NotMeasured

NONE = NotMeasured("no_occupancy")


def test_kernels_are_told_apart_by_name_with_means_weighted_by_time() -> None:
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::mm", 0, 10)
    b.op("aten::bmm", 20, 10)
    b.launch(1, 1, 10, 10, name="a", **{"est. achieved occupancy %": 20, "blocks per SM": 3})
    b.launch(21, 1, 30, 30, name="a", **{"est. achieved occupancy %": 60, "blocks per SM": 1})
    b.launch(22, 1, 65, 20, name="a")
    b.launch(40, 1, 90, 4, name="b")
    b.launch(42, 1, 95, 2, name="c")
    b.launch(43, 1, 97, 2, name="b")
    rows = [
        (row.name, row.count, row.device_time_ns, row.mean_event_ns, row.min_ns, row.max_ns)
        for row in b.rows("kernels")
    ]
    assert rows == [
        ("a", 3, 60_000, 20_000, 10_000, 30_000),
        ("b", 2, 6_000, 3_000, 2_000, 4_000),
        ("c", 1, 2_000, 2_000, 2_000, 2_000),
    ]
    more: list[Any] = [
        (row.occupancy, row.blocks_per_sm, row.launched_by, row.launching_ops, row.no_op_ns)
        for row in b.rows("kernels")
    ]
    # What does not say its occupancy has no weight.
    assert more == [(0.5, 1.5, "aten::mm", 2, 0), (NONE, NONE, None, 0, 6_000), (NONE, NONE, None, 0, 2_000)]
    assert [row.share for row in b.rows("kernels")] == pytest.approx([60 / 68, 6 / 68, 2 / 68])


@pytest.mark.parametrize(
    ("length", "bounds"),
    [
        (0, (0, 1_000)),
        (0.999, (0, 1_000)),
        (1, (1_000, 2_000)),
        (9.999, (5_000, 10_000)),
        (10, (10_000, 20_000)),
        (9_999.999, (1_000_000, 10_000_000)),
        (10_000, (10_000_000, None)),
    ],
)
def test_a_kernel_is_in_one_class_of_durations_and_short_below_ten_microseconds(
    length: float, bounds: tuple[int, int | None]
) -> None:
    b = TraceBuilder()
    b.step(1, 0, 20_000)
    b.launch(1, 1, 10, length)
    table = b.table("kernel_durations")
    (row,) = (row for row in table.records() if row.count)
    assert (row.from_ns, row.below_ns, row.count_share) == (*bounds, 1.0)
    assert (row.device_time_ns, row.share) == (round(1000 * length), 1.0 if length else 0.0)
    told = [{key: value for key, _, value in note.values} for note in table.notes]
    assert told == ([{"count": 1, "share": 1.0}] if length < 10 else [])


def test_kernels_of_one_name_are_told_apart_by_all_that_they_are_launched_with() -> None:
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.op("aten::mm", 0, 10)
    usual: dict[str, Any] = {
        "grid": [8, 1, 1],
        "block": [64, 1, 1],
        "registers per thread": 16,
        "shared memory": 0,
    }
    changes: tuple[dict[str, Any], ...] = (
        {},
        {"grid": [9, 1, 1]},
        {"block": [65, 1, 1]},
        {"registers per thread": 17},
        {"shared memory": 1},
    )
    for index, change in enumerate(changes):
        b.launch(1 + index, 0.5, 20 + 10 * index, 9 - index, name="k", **{**usual, **change})
    # By no operator, without saying more than grid and block, as a copy, and without a grid.
    b.launch(15, 1, 80, 3, name="k", **usual)
    b.launch(17, 1, 90, 2, name="k", grid=[8, 1, 1], block=[64, 1, 1])
    b.copy(19, 1, 100, 50, **usual)
    b.launch(21, 1, 160, 30, name="k")
    unknown = NotMeasured("no_launch_configuration")
    rows = [
        (row.launched_by, row.grid, row.block, row.registers, row.shared_memory_bytes, row.count, row.device_time_ns)
        for row in b.rows("kernel_configurations")
    ]
    mm, grid, block = "aten::mm", "8 × 1 × 1", "64 × 1 × 1"
    assert rows == [
        (mm, grid, block, 16, 0, 1, 9_000),
        (mm, "9 × 1 × 1", block, 16, 0, 1, 8_000),
        (mm, grid, "65 × 1 × 1", 16, 0, 1, 7_000),
        (mm, grid, block, 17, 0, 1, 6_000),
        (mm, grid, block, 16, 1, 1, 5_000),
        (None, grid, block, 16, 0, 1, 3_000),
        (None, grid, block, unknown, unknown, 1, 2_000),
    ]


def test_sums_stand_below_the_kinds_of_work() -> None:
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.op("aten::mm", 0, 10)
    b.launch(1, 1, 10, 30, name="nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NNT")
    b.launch(20, 1, 50, 10, name="ampere_sgemm_128x64_nn")
    b.device(70, 20, name="Memcpy DtoH (Device -> Pinned)", cat="gpu_memcpy")
    table = b.table("kernel_groups")
    assert table.rows == (
        ("work_matmul", 2, 40_000, 40 / 60, 30_000, 10_000),
        ("work_copy", 1, 20_000, 20 / 60, 0, 20_000),
    )
    sums = {"count": 3, "device_time_ns": 60_000, "tensor_core_ns": 30_000, "no_op_ns": 30_000}
    assert table.totals == {"work": "all_work", "share": 1.0, **sums}


def test_a_sequence_is_all_short_below_ten_microseconds_on_average() -> None:
    for length, short in ((9.999, True), (10, False)):
        b = TraceBuilder()
        b.step(1, 0, 200)
        for at, name in enumerate(("a", "b", "x", "a", "b")):
            b.device(20 * at, length, name=name)
        (row,) = b.rows("kernel_sequences")
        assert (row.sequence, row.count, row.kernels_each, row.all_short) == ("a → b", 2, 2, short)
        assert (row.share, row.between_ns) == (pytest.approx(4 * length / 200), round(2000 * (20 - length)))


def test_sequences_have_two_to_the_longest_number_of_kernels() -> None:
    b = TraceBuilder()
    b.step(1, 0, 1_000)
    at = 0
    for _ in range(2):
        for kernel in range(LONGEST + 1):
            b.device(at, 1, name=f"k{kernel:02}")
            at += 2
        b.device(at, 1, name="Memset (Device)", cat="gpu_memset")
        at += 2
    rows = b.rows("kernel_sequences")
    assert {row.kernels_each for row in rows} == {LONGEST}
    assert [row.fewer_launches for row in rows] == [2 * (LONGEST - 1)] * 2
