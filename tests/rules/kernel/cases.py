"""What the rules about kernels must find, and what not: id → programs."""

from __future__ import annotations

from tests.ascend_builder import PID, AscendBuilder
from tests.rules.make import Fires, waiting
from tests.rules.sequences import A100, POINTWISE, Run, mm, read_npu, steps

BF, FP = "c10::BFloat16", "float"
BIG = mm(2000)
X = [[4096, 4096]]


def pointwise(name, dur, shapes=X, dtype=BF, **more):
    return Run(f"aten::{name}", dur, shapes, shapes and [dtype] * len(shapes), **more)


def grid(share, dur=1500):
    return Run("aten::mm", dur, None, None, "ampere_bf16_s16816gemm_bf16", device={"blocks per SM": share, "grid": [1]})


BMM = Run("aten::bmm", 300, [[64, 512, 64], [64, 64, 512]], [BF, BF], "ampere_bf16_s16816gemm_bf16")
SOFTMAX = Run("aten::_softmax", 100, [[64, 512, 512]], [BF], "void softmax_warp_forward<>")
NORM = [pointwise(name, 100) for name in ("pow", "mean", "add", "rsqrt", "mul", "mul")]
ROTARY = [pointwise(name, 100) for name in ("neg", "cat", "mul", "mul", "add")]
CHAIN = [pointwise(name, 150) for name in ("mul", "add", "tanh", "mul", "exp")]
TRANSPOSE = Run("aten::cudnn_convolution", 150, kernel="void cudnn::ops::nchwToNhwcKernel<float>")
CONTIGUOUS = Run("aten::copy_", 150, kernel="void at::native::direct_copy_kernel_cuda", under="aten::contiguous")
CAST = Run("aten::copy_", 250, kernel="void at::native::direct_copy_kernel_cuda", under="aten::_to_copy")
GATHER = Run("aten::index_select", 60, [[5000, 64], [], [300]], [FP, "", "long int"], "indexSelectLargeIndex")
SCATTER = Run("aten::index_add_", 200, kernel="indexFuncLargeIndex", under="IndexSelectBackward0")
DOUBLE = pointwise("add", 200, dtype="double")
FLASH = Run("aten::mm", 3000, [[64, 64], [64, 64]], [BF, BF], "ampere_bf16_s16816gemm_bf16")


def beside(dur, run):
    """A kernel of 1500 µs, another one beside it for the first of it on another stream."""
    b = steps([run])
    for number in range(4):
        at = number * 4000
        b.launch(at + 30, 3, at + 100, dur, name="gemm", stream=9, **{"blocks per SM": 0.3, "grid": [1]})
    return b


def cumsum(length, dtype=BF):
    return Run("aten::cumsum", 300, [[4096, length], []], [dtype, "Scalar"], "void at::native::scan_kernel")


def checkpointed(again, reserved):
    """Steps of 4 ms whose backward runs a forward operator again."""
    b = steps([BIG], device=A100 | {"totalGlobalMem": 80 * 2**30})
    for number in range(4):
        at = number * 4000.0
        b.op("aten::mm", at + 50, 20, **{"Sequence number": 1})
        b.op("autograd::engine::evaluate_function: CheckpointFunctionBackward", at + 500, 200, tid=2)
        b.op("CheckpointFunctionBackward", at + 501, 190, tid=2)
        b.op("aten::relu", at + 510, 20, tid=2, **{"Sequence number": 2})
        b.launch(at + 512, 5, at + 2200, again, tid=2, name="relu")
        b.memory(at + 30, 512, allocated=2**30, reserved=reserved)
    return waiting(b)


