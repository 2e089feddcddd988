"""Whole tables of the kernels of small programs, worked out on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.ascend_builder import KERNEL_HEADER, AscendBuilder, analyze
from tests.ascend_db_builder import START, Builder
from tests.builder import TraceBuilder
from traceanalyze.analyses.analyze import analyze_trace
from traceanalyze.analyses.kernels.sequences import LONGEST
from traceanalyze.model.table import NotMeasured

if TYPE_CHECKING:
    from pathlib import Path

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


UNITS = ("aic_scalar_time(us)", "aic_mte1_time(us)", "aic_mte2_time(us)", "aic_fixpipe_time(us)")
UNITS += ("aiv_scalar_time(us)", "aiv_mte2_time(us)", "aiv_mte3_time(us)")


def counted(op_type: str, core: str, dur: int, state: str = "dynamic", **units: float) -> tuple[str, str, int, Any]:
    """A kernel and the times of some units of its cores, µs; the others did not work."""
    given = {f"{unit}_time(us)": str(time) for unit, time in units.items()}
    nothing = dict.fromkeys((*UNITS, "aic_mac_time(us)", "aiv_vec_time(us)"), "0.0")
    return op_type, core, dur, nothing | given | {"OP State": state}


def written(folder: Path, header: str, *kernels: tuple[str, str, int, Any]) -> Path:
    b = AscendBuilder()
    b.step(1, 0, 2000)
    for at, (op_type, core, dur, row) in enumerate(kernels):
        b.kernel(f"{op_type}{at}", 100 + 200 * at, dur, op_type=op_type, core=core, launch=50, **row)
    return b.write(folder / "a_ascend_pt", header=header)


def test_the_unit_that_worked_longest_is_told_of_each_type_of_kernel(tmp_path: Path) -> None:
    """Two products of 100 and 300 µs read 380 of the 400; a mixed kernel's vector cores work longer than its cubes."""
    products = (
        counted("MatMulV2", "AI_CORE", 100, aic_mac=40, aic_scalar=10, aic_mte1=20, aic_mte2=80, aic_fixpipe=4),
        counted("MatMulV2", "AI_CORE", 300, "static", aic_mac=60, aic_scalar=30, aic_mte2=300),
    )
    flash = counted(
        "FlashAttentionScore", "MIX_AIC", 50, aic_mac=20, aic_mte2=10, aiv_vec=30, aiv_mte2=15, aiv_scalar=35
    )
    add = counted("Add", "AI_VECTOR_CORE", 10, aiv_vec=1, aiv_mte2=2, aiv_mte3=8)
    found = analyze(
        written(tmp_path, ",".join((KERNEL_HEADER, *UNITS)), *products, flash, add, counted("X", "AI_CPU", 1))
    )
    shown = {row.op_type: row for row in found.records("kernel_types")}
    product = shown["MatMulV2"]
    assert (product.busiest, product.busiest_share) == ("unit_mte2", 0.95)
    assert (product.cube_share, product.scalar_share, product.mte1_share, product.mte2_share) == (0.25, 0.1, 0.05, 0.95)
    assert (product.fixpipe_share, product.mte3_share, product.vector_share) == (0.01, 0, 0)
    assert (product.dynamic, product.count) == (1, 2)
    mixed = shown["FlashAttentionScore"]
    assert (mixed.busiest, mixed.busiest_share, mixed.mte2_share, mixed.vector_share) == ("unit_scalar", 0.7, 0.3, 0.6)
    assert (shown["Add"].busiest, shown["Add"].busiest_share) == ("unit_mte3", 0.8)
    assert shown["X"].busiest == shown["X"].busiest_share == NotMeasured("no_core_counters")


