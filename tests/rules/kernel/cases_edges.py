"""Rules about kernels just at their thresholds, and on hosts that compute: id → programs."""

from __future__ import annotations

from dataclasses import replace

from tests.ascend_builder import PID, AscendBuilder
from tests.rules.kernel.cases import (
    BF,
    BMM,
    CHAIN,
    CONTIGUOUS,
    FP,
    SCATTER,
    SOFTMAX,
    TRANSPOSE,
    convolutions,
    cumsum,
    grid,
    looping,
    pointwise,
    tuned,
)
from tests.rules.make import Fires, waiting
from tests.rules.on_host import Op
from tests.rules.on_host import steps as on_host
from tests.rules.sequences import A100, POINTWISE, Run, mm, read_npu, steps
from traceanalyze.model.trace import Device


def npu_products(*shapes, dtype="c10::BFloat16", library=""):
    """A product of 1500 µs in each of three steps, as a call of a library inside the operator where there is one."""
    b = AscendBuilder()
    for number in range(3):
        at = number * 4000
        b.step(number, at, 3900)
        b.op("aten::mm", at + 5, 20, **{"Input Dims": ";".join(shapes), "Input type": ";".join([dtype] * len(shapes))})
        asked = at + 6 if library else at + 5
        if library:
            b.op(library, asked, 18)
        b.kernel("aclnnMatMul_1", at + 100, 1500, op_type="MatMulV2", launch=at + 10)
        b.flow("async_npu", 7000 + number, (PID, PID, asked), (b.npu, 2, at + 100))
        b.call("AscendCL@aclrtSynchronizeDevice", at + 60, 1540)
    return read_npu(b)


def blocks(used, units):
    """A kernel of 1500 µs on so many of the cores in each of three steps."""
    b = AscendBuilder()
    for number in range(3):
        b.step(number, number * 4000, 3900)
        row = {"Block Dim": str(used)}
        at = number * 4000 + 100
        b.kernel("aclnnMatMul_1", at, 1500, op_type="MatMulV2", launch=at - 90, **row)
        b.call("AscendCL@aclrtSynchronizeDevice", at - 40, 1540)
    return replace(read_npu(b), devices=tuple(Device(number, "Ascend910B", None, each) for number, each in units))


def convolved(between, *, bias=True, thread=1, end=True):
    """A convolution of 800 µs, the addition of its bias of 150 µs, and batch norm on a thread."""
    b = steps([])
    for number in range(4):
        at, begin = number * 4000, number * 4000 + 200
        sizes = [[8, 3, 64, 64], [8, 3, 3, 3], *([[8]] if bias else [])]
        b.op("aten::conv2d", at, 50, **{"Input Dims": sizes})
        b.op("aten::cudnn_convolution", at + 5, 10)
        b.launch(at + 6, 3, begin, 800, name="cudnn_infer_ampere_scudnn")
        b.op("aten::add_", at + 20, 10)
        b.launch(at + 22, 3, begin + 800, 150, name=POINTWISE)
        if between:
            b.op("aten::mul", at + 51, 3)
        b.op("aten::batch_norm", at + 55, 20, tid=thread)
        b.launch(at + 57, 3, begin + 950, 100, name="bn_fw_tr", tid=thread)
        b.op("aten::add_", at + 80, 10)
        b.launch(at + 82, 3, begin + 1050, 70, name=POINTWISE)
    if end:
        b.op("aten::conv2d", 15_900, 50, **{"Input Dims": [[8, 3, 64, 64], [8, 3, 3, 3], [8]]})
    return waiting(b)


