import numpy as np

from traceanalyze.model.kernel_classes import TensorCore
from traceanalyze.rules.common.computing import (
    PRODUCTS,
    compute_finding,
    computing,
    device_peaks,
    dtypes_of,
    op_text,
    part_of_compute,
)
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule

_TYPICAL = 8.0
"""Tensor cores over float32 units by the data sheets: V100 in 16 bits, A100 and H100 in TF32 (16 bits: twice)."""


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
    },
    confidence=Confidence.HIGH,
    needs="DOH",
    advice_texts={
        "autocast": (
            'Mixed precision: torch.autocast(device_type="cuda", dtype=torch.bfloat16) (float16 with a gradient scaler '
            "on devices without bfloat16)."
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
        "reached": (0.4, "own: part of the data sheets' speed-up that real products gain"),
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
        use matrix units (definitions §13); a kernel that the name does not tell is never counted. The saving takes 0.4
        of the data sheet's speed-up of TF32 (2 at least); the upper bound all of that of the fastest 16 bit type, and
        half of the other float32 kernels, which then move half as many bytes.
    What to do
        Mixed precision (`torch.autocast` with bfloat16); or TF32: `torch.set_float32_matmul_precision("high")` and
        `torch.backends.cudnn.allow_tf32 = True`.

    References
        PyTorch Performance Tuning Guide; torch.amp; TensorBoard profiler plugin.
    """
    newest = _generation(facts)
    if newest is not None and newest < 7:
        return
    work = facts.once(computing)
    product = np.isin(work.group, PRODUCTS)
    single = op_text(facts, "dtypes", work.op_row, _is_float, 0) == 1
    chosen = product & single & (work.tensor_core == TensorCore.NO)
    if not chosen.any() or part_of_compute(facts, chosen) < options.number("share"):
        return
    time, other = facts.per_step(work.time[chosen]), facts.per_step(work.time[single & ~product])
    faster, fastest = _faster(facts)
    yield compute_finding(
        facts,
        chosen,
        saving=round(time * (1 - 1 / max(2.0, options.number("reached") * faster))),
        bound=round(time * (1 - 1 / fastest)) + other // 2,
        sentence="volta" if newest == 7 else "",
        advice=("autocast",) if newest == 7 else (),
    )


def _is_float(text: str) -> int:
    return int(dtypes_of(text)[:1] == ["float"])


def _generation(facts: Facts) -> int | None:
    """First figure of the compute capability, None where it is not stated."""
    stated = [one.capability for one in facts.context.trace.devices if one.capability]
    major = stated[0].partition(".")[0] if stated else ""
    return int(major) if major.isdigit() else None


def _faster(facts: Facts) -> tuple[float, float]:
    """How many times as fast tensor cores are by the data sheet, in TF32 (if they have it) and in 16 bits."""
    peaks = device_peaks(facts)
    rates = {} if peaks is None else peaks.tflops
    slow, half = rates.get("fp32"), rates.get("fp16")
    fast = rates.get("tf32", half)
    if not slow or not fast:
        return _TYPICAL, 2 * _TYPICAL
    faster = max(2.0, fast / slow)
    return faster, max(faster, (half or 0.0) / slow)
