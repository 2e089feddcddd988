"""FLOP/s, bytes/s and the roofline on hand-made traces."""

import pytest

from tests.ascend_builder import KERNEL_HEADER, AscendBuilder, analyze
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


def test_attention_of_its_own_package_has_a_rate_and_operators_of_others_none():
    """5 sequences of 100 tokens: 4 · 5 · 4 heads · 100² · 64 FLOP in 10 µs."""
    b = TraceBuilder()
    b.step(1, 0, 300)
    token = {"Input Dims": [[500, 4, 64]] * 3 + [[6], [6], *[[]] * 6], "Input type": ["c10::BFloat16"] * 3 + [""] * 8}
    plain = ["", "", "", "", "", "100", "100", "0.", "0.125", "False", "-1"]
    for at, name in ((0, "flash_attn::_flash_attn_varlen_forward"), (50, "somebody::_flash_attn_varlen_forward")):
        b.op(name, at, 10, **token, **{"Concrete Inputs": plain})
        b.launch(at + 1, 1, at + 20, 10)
    (row,) = ops(b)
    assert (row.op, row.flop) == ("flash_attn::_flash_attn_varlen_forward", 4 * 5 * 4 * 100 * 100 * 64)
    assert row.tflops == pytest.approx(5.12)


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


PRODUCT = {
    "Input Shapes": '"1024,2048;512,2048;512"',
    "Input Data Types": "DT_BF16;DT_BF16;FLOAT",
    "Input Formats": "ND;ND;ND",
    "Output Shapes": '"1024,512"',
    "Output Data Types": "DT_BF16",
}
SUM = {
    "Input Shapes": '"1000,50;1000,50;"',
    "Input Data Types": "FLOAT;FLOAT;INT64",
    "Input Formats": "ND;ND;ND",
    "Output Shapes": '"1000,50"',
    "Output Data Types": "BOOL",
}


def npu(*kernels, level="Level1"):
    """Kernels of a step one after the other, each 10 µs; cores at 1800 MHz do 43,200 · 10⁶ cycles a second together."""
    built = AscendBuilder(level=level)
    built.step(1, 0, 1000)
    for at, (op_type, core, row) in enumerate(kernels):
        counted = {"aic_total_cycles": "216000"} if core == "AI_CORE" else {}
        built.kernel(f"{op_type}1", 100 + 50 * at, 10, op_type=op_type, core=core, launch=50, **counted | row)
    return built


def test_kernels_of_ascend_have_a_roofline_without_recorded_shapes(tmp_path):
    built = npu(("MatMulV2", "AI_CORE", PRODUCT), ("MatMulV2", "AI_CORE", PRODUCT), ("Equal", "AI_VECTOR_CORE", SUM))
    product, equal = analyze(built.write(tmp_path / "a_ascend_pt")).records("op_rates")
    flop, size = 2 * 1024 * 512 * 2048, 2 * (1024 * 2048 + 512 * 2048 + 1024 * 512) + 4 * 512
    assert (product.op, product.shapes, product.dtype) == ("MatMulV2", "1024×2048, 512×2048, 512", "bf16")
    assert (product.work, product.calls, product.device_time_ns) == ("work_matmul", 2, 20_000)
    assert (product.flop, product.bytes, product.bound) == (2 * flop, 2 * size, "bound_compute")
    assert product.roofline_share == pytest.approx(flop / (24 * 1.8e9 * 2 * 16**3) / 10e-6)
    assert (equal.op, equal.dtype, equal.bytes, equal.bound) == ("Equal", "fp32", 1000 * 50 * 9, "bound_memory")
    assert equal.flop == NotMeasured("moves_only")
    assert equal.roofline_share == pytest.approx(1000 * 50 * 9 / 1638e9 / 10e-6)


@pytest.mark.parametrize(
    ("row", "flop"),
    [
        ({"Input Shapes": '"8,2048,64;8,2048,128"', "Output Shapes": '"8,64,128"'}, 2 * 8 * 64 * 128 * 2048),
        ({"Input Shapes": '"8,64,2048;2048,128"', "Output Shapes": '"8,64,128"'}, 2 * 8 * 64 * 128 * 2048),
        ({"Input Shapes": '"64,2048;8,2048,128"', "Output Shapes": '"8,64,128"'}, None),
        ({"Input Shapes": '"81920,4096;8192,512"', "Output Shapes": '"4096,512"'}, None),
        ({"Input Formats": "ND;FRACTAL_NZ;ND"}, None),
    ],
)
def test_flop_of_a_product_come_from_its_result(tmp_path, row, flop):
    """Which operand is transposed is not told; what does not fit, or is padded, is not measured."""
    built = npu(("BatchMatMulV2", "AI_CORE", PRODUCT | row))
    (product,) = analyze(built.write(tmp_path / "a_ascend_pt")).records("op_rates")
    assert product.flop == (flop or NotMeasured("no_formula"))
    assert product.bytes > 0


