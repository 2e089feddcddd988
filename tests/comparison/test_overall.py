"""The overall table: classes by kernel first, directions by phase, exclusive times that sum to the step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import traceanalyze
from tests.ascend_builder import AscendBuilder
from tests.builder import TraceBuilder
from tests.comparison.make import side_from, training
from tests.examples import examples
from traceanalyze.comparison.attribution import parts
from traceanalyze.comparison.compare import peak_rows
from traceanalyze.comparison.overall import Row, overall_table, time_rows
from traceanalyze.comparison.pairs import PerStep
from traceanalyze.comparison.side import side
from traceanalyze.model.columns import Sparse
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.trace import ModuleMemory

FLASH = "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>(Flash_fwd_params)"
CONV = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x64"
WGRAD = "sm80_xmma_wgrad_implicit_gemm_indexed_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128"
CONV_OF_EITHER = "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1>(int, int)"
PAGED = "void vllm::paged_attention_v1_kernel<unsigned short, unsigned short, 128>"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>"
NVJET = "nvjet_hsh_128x128_64x6_1x2_h_bz_TNT"
PERMUTE = "void fbgemm_gpu::permute_2D_data_kernel<long, float>"


def table(base, candidate):
    return time_rows(base, candidate, parts(base, candidate))


def tree(found):
    """Path of each row → µs and number of the base."""
    path, out = [], {}
    for row in found:
        path = [*path[: row.level], row.name or row.key]
        time = row.base / 1000 if isinstance(row.base, int) else row.base
        out["/".join(path)] = (time, None if row.counts is None else row.counts[0])
    return out


def running(*kernels, ops=()):
    """One kernel after another for 10 µs each, launched inside these operators."""
    b = TraceBuilder()
    b.step(0, 0, 20 * len(kernels) + 20)
    for place, name in enumerate(kernels):
        if place < len(ops) and ops[place]:
            b.op(ops[place], 20 * place, 4)
        b.launch(20 * place + 1, 1, 20 * place + 5, 10, name=name)
    return side_from(b)


def one(*kernels, ops=()):
    found = running(*kernels, ops=ops)
    return tree(table(found, found))


def test_parts_causes_step_and_device_span():
    base, candidate = side_from(training(wait=40)), side_from(training(kernel=50, steps=3))
    found = tree(table(base, candidate))
    assert found["compute"] == found["compute/matmul"] == found["compute/matmul/vector"] == (60.0, 2)
    assert found["memory_ops/h2d"] == (10.0, 2)
    assert found["communication"] == (0.0, 0)
    assert found["free"] == (130.0, None)
    assert found["free/data_loading"] == (80.0, None)
    assert found["free/dispatch/dispatch_launch"] == (4.0, None)
    assert found["step"] == (200.0, None)
    assert found["device_span"] == (70.0, None)


def test_the_kernel_decides_the_class_whatever_the_operator():
    assert one(NVJET, ops=["CompiledFunctionBackward"])["compute/matmul/cube"] == (10.0, 1)
    assert one(PERMUTE, ops=["aten::mm"]).keys() >= {"compute/vector_work/layout"}
    assert one("my_kernel", ops=["aten::mm"])["compute/matmul/units_unknown"] == (10.0, 1)
    assert one("my_kernel")["compute/other"] == (10.0, 1)
    assert one("triton_poi_fused_add_0")["compute/compiled"] == (10.0, 1)


def test_the_device_span_of_a_step_goes_from_its_first_work_to_its_last():
    b = TraceBuilder()
    b.step(0, 0, 100)
    b.step(1, 100, 100)
    b.launch(0, 1, 10, 5)
    b.launch(20, 1, 60, 5)
    b.launch(100, 1, 130, 20)
    b.launch(102, 1, 140, 30)
    found = side_from(b)
    assert tree(table(found, found))["device_span"] == (55.0 + 40.0, None)


def test_attention_and_convolution_have_a_direction():
    backward = "autograd::engine::evaluate_function: ConvolutionBackward0"
    assert one(FLASH)["compute/attention_forward/cube"] == (10.0, 1)
    assert one(CONV_OF_EITHER, ops=["aten::conv2d"])["compute/convolution_forward/vector"] == (10.0, 1)
    assert one(CONV_OF_EITHER, ops=[backward])["compute/convolution_backward/vector"] == (10.0, 1)
    # What the phase tells counts more than the name: a forward kernel can compute a gradient.
    assert one(CONV, ops=[backward])["compute/convolution_backward/cube"] == (10.0, 1)
    assert one(PAGED)["compute/paged_attention"] == (10.0, 1)
    # Of a name with both directions nothing is known.
    found = one("miopenConvolutionForwardAlgo_BwdDataB<BF16, BF16>", ops=["aten::convolution"])
    assert found["compute/convolution_forward"] == (10.0, 1)


def test_steps_of_an_npu_s_operator_are_of_what_it_computes():
    made = AscendBuilder()
    made.step(1, 0, 1000)
    rows = (
        # Inside the operator CANN's own names, which stand for it.
        ("aten::mm", "aclnnMm", "MatMulV2", "AI_CORE"),
        ("aten::mm", "aclnnMm", "MemSet", "AI_VECTOR_CORE"),
        ("aten::convolution_backward", "Conv2DBackpropFilter", "MemSet", "AI_VECTOR_CORE"),
        ("aten::convolution_backward", "ReduceSum", "ReduceSum", "AI_VECTOR_CORE"),
        ("aten::sum", "aclnnReduceSum", "ReduceSum", "AI_VECTOR_CORE"),
        ("aten::copy_", "aclnnInplaceCopy", "TensorMove", "AI_VECTOR_CORE"),
        ("aten::dropout", "aclnnDropoutGenMask", "DSAGenBitMask", "DSA_SQE"),
    )
    for place, (op, inner, kind, core) in enumerate(rows):
        at = 100 * place + 5
        if op.endswith("_backward"):
            made.op("autograd::engine::evaluate_function: ConvolutionBackward0", at - 1, 62)
        made.op(op, at, 60)
        made.op(inner, at + 5, 30)
        made.queued(inner, at + 10, at + 13, 4)
        made.kernel(f"{inner}_{kind}", at + 20, 10, op_type=kind, core=core, launch=at + 14)
    with TemporaryDirectory() as folder:
        (trace,) = traceanalyze.load(made.write(Path(folder) / "rank0_ascend_pt")).traces
    found = tree(table(side(trace), side(trace)))
    assert found["compute/matmul"] == (20.0, 2)
    assert found["compute/convolution_backward"] == (20.0, 2)
    assert found["compute/vector_work"] == found["compute/vector_work/reduction"] == (10.0, 1)
    assert found["compute/tensor_move"] == (10.0, 1)
    assert found["compute/other"] == (10.0, 1)


def test_without_a_launch_record_the_name_tells_the_direction_or_nothing_does():
    b = TraceBuilder()
    b.step(0, 0, 100)
    for place, name in enumerate((CONV, WGRAD, CONV_OF_EITHER)):
        b.device(20 * place, 10, name=name)
    one_side = side_from(b)
    found = tree(table(one_side, one_side))
    assert found["compute/convolution_forward"] == (10.0, 1)
    assert found["compute/convolution_backward"] == (10.0, 1)
    assert found["compute/convolution"] == (10.0, 1)


def test_a_kernel_that_both_computes_and_communicates_is_compute_of_its_own():
    assert one("AllGatherMatmul_bf16")["compute/fused_communication"] == (10.0, 1)


def test_kernels_at_the_same_time_do_not_sum_to_more_than_the_step():
    b = TraceBuilder()
    b.step(0, 0, 100)
    for stream in (1, 2, 3):
        b.launch(stream, 0.5, 10, 80, name=ADD, stream=stream)
    one_side = side_from(b)
    found = tree(table(one_side, one_side))
    assert found["compute"] == found["compute/vector_work/elementwise"] == (80.0, 3)


def test_communication_by_group_and_wait_that_one_rank_cannot_tell():
    def reducing(ranks):
        b = TraceBuilder()
        b.step(0, 0, 100)
        more = {"Collective name": "allreduce", "Process Group Ranks": ranks}
        b.launch(0, 1, 5, 10, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL", **more)
        return side_from(b)

    found = tree(table(reducing("[0, 1]"), reducing("[0, 1]")))
    assert found["communication/0-1"] == (10.0, 1)
    assert found["communication/comm_wait"] == (NotMeasured("needs_all_ranks"), None)
    assert tree(table(reducing("[0, 1, 2]"), reducing("[0, 1]")))["communication/0-2 → 0-1"] == (10.0, 1)


def test_waiting_that_all_ranks_tell_is_that_of_all_groups_together():
    def waiting(*groups):
        b = TraceBuilder()
        b.step(0, 0, 100)
        for at, ranks in enumerate(groups):
            more = {"Collective name": "allreduce", "Process Group Ranks": ranks}
            b.launch(20 * at, 1, 20 * at + 5, 10, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL", **more)
        one = side_from(b)
        return one._replace(info=replace(one.info, waited=4_000))

    one, two = waiting("[0, 1]"), waiting("[0, 1]", "[0, 2]")
    assert tree(table(one, one))["communication/0-1/comm_wait"] == (4.0, None)
    found = tree(table(two, two))
    assert found["communication"] == (20.0, 2)
    assert found["communication/comm_wait"] == found["communication/comm_transfer"]
    assert found["communication/comm_wait"] == (NotMeasured("of_all_together"), None)


def test_peaks_of_memory_are_labelled_and_not_per_step():
    b = training()
    b.memory(5, 1000, allocated=5000, reserved=9000)
    b.memory(9, -400, allocated=4600, reserved=9000)
    found = {key: peaks for key, *peaks in peak_rows(side_from(b), side_from(training()))}
    missing = NotMeasured("no_memory_records")
    assert found == {
        "peak_allocated": [5000, missing],
        "peak_reserved": [9000, missing],
        "peak_recorded": [1000, missing],
    }
    one_side = side_from(training())
    assert list(peak_rows(one_side, one_side)) == []


def test_the_memory_of_the_process_is_a_row_of_its_own():
    """What the driver counts is more than what PyTorch reserved: the two never stand in one row."""
    b = training()
    b.memory(5, 1000, allocated=5000, reserved=9000)
    npu = side_from(b)
    samples = ModuleMemory("APP", 0, 12_000, 11_000, 2), ModuleMemory("APP", 3, 50_000, 50_000, 2)
    for process, peak in ((samples[:1], 12_000), (samples[1:], 50_000), (samples, 12_000)):
        trace = replace(npu.context.trace, process_memory=process)
        told = side(trace)
        found = {key: peaks for key, *peaks in peak_rows(told, npu)}
        assert found["peak_process"] == [peak, NotMeasured("no_process_memory")]
        assert found["peak_reserved"] == [9000, 9000]


def test_memory_records_may_number_the_only_device_otherwise():
    b = training()
    b.memory(5, 1000, device=4, allocated=5000, reserved=9000)
    one_side = side_from(b)
    assert next(base for key, base, _ in peak_rows(one_side, one_side) if key == "peak_allocated") == 5000


def test_idle_time_that_is_one_part_has_no_causes():
    found = tree(table(side_from(training()), side_from(training(launches=False))))
    assert [path for path in found if path.startswith("free")] == ["free"]


def test_host_time_stands_alone_without_a_device():
    b = TraceBuilder()
    b.step(0, 0, 100)
    b.op("aten::mm", 0, 30)
    one_side = side_from(b)
    found = tree(table(one_side, one_side))
    assert (found["host_op"], found["untraced"], found["step"]) == ((30.0, None), (70.0, None), (100.0, None))
    assert "compute" not in found
    assert "free" not in found


kernels = st.lists(
    st.tuples(
        st.integers(0, 150),
        st.integers(0, 40),
        st.sampled_from([FLASH, CONV, WGRAD, ADD, NVJET, "x", "ncclDevKernel_AllGather", "Memcpy DtoD"]),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=12,
)


@examples(20)
@given(kernels)
def test_rows_inside_sum_to_the_row_above(items):
    b = TraceBuilder()
    for n in range(2):
        b.step(n, n * 90, 90)
    for i, (at, dur, name, stream) in enumerate(items):
        cat = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
        b.launch(3 * i, 0.5, at + 0.25, dur, name=name, stream=stream, cat=cat)
    one_side = side_from(b)
    found = {
        path: value for path, value in tree(table(one_side, one_side)).items() if not isinstance(value[0], NotMeasured)
    }
    for above, (time, count) in found.items():
        depth = above.count("/") + 1
        inside = [value for path, value in found.items() if path.startswith(above + "/") and path.count("/") == depth]
        if inside:
            assert sum(each for each, _ in inside) == time
            assert count is None or sum(each for _, each in inside) == count
    top = [time for path, (time, _) in found.items() if "/" not in path and path not in {"step", "device_span"}]
    assert sum(top) == found["step"][0]


def with_field(trace, name, values, dtype=np.int64):
    """The trace with one more argument, by place in the file: what the reader of Ascend profiles adds."""
    column = Sparse(np.array(list(values), np.uint32), np.array(list(values.values()), dtype))
    return replace(trace, events=replace(trace.events, fields={**trace.events.fields, name: column}))


def test_tasks_of_a_collective_tell_waiting_from_moving_data():
    b = TraceBuilder()
    b.step(0, 0, 100)
    b.device(10, 20)  # compute 10-30
    b.device(20, 60, name="ncclDevKernel_AllReduce", stream=9, **{"Collective name": "allreduce"})  # 20-80
    for name, at, dur in (
        ("Notify_Wait", 20, 30),
        ("Memcpy", 25, 10),  # the first 5 under compute
        ("Reduce_Inline", 60, 10),
        ("Memcpy", 65, 10),  # half of it at the same time, on another plane
        ("Memcpy", 75, 30),  # of no collective
    ):
        b.event("hccl_task", name, at, dur, pid=0, tid=f"Plane {at}")
    one = side(with_field(b.trace(), "part_of", {3: 2, 4: 2, 5: 2, 6: 2, 7: -1}))
    found = tree(table(one, one))
    assert found["communication"] == (50.0, 1)
    assert found["communication/comm_transfer"] == (20.0, None)
    assert found["communication/comm_wait"] == (30.0, None)
    # Of the other side all ranks tell: 4 of 10 µs.
    ranks = TraceBuilder()
    ranks.step(0, 0, 100)
    ranks.device(20, 10, name="ncclDevKernel_AllReduce", stream=9, **{"Collective name": "allreduce"})
    other = side_from(ranks)
    other = other._replace(info=replace(other.info, waited=4_000))
    split = {row.key: (row.base, row.candidate) for row in table(other, one) if row.key.startswith("comm_")}
    assert split == {"comm_wait": (4_000, 30_000), "comm_transfer": (6_000, 20_000)}
    # A side without tasks has it of its ranks, if these are all recorded.
    plain = side(b.trace())
    other = plain._replace(info=replace(plain.info, waited=12_000))
    rows = {row.key: row for row in time_rows(other, one, ())}
    assert (rows["comm_wait"].base, rows["comm_transfer"].base) == (12_000, 38_000)
    assert (rows["comm_wait"].candidate, rows["comm_transfer"].candidate) == (30_000, 20_000)
    rows = {row.key: row for row in time_rows(plain, one, ())}
    assert rows["comm_wait"].base == NotMeasured("needs_all_ranks")


def test_cores_and_counters_of_an_npu_tell_its_units():
    b = TraceBuilder()
    b.step(0, 0, 100)
    for place, name in enumerate(("MatMulV2_a", "MatMulV2_b", "MatMulV2_c", "MatMulV2_d")):
        b.device(20 * place, 10 + place, name=name)
    for core in ("AI_CORE", "AI_VECTOR_CORE", "SOMETHING_NEW"):
        b.op(core, 90, 1)  # their names, to take the texts from
    trace = b.trace()
    core, vector, new = (int(code) for code in trace.events.name[5:8])
    trace = with_field(trace, "core", {1: core, 2: vector, 3: new, 4: vector}, np.int32)
    one = side(with_field(trace, "mac_time", {4: 500}))
    found = tree(table(one, one))
    assert found["compute/matmul/cube"] == (10.0 + 13.0, 2)
    assert found["compute/matmul/vector"] == (11.0, 1)
    assert found["compute/matmul/units_unknown"] == (12.0, 1)


def test_times_and_numbers_of_a_row_are_those_of_each_side_for_one_step():
    rows = [Row("step", 0, 200, 400), Row("compute", 0, 100, 50, (6, 10))]
    (row,) = overall_table(rows, (200, 400), PerStep(2, 5, -200)).records()
    assert (row.index, row.base_number, row.candidate_number) == ("compute", 3.0, 2.0)
    assert (row.base_share, row.candidate_share) == (0.5, 0.125)
