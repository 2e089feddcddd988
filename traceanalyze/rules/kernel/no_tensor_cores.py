import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.kernels.op_work import device_peaks
from traceanalyze.model.columns import occurs
from traceanalyze.model.kernel_classes import FULL_FLOAT, KernelGroup, TensorCore
from traceanalyze.model.patterns import regex
from traceanalyze.replay.parts import shorter
from traceanalyze.replay.replay import together
from traceanalyze.rules.common.computing import (
    PRODUCTS,
    Computing,
    compute_finding,
    computing,
    dtypes_of,
    fits,
    kernels_of,
    op_text,
    part_of_compute,
    shapes_of,
)
from traceanalyze.rules.common.launching import LATE_HOST, launching
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, UnmeasuredError, rule

_FLOAT_KERNEL = rf"(?<![a-zA-Z0-9])sgemm(?!_(fp|bf)16)|simt_sgemm|convolve_sgemm|(?<![a-zA-Z0-9])scudnn|{FULL_FLOAT}"
"""Products in float32 by the names of their kernels: cuBLAS, CUTLASS and cuDNN without tensor cores; Tensile."""
_TENSILE = r"^Cijk_"
_NO_TILES = r"(?i)depthwise|dwconv|(?<!in)direct(?!_copy)|c1_k1|gemv"
"""Kernels for products that have no form with matrix units, or gain nothing by it: they wait for memory."""
_SKINNY = r"(?i)_32x\d+_sliced|split_?k|gemm_?SN|gemmk1"
"""Kernels for products with few rows or columns, which memory may limit: without shapes nothing tells."""
_FLOAT16_ONLY, _NONE = regex(r"V100|\bT4\b|RTX 20\d\d|Quadro RTX|TITAN (V|RTX)"), regex(r"P100|\bP40?\b|\bK80|GTX")
"""Devices by their names, where the capability is not stated: matrix units for float16 only; none at all."""
_LEAST, _TYPICAL = 2.0, 8.0
"""Tensor cores over float32 units: at least, and by the data sheets (V100 in 16 bits, A100 and H100 in TF32)."""


@rule(
    "KRN101",
    "no-tensor-cores",
    title="float32 products without tensor cores",
    sentence={
        "": "Matrix products in float32 take {time} {per} ({part} of compute) without tensor cores.",
        "volta": (
            "Matrix products in float32 take {time} {per} ({part} of compute) without tensor cores, which this device "
            "has for float16 only."
        ),
        "matrix": (
            "Matrix products in float32 take {time} {per} ({part} of compute); the device's matrix units are several "
            "times as fast in 16 bits."
        ),
    },
    confidence=Confidence.HIGH,
    needs="D",
    advice=("autocast", "tf32"),
    advice_texts={
        "autocast_float16": (
            "Mixed precision: torch.autocast with dtype=torch.float16, and torch.amp.GradScaler; this device has no "
            "units for bfloat16 and TF32."
        ),
        "autocast": (
            'Mixed precision: torch.autocast(device_type="cuda", dtype=torch.bfloat16), or float16 with a gradient '
            "scaler."
        ),
        "autocast.ascend": (
            'Mixed precision: torch.autocast(device_type="npu", dtype=torch.bfloat16) (float16 with a gradient scaler '
            "on devices without bfloat16)."
        ),
        "tf32.ascend": "Or HF32: torch.npu.matmul.allow_hf32 = True (and torch.npu.conv.allow_hf32).",
        "tf32": 'Or TF32: torch.set_float32_matmul_precision("high") and torch.backends.cudnn.allow_tf32 = True.',
    },
    options={
        "share": (0.10, "TensorBoard plugin and PyTorch pattern matcher, rounded: products from a tenth of compute on"),
        "reached": (0.25, "own: part of the data sheets' speed-up at least; twice that is likely"),
    },
    platforms=("cuda",),
)
def find(facts: Facts, options: Options) -> Findings:
    """Float32 matrix products and convolutions run without tensor cores.

    What it finds
        Operators that multiply float32 matrices with kernels that do not use tensor cores, on devices that have them.
    Why it costs time
        Tensor cores multiply several times as fast as the float32 units, in TF32 and still more in bfloat16.
    How it is measured
        Device time of matrix products and convolutions whose first tensor is float32 and whose kernel is known not to
        use matrix units (definitions §13), or to multiply in full precision on them (`Cijk_…_SB_…`); where the types of
        tensors are not recorded, of those whose kernels' names tell float32 (`sgemm`, `scudnn`, `Cijk_…_SB_…`). A
        kernel that neither tells is never counted, nor are those of depthwise and other direct convolutions and of
        products with a vector, which have no use for matrix units, nor without shapes those for products with few rows.
        The saving takes at least a quarter of the data sheet's speed-up of TF32, or 2, and likely half of it where
        shapes tell what limits a product and the host is not late, which mixed precision gives more to launch; at best
        all of that of the fastest 16 bit type, and half of the other float32 kernels, which then move half as many
        bytes. A product never becomes shorter than it takes to move its operands, and one that these limit already
        (definitions §13) gains nothing; where nothing tells how long that is, nothing is certain.
    What to do
        Mixed precision (`torch.autocast` with bfloat16; with float16 on devices that have matrix units for nothing
        else, such as V100 and T4); or TF32: `torch.set_float32_matmul_precision("high")` and
        `torch.backends.cudnn.allow_tf32 = True`.

    References
        PyTorch Performance Tuning Guide; torch.amp; TensorBoard profiler plugin.
    """
    units = _units(facts)
    if not units:
        return
    work = facts.once(computing)
    product = np.flatnonzero(occurs(work.group, PRODUCTS))
    single = op_text(facts, "dtypes", work.op_row[product], _is_float, -1)
    by_name = fits(facts, work.name, _FLOAT_KERNEL) & ~fits(facts, work.name, _SKINNY)
    depthwise = work.group[product] == KernelGroup.CONVOLUTION
    depthwise[depthwise] = op_text(facts, "shapes", work.op_row[product[depthwise]], _depthwise, 0) == 1
    full = (work.tensor_core == TensorCore.NO) | fits(facts, work.name, FULL_FLOAT)
    slow = ((single == 1) & full[product]) | ((single < 0) & by_name[product])
    chosen = product[slow & ~depthwise & ~fits(facts, work.name, _NO_TILES)[product]]
    untyped = bool((single < 0).all())
    if untyped or len(chosen):
        single = op_text(facts, "dtypes", work.op_row, _is_float, -1)
    if not len(chosen) or part_of_compute(facts, chosen) < options.number("share"):
        if len(product) and untyped and (single < 0).all() and not by_name.any():
            raise UnmeasuredError("no_shapes")
        return
    others = single == 1
    others[product] = False
    faster, fastest = _faster(facts)
    room = _room(facts, work)[chosen]
    limited, room = np.isfinite(room), np.nan_to_num(room, nan=1.0)
    reached = options.number("reached") * faster
    least, likely = (np.minimum(room, 1 - 1 / max(_LEAST, part * reached)) for part in (1, 2))
    # Mixed precision gives a late host more to launch, and without shapes a product may be small.
    late = facts.once(launching).bound(*(float(value) for value, _ in LATE_HOST.values()))
    usual = np.where(limited & (not late), likely, least)
    at_best = together(
        shorter(facts.context, work.event[chosen], np.minimum(room, 1 - 1 / fastest)),
        shorter(facts.context, work.event[others], 0.5),
    )
    tensile = bool(fits(facts, work.name[chosen], _TENSILE).all())
    saved = np.round(work.time[chosen] * usual).astype(np.int64)
    yield compute_finding(
        facts,
        chosen,
        saving=facts.per_step(saved),
        low=facts.per_step(np.round(work.time[chosen] * least)[limited].astype(np.int64)),
        change=shorter(facts.context, work.event[chosen], usual),
        between=(at_best,),
        sentence="matrix" if tensile else "volta" if units == "float16" else "",
        advice=("autocast",) if tensile else ("autocast_float16",) if units == "float16" else (),
    )