@pytest.mark.parametrize(
    ("op_type", "row"),
    [
        ("StridedSlice", SUM),
        ("GatherV2", SUM),
        ("Add", SUM | {"Output Shapes": "N/A"}),
        ("Add", SUM | {"Input Shapes": '"1000,x"'}),
        ("Add", SUM | {"Input Data Types": "FLOAT;STRANGE;INT64"}),
        ("MemSet", SUM | {"Input Shapes": "N/A"}),
    ],
)
def test_kernels_without_a_formula_or_a_tensor_have_no_rate(tmp_path, op_type, row):
    built = npu((op_type, "AI_VECTOR_CORE", row))
    assert list(analyze(built.write(tmp_path / "a_ascend_pt")).records("op_rates")) == []


def test_the_shapes_of_operators_come_first(tmp_path):
    """Operators that launch kernels themselves, of recordings with `record_shapes`."""
    built = npu(("MatMulV2", "AI_CORE", PRODUCT))
    built.op("aten::mm", 40, 40, **{"Input Dims": "1024,2048;\r\n2048,512", "Input type": "c10::Half;\r\nc10::Half"})
    built.flow("async_npu", 7, (built.events[0]["pid"], built.events[0]["pid"], 40), (built.npu, 2, 100))
    (row,) = analyze(built.write(tmp_path / "a_ascend_pt")).records("op_rates")
    assert (row.op, row.dtype, row.flop) == ("aten::mm", "fp16", 2 * 1024 * 512 * 2048)


@pytest.mark.parametrize(
    ("blocks", "share"),
    [((24, 48), True), ((24, 48, 256), False), ((24, 48, 48, 256), True), ((24, 40), False), ((20, 40), True)],
)
def test_cores_are_told_by_blocks_where_the_use_of_the_cube_is_not(tmp_path, blocks, share):
    """A database has no use of the cube: the clock (cycles by time and block), and as many cores as blocks at most."""
    cube, *vector = blocks
    counted = {"aic_total_cycles": str(cube * 1800 * 9), "aicore_time(us)": "9.0", "Block Dim": str(cube)}
    kernels = [("Equal", "AI_VECTOR_CORE", SUM | {"Block Dim": str(one), "aiv_time(us)": "9.0"}) for one in vector]
    built = npu(("MatMulV2", "AI_CORE", PRODUCT | counted), *kernels)
    header = KERNEL_HEADER.replace(",cube_utilization(%)", "")
    rates = analyze(built.write(tmp_path / "a_ascend_pt", header=header)).records("op_rates")
    (product,) = (row for row in rates if row.op == "MatMulV2")
    least = 2 * 1024 * 512 * 2048 / (cube * 1.8e9 * 2 * 16**3) / 10e-6
    assert product.roofline_share == (pytest.approx(least) if share else NotMeasured("unknown_device"))


@pytest.mark.parametrize(("stated", "dtype", "part"), [("NO", "fp32", 4), ("YES", "hf32", 2), ("N/A", "hf32", 2)])
def test_a_product_is_of_full_floats_where_the_table_says_so(tmp_path, stated, dtype, part):
    """HF32 does half as many products a cycle as 16 bits, whole floats a quarter."""
    floats = {"Input Data Types": "FLOAT;FLOAT;FLOAT", "Output Data Types": "FLOAT", "HF32 Eligible": stated}
    built = npu(("MatMulV2", "AI_CORE", PRODUCT | floats))
    (product,) = analyze(built.write(tmp_path / "a_ascend_pt")).records("op_rates")
    assert product.dtype == dtype
    assert product.roofline_share == pytest.approx(2 * 1024 * 512 * 2048 / (24 * 1.8e9 * 2 * 16**3 / part) / 10e-6)


@pytest.mark.parametrize(
    ("name", "dtype"), [("text/level1/rank0_ascend_pt", "fp32"), ("db/level1/rank1_ascend_pt", "hf32")]
)
def test_a_real_profile_reaches_its_memory_and_not_more(shared_traces, name, dtype):
    """61.1 million parameters are multiplied by a number at 1.6 TB/s; the same device as text and as a database."""
    rates = list(analyze(shared_traces / "ascend/msinsight_2rank_torch" / name).records("op_rates"))
    (scaled,) = (row for row in rates if row.op == "ForeachMulScalar")
    assert scaled.bytes == 2 * 4 * 61_100_840
    assert 0.95 < scaled.roofline_share < 1
    (product,) = (row for row in rates if row.shapes == "32×9216, 4096×9216, 4096")
    assert (product.op, product.dtype, product.flop) == ("MatMulV2", dtype, 2 * 32 * 4096 * 9216)
    assert product.roofline_share == pytest.approx(product.bandwidth / 1638)
