"""What the functions of the room `model` make of names, numbers and random arrays; see `tests.pinned`."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from tests.pinned.programs import odd
from traceanalyze.analyses.steps import inference
from traceanalyze.model import (
    calltree,
    classifier,
    classify,
    collectives,
    columns,
    device_peaks,
    intervals,
    kernel_classes,
    op_calls,
    op_costs,
    phases,
    table,
    units,
)
from traceanalyze.model.table import Column, Kind, NotMeasured

Parts = Iterator[tuple[str, object]]

_OPS = (
    *("mm", "bmm", "_int_mm", "_scaled_mm", "addmm", "baddbmm", "_addmm_activation", "linear", "matmul", "copy_"),
    *("conv1d", "conv2d", "conv3d", "convolution", "_convolution", "cudnn_convolution", "cudnn_convolution_relu"),
    *("miopen_convolution", "cudnn_convolution_add_relu", "cudnn_convolution_transpose", "_conv_depthwise2d"),
    *("_slow_conv2d_forward", "convolution_backward", "cudnn_convolution_backward_input", "add", "mul_", "where"),
    *("fill_", "zero_", "eq", "logical_and", "native_layer_norm", "_softmax", "addcmul", "gelu", "gelu_backward"),
    *("linalg_vector_norm", "_foreach_norm", "sum", "clamp", "silu", "_log_softmax", "native_batch_norm", "item"),
    *("_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention", "_flash_attention_forward"),
    *("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_cudnn_attention"),
    *("_efficient_attention_forward", "_cudnn_attention_forward", "_flash_attention_backward"),
    *("_scaled_dot_product_flash_attention_backward", "_scaled_dot_product_efficient_attention_backward"),
    *("_scaled_dot_product_cudnn_attention_backward", "_efficient_attention_backward", "_cudnn_attention_backward"),
)
_TYPES = ("float", "c10::BFloat16", "double", "Float8_e4m3fn", "signed char", "unknown", "bool", "long int")


def _costs() -> Parts:
    chance = random.Random(5)
    for op in _OPS:
        yield op, [_cost(op, chance) for _ in range(60)]


def _cost(op: str, chance: random.Random) -> object:
    """Cost of a call with random arguments, which often fit."""
    m, n, k, b = (chance.choice((1, 2, 3, 5, 8, 64)) for _ in range(4))
    rank = chance.choice((1, 2, 3)) if "conv" in op else 2
    sizes = [chance.choice((4, 7, 16)) for _ in range(rank)]
    kernel = [chance.choice((1, 2, 3)) for _ in range(rank)]
    shapes: list[Any]
    if "attention" in op:
        query, key = [b, m, n, k], [b, m, chance.choice((n, n + 3)), k]
        shapes = [*([query] if "backward" in op else []), query, key, [*key[:3], chance.choice((k, 2 * k))]]
    elif "conv" in op:
        data, weight = [b, n, *sizes], [k, chance.choice((n, 1)), *kernel]
        shapes = [[b, k, *sizes], data, weight] if "backward" in op else [data, weight, chance.choice(([k], []))]
    elif op in {"addmm", "_addmm_activation"}:
        shapes = [chance.choice(([n], [m, n])), [m, k], [k, n]]
    elif op == "baddbmm":
        shapes = [[b, m, n], [b, m, k], [b, k, n]]
    elif op in {"bmm", "matmul"}:
        shapes = chance.choice(([[b, m, k], [b, k, n]], [[b, m, k], [k, n]], [[k], [k, n]], [[m, k], [k]]))
    elif op == "linear":
        shapes = [chance.choice(([b, m, k], [m, k], [k])), [n, k], chance.choice(([n], []))]
    elif op in {"mm", "_int_mm", "_scaled_mm"}:
        shapes = [[m, k], [k, n]]
    else:
        shapes = [[m, n], chance.choice(([m, n], [n], [], [m, 1])), chance.choice(([m, n], [1], []))]
    if chance.random() < 0.15:
        shapes = chance.choice((shapes[:1], [*shapes, [m, n]], [[], *shapes], shapes[::-1], [[[m, n], [m]], *shapes]))
    types = [chance.choice(_TYPES[:2]) if chance.random() < 0.8 else chance.choice(_TYPES) for _ in shapes]
    values: list[str] | None = ["" for _ in shapes]
    plain = ("[1, 1]", "[0, 0]", "[2]", "[2, 2]", "[1]", "True", "False", "1", "0", "2", "[0]", "3", "[True, False]")
    values += [chance.choice(plain) for _ in range(16 - len(shapes))]
    if "backward" in op and "conv" in op:
        values[10] = chance.choice(("[True, True, False]", "[False, True, True]", "[1, 0, 0]", ""))
    shapes, types = shapes + [[]] * (16 - len(shapes)), types + [""] * (16 - len(types))
    recorded = json.dumps(values) if chance.random() < 0.9 else None
    call = op_calls.parse_call(f"aten::{op}", json.dumps(shapes), json.dumps(types), recorded)
    if call is None:
        return None
    places = range(-1, 4)
    told = [(call.shape(at), call.value(at), call.integers(at), call.flag(at), call.element(at)) for at in places]
    return op_costs.cost_of(call), call.input_bytes(), call.input_bytes(2), told


_NAMES = (
    *("execute_context_3(120)_generation_0(0)", "execute_12_context_2(sq9)_generation_5(sq5)", "execute_context_0"),
    *("execute_new_0_cached_8", "execute_new_2_cached_0", "step[DECODE bs=3 toks=3]", "step[EXTEND]", "step[x toks=1]"),
    *("prefill", "decode batch", "Prefill and decode", "capture_32_DECODE", "jpeg decode", "model.execute_model"),
    *("execute_model_3", "predecoded", "gloo:all_reduce", "c10d::barrier", "c10d::allreduce_", "TCPStore::wait"),
    *(
        "ncclDevKernel_AllReduce_Sum_f32",
        "ncclKernel_Broadcast_RING_LL",
        "hcom_allReduce__123_0_1",
        "rcclReduceScatter",
    ),
    *("deep_ep::internode::dispatch", "deep_ep::get_dispatch_layout", "cross_device_reduce_1stage", "lamport_reduce"),
    *("multimem_all_reduce", "AllGatherMatmul", "userbuffers_fp16_sum", "fused_gemm_userbuffer", "symm_mem_kernel"),
    *("MatMulV3", "aclnnMatmul_MatMulV3_MatMulV2", "aclnnAdd_AddAiCore_Add", "TransData", "Cast", "DropOutDoMask"),
    *("flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", "fmha_cutlassF_f32_aligned_64x64_rf_sm80", "FlashAttentionScore"),
    *("Cijk_Ailk_Bljk_HHS_BH_MT64x64x32_MI16x16", "ck::kernel_gemm_xdl", "__amd_rocclr_copyBuffer"),
    *("__amd_rocclr_fillBufferAligned", "ampere_fp16_s884gemm_fp16_64x64", "sm90_xmma_gemm_f8f8", "i8i8_gemm_161616"),
    *("gemv_kernel", "convert_kernel", "conv_depthwise2d_forward", "rms_norm_kernel", "multi_tensor_adam"),
    *("cudaMemcpyAsync", "cudaMemcpy", "hipMemcpyWithStream", "cuMemcpyHtoD_v2", "cudaMemcpyToSymbol", "aclrtMemcpy"),
    *("cudaStreamSynchronize", "hipEventSynchronize", "aclrtSynchronizeStreamWithTimeout", "cuCtxSynchronize"),
    *("AscendCL@aclrtSynchronizeDevice", "Node@launch", "AscendCL@aclnnAddGetWorkspaceSize", "AscendCL@aclnnAdd"),
    *("Hccl@hcom_allReduce", "Enqueue@Add", "Dequeue@Add", "cudaFreeHost", "cuMemMap", "aclrtFree", "hipMalloc"),
    *("cudaMallocAsync", "hipExtModuleLaunchKernel", "cudaGraphLaunch_v10000", "cudaLaunchCooperativeKernel"),
    *("CheckpointFunctionBackward", "torch/utils/checkpoint.py(9): recompute_fn", "torch/optim/sgd.py(1): step"),
    *(
        "nn.Module: Conv2d_12",
        "nn.Module: Block",
        "## forward ##",
        "##",
        "Model.forward",
        "torch::autograd::AccumulateGrad",
    ),
    *("TOP(Net)::forward.conv1(Conv2d)::forward", "TOP(Net)", "Optimizer.zero_grad#SGD.zero_grad", "AddmmBackward0"),
    *("complex<float>", "c10::complex<double>", "at::Half", "Float8_e5m2", "unsigned char", "all_gather_into_tensor"),
    *("_reduce_scatter_base", "all_to_allv", "coalesced", "batch_isend_irecv", "barrier", "gather", "scatter", "recv"),
    *("NVIDIA GeForce RTX 4090", "NVIDIA H100 PCIe", "NVIDIA H200", "AMD Instinct MI250X", "Tesla T4", "Ascend910B3"),
    *("NVIDIA L40S", "NVIDIA B200", "NVIDIA A100-PCIE-40GB", "NVIDIA H100 NVL", "NVIDIA GeForce RTX 3060 Ti", "A10"),
)
_PLUGIN = classifier.names_of(
    "some", classifier.Classifier({"nvjet": "attention", "Adam": "communication"}, {"index": "matmul"}, ("stack$",))
)
_OPTIONS = classify.ClassifyOptions(
    {"own": classify.EventKind.API},
    re.compile("splitK"),
    re.compile("Sum_f32"),
    re.compile("index"),
    re.compile("AdamW"),
    (_PLUGIN,),
)
_OF_A_NAME: dict[str, Callable[[str], object]] = {
    "group_of_kernel": kernel_classes.group_of_kernel,
    "group_of_op": kernel_classes.group_of_op,
    "tensor_core_use": lambda name: [kernel_classes.tensor_core_use(name, each) for each in kernel_classes.KernelGroup],
    "kernel_class": lambda name: [
        classify.kernel_class(name, has_collective_args=args, options=options)
        for args, options in product((False, True), (_OPTIONS, classify.ClassifyOptions()))
    ],
    "event_kind": lambda name: [classify.event_kind(each, _OPTIONS) for each in (name, f"{name}_runtime")],
    "step_marker": lambda name: [
        classify.is_step_marker(name, each) for each in (_OPTIONS, classify.ClassifyOptions())
    ],
    "data_loading": lambda name: [
        classify.is_data_loading(name, each) for each in (_OPTIONS, classify.ClassifyOptions())
    ],
    "api_class": classify.api_class,
    "of calls": lambda name: (classify.is_async_copy(name), classify.rocm_copy_kind(name)),
    "of operators": lambda name: (classify.is_annotation_op(name), classify.is_data_dependent(name)),
    "peer_wait": classify.is_peer_wait,
    "plug-ins": lambda name: (
        classifier.classifier_of_kernel(name, (_PLUGIN, _PLUGIN)),
        classifier.classifier_of_op(name, (_PLUGIN,)),
        classifier.classifier_of_range(name, (_PLUGIN,)),
        classifier.kind_of_op(name, (_PLUGIN,)),
    ),
    "roles": lambda name: (phases.op_role(name), phases.annotation_role(name), phases.frame_role(name)),
    "modules": lambda name: (phases.module_class(name), phases.module_name(name), phases.is_layer_annotation(name)),
    "hierarchy": phases.hierarchy,
    "collectives": lambda name: (collectives.collective_type(name), collectives.element_bytes(name)),
    "inference": lambda name: (inference.iteration_style(name), [read(name) for read in inference.STYLES]),
    "peaks": device_peaks.peaks_of,
}


@cache
def _names() -> tuple[str, ...]:
    """Those of some recordings, and others."""
    found = set(_NAMES)
    for seed in (2, 6, 9):
        trace = odd(seed)[0].trace
        found |= {trace.strings.text(code) for code in range(len(trace.strings))}
    # What recordings say of shapes are no names.
    return tuple(sorted(name for name in found if not name.startswith("[")))


def _of_names() -> Parts:
    for key, function in _OF_A_NAME.items():
        yield key, [function(name) for name in _names()]


def _peaks() -> Parts:
    for each in device_peaks.PEAKS:
        yield each.device, (each, [each.rate(dtype) for dtype in (*device_peaks.DTYPES, "other")])
    own = device_peaks.Peaks("own", "h100", {"fp32": 1.5}, 9, "mine")
    yield "own", [device_peaks.peaks_of(name, (own,)) for name in ("NVIDIA H100", "A100", "x")]
    kinds = (*collectives.TYPES, "x")
    yield "bus", [(collectives.bus_factor(kind, ranks)) for kind in kinds for ranks in range(5)]
    yield "counts", list(map(collectives.counts_output, kinds))


def _spans(chance: np.random.RandomState, size: int) -> tuple[Any, Any]:
    start = chance.randint(-20, 200, size).astype(np.int64)
    return start, start + chance.randint(0, chance.randint(1, 40) + 1, size)


def _intervals() -> Parts:
    for seed in range(30):
        chance = np.random.RandomState(seed)
        one, other, third = (intervals.merge(*_spans(chance, chance.randint(0, 14))) for _ in range(3))
        start, end = _spans(chance, 9)
        yield (
            f"{seed}",
            (
                (one, other, intervals.union(one, other, third), intervals.total(one)),
                (intervals.overlaps(one, other), intervals.intersect(one, other), intervals.subtract(one, other)),
                (intervals.gaps(one, 0, 150), intervals.gaps(other, 50, 50)),
                (intervals.contains(one, start), intervals.coverage(one, start, end)),
            ),
        )


def _columns() -> Parts:
    texts = [b"", b"abc", b"\xff\xfe", "ä".encode(), b"abcd", b"zz", b"aten::mm", b"x" * 40]
    strings = columns.strings_of(texts)
    for seed in range(12):
        chance = np.random.RandomState(seed)
        codes = chance.randint(0, len(texts), (chance.randint(1, 20))).astype(np.int32)
        values, among = (chance.randint(0, 12, chance.randint(0, 9)).astype(np.int64) for _ in range(2))
        rows = np.flatnonzero(chance.rand(chance.choice((5, 900))) < 0.3).astype(np.uint32)
        sparse = columns.Sparse(rows, chance.randint(0, 99, len(rows)))
        wanted = chance.randint(-1, 40, chance.randint(0, 9)).astype(np.int64)
        yield (
            f"{seed}",
            (
                (
                    list(strings.texts(codes)),
                    strings.lookup(codes, len),
                    strings.matches(codes, re.compile("a").search),
                ),
                (columns.distinct_codes(codes, len(strings)), columns.distinct(values)),
                (columns.occurs(values, among), columns.find(values, among)),
                (sparse.take(wanted, -7), sparse.take(np.arange(3), -7)),
            ),
        )
    yield "strings", [(strings.raw(code), strings.text(code)) for code in range(len(strings))]


def _trees() -> Parts:
    for seed in range(24):
        chance = np.random.RandomState(seed)
        start, end = _spans(chance, chance.randint(0, 30))
        track, rank = (chance.randint(0, 3, len(start)) for _ in range(2))
        order = np.lexsort((start,))
        every = (column[order] for column in (start, end - start, track.astype(np.int32), rank.astype(np.uint8)))
        spans = calltree.Spans(*every, tick=(1, 5)[seed % 2])
        tree = calltree.build(spans)
        keys = chance.randint(0, 3, len(start)).astype(np.int32)
        twin = calltree._build_twin(spans)
        outer = calltree.outermost(tree.stop, keys, 3), calltree._outermost_twin(tree.stop, keys)
        yield f"{seed}", (tree, len(tree), twin, outer)
        if seed % 4 == 0:
            untold = calltree.Spans(*spans[:4])
            yield f"{seed} by the ns", (calltree.build(untold), calltree._build_twin(untold))


_AMOUNTS = sorted(
    {
        0,
        7,
        *(sign * int(lead * 10**power) for sign in (1, -1) for lead in (1, 9.99, 9.996, 1.2345) for power in range(14)),
    }
)


def _units() -> Parts:
    for resolution in (1, 10, 1000):
        yield f"durations {resolution}", [units.duration(each, resolution) for each in _AMOUNTS]
        found = [units.column_unit(abs(each), resolution) for each in _AMOUNTS]
        cells = [units.in_unit(each, unit) for each, unit in zip(_AMOUNTS, found, strict=True)]
        yield f"columns {resolution}", (found, cells)
    shares = [lead * 10.0**-power for lead in (1, 0.9995, 0.996, 0.5, -0.3, 4.4) for power in range(6)]
    edges = (0.0, 1.0, 0.0005, 0.00049, 0.0994, 0.0995, 0.9994, 0.9995, 0.99, 0.9899, 1.2, -0.0001)
    yield "shares", [(units.percent(each), units.percent_cell(each)) for each in (*shares, *edges)]
    kinds = ("ns", "B", "%", "percent", "points", "count", "W")
    yield (
        "quantities",
        [
            units.quantity(number, unit, change=change)
            for number, unit, change in product((0, 3, -3, 0.5, 12345.678, 2.5e7), kinds, (False, True))
        ],
    )
    numbers = (0, 1, 1.5, 99.994, 99.996, 100, 1234.5, -7, 1e9)
    yield "numbers", [(units.ratio(each), units.count(each)) for each in numbers]
    sizes = sorted(
        {
            0,
            1,
            *(
                int(lead * base**power)
                for base in (1000, 1024)
                for lead in (1, 9.99, 10, 99.9, 100, 512)
                for power in range(5)
            ),
        }
    )
    yield "sizes", [(units.memory(each), units.memory(-each), units.size(each)) for each in sizes]


def _rows(chance: random.Random) -> list[dict[str, Any]]:
    gone = NotMeasured("no_python")
    return [
        {
            "name": chance.choice(("a", "b", "c", "d e")),
            "depth": chance.choice((0, 1, 2)),
            "time": chance.choice((0, 5, 7, 1000, None, gone)),
            "share": chance.choice((0.0, 0.25, gone)),
            "size": table.Quantity(chance.choice((1, 2.5)), chance.choice(("ns", "B"))),
        }
        for _ in range(9)
    ]


def _tables() -> Parts:
    declared = table.declare(
        "some",
        "Some",
        Column("name", Kind.NAME),
        Column("depth", Kind.COUNT),
        Column("time", Kind.DURATION),
        Column("share", Kind.SHARE, minor=True),
        Column("size", Kind.QUANTITY),
        level="depth",
    )
    for seed in range(6):
        rows = _rows(random.Random(seed))
        found = replace(declared.fill_records(rows), totals={"time": 9})
        orders: Sequence[tuple[str, ...]] = (
            ("name",),
            ("-time", "name"),
            ("share", "-depth"),
            ("-depth", "time", "name"),
        )
        yield f"{seed} rows", (found.rows, found.total, len(found), found.known_rows, list(map(tuple, found.records())))
        yield f"{seed} sorted", [found.sort(*order).rows for order in orders]
        yield f"{seed} depth", [found.depth(row) for row in found.known_rows]
        yield f"{seed} taken", [found.take(np.array(at)).rows for at in ([0, 3], [8, 8], [True] + [False] * 8)]
        yield f"{seed} frame", found.to_pandas().astype(str).to_numpy().tolist()
        yield f"{seed} columns", (found.column("time"), found.array("depth"), found.drop("size", "name").rows)
    absent = declared.missing("no_python", detail=True)
    yield (
        "absent",
        (absent.rows, absent.known_rows, len(absent), absent.column("time"), absent.array("time"), absent.detail),
    )
    numbers = np.array([1.0, np.nan, 3.0])
    yield "known", (table.known(numbers, "no_python"), table.known(numbers[:1], "no_python"))
    yield (
        "plain",
        [
            table.plain(kind, value)
            for kind in Kind
            for value in (1, None, "x", table.Quantity(2, "B"), NotMeasured("y"))
        ],
    )


TOPICS: dict[str, Callable[[], Parts]] = {
    "costs of operators": _costs,
    "names": _of_names,
    "devices and collectives": _peaks,
    "intervals": _intervals,
    "columns": _columns,
    "call trees": _trees,
    "units": _units,
    "tables": _tables,
}


def model(topic: str) -> Parts:
    """What is pinned of a topic."""
    yield from TOPICS[topic]()