def _room(facts: Facts, work: Computing) -> NDArray[np.float64]:
    """Part of each kernel's time that faster units could save: without what moving the operands takes at least.

    NaN where nothing tells.
    """
    room, peaks, table = np.full(len(work), np.nan), facts.context.once(device_peaks), facts.analysis.tables["op_rates"]
    if peaks is None or table.absent is not None:
        return room
    for one in table.records():
        if one.bound not in {"bound_compute", "bound_memory"} or one.dtype != "fp32":
            continue
        moving = one.bytes / peaks.bandwidth / max(one.device_time_ns, 1)
        room[kernels_of(facts, one.op, one.shapes)] = max(0.0, 1 - moving) if one.bound == "bound_compute" else 0.0
    return room


def _depthwise(text: str) -> int:
    """Whether each channel of a convolution has filters of its own: the weights, which come last, have one channel."""
    *_, data, weight = ([0, 0], [0, 0], *(shape for shape in shapes_of(text) if len(shape) >= 3))
    return int(weight[1] == 1 < data[1])


def _is_float(text: str) -> int:
    return int(dtypes_of(text)[:1] == ["float"])


def _units(facts: Facts) -> str:
    """Types that the device's matrix units have: `all`, `float16` only, or nothing where there are none."""
    devices = facts.context.trace.devices
    stated = [one.capability for one in devices if one.capability]
    major = stated[0].partition(".")[0] if stated else ""
    names = " ".join(one.name for one in devices)
    if major.isdigit():
        return "" if int(major) < 7 else "float16" if int(major) == 7 else "all"
    return "" if _NONE.search(names) else "float16" if _FLOAT16_ONLY.search(names) else "all"


def _faster(facts: Facts) -> tuple[float, float]:
    """How many times as fast tensor cores are by the data sheet, in TF32 (if they have it) and in 16 bits."""
    peaks = facts.context.once(device_peaks)
    rates = {} if peaks is None else peaks.tflops
    slow, half = rates.get("fp32"), rates.get("fp16")
    fast = rates.get("tf32", half)
    if not slow or not fast:
        return _TYPICAL, 2 * _TYPICAL
    faster = max(_LEAST, fast / slow)
    return faster, max(faster, (half or 0.0) / slow)