def test_a_unit_works_in_the_duration_that_was_recorded_though_it_cannot_be(tmp_path: Path) -> None:
    """A kernel of 400 µs is cut where the next of its stream begins, after 200; its counters are of all of it."""
    found = written(
        tmp_path,
        ",".join((KERNEL_HEADER, *UNITS)),
        counted("MatMulV2", "AI_CORE", 400, aic_mte2=300),
        counted("Add", "AI_VECTOR_CORE", 10, aiv_vec=1),
    )
    shown = {row.op_type: row for row in analyze(found).records("kernel_types")}
    assert (shown["MatMulV2"].device_time_ns, shown["MatMulV2"].busiest_share) == (200_000, 0.75)


def test_without_all_units_the_busiest_is_not_known(tmp_path: Path) -> None:
    """Other choices of counters have the time of the cube only; old versions have no state."""
    header = KERNEL_HEADER.replace("OP State,", "")
    (row,) = analyze(written(tmp_path, header, counted("MatMulV2", "AI_CORE", 100, aic_mac=40))).records("kernel_types")
    assert row.cube_share == 0.4
    assert row.busiest == row.busiest_share == row.mte2_share == NotMeasured("no_core_counters")
    assert row.dynamic == NotMeasured("vendor_does_not_say")


def test_a_database_tells_the_units_as_the_table_does(tmp_path: Path) -> None:
    build = Builder()
    build.columns["COMPUTE_TASK_INFO"] += ", opState INTEGER"
    mixed = build.kernel("Flash", 0, 50_000, 955, core="MIX_AIC", op_type="FlashAttentionScore")
    build.rows["COMPUTE_TASK_INFO"][0]["opState"] = build.text("dynamic")
    times = {"aic_mac": 20_000, "aic_mte2": 10_000, "aiv_mte2": 15_000, "aic_scalar": 5_000, "aiv_scalar": 35_000}
    for unit, time in times.items():
        build.counter(mixed, f"{unit}_time", time)
    (row,) = analyze_trace(build.read(tmp_path)).records("kernel_types")
    assert (row.busiest, row.busiest_share, row.cube_share, row.mte2_share) == ("unit_scalar", 0.7, 0.4, 0.3)
    assert (row.dynamic, row.mte3_share) == (1, NotMeasured("no_core_counters"))


def test_a_clock_that_falls_is_told(tmp_path: Path) -> None:
    """16 blocks of 100 µs: 2,880,000 cycles are 1800 MHz, 1,600,000 are 1000; by time 3 of 4 at the lower one."""
    cycles = {"fast": "2880000", "slow": "1600000"}
    kernels = [
        ("MatMulV2", "AI_CORE", dur, {"aicore_time(us)": "100", "aic_total_cycles": cycles[kind]})
        for kind, dur in (("fast", 100), ("slow", 150), ("slow", 150))
    ]
    table = analyze(written(tmp_path / "throttled", KERNEL_HEADER, *kernels)).tables["kernel_types"]
    (row,) = table.records()
    assert row.core_clock == 1200
    (note,) = table.notes
    assert [value for *_, value in note.values] == [0.75, 1800]
    steady = analyze(written(tmp_path / "steady", KERNEL_HEADER, *kernels[1:])).tables["kernel_types"]
    assert not steady.notes
    assert [row.core_clock for row in steady.records()] == [1000]


def test_samples_of_the_clock_hold_until_the_next(tmp_path: Path) -> None:
    build = Builder()
    build.columns["AICORE_FREQ"] = "deviceId NUMERIC, timestampNs NUMERIC, freq INTEGER"
    for number in range(4):
        build.kernel("Mul1", 1000 * number, 100, 955 + number)
    for device, at, clock in ((4, 2500, 900), (4, 1000, 1800), (3, 0, 5)):
        build.row("AICORE_FREQ", deviceId=device, timestampNs=START + at, freq=clock)
    table = analyze_trace(build.read(tmp_path)).tables["kernel_types"]
    assert [row.core_clock for row in table.records()] == [1500]
    assert [note.values[0][2] for note in table.notes] == [pytest.approx(1 / 3)]
