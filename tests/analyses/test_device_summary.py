"""Ratios of the device and what ran at the same time on hand-made traces."""

import pytest

from tests.builder import TraceBuilder
from traceanalyze.model.table import NotMeasured


def summary(b):
    (row,) = b.rows("device_summary")
    return row


def test_utilisation_is_time_with_any_kernel():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 30, name="void at::native::a")
    b.device(20, 30, name="ncclDevKernel_AllReduce", stream=8)
    b.device(60, 20, name="Memcpy DtoH (Device -> Pinned)", cat="gpu_memcpy")
    assert summary(b).gpu_utilisation == pytest.approx(0.4)


def test_multiprocessors_in_use_are_weighted_and_capped_at_one_block():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 20, **{"blocks per SM": 0.25, "est. achieved occupancy %": 10})
    b.device(40, 10, **{"blocks per SM": 7, "est. achieved occupancy %": 40})
    found = summary(b)
    assert found.sm_efficiency == pytest.approx((20 * 0.25 + 10) / 100)
    assert found.occupancy == pytest.approx((20 * 0.1 + 10 * 0.4) / 30)


def test_ratios_without_their_arguments_are_not_measured():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 20, name="mystery")
    found = summary(b)
    assert found.sm_efficiency == found.occupancy == NotMeasured("no_occupancy")
    assert found.tensor_core_share == NotMeasured("tensor_core_unknown")
    assert found.tensor_core_unknown == 1.0


def test_tensor_core_share_is_of_compute_and_keeps_the_unknown_apart():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.device(10, 30, name="nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NNT")
    b.device(40, 50, name="ampere_sgemm_128x64_nn")
    b.device(90, 20, name="mystery")
    b.device(120, 60, name="ncclDevKernel_AllReduce")
    found = summary(b)
    assert (found.tensor_core_share, found.tensor_core_unknown) == (pytest.approx(0.3), pytest.approx(0.2))


def test_only_copies_leave_nothing_to_judge():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 20, name="Memset (Device)", cat="gpu_memset")
    found = summary(b)
    assert (found.gpu_utilisation, found.tensor_core_share) == (0, NotMeasured("no_kernels"))


def test_short_kernels_are_those_below_ten_microseconds():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(0, 9.999)
    b.device(20, 10)
    b.device(40, 2)
    found = summary(b)
    assert (found.short_kernels, found.kernels, found.short_kernels_ns) == (2, 3, 11_999)
    assert sum(b.table("kernel_durations").column("device_time_ns")) == 21_999


def test_combinations_of_work_are_disjoint_and_sum_to_the_steps():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 40, name="void at::native::a")
    b.device(30, 40, name="ncclDevKernel_AllReduce", stream=8)
    b.device(40, 50, name="Memcpy DtoH (Device -> Pinned)", cat="gpu_memcpy", stream=9)
    found = {row.running.removeprefix("running_"): row.wall_ns for row in b.rows("device_overlap")}
    assert found == {
        "compute": 20_000,  # 10 to 30
        "compute_and_communication": 10_000,  # 30 to 40
        "compute_and_communication_and_memory_ops": 10_000,  # 40 to 50
        "communication_and_memory_ops": 20_000,  # 50 to 70
        "memory_ops": 20_000,  # 70 to 90
        "nothing": 20_000,
        "communication": 0,
        "compute_and_memory_ops": 0,
    }