def tuned(*, allocations=20, tries=1, sizes=1):
    """Convolutions of 3 ms in all a step; the first step allocates memory, and tries so many algorithms."""
    b = steps([])
    for number in range(4):
        at = number * 4000.0
        for part in range(allocations if number == 0 else 0):
            b.api("cudaMalloc", at + 10 + 20 * part, 15)
        for part in range(3):
            t = at + 500 + 100 * part
            side = 64 + 32 * (number if sizes > 1 else 0)
            b.op("aten::cudnn_convolution", t, 90, **{"Input Dims": [[8, 3, side, side], [8, 3, 3, 3]]})
            for attempt in range(tries if number == 0 and part == 0 else 1):
                begin = at + 600 + 1000 * part + 100 * attempt
                b.launch(t + 5 + 8 * attempt, 3, begin, 90 if tries > 1 else 900, name=f"cudnn_algorithm_{attempt}")
    return b


def convolutions(*, bias, norm="aten::batch_norm"):
    """Convolutions of 800 µs, the addition of their bias of 150 µs, and the operator that follows."""
    b = steps([])
    for number in range(4):
        for part in range(3):
            at, begin = number * 4000 + 100 * part, number * 4000 + 200 + 1200 * part
            b.op("aten::conv2d", at, 50, **{"Input Dims": [[8, 3, 64, 64], [8, 3, 3, 3], [8] if bias else []]})
            b.op("aten::cudnn_convolution", at + 5, 10)
            b.launch(at + 6, 3, begin, 800, name="cudnn_infer_ampere_scudnn")
            if bias:
                b.op("aten::add_", at + 20, 10)
                b.launch(at + 22, 3, begin + 800, 150, name=POINTWISE)
            b.op(norm, at + 55, 20)
            b.launch(at + 57, 3, begin + 950, 100, name="bn_fw_tr")
    return waiting(b)


def looping(count, op="aten::mul"):
    """One slice after the other, 50 µs each."""
    b = steps([])
    for number in range(4):
        for part in range(count):
            at = number * 4000 + 20 * part
            b.op("aten::select", at, 3)
            b.op(op if isinstance(op, str) else op[part % len(op)], at + 5, 10)
            b.launch(at + 6, 3, number * 4000 + 50 + 60 * part, 50, name=POINTWISE)
        b.op("aten::mm", number * 4000 + 1500, 10)
        b.launch(number * 4000 + 1502, 3, number * 4000 + 1800, 2000, name="gemm")
    return waiting(b)


def made(op, between=False, other=""):
    """A tensor of the host that takes 300 µs to copy while nothing else runs; and another one that stays there."""
    b = steps([mm(1000)])
    for number in range(4):
        at = number * 4000.0 + 1500
        if other:
            b.op(other, at - 300, 200)
        b.op(op, at, 50)
        if between:
            b.op("aten::add", at + 55, 5)
        b.op("aten::to", at + 65, 30)
        b.op("aten::copy_", at + 66, 25)
        b.copy(at + 70, 10, at + 85, 300, name="Memcpy HtoD (Pageable -> Device)", bytes=4 << 20)
    return waiting(b)


def npu_sequence(*types, ops=()):
    """Steps of these kernels, 300 µs each, one after the other, three times; with the operators that launch them."""
    b = AscendBuilder()
    for number in range(3):
        at = number * 4000
        b.step(number, at, 3900)
        for part, kind in enumerate(types * 3):
            begin = at + 100 + 310 * part
            core = "AI_CORE" if kind.startswith("MatMul") else "AI_VECTOR_CORE"
            b.kernel(f"aclnn{kind}_{part}", begin, 300, op_type=kind, core=core, launch=at + 10 + part)
            if ops:
                b.op(ops[part % len(ops)], at + 9.8 + part, 0.8)
                b.op(f"aclnn{kind}", at + 9.9 + part, 0.6)
                b.flow("async_npu", 7000 + len(b.events), (PID, PID, at + 9.9 + part), (b.npu, 2, begin))
        b.call("AscendCL@aclrtSynchronizeDevice", at + 60, begin + 240 - at)
    return read_npu(b)


