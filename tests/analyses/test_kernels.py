"""Kernels by name, kind of work, launch configuration and duration on hand-made traces."""

import pytest

from tests.builder import TraceBuilder
from traceanalyze.analyses.options import Options
from traceanalyze.analyses.results_device import Spread
from traceanalyze.model.kernel_classes import KernelGroup, TensorCore
from traceanalyze.model.table import NotMeasured

GEMM = "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_tn"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"


def work(b, **options):
    return b.analyze(Options(**options)).device_work


def two_kernels():
    b = TraceBuilder()
    b.step(1, 0, 300)
    b.op("aten::mm", 0, 10)
    b.launch(1, 1, 10, 30, name=GEMM, **{"est. achieved occupancy %": 20, "blocks per SM": 2})
    b.op("aten::bmm", 20, 10)
    b.launch(21, 1, 40, 10, name=GEMM, **{"est. achieved occupancy %": 60, "blocks per SM": 0.5})
    b.op("aten::add", 40, 10)
    b.launch(41, 1, 60, 5, name=ADD)
    b.device(70, 15, name=ADD)
    return b


def test_a_kernel_has_its_times_its_first_operator_and_how_many_there_are():
    first, second = work(two_kernels()).kernels
    assert (first.name, first.group, first.tensor_core) == (GEMM, KernelGroup.MATMUL, TensorCore.YES)
    assert first.time == Spread(count=2, total=40_000, shortest=10_000, longest=30_000)
    assert first.time.mean == 20_000
    assert (first.op, first.ops, first.no_op) == ("aten::mm", 2, 0)
    assert (second.name, second.op, second.ops, second.no_op) == (ADD, "aten::add", 1, 15_000)
    assert second.tensor_core == TensorCore.NO


def test_occupancy_is_weighted_by_time():
    first, second = work(two_kernels()).kernels
    assert first.occupancy == pytest.approx((30 * 0.2 + 10 * 0.6) / 40)
    assert first.blocks_per_sm == pytest.approx((30 * 2 + 10 * 0.5) / 40)
    assert second.occupancy == NotMeasured("no_occupancy")


def test_kinds_of_work_sum_to_all_device_time():
    groups = {row.group: row for row in work(two_kernels()).groups}
    assert groups[KernelGroup.MATMUL].total == 40_000
    assert (groups[KernelGroup.MATMUL].tensor_core, groups[KernelGroup.ELEMENTWISE].tensor_core) == (40_000, 0)
    assert (groups[KernelGroup.ELEMENTWISE].total, groups[KernelGroup.ELEMENTWISE].no_op) == (20_000, 15_000)
    assert sum(row.total for row in groups.values()) == 60_000


def test_a_name_that_does_not_tell_is_grouped_by_its_operator():
    b = TraceBuilder()
    b.step(1, 0, 300)
    b.op("aten::cudnn_convolution", 0, 10)
    b.launch(1, 1, 10, 30, name="fft2d_r2c_32x32")
    b.launch(50, 1, 60, 20, name="fft2d_r2c_32x32")
    rows = {row.group: row.time.total for row in work(b).kernels}
    assert rows == {KernelGroup.CONVOLUTION: 30_000, KernelGroup.OTHER: 20_000}


def test_communication_copies_and_fills_are_kinds_of_their_own():
    b = TraceBuilder()
    b.step(1, 0, 300)
    b.device(10, 30, name="ncclDevKernel_AllGather_RING_LL")
    b.device(50, 20, name="Memcpy HtoD (Pageable -> Device)", cat="gpu_memcpy")
    b.device(80, 10, name="Memset (Device)", cat="gpu_memset")
    found = [(row.group, row.total) for row in work(b).groups]
    assert found == [
        (KernelGroup.COMMUNICATION, 30_000),
        (KernelGroup.COPY, 20_000),
        (KernelGroup.FILL, 10_000),
    ]


def test_only_time_inside_the_analysed_steps_counts():
    b = TraceBuilder()
    b.step(1, 100, 100)
    b.step(2, 200, 100)
    b.device(80, 60, name="early", stream=8)  # 40 of 60 lie in step 1
    b.launch(110, 1, 130, 20, name="first")
    b.launch(210, 1, 230, 30, name="second")
    b.launch(220, 1, 260, 0, name="instant")
    assert {k.name: k.time.total for k in work(b).kernels} == {
        "early": 40_000,
        "first": 20_000,
        "second": 30_000,
        "instant": 0,
    }
    chosen = work(b, steps=lambda steps: steps.start == 200_000)
    assert {k.name: k.time.total for k in chosen.kernels} == {"second": 30_000, "instant": 0}


def test_launch_configurations_are_told_apart_by_grid_and_block():
    b = TraceBuilder()
    b.step(1, 0, 300)
    shape = {"block": [128, 1, 1], "registers per thread": 32, "shared memory": 1024}
    b.device(10, 10, name="k", grid=[50, 2, 1], **shape)
    b.device(20, 20, name="k", grid=[50, 2, 1], **shape)
    b.device(40, 25, name="k", grid=[60, 2, 1], **shape)
    b.device(70, 5, name="no grid")
    first, second = work(b).configurations
    assert (first.name, first.op, first.grid, first.block) == ("k", None, "50 × 2 × 1", "128 × 1 × 1")
    assert (first.registers, first.shared_memory, first.time.total) == (32, 1024, 30_000)
    assert (second.grid, second.time.total) == ("60 × 2 × 1", 25_000)


def test_without_grids_there_are_no_launch_configurations():
    assert work(two_kernels()).configurations == NotMeasured("no_launch_configuration")


def test_durations_fall_into_classes_by_whole_length():
    b = TraceBuilder()
    b.step(1, 0, 300)
    for at, dur in ((10, 0.5), (20, 1), (30, 9.999), (50, 10), (70, 150)):
        b.device(at, dur)
    b.device(230, 3, cat="gpu_memset", name="Memset")
    found = {(row.low, row.high): row.count for row in work(b).durations if row.count}
    assert found == {
        (0, 1_000): 1,
        (1_000, 2_000): 1,
        (5_000, 10_000): 1,
        (10_000, 20_000): 1,
        (100_000, 1_000_000): 1,
    }


def test_without_device_events_there_is_no_device_work():
    b = TraceBuilder()
    b.op("aten::mm", 0, 10)
    assert b.analyze().device_work == NotMeasured("no_device_events")
