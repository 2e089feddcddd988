"""Kernels of two sides by name and by family; all device time is there once."""

from __future__ import annotations

import pytest

from tests.comparison.calls import Program
from tests.comparison.make import reason_rows, side_from
from traceanalyze.comparison.kernels import kernel_pairs, kernel_type_pairs
from traceanalyze.comparison.side import CompareOptions
from traceanalyze.model.table import NotMeasured


def program(**kernels):
    made = Program().step()
    for name, lengths in kernels.items():
        for length in lengths:
            made.op("aten::x", length, kernel=name)
    return made


def told(rows, named="kernel"):
    return {
        row.shared[named]: tuple(None if s is None else (s["calls"], s["total_ns"] / 1000) for s in row[1:])
        for row in rows
    }


def by_name(base, candidate, **options):
    return told(kernel_pairs(base.context, candidate.context, CompareOptions(**options)))


def by_type(base, candidate):
    return told(kernel_type_pairs(base.context, candidate.context, CompareOptions()), "kernel_type")


BASE = program(**{"volta_sgemm_128x64_nn": [10, 20], "triton_poi_fused_add_3": [5], "void scan<int>(int)": [4]})
CANDIDATE = program(**{"Cijk_Ailk_Bljk": [12], "triton_poi_fused_add_7": [6], "void scan<float>(int)": [3]})


def test_names_meet_where_only_they_can_be_meant():
    assert by_name(BASE, CANDIDATE) == {
        "volta_sgemm_128x64_nn": ((2, 30), None),
        "Cijk_Ailk_Bljk": (None, (1, 12)),
        "triton_poi_fused_add": ((1, 5), (1, 6)),
        "scan": ((1, 4), (1, 3)),
    }


def test_kernels_of_different_vendors_meet_by_family():
    found = by_type(BASE, CANDIDATE)
    assert found["work_matmul"] == ((2, 30), (1, 12))
    assert found["work_compiled"] == ((1, 5), (1, 6))


@pytest.mark.parametrize("pairs", [kernel_pairs, kernel_type_pairs])
def test_times_sum_to_all_device_time(pairs):
    rows = pairs(BASE.context, CANDIDATE.context, CompareOptions())
    assert sum(row.base["total_ns"] for row in rows if row.base) == side_from(BASE.builder).info.device_time == 39_000
    assert sum(row.candidate["total_ns"] for row in rows if row.candidate) == 21_000


def test_the_map_of_the_user_holds_for_kernels():
    mine = {"volta_sgemm_128x64_nn": "gemm", "Cijk_Ailk_Bljk": "gemm"}
    assert by_name(BASE, CANDIDATE, op_name_map=mine)["gemm"] == ((2, 30), (1, 12))


def test_longest_and_shortest_calls_and_the_name_of_each_side():
    (row,) = (
        row
        for row in kernel_type_pairs(BASE.context, CANDIDATE.context, CompareOptions())
        if row.shared["kernel_type"] == "work_matmul"
    )
    assert [row.base[key] for key in ("max_ns", "min_ns", "kernel")] == [20_000, 10_000, "volta_sgemm_128x64_nn"]
    assert row.shared["work"] == "work_matmul"


def test_without_device_events_nothing_is_measured():
    made = Program().step().op("aten::mm")
    assert kernel_pairs(made.context, BASE.context, CompareOptions()) == NotMeasured("no_device_events")


def region(*kernels):
    """Steps of compiled code that launches these kernels (name, µs), all of it inside one region."""
    made = Program().step()
    begin = made.builder
    at = 1.0
    begin.op("Torch-Compiled Region", at, 200)
    for place, (name, length) in enumerate(kernels):
        begin.launch(at + 1 + place, 0.5, 5000 + 100 * place, length, name=name)
    return made


OLD = region(("a_kernel", 9), ("ampere_sgemm_32x32_tn", 20), ("b_kernel", 9), ("triton_poi_fused_add_0", 30))
NEW = region(("a_kernel", 9), ("ampere_sgemm_64x64_tn", 26), ("b_kernel", 9), ("triton_red_fused_mul_sum_4", 5))


def test_a_kernel_that_took_anothers_place_is_the_same_under_a_new_name():
    found = {row.shared["kernel"]: row for row in kernel_pairs(OLD.context, NEW.context, CompareOptions())}
    tile = found["ampere_sgemm_32x32_tn"]
    assert (tile.base["kernel"], tile.candidate["kernel"]) == ("ampere_sgemm_32x32_tn", "ampere_sgemm_64x64_tn")
    assert tile.shared["match"] == "renamed"
    second, third = (region(("a_kernel", 9), (name, 20)) for name in ("flash_fwd_kernel", "flash::FlashAttnFwdSm90<2>"))
    (attention,) = kernel_pairs(second.context, third.context, CompareOptions())[1:]
    assert (attention.shared["match"], attention.candidate["kernel"]) == ("renamed", "flash::FlashAttnFwdSm90<2>")
    # Whether generated code does the same nobody knows without its launch configuration.
    assert {"triton_poi_fused_add_0", "triton_red_fused_mul_sum_4"} <= found.keys()
    # Between other neighbours, or of another family, it is other work.
    moved = region(("a_kernel", 9), ("b_kernel", 9), ("ampere_sgemm_64x64_tn", 26), ("triton_poi_fused_add_0", 30))
    assert "ampere_sgemm_64x64_tn" in {
        row.shared["kernel"] for row in kernel_pairs(OLD.context, moved.context, CompareOptions())
    }


def test_a_region_with_most_of_the_compute_is_opened_into_kernels():
    found = reason_rows(side_from(OLD.builder), side_from(NEW.builder))
    told_of = {row.name: (row.base / 1000, row.candidate / 1000) for row in found if row.part == "compute"}
    assert told_of["ampere_sgemm_32x32_tn"] == (20, 26)
    assert "Torch-Compiled Region" not in told_of
    # An operator of a library says more than its kernels.
    one = side_from(Program().step().op("aten::mm", 20, kernel="ampere_sgemm_32x32_tn").builder)
    assert {row.what for row in reason_rows(one, one) if row.part == "compute"} == {"operator"}