def npu(core, dur):
    """Three steps with one operator of 2 ms on the AI Core and one on another core."""
    b = AscendBuilder()
    for number in range(3):
        at = number * 4000
        b.step(number, at, 3900)
        b.kernel("aclnnMatMul_1", at + 100, 2000, op_type="MatMulV2", launch=at + 10)
        b.kernel("aclnnIndex_1", at + 2200, dur, op_type="Index", core=core, launch=at + 40)
        b.call("AscendCL@aclrtSynchronizeDevice", at + 60, 2140 + dur)
    return read_npu(b)


def twins(long, *, kernel="void at::native::elementwise_kernel<128, 4, x>", dtype=BF):
    """Additions of tensors of one size, in pairs: one of 100 µs, one with another kernel."""
    shapes = [[1024, 1024]] * 2
    return [Run("aten::add", 100, shapes, [BF] * 2), Run("aten::add", long, shapes, [dtype] * 2, kernel)] * 2


FIRES = {
    "KRN101": [
        Fires(
            steps([mm(2000, dtype=FP, tensor=False)]),
            saving=1500,
            low=1000,
            bound=1875,
            confidence="MEDIUM",
            severity="HIGH",
            count=4,
            evidence={"time": 2000, "part": 1, "count": 4},
            ops=("aten::mm",),
            draws="compute",
            each=2000,
            first=(100, 2100),
            look=(100, 2100),
            options={"share": (0.1, 1, 1.01)},
            prices={"reached": (0.25, 0.4, 1687.5)},
        )
    ],
    "KRN102": [
        Fires(
            steps([mm(1500, n=50257, k=512), mm(1500)]),
            saving=450,
            low=225,
            bound=750,
            severity="MEDIUM",
            confidence="MEDIUM",
            count=4,
            evidence={"time": 1500, "part": 0.5, "shape": "4096×512 · 512×50257", "count": 4},
            ops=("aten::mm",),
            draws="compute",
            each=1500,
            first=(100, 1600),
            look=(100, 1600),
            options={"least_us": (20, 1500, 1501)},
            prices={"gain": (0.3, 0.24, 360)},
        ),
        Fires(
            steps([mm(1500, k=1001)]),
            saving=450,
            low=225,
            bound=750,
            severity="MEDIUM",
            confidence="MEDIUM",
            count=4,
            evidence={"time": 1500, "part": 1, "shape": "4096×1001 · 1001×4096", "count": 4},
            ops=("aten::mm",),
            draws="compute",
            each=1500,
            first=(100, 1600),
            look=(100, 1600),
            options={"least_us": (20, 1500, 1501)},
            prices={"gain": (0.3, 0.24, 360)},
        ),
    ],
    "KRN103": [
        Fires(
            steps([grid(3.05)]),
            saving=178.125,
            bound=356.25,
            count=4,
            evidence={"time": 1500, "part": 1, "count": 4},
            ops=("ampere_bf16_s16816gemm_bf16",),
            draws="compute",
            each=1500,
            first=(100, 1600),
            look=(100, 1600),
            options={"fraction": (0.2, 0.04999999999999983, 0.04999999999999982), "share": (0.1, 1, 1.01)},
        )
    ],
    "KRN104": [
        Fires(
            steps([BMM, pointwise("mul", 100), pointwise("add", 100), SOFTMAX, BMM]),
            saving=600,
            severity="MEDIUM",
            count=4,
            evidence={"time": 900, "part": 1, "count": 4},
            ops=("aten::_softmax",),
            draws="compute",
            each=900,
            first=(100, 1000),
            look=(100, 1000),
            prices={"products": (0.5, 0.4, 540)},
        ),
        Fires(
            steps([BMM, pointwise("div", 100), SOFTMAX, pointwise("native_dropout", 100), BMM]),
            saving=600,
            severity="MEDIUM",
            count=4,
            evidence={"time": 900, "part": 1, "count": 4},
            ops=("aten::_softmax",),
            draws="compute",
            each=900,
            first=(100, 1000),
            look=(100, 1000),
            prices={"products": (0.5, 0.4, 540)},
        ),
    ],
    "KRN105": [
        Fires(
            steps([mm(1000), *NORM, mm(500), *NORM]),
            saving=1000,
            severity="HIGH",
            count=8,
            evidence={"pattern": "pow, mean, rsqrt, mul", "time": 1200, "part": 0.444444, "count": 8},
            ops=("pow, mean, rsqrt, mul",),
            draws="compute",
            each=1200,
            first=(1100, 1700),
            look=(1100, 1700),
            options={"least": (2, 2, 2.02), "share": (0.02, 0.25, 0.253)},
        ),
        Fires(
            steps([mm(500), *ROTARY, mm(500), *ROTARY]),
            saving=800,
            severity="HIGH",
            count=8,
            evidence={"pattern": "neg, cat, mul, add", "time": 1000, "part": 0.5, "count": 8},
            ops=("neg, cat, mul, add",),
            draws="compute",
            each=1000,
            first=(600, 1100),
            look=(600, 1100),
            options={"least": (2, 2, 2.02), "share": (0.02, 0.2, 0.202)},
        ),
        Fires(
            npu_sequence("MatMulV2", "Add", "Mul"),
            saving=904.5,
            severity="HIGH",
            count=9,
            evidence={"pattern": "matmul, add", "time": 1800, "part": 0.666667, "count": 9},
            ops=("matmul, add",),
            draws="compute",
            each=1800,
            first=(100, 400),
            look=(100, 400),
            options={"least": (2, 3, 4), "share": (0.02, 0.23076923076923078, 0.2307692307692308)},
        ),
        Fires(
            npu_sequence("Sort", "GatherV2", "Mul"),
            saving=904.5,
            severity="HIGH",
            count=9,
            evidence={"pattern": "sort, gather", "time": 1800, "part": 0.666667, "count": 9},
            ops=("sort, gather",),
            draws="compute",
            each=1800,
            first=(100, 400),
            look=(100, 400),
            options={"least": (2, 3, 4), "share": (0.02, 0.23076923076923078, 0.2307692307692308)},
        ),
    ],
    "KRN106": [
        Fires(
            steps([mm(1000), *CHAIN]),
            saving=600,
            bound=600,
            severity="MEDIUM",
            count=4,
            evidence={"time": 750, "part": 0.428571, "chains": 4, "count": 20},
            ops=("aten::mul", "aten::add", "aten::tanh"),
            draws="compute",
            each=750,
            first=(1100, 1850),
            look=(1100, 1850),
            options={"length": (4, 5, 6), "share": (0.02, 0.42857142857142855, 0.4285714285714286)},
        )
    ],
    "KRN107": [
        Fires(
            steps([mm(1000), TRANSPOSE, TRANSPOSE]),
            saving=300,
            severity="MEDIUM",
            count=8,
            evidence={"time": 300, "part": 0.230769, "count": 8},
            ops=("void cudnn::ops::nchwToNhwcKernel<float>",),
            draws="compute",
            each=300,
            first=(1100, 1400),
            look=(1100, 1400),
            options={"share": (0.02, 0.23076923076923078, 0.2307692307692308)},
        ),
        Fires(
            steps([mm(1000), CONTIGUOUS, CONTIGUOUS]),
            saving=227.25,  # Three quarters, with the gaps; at least half.
            low=151.5,
            bound=300,
            severity="MEDIUM",
            count=8,
            evidence={"time": 300, "part": 0.230769, "count": 8},
            ops=("void at::native::direct_copy_kernel_cuda",),
            draws="compute",
            each=300,
            first=(1100, 1400),
            look=(1100, 1400),
            advice=("views",),
            options={"share": (0.02, 0.23076923076923078, 0.2307692307692308)},
        ),
    ],
    "KRN108": [
        Fires(
            tuned(),
            severity="LOW",
            count=12,
            evidence={"time": 2700, "part": 1, "count": 12},
            ops=("aten::cudnn_convolution",),
            look=(600, 1500),
            options={"share": (0.1, 1, 1.01), "fixed": (0.9, 1, 1.01), "tries": (3, 1.01, 1), "cold": (10, 20, 21)},
        )
    ],
    "KRN109": [
        Fires(
            convolutions(bias=True),
            saving=450,
            severity="MEDIUM",
            count=12,
            evidence={"time": 450, "count": 12},
            ops=("aten::conv2d",),
            draws="compute",
            each=450,
            first=(1000, 1150),
            look=(1000, 1150),
            options={"least": (1, 3, 4)},
        )
    ],
    "KRN110": [
        Fires(
            steps([mm(1000), CAST, CAST]),
            saving=377.25,
            low=251.5,
            bound=500,
            severity="MEDIUM",
            count=8,
            evidence={"time": 500, "part": 0.333333, "count": 8},
            ops=("aten::_to_copy",),
            draws="compute",
            each=500,
            first=(1100, 1600),
            look=(1100, 1600),
            options={"share": (0.02, 0.3333333333333333, 0.33333333333333337)},
        ),
        Fires(
            made("aten::zeros"),
            saving=360,
            cost=300,
            severity="MEDIUM",
            sentence="on_host",
            count=4,
            evidence={"time": 300, "count": 4},
            ops=("aten::zeros",),
            advice=("create_on_device",),
            draws="mem_exposed",
            each=300,
            first=(1585, 1885),
            look=(1585, 1885),
        ),
        Fires(
            made("aten::randn", other="aten::zeros_like"),
            saving=360,
            cost=300,
            severity="MEDIUM",
            sentence="on_host",
            count=4,
            evidence={"time": 300, "count": 4},
            ops=("aten::randn",),
            advice=("create_on_device",),
            draws="mem_exposed",
            each=300,
            first=(1585, 1885),
            look=(1585, 1885),
        ),
    ],
    "KRN111": [
        Fires(
            steps([grid(0.3)]),
            saving=525,
            bound=1050,
            severity="MEDIUM",
            count=4,
            evidence={"time": 1500, "part": 1, "filled": 0.3, "count": 4},
            ops=("ampere_bf16_s16816gemm_bf16",),
            draws="compute",
            each=1500,
            first=(100, 1600),
            look=(100, 1600),
            options={"share": (0.1, 1, 1.01), "least_us": (10, 1500, 1501), "filled": (0.75, 0.301, 0.3)},
        ),
        # The other stream fills the device for half of the time.
        Fires(
            beside(740, grid(0.3)),
            saving=266,
            bound=532,
            severity="MEDIUM",
            count=4,
            evidence={"time": 1500, "part": 0.669643, "filled": 0.3, "count": 4},
            ops=("ampere_bf16_s16816gemm_bf16",),
            draws="compute",
            each=1500,
            first=(100, 1600),
            look=(100, 1600),
        ),
    ],
    "KRN112": [
        Fires(
            steps([mm(1000), GATHER, SCATTER]),
            saving=100,
            severity="LOW",
            count=4,
            evidence={"time": 260, "part": 0.206349, "backward": 200, "count": 4},
            ops=("aten::index_select",),
            draws="compute",
            each=200,
            first=(1160, 1360),
            look=(1160, 1360),
            options={"share": (0.01, 0.20634920634920634, 0.20634920634920637)},
        )
    ],
    "KRN113": [
        Fires(
            steps([mm(1000), cumsum(1024)]),
            saving=150,
            bound=300,
            severity="LOW",
            count=4,
            evidence={"time": 300, "part": 0.230769, "count": 4},
            ops=("aten::cumsum",),
            draws="compute",
            each=300,
            first=(1100, 1400),
            look=(1100, 1400),
            options={"share": (0.01, 0.23076923076923078, 0.2307692307692308)},
        )
    ],
    "KRN114": [
        Fires(
            checkpointed(1000, 30 * 2**30),
            saving=500.75,
            severity="MEDIUM",
            count=4,
            evidence={"time": 1000, "share": 0.25, "left": 0.625},
            draws="compute",
            options={"share": (0.15, 0.25, 0.253), "left": (0.2, 0.625, 0.63)},
        )
    ],
    "KRN115": [
        Fires(
            looping(20),
            saving=977,
            severity="HIGH",
            count=4,
            evidence={"time": 1000, "repeats": 20, "count": 4},
            ops=("aten::mul",),
            draws="compute",
            each=1000,
            first=(50, 100),
            look=(50, 100),
            options={"repeats": (10, 20, 21)},
        )
    ],
    "KRN116": [
        Fires(
            npu("AI_CPU", 500),
            saving=500,
            severity="MEDIUM",
            count=3,
            evidence={"time": 500, "part": 0.2, "longest": 500, "count": 3},
            ops=("aclnnIndex_1",),
            draws="compute",
            each=500,
            first=(2200, 2700),
            look=(2200, 2700),
            options={"longest_us": (20, 500, 501)},
        )
    ],
    "KRN117": [
        Fires(
            # Each reads and writes 134 MB: 131.65 µs at 2039 GB/s, half of it in float32.
            steps([mm(1000), DOUBLE, DOUBLE]),
            saving=131.65,
            low=80,
            bound=200,
            severity="LOW",
            count=8,
            evidence={"time": 400, "part": 0.285714, "count": 8},
            ops=("aten::add",),
            draws="compute",
            each=400,
            first=(1100, 1500),
            look=(1100, 1500),
            options={"share": (0.01, 0.2857142857142857, 0.28571428571428575)},
        )
    ],
    "KRN119": [
        Fires(
            steps([FLASH]),
            saving=2999.976,
            low=0,
            bound=2999.988,
            severity="MEDIUM",
            count=4,
            evidence={"op": "aten::mm", "shape": "64×64, 64×64", "time": 3000, "part": 1, "reached": 4e-06, "count": 4},
            ops=("aten::mm 64×64, 64×64",),
            draws="compute",
            each=3000,
            first=(100, 3100),
            look=(100, 3100),
            options={"share": (0.05, 1, 1.01), "least_us": (20, 3000, 3001), "most": (3, 0.01, 0)},
            prices={"reached": (0.5, 0.4, 2999.97)},
        ),
        # Two of four additions of equal tensors take 300 µs with another kernel where 100 do: 400 of 1800 µs too much.
        Fires(
            steps([*twins(300), mm(1000)], device=None),
            saving=200,
            low=0,
            bound=400,
            sentence="twins",
            severity="MEDIUM",
            confidence="LOW",
            count=8,
            evidence={
                "time": 600,
                "part": 0.333333,
                "beyond": 400,
                "op": "aten::add",
                "shape": "1024×1024, 1024×1024",
                "count": 8,
            },
            ops=("aten::add",),
            advice=("one_layout",),
            draws="compute",
            each=600,
            first=(200, 500),
            look=(200, 500),
            options={"share": (0.05, 0.222, 0.223), "reached": (0.5, 0.334, 0.333)},
        ),
    ],
}
SILENT = {
    "KRN101": [
        steps([mm(2000, dtype=FP)]),
        steps([mm(2000)]),
        steps([mm(100, dtype=FP, tensor=False), BIG]),
        steps([mm(2000, dtype=FP, tensor=False)], device=A100 | {"computeMajor": 6}),
    ],
    "KRN102": [
        steps([mm(2000)]),
        steps([mm(15, n=50257)] * 20),
        steps([mm(2000, n=1)]),
        # Packed tokens: rows of both operands and of the result are of 1024 and 4096 numbers.
        steps([mm(2000, m=4097)]),
        # Weights as they are stored: the gradient of 4097 tokens is a transposed view.
        steps([mm(2000, m=1024, k=4097, strides=[[1, 1024], [4096, 1]])]),
        steps([mm(1000, dtype=FP, n=5001, tensor=False)]),
    ],
    "KRN103": [steps([grid(3.9)]), steps([grid(0.05)])],
    "KRN104": [
        steps([BMM, SOFTMAX]),
        steps([BMM, *[BIG] * 2, SOFTMAX, BMM]),
        steps([Run("aten::_scaled_dot_product_flash_attention", 1500, kernel="flash_fwd_kernel")]),
    ],
    "KRN105": [
        steps([BIG, pointwise("pow", 100), pointwise("mul", 100)]),
        steps([mm(3000), *NORM]),
        steps([mm(500), pointwise("add", 100)] * 3),
        npu_sequence("MatMulV2", "Mul", "Add"),
        # This product adds its bias already; only one addition can be part of it.
        npu_sequence("MatMulV2", "Add", ops=("aten::addmm", "aten::add")),
    ],
    "KRN106": [
        steps([BIG, *CHAIN[:3], BIG]),
        steps([BIG, *(pointwise("mul", 150, [[2**n, 8]]) for n in range(3, 8))]),
        steps([Run("CompiledFunction", 300, X, [BF], "triton_poi_fused_add_0")] * 5),
    ],
    "KRN107": [
        steps([BIG, Run("aten::copy_", 150, kernel="void at::native::direct_copy_kernel_cuda")]),
        steps([BIG, Run("aten::conv_transpose2d", 500, kernel="cudnn_convTranspose_kernel")]),
        # A fused kernel computes, too.
        steps([BIG, Run("CompiledFunction", 500, kernel="triton_red_fused__to_copy_addmm_mean_transpose_view_31")]),
    ],
    "KRN108": [tuned(tries=8), tuned(allocations=0), tuned(sizes=4), steps([BIG])],
    "KRN109": [convolutions(bias=False), convolutions(bias=True, norm="aten::relu")],
    "KRN110": [
        made("aten::stack"),
        made("aten::zeros", between=True),
        steps([BIG, CONTIGUOUS]),
        steps([mm(3600), Run("aten::copy_", 50, kernel="copy", under="aten::_to_copy")]),
    ],
    "KRN111": [steps([grid(1.0)]), steps([grid(0.2, 5)] * 50), steps([grid(108 / 132)]), beside(750, grid(0.3))],
    "KRN112": [steps([BIG, GATHER]), steps([mm(1000), Run("aten::embedding", 300), SCATTER])],
    "KRN113": [steps([BIG, cumsum(65536)]), steps([BIG, cumsum(1024, FP)])],
    "KRN114": [checkpointed(1000, 75 * 2**30), checkpointed(100, 30 * 2**30)],
    "KRN115": [looping(8), looping(20, ["aten::mul", "aten::add", "aten::sub"])],
    "KRN116": [npu("AI_CPU", 10), npu("AI_VECTOR_CORE", 500)],
    "KRN117": [
        steps([BIG, pointwise("add", 200, dtype=FP)]),
        steps([mm(3500), pointwise("add", 5, dtype="double")]),
        steps([BIG, Run("aten::mul", 200, [[4096], []], ["long int", "double"])]),
    ],
    "KRN119": [
        beside(1500, mm(1500, m=512, n=512)),
        steps([Run("aten::mm", 4.0, [[64, 64], [64, 64]], [BF, BF], "ampere_bf16_s16816gemm_bf16")] * 20),
        steps([mm(200)]),
        # Less than twice as long, with the same kernel, or on another type.
        steps([*twins(199), mm(1000)], device=None),
        steps([*twins(300, kernel=POINTWISE), mm(1000)], device=None),
        steps([*twins(300, dtype="float"), mm(1000)], device=None),
    ],
}
