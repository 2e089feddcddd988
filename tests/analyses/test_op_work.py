"""FLOP/s, bytes/s and the roofline on hand-made traces."""

import pytest

from tests.builder import TraceBuilder
from traceanalyze.model.table import NotMeasured

H100 = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]}


def ops(b):
    return b.rows("op_rates")


def mm(b, at, *, dur=10, m=1000, kernel="kernel", dtype="c10::BFloat16"):
    args = {"Input Dims": [[m, 2000], [2000, 500]], "Input type": [dtype, dtype]}
    b.op("aten::mm", at, 10, **args)
    b.launch(at + 1, 1, at + 20, dur, name=kernel)


def test_rates_and_roofline_of_a_matrix_product():
    b = TraceBuilder()
    b.header |= H100
    b.step(1, 0, 300)
    mm(b, 0, dur=10)
    mm(b, 50, dur=30)
    (row,) = ops(b)
    flop, size = 2 * 2 * 1000 * 2000 * 500, 2 * 2 * (1000 * 2000 + 2000 * 500 + 1000 * 500)
    assert (row.op, row.shapes, row.dtype, row.work) == ("aten::mm", "1000×2000, 2000×500", "bf16", "work_matmul")
    assert (row.calls, row.device_time_ns, row.flop, row.bytes) == (2, 40_000, flop, size)
    assert row.tflops == pytest.approx(flop / 40e-6 / 1e12)
    assert row.bandwidth == pytest.approx(size / 40e-6 / 1e9)
    assert row.intensity == pytest.approx(flop / size)
    assert row.bound == "bound_memory"  # 286 FLOP per byte, the H100 needs 295
    assert row.roofline_share == pytest.approx(size / 3352e9 / 40e-6)


def test_float_on_matrix_units_is_compared_with_tf32():
    b = TraceBuilder()
    b.header |= H100
    b.step(1, 0, 300)
    mm(b, 0, m=4000, dur=100, dtype="float", kernel="sm80_xmma_gemm_f32f32_tf32f32_f32_nn")
    (row,) = ops(b)
    assert row.dtype == "tf32"
    assert row.bound == "bound_compute"
    assert row.roofline_share == pytest.approx(row.tflops / 494.7)


def test_shapes_are_told_apart_and_inner_operators_own_their_kernels():
    b = TraceBuilder()
    b.step(1, 0, 300)
    mm(b, 0, m=1000, dur=10)
    mm(b, 50, m=10, dur=5)
    b.op("aten::linear", 100, 50, **{"Input Dims": [[10, 8], [4, 8]], "Input type": ["float", "float"]})
    b.op("aten::addmm", 110, 20, **{"Input Dims": [[4], [10, 8], [8, 4]], "Input type": ["float"] * 3})
    b.launch(115, 1, 130, 3)
    assert [(row.op, row.shapes, row.device_time_ns) for row in ops(b)] == [
        ("aten::mm", "1000×2000, 2000×500", 10_000),
        ("aten::mm", "10×2000, 2000×500", 5_000),
        ("aten::addmm", "4, 10×8, 8×4", 3_000),
    ]


def test_without_a_known_device_there_are_rates_but_no_roofline():
    b = TraceBuilder()
    b.step(1, 0, 300)
    mm(b, 0)
    (row,) = ops(b)
    assert row.tflops == pytest.approx(200.0)
    assert row.bound == row.roofline_share == NotMeasured("unknown_device")


def test_a_type_without_a_peak_has_no_roofline():
    b = TraceBuilder()
    b.header["deviceProperties"] = [{"id": 0, "name": "Tesla V100-SXM2-16GB"}]
    b.step(1, 0, 300)
    mm(b, 0)  # a V100 has no bfloat16
    (row,) = ops(b)
    assert row.roofline_share == NotMeasured("unknown_peak")


