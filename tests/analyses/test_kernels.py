"""Kernels by name, kind of work, launch configuration and duration on hand-made traces."""

import re

import pytest

from tests.builder import TraceBuilder
from traceanalyze.analyses.options import Options
from traceanalyze.model.classifier import Classifier, names_of
from traceanalyze.model.classify import ClassifyOptions
from traceanalyze.model.table import NotMeasured

GEMM = "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_tn"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"


def kernels(b, **options):
    return b.rows("kernels", Options(**options))


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
    first, second = kernels(two_kernels())
    assert (first.name, first.work, first.tensor_core) == (GEMM, "work_matmul", "tensor_core_yes")
    assert (first.count, first.device_time_ns, first.min_ns, first.max_ns) == (2, 40_000, 10_000, 30_000)
    assert first.mean_event_ns == 20_000
    assert (first.launched_by, first.launching_ops, first.no_op_ns) == ("aten::mm", 2, 0)
    assert (second.name, second.launched_by, second.launching_ops) == (ADD, "aten::add", 1)
    assert (second.no_op_ns, second.tensor_core) == (15_000, "tensor_core_no")


def test_occupancy_is_weighted_by_time():
    first, second = kernels(two_kernels())
    assert first.occupancy == pytest.approx((30 * 0.2 + 10 * 0.6) / 40)
    assert first.blocks_per_sm == pytest.approx((30 * 2 + 10 * 0.5) / 40)
    assert second.occupancy == NotMeasured("no_occupancy")


def test_kinds_of_work_sum_to_all_device_time():
    groups = {row.work: row for row in two_kernels().rows("kernel_groups")}
    matmul, elementwise = groups["work_matmul"], groups["work_elementwise"]
    assert matmul.device_time_ns == 40_000
    assert (matmul.tensor_core_ns, elementwise.tensor_core_ns) == (40_000, 0)
    assert (elementwise.device_time_ns, elementwise.no_op_ns) == (20_000, 15_000)
    assert sum(row.device_time_ns for row in groups.values()) == 60_000


def test_time_of_kernels_that_nobody_knows_is_not_off_matrix_units():
    b = two_kernels()
    b.device(200, 5, name="mystery")
    table = b.table("kernel_groups")
    assert {row.work: row for row in table.records()}["work_other"].tensor_core_ns == NotMeasured("tensor_core_unknown")
    assert table.totals["tensor_core_ns"] == 40_000
    alone = TraceBuilder()
    alone.device(200, 5, name="mystery")
    assert alone.table("kernel_groups").totals["tensor_core_ns"] == NotMeasured("tensor_core_unknown")


def test_a_name_that_does_not_tell_is_of_the_kind_of_its_operators_and_one_row():
    b = TraceBuilder()
    b.op("aten::cudnn_convolution", 0, 10)
    b.launch(1, 1, 10, 30, name="fft2d_r2c_32x32")
    b.launch(50, 1, 60, 20, name="fft2d_r2c_32x32")
    assert [(row.work, row.device_time_ns) for row in kernels(b)] == [("work_convolution", 50_000)]


def test_communication_copies_and_fills_are_kinds_of_their_own():
    b = TraceBuilder()
    b.step(1, 0, 300)
    b.device(10, 30, name="ncclDevKernel_AllGather_RING_LL")
    b.device(50, 20, name="Memcpy HtoD (Pageable -> Device)", cat="gpu_memcpy")
    b.device(80, 10, name="Memset (Device)", cat="gpu_memset")
    found = [(row.work, row.device_time_ns) for row in b.rows("kernel_groups")]
    assert found == [("work_communication", 30_000), ("work_copy", 20_000), ("work_fill", 10_000)]


def test_only_time_inside_the_analysed_steps_counts():
    b = TraceBuilder()
    b.step(1, 100, 100)
    b.step(2, 200, 100)
    b.device(80, 60, name="early", stream=8)  # 40 of 60 lie in step 1
    b.launch(110, 1, 130, 20, name="first")
    b.launch(120, 1, 160, 0, name="instant")
    b.launch(210, 1, 230, 30, name="second")
    b.launch(220, 1, 260, 0, name="instant")
    assert {k.name: k.device_time_ns for k in kernels(b)} == {
        "early": 40_000,
        "first": 20_000,
        "second": 30_000,
        "instant": 0,
    }
    chosen = kernels(b, steps=lambda steps: steps.start == 200_000)
    assert {k.name: k.device_time_ns for k in chosen} == {"second": 30_000, "instant": 0}


def test_launch_configurations_are_told_apart_by_grid_and_block():
    b = TraceBuilder()
    b.step(1, 0, 300)
    shape = {"block": [128, 1, 1], "registers per thread": 32, "shared memory": 1024}
    b.device(10, 10, name="k", grid=[50, 2, 1], **shape)
    b.device(20, 20, name="k", grid=[50, 2, 1], **shape)
    b.device(40, 25, name="k", grid=[60, 2, 1], **shape)
    b.device(70, 5, name="no grid")
    first, second = b.rows("kernel_configurations")
    assert (first.name, first.launched_by, first.grid, first.block) == ("k", None, "50 × 2 × 1", "128 × 1 × 1")
    assert (first.registers, first.shared_memory_bytes, first.device_time_ns) == (32, 1024, 30_000)
    assert (second.grid, second.device_time_ns) == ("60 × 2 × 1", 25_000)


def test_without_grids_there_are_no_launch_configurations():
    assert two_kernels().table("kernel_configurations").absent == NotMeasured("no_launch_configuration")


def test_durations_fall_into_classes_by_whole_length():
    b = TraceBuilder()
    b.step(1, 0, 300)
    for at, dur in ((10, 0.5), (20, 1), (30, 9.999), (50, 10), (70, 150)):
        b.device(at, dur)
    b.device(230, 3, cat="gpu_memset", name="Memset")
    found = {(row.from_ns, row.below_ns): row.count for row in b.rows("kernel_durations") if row.count}
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
    assert not {"kernels", "kernel_groups", "copies", "collectives", "utilisation"} & set(b.analyze().tables)


@pytest.mark.parametrize(
    ("name", "stated", "option", "work"),
    [
        ("acme_exchange", "attention", None, "work_attention"),
        ("acme_exchange", "communication", None, "work_communication"),
        # The command line has the last word on what communicates.
        ("acme_exchange", "communication", "not_comm", "work_other"),
        ("acme_exchange", "attention", "comm", "work_communication"),
    ],
)
def test_what_a_plugin_says_of_a_kernel_holds_unless_the_command_line_says_other(name, stated, option, work):
    b = TraceBuilder()
    b.launch(0, 5, 10, 10, name=name)
    rules = {} if option is None else {option: re.compile("acme")}
    known = (names_of("acme", Classifier(kernels={"^acme": stated})),)
    (row,) = kernels(b, classify=ClassifyOptions(plugins=known, **rules))
    assert row.work == work