def filled_and_moved(*, count=4, move="aten::to", thread=1, later=False, inside=False):
    """A tensor of the host is filled, and copied to the device for 300 µs, in the first steps; another copy follows."""
    b = steps([mm(200)] * 5)
    for number in range(4):
        at = number * 4000.0 + 1500
        if number < count:
            if inside:
                b.op("aten::one_hot", at - 5, 60)
            b.op("aten::zeros", at, 50)
            b.op(move, at + 65, 30, tid=thread)
            b.copy(at + 70, 10, at + 85, 300, tid=thread, name="Memcpy HtoD (Pageable -> Device)", bytes=4 << 20)
        b.op("aten::copy_", at + 500, 30)
        b.copy(at + 510, 10, at + 525, 200, name="Memcpy HtoD (Pageable -> Device)", bytes=4 << 20)
    if later:
        b.op("aten::zeros", 15_990, 5)
    return waiting(b)


def halves():
    """Convolutions of one size in the first two steps, of another in the others; the first step allocates memory."""
    b = steps([])
    for number in range(4):
        at = number * 4000.0
        for part in range(10 if number == 0 else 0):
            b.api("cudaMalloc", at + 10 + 20 * part, 15)
        side = 64 + 32 * (number // 2)
        b.op("aten::cudnn_convolution", at + 500, 90, **{"Input Dims": [[8, 3, side, side], [8, 3, 3, 3]]})
        b.launch(at + 505, 3, at + 600, 900, name="cudnn_infer")
    return b


DOUBLE = (("Input Dims", [[8, 8]]), ("Input type", ["double"]))
FLOAT = (("Input Dims", [[8, 8]]), ("Input type", ["float"]))
V100 = A100 | {"name": "Tesla V100-SXM2-16GB", "computeMajor": 7}
UNKNOWN = A100 | {"name": "Example GPU"}
GATHER = Run("aten::index_select", 60, [[5000, 64], [], [300]], [FP, "", "long int"], "indexSelectLargeIndex")


def on_host_attention(*between):
    product = Op("aten::matmul", 220, (Op("aten::expand", 10), Op("aten::bmm", 200)))
    return on_host(product, *between, product)


def tiny(size):
    return [pointwise(name, 150, [[size]]) for name in ("mul", "add", "tanh", "mul")]


SCALE = Op("aten::div", 80)
HOST_SOFTMAX = Op("aten::softmax", 100, (Op("aten::_softmax", 90),))

FIRES = {
    "KRN108": [
        Fires(
            halves(),
            severity="LOW",
            count=4,
            evidence={"time": 900, "part": 1, "count": 4},
            ops=("aten::cudnn_convolution",),
            look=(600, 1500),
            options={"share": (0.1, 1, 1.01), "fixed": (0.9, 1, 1.01), "tries": (3, 1.01, 1), "cold": (10, 10, 11)},
        )
    ],
    "KRN101": [
        # Half of the other float32 kernels goes with 16 bits, which is part of the bound only.
        Fires(
            steps([mm(2000, dtype=FP, tensor=False), pointwise("add", 300, dtype=FP), pointwise("add", 300)]),
            saving=1500,
            low=1000,
            bound=2000,
            confidence="MEDIUM",
            severity="HIGH",
            count=4,
            evidence={"time": 2000, "part": 0.769231, "count": 4},
            ops=("aten::mm",),
            draws="compute",
            each=2000,
            first=(100, 2100),
            look=(100, 2100),
            options={"share": (0.1, 0.7692307692307693, 0.7692307692307694)},
            prices={"reached": (0.25, 0.4, 1687.5)},
        ),
        Fires(
            steps([mm(2000, dtype=FP, tensor=False)], device=V100),
            saving=1497.6,
            low=1000,
            bound=1748.8,
            confidence="MEDIUM",
            severity="HIGH",
            sentence="volta",
            count=4,
            evidence={"time": 2000, "part": 1, "count": 4},
            ops=("aten::mm",),
            advice=("autocast_float16",),
            draws="compute",
            each=2000,
            first=(100, 2100),
            look=(100, 2100),
            options={"share": (0.1, 1, 1.01)},
            prices={"reached": (0.25, 0.4, 1686)},
        ),
        Fires(
            steps([mm(2000, dtype=FP, tensor=False)], device=UNKNOWN),
            saving=1000,
            low=0,
            bound=1875,
            confidence="MEDIUM",
            severity="MEDIUM",
            count=4,
            evidence={"time": 2000, "part": 1, "count": 4},
            ops=("aten::mm",),
            draws="compute",
            each=2000,
            first=(100, 2100),
            look=(100, 2100),
            options={"share": (0.1, 1, 1.01)},
            prices={"reached": (0.25, 0.4, 1375)},
        ),
    ],
    "KRN102": [
        *(
            Fires(
                npu_products("4096,1000", "1000,4096", library=library),
                saving=450,
                low=225,
                bound=750,
                severity="MEDIUM",
                confidence="LOW",
                count=3,
                evidence={"time": 1500, "part": 1, "shape": "4096×1000 · 1000×4096", "count": 3},
                ops=("aten::mm",),
                draws="compute",
                each=1500,
                first=(100, 1600),
                look=(100, 1600),
                options={"least_us": (20, 1500, 1501)},
                prices={"gain": (0.3, 0.24, 360)},
            )
            for library in ("", "aclnnMm")
        ),
        Fires(
            npu_products("4096,1024", "1024,1000"),
            saving=450,
            low=225,
            bound=750,
            severity="MEDIUM",
            confidence="LOW",
            count=3,
            evidence={"time": 1500, "part": 1, "shape": "4096×1024 · 1024×1000", "count": 3},
            ops=("aten::mm",),
            draws="compute",
            each=1500,
            first=(100, 1600),
            look=(100, 1600),
            options={"least_us": (20, 1500, 1501)},
            prices={"gain": (0.3, 0.24, 360)},
        ),
        Fires(
            steps([mm(1500, dtype="c10::Half", n=4100)]),
            saving=450,
            low=225,
            bound=750,
            severity="MEDIUM",
            confidence="MEDIUM",
            count=4,
            evidence={"time": 1500, "part": 1, "shape": "4096×1024 · 1024×4100", "count": 4},
            ops=("aten::mm",),
            draws="compute",
            each=1500,
            first=(100, 1600),
            look=(100, 1600),
            options={"least_us": (20, 1500, 1501)},
            prices={"gain": (0.3, 0.24, 360)},
        ),
        Fires(
            steps([mm(1500, dtype="signed char", n=4104)]),
            saving=450,
            low=225,
            bound=750,
            severity="MEDIUM",
            confidence="MEDIUM",
            count=4,
            evidence={"time": 1500, "part": 1, "shape": "4096×1024 · 1024×4104", "count": 4},
            ops=("aten::mm",),
            draws="compute",
            each=1500,
            first=(100, 1600),
            look=(100, 1600),
            options={"least_us": (20, 1500, 1501)},
            prices={"gain": (0.3, 0.24, 360)},
        ),
        Fires(
            steps([mm(1500, dtype="char", n=4104)]),
            saving=450,
            low=225,
            bound=750,
            severity="MEDIUM",
            confidence="MEDIUM",
            count=4,
            evidence={"time": 1500, "part": 1, "shape": "4096×1024 · 1024×4104", "count": 4},
            ops=("aten::mm",),
            draws="compute",
            each=1500,
            first=(100, 1600),
            look=(100, 1600),
            options={"least_us": (20, 1500, 1501)},
            prices={"gain": (0.3, 0.24, 360)},
        ),
        Fires(
            steps([mm(1500, dtype="double", n=4097, tensor=False)]),
            saving=450,
            low=225,
            bound=750,
            severity="MEDIUM",
            confidence="MEDIUM",
            count=4,
            evidence={"time": 1500, "part": 1, "shape": "4096×1024 · 1024×4097", "count": 4},
            ops=("aten::mm",),
            draws="compute",
            each=1500,
            first=(100, 1600),
            look=(100, 1600),
            options={"least_us": (20, 1500, 1501)},
            prices={"gain": (0.3, 0.24, 360)},
        ),
        Fires(
            steps([mm(1500, dtype=FP, n=4098)]),
            saving=450,
            low=225,
            bound=750,
            severity="MEDIUM",
            confidence="MEDIUM",
            count=4,
            evidence={"time": 1500, "part": 1, "shape": "4096×1024 · 1024×4098", "count": 4},
            ops=("aten::mm",),
            draws="compute",
            each=1500,
            first=(100, 1600),
            look=(100, 1600),
            options={"least_us": (20, 1500, 1501)},
            prices={"gain": (0.3, 0.24, 360)},
        ),
        Fires(
            steps([mm(1500, n=4097), mm(1200, n=4098), mm(1100)]),
            saving=810,
            low=499.194,
            severity="HIGH",
            confidence="MEDIUM",
            count=8,
            evidence={"time": 2700, "part": 0.710526, "shape": "4096×1024 · 1024×4097", "count": 8},
            ops=("aten::mm",),
            draws="compute",
            each=2700,
            first=(100, 2800),
            look=(100, 2800),
            options={"least_us": (20, 1500, 1501)},
            prices={"gain": (0.3, 0.24, 687.731)},
        ),
    ],
    "KRN103": [
        Fires(
            steps([grid(1.05)]),
            saving=356.25,
            bound=712.5,
            count=4,
            evidence={"time": 1500, "part": 1, "count": 4},
            ops=("ampere_bf16_s16816gemm_bf16",),
            draws="compute",
            each=1500,
            first=(100, 1600),
            look=(100, 1600),
            options={"fraction": (0.2, 0.05000000000000005, 0.050000000000000044), "share": (0.1, 1, 1.01)},
        ),
        Fires(
            steps([grid(3.05), grid(2.0)]),
            saving=178.125,
            bound=356.25,
            count=4,
            evidence={"time": 1500, "part": 0.5, "count": 4},
            ops=("ampere_bf16_s16816gemm_bf16",),
            draws="compute",
            each=1500,
            first=(100, 1600),
            look=(100, 1600),
            options={"fraction": (0.2, 0.04999999999999983, 0.04999999999999982), "share": (0.1, 0.5, 0.51)},
        ),
    ],
    "KRN104": [
        Fires(
            on_host_attention(SCALE, HOST_SOFTMAX),
            saving=157.6,
            severity="MEDIUM",
            sentence="host",
            count=4,
            evidence={"time": 197, "share": 0.0985, "count": 4},
            ops=("aten::softmax",),
            advice=("fused_attention_host",),
            draws="host",
            each=200,
            first=(210, 410),
            look=(210, 410),
            prices={"between": (0.8, 0.64, 126.08)},
        ),
        Fires(
            steps([mm(100), BMM, SOFTMAX, BMM, mm(200)]),
            saving=400,
            severity="MEDIUM",
            count=4,
            evidence={"time": 700, "part": 0.7, "count": 4},
            ops=("aten::_softmax",),
            draws="compute",
            each=700,
            first=(200, 900),
            look=(200, 900),
            prices={"products": (0.5, 0.4, 340)},
        ),
    ],
    "KRN106": [
        Fires(
            steps([*tiny(2), mm(1000)]),
            saving=450,
            bound=450,
            severity="MEDIUM",
            count=4,
            evidence={"time": 600, "part": 0.375, "chains": 4, "count": 16},
            ops=("aten::mul", "aten::add", "aten::tanh"),
            draws="compute",
            each=600,
            first=(100, 700),
            look=(100, 700),
            options={"length": (4, 4, 5), "share": (0.02, 0.375, 0.38)},
        )
    ],
    "KRN122": [
        Fires(
            steps([mm(500), pointwise("add", 200, None), pointwise("relu", 100, None)] * 4),
            saving=200,
            low=0,
            bound=400,
            severity="MEDIUM",
            count=32,
            evidence={"time": 1200, "part": 0.375, "count": 32},
            ops=("aten::add", "aten::relu"),
            draws="compute",
            each=1200,
            first=(600, 900),
            look=(600, 900),
            options={"share": (0.1, 0.1, 0.101)},
        )
    ],
    "KRN107": [
        Fires(
            steps([Run("aten::clone", 300, kernel="void at::native::direct_copy_kernel_cuda"), mm(1000)]),
            saving=228.625,  # With the gap and its launch, the first of the step.
            low=151.75,
            bound=304,
            severity="MEDIUM",
            count=4,
            evidence={"time": 300, "part": 0.230769, "count": 4},
            ops=("void at::native::direct_copy_kernel_cuda",),
            draws="compute",
            each=300,
            first=(100, 400),
            look=(100, 400),
            advice=("views",),
            options={"share": (0.02, 0.23076923076923078, 0.2307692307692308)},
        ),
        # A transposed convolution on tensors of another format is none of them.
        Fires(
            steps([TRANSPOSE, Run("aten::conv", 150, kernel="nchwToNhwc_conv_transpose"), mm(500)]),
            saving=154,
            severity="LOW",
            count=4,
            evidence={"time": 150, "part": 0.1875, "count": 4},
            ops=("void cudnn::ops::nchwToNhwcKernel<float>",),
            draws="compute",
            each=150,
            first=(100, 250),
            look=(100, 250),
            options={"share": (0.02, 0.1875, 0.19)},
        ),
        Fires(
            steps([CONTIGUOUS, TRANSPOSE, mm(1000)]),
            saving=266.625,
            low=226.75,
            bound=305,
            severity="MEDIUM",
            count=8,
            evidence={"time": 300, "part": 0.230769, "count": 8},
            ops=("void at::native::direct_copy_kernel_cuda", "void cudnn::ops::nchwToNhwcKernel<float>"),
            draws="compute",
            each=300,
            first=(100, 400),
            look=(100, 400),
            options={"share": (0.02, 0.23076923076923078, 0.2307692307692308)},
        ),
    ],
    "KRN109": [
        Fires(
            convolved(False),
            saving=150,
            severity="LOW",
            count=4,
            evidence={"time": 150, "count": 4},
            ops=("aten::conv2d",),
            draws="compute",
            each=150,
            first=(1000, 1150),
            look=(1000, 1150),
            options={"least": (1, 1, 1.01)},
        ),
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
        ),
    ],
    "KRN110": [
        Fires(
            filled_and_moved(later=True),
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
            steps([Run("aten::_to_copy", 250, kernel="void at::native::direct_copy_kernel_cuda"), mm(1000)]),
            saving=191.125,
            low=126.75,
            bound=254,
            severity="LOW",
            count=4,
            evidence={"time": 250, "part": 0.2, "count": 4},
            ops=("aten::_to_copy",),
            draws="compute",
            each=250,
            first=(100, 350),
            look=(100, 350),
            options={"share": (0.02, 0.2, 0.202)},
        ),
    ],
    "KRN111": [
        Fires(
            blocks(8, [(0, 32)]),
            saving=562.5,
            bound=1125,
            severity="MEDIUM",
            count=3,
            evidence={"time": 1500, "part": 1, "filled": 0.25, "count": 3},
            ops=("aclnnMatMul_1",),
            draws="compute",
            each=1500,
            first=(100, 1600),
            look=(100, 1600),
            options={"share": (0.1, 1, 1.01), "least_us": (10, 1500, 1501)},
        ),
        Fires(
            blocks(8, [(0, 32), (1, 32)]),
            saving=562.5,
            bound=1125,
            severity="MEDIUM",
            count=3,
            evidence={"time": 1500, "part": 1, "filled": 0.25, "count": 3},
            ops=("aclnnMatMul_1",),
            draws="compute",
            each=1500,
            first=(100, 1600),
            look=(100, 1600),
            options={"share": (0.1, 1, 1.01), "least_us": (10, 1500, 1501)},
        ),
        Fires(
            steps([grid(0.3), grid(1.0)]),
            saving=525,
            bound=1050,
            severity="MEDIUM",
            count=4,
            evidence={"time": 1500, "part": 0.5, "filled": 0.3, "count": 4},
            ops=("ampere_bf16_s16816gemm_bf16",),
            draws="compute",
            each=1500,
            first=(100, 1600),
            look=(100, 1600),
            options={"share": (0.1, 0.5, 0.51), "least_us": (10, 1500, 1501)},
        ),
        Fires(
            steps([grid(0.3), mm(1000)]),
            saving=525,
            bound=1050,
            severity="MEDIUM",
            count=4,
            evidence={"time": 1500, "part": 0.6, "filled": 0.3, "count": 4},
            ops=("ampere_bf16_s16816gemm_bf16",),
            draws="compute",
            each=1500,
            first=(100, 1600),
            look=(100, 1600),
            options={"share": (0.1, 0.6, 0.61), "least_us": (10, 1500, 1501)},
        ),
    ],
    "KRN112": [
        Fires(
            steps([GATHER, SCATTER, mm(1000)]),
            saving=100,
            severity="LOW",
            count=4,
            evidence={"time": 260, "part": 0.206349, "backward": 200, "count": 4},
            ops=("aten::index_select",),
            draws="compute",
            each=200,
            first=(160, 360),
            look=(160, 360),
            options={"share": (0.01, 0.20634920634920634, 0.20634920634920637)},
        )
    ],
    "KRN113": [
        Fires(
            steps([cumsum(4096), mm(1000)]),
            saving=150,
            bound=300,
            severity="LOW",
            count=4,
            evidence={"time": 300, "part": 0.230769, "count": 4},
            ops=("aten::cumsum",),
            draws="compute",
            each=300,
            first=(100, 400),
            look=(100, 400),
            options={"share": (0.01, 0.23076923076923078, 0.2307692307692308)},
        ),
        Fires(
            steps([cumsum(2), mm(1000)]),
            saving=150,
            bound=300,
            severity="LOW",
            count=4,
            evidence={"time": 300, "part": 0.230769, "count": 4},
            ops=("aten::cumsum",),
            draws="compute",
            each=300,
            first=(100, 400),
            look=(100, 400),
            options={"share": (0.01, 0.23076923076923078, 0.2307692307692308)},
        ),
    ],
    "KRN115": [
        Fires(
            looping(10),
            saving=462,
            severity="MEDIUM",
            count=4,
            evidence={"time": 500, "repeats": 10, "count": 4},
            ops=("aten::mul",),
            draws="compute",
            each=500,
            first=(50, 100),
            look=(50, 100),
            options={"repeats": (10, 10, 11)},
        )
    ],
    "KRN117": [
        Fires(
            # 268 MB move in 131.7 of 600 µs: no half of these is as much as a fifth of the time.
            steps([pointwise("add", 600, dtype="double"), mm(1000)]),
            saving=120,
            bound=300,
            severity="LOW",
            count=4,
            evidence={"time": 600, "part": 0.375, "count": 4},
            ops=("aten::add",),
            draws="compute",
            each=600,
            first=(100, 700),
            look=(100, 700),
            options={"share": (0.01, 0.375, 0.37500000000000006)},
        ),
        # A fifth of 400 µs, for as little moves in it, and half of 640 µs.
        Fires(
            steps([pointwise("add", 400, dtype="double"), mm(640, dtype="double", tensor=False), mm(1000)]),
            saving=400,
            low=208,
            bound=520,
            severity="MEDIUM",
            count=8,
            evidence={"time": 1040, "part": 0.509804, "count": 8},
            ops=("aten::mm", "aten::add"),
            draws="compute",
            each=1040,
            first=(100, 1140),
            look=(100, 1140),
            options={"share": (0.01, 0.5098039215686274, 0.5098039215686275)},
        ),
        Fires(
            on_host(Op("aten::add", 402, (), DOUBLE)),
            saving=200,
            severity="MEDIUM",
            sentence="host",
            count=4,
            evidence={"time": 400, "share": 0.2, "count": 4},
            ops=("aten::add",),
            draws="host.ops",
            each=402,
            first=(0, 402),
            look=(0, 402),
            options={"share": (0.01, 0.2, 0.202)},
        ),
        Fires(
            on_host(Op("aten::add", 402, (), FLOAT), Op("aten::add", 202, (), DOUBLE), Op("aten::add", 2, (), DOUBLE)),
            saving=100,
            severity="MEDIUM",
            sentence="host",
            count=4,
            evidence={"time": 200, "share": 0.1, "count": 4},
            ops=("aten::add",),
            draws="host.ops",
            each=202,
            first=(402, 604),
            look=(402, 604),
            options={"share": (0.01, 0.1, 0.101)},
        ),
    ],
    "KRN119": [
        Fires(
            steps([mm(1000)]),
            saving=779.745,
            low=0,
            severity="MEDIUM",
            count=4,
            evidence={
                "op": "aten::mm",
                "shape": "4096×1024, 1024×4096",
                "time": 1000,
                "part": 1,
                "reached": 0.110127,
                "count": 4,
            },
            ops=("aten::mm 4096×1024, 1024×4096",),
            draws="compute",
            each=1000,
            first=(100, 1100),
            look=(100, 1100),
            options={"share": (0.05, 1, 1.01), "least_us": (20, 1000, 1001), "most": (3, 0.01, 0)},
            prices={"reached": (0.5, 0.4, 724.682)},
        )
    ],
}
SILENT = {
    "KRN107": [steps([Run("aten::copy_", 150, kernel="fill_kernel", under="aten::contiguous"), mm(1000)])],
    "KRN101": [steps([mm(2000, dtype=FP, tensor=False)], device=A100 | {"computeMajor": 6})],
    "KRN102": [
        npu_products("4096,1024", "1024,512"),
        npu_products("4000,1024", "1024,512"),
        npu_products("8,4096,1000", "8,1000,4096"),
        npu_products("4096,1000", "1000,1"),
        npu_products("4096,1000"),
        steps([mm(1500, dtype="c10::Half", n=4104)]),
        steps([mm(1500, dtype="signed char", n=4112)]),
        steps([mm(1500, dtype="char", n=4112)]),
        steps([mm(1500, dtype="double", n=4098, tensor=False)]),
        steps([mm(1500, dtype=FP, n=4100)]),
        steps([mm(1500, dtype=BF, m=1, n=4097)]),
        steps([mm(1500, dtype="int", n=4097)]),
    ],
    "KRN103": [steps([grid(2.0)]), steps([grid(0.5)])],
    "KRN104": [on_host_attention(SCALE), on_host(Op("aten::_scaled_dot_product_flash_attention_for_cpu", 600))],
    "KRN106": [steps([*tiny(1), mm(1000)]), steps([mm(1000), *CHAIN[:3]])],
    "KRN122": [
        steps([mm(500), pointwise("add", 300, None)] * 4),
        # A loop over tensors reads each of them once.
        steps([mm(500), *[pointwise("add_", 100, None)] * 12]),
        steps([mm(500), *[Run("CompiledFunction", 200, kernel=f"triton_poi_fused_{n}") for n in range(5)]]),
    ],
    "KRN108": [tuned(allocations=9), tuned(tries=3)],
    "KRN109": [
        convolved(True),
        convolved(False, bias=False),
        convolved(False, thread=2),
    ],
    "KRN110": [
        filled_and_moved(count=3),
        filled_and_moved(thread=2),
        filled_and_moved(inside=True),
        filled_and_moved(move="aten::mul"),
    ],
    "KRN111": [blocks(32, [(0, 32)])],
    "KRN113": [steps([cumsum(4097), mm(1000)]), steps([cumsum(1), mm(1000)])],
    "KRN115": [looping(9)],
    "KRN117": [
        on_host(Op("aten::add", 402, (), FLOAT)),
        on_host(Op("aten::add", 402, (Op("aten::copy_", 400, (), FLOAT),), DOUBLE)),
    ],
    "KRN119": [steps([mm(220)])],
}