def test_elementwise_operators_have_bytes_only():
    b = TraceBuilder()
    b.header |= H100
    b.step(1, 0, 300)
    b.op("aten::add", 0, 10, **{"Input Dims": [[1000, 100], [100], []], "Input type": ["float", "float", "Scalar"]})
    b.launch(1, 1, 20, 10)
    (row,) = ops(b)
    assert row.bytes == 4 * (100_000 + 100 + 100_000)
    assert (row.bound, row.flop, row.tflops) == ("bound_memory", NotMeasured("moves_only"), NotMeasured("moves_only"))


def test_a_convolution_without_its_stride_is_not_measured():
    b = TraceBuilder()
    b.header |= H100
    b.step(1, 0, 300)
    shapes = {"Input Dims": [[8, 3, 32, 32], [16, 3, 3, 3]], "Input type": ["float", "float"]}
    b.op("aten::cudnn_convolution", 0, 10, **shapes)
    b.launch(1, 1, 20, 10)
    (row,) = ops(b)
    assert row.flop == row.bytes == row.roofline_share == NotMeasured("no_op_arguments")


def test_without_shapes_nothing_is_measured():
    b = TraceBuilder()
    b.step(1, 0, 300)
    b.op("aten::mm", 0, 10)
    b.launch(1, 1, 20, 10)
    assert b.table("op_rates").absent == NotMeasured("no_shapes")


def test_a_copy_from_the_host_is_no_rate_of_the_device():
    b = TraceBuilder()
    b.header |= H100
    b.step(1, 0, 300)
    b.op("aten::copy_", 0, 10, **{"Input Dims": [[1000], [1000], []], "Input type": ["float", "float", "Scalar"]})
    b.copy(1, 1, 20, 10)
    mm(b, 50)
    assert [row.op for row in ops(b)] == ["aten::mm"]


@pytest.mark.parametrize(("rows", "share"), [(4 * 1024 * 1024, None), (6 * 1024 * 1024, NotMeasured("above_peak"))])
def test_more_than_the_peak_is_believed_of_what_fits_into_the_cache(rows, share):
    """The H100 moves 3.352 MB in a microsecond, and caches 50 MiB: 2 × 20 MiB fit, 2 × 28 MiB do not."""
    b = TraceBuilder()
    b.header |= H100
    b.step(1, 0, 100)
    b.op("aten::relu", 0, 10, **{"Input Dims": [[rows + 1024 * 1024]], "Input type": ["float"]})
    b.launch(1, 1, 20, 10)
    (row,) = ops(b)
    size = 8 * (rows + 1024 * 1024)
    assert row.bytes == size
    assert row.roofline_share == (share or pytest.approx(size / 3.352e6 / 10))
    assert row.bandwidth > 3352


def test_a_repeated_tensor_is_told_apart_by_its_strides_only_where_they_are_0():
    b = TraceBuilder()
    b.step(1, 0, 400)
    for at, strides in ((0, [[8, 1], [0, 1]]), (100, [[8, 1], [8, 1]]), (200, [[1, 4], [8, 1]])):
        args = {"Input Dims": [[4, 8], [4, 8]], "Input Strides": strides, "Input type": ["float", "float"]}
        b.op("aten::mul", at, 10, **args)
        b.launch(at + 1, 1, at + 20, 10)
    assert sorted((row.shapes, row.calls, row.bytes) for row in ops(b)) == [
        ("4×8, 1→4×8", 1, 4 * (32 + 8 + 32)),
        ("4×8, 4×8", 2, 2 * 4 * 96),
    ]


def test_rows_that_cost_different_amounts_show_different_shapes():
    """A number where another call has a tensor, and a type that differs from the first one."""
    b = TraceBuilder()
    b.step(1, 0, 400)
    for at, dims, dtypes in (
        (0, [[8], [8]], ["float", "float"]),
        (100, [[8], [], [8]], ["float", "Scalar", "float"]),
        (200, [[8], [8], []], ["float", "c10::Half", "Scalar"]),
    ):
        b.op("aten::mul", at, 10, **{"Input Dims": dims, "Input type": dtypes})
        b.launch(at + 1, 1, at + 20, 10)
    assert sorted(row.shapes for row in ops(b)) == ["8, 8", "8, 8 fp16", "8, [], 8"]
