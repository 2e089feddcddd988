import numpy as np

from traceanalyze.replay.replay import together
from traceanalyze.rules.common.computing import compute_finding, computing, fits, matters
from traceanalyze.rules.common.op_chains import names_under
from traceanalyze.rules.common.replay import without
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule

_KERNELS = r"nchwTo|nhwcTo|nchwAddPadding|TransData|(?i:transpose|permute)(?!d?_?gemm)"
_NOT = (
    r"(?i)conv_?transpose|conv.*Transpose|gemm|matmul"
    r"|^triton_(?!poi_fused_(?:_?(?:clone|permute|transpose|view|unsafe_view|contiguous|copy|expand|t)_)+\d+$)"
)
"""Names of fused kernels hold all operators in them."""
_COPY = r"direct_copy_kernel|copy_kernel_cuda|elementwise_kernel.*copy"
_OPS = r"^aten::(contiguous|clone)$"
_FORMATS = r"nchwTo|nhwcTo|nchwAddPadding|TransData"
"""What one format for all would make needless."""
_CONVOLUTION = r"(?i)convolution|^aten::conv"


@rule(
    "KRN107",
    "layout-copies",
    title="changes of layout",
    sentence="Kernels that only change the layout of tensors take {time} {per} ({part} of compute).",
    confidence=Confidence.MEDIUM,
    needs="D",
    advice=("one_layout",),
    advice_texts={
        "one_layout": (
            "Keep one layout: model and input .to(memory_format=torch.channels_last) with mixed precision; drop "
            ".contiguous() where a view will do."
        ),
        "views": "Drop .contiguous() and .clone() where a view will do; write tensors in the layout that is read next.",
        "one_layout.ascend": (
            "Keep one format: torch_npu.npu.config.allow_internal_format decides whether private formats are used; "
            "drop .contiguous() where a view will do."
        ),
    },
    options={"share": (0.02, "own: of compute")},
)
def find(facts: Facts, options: Options) -> Findings:
    """Tensors are brought into another layout again and again.

    What it finds
        Kernels that only move elements: transpositions, changes between NCHW and NHWC, `.contiguous()`, `TransData`.
    Why it costs time
        They read and write whole tensors and compute nothing; convolutions on tensor cores want channels last and get
        it by such kernels each time.
    How it is measured
        Kernels with such names, and copy kernels under `aten::contiguous` and `aten::clone`, from 2 % of compute on or
        where the step would be 2 % shorter. Changes of format go altogether where one format is kept; of the rest at
        least half, at most all; the saving is that of three quarters.
    What to do
        Drop `.contiguous()` where a view will do. Of changes of format and under convolutions: `channels_last` for
        model and input together with mixed precision; on Ascend keep one format (`allow_internal_format`).

    References
        PyTorch Performance Tuning Guide; msprof-analyze advisor.
    """
    work = facts.once(computing)
    by_name = fits(facts, work.name, _KERNELS) & ~fits(facts, work.name, _NOT)
    copies = np.flatnonzero(fits(facts, work.name, _COPY) & (work.op >= 0))
    chosen = by_name.copy()
    chosen[copies] |= names_under(facts, work.op[copies], _OPS)
    if not chosen.any():
        return
    formats = chosen & by_name & fits(facts, work.name, _FORMATS)
    others = chosen & ~formats
    half, most, every = (
        together(without(facts, work.event[formats]), without(facts, work.event[others], part))
        for part in (0.5, 0.75, 1.0)
    )
    if not matters(facts, chosen, most, options.number("share")):
        return
    saving = facts.per_step(work.time[formats]) + 3 * facts.per_step(work.time[others]) // 4
    between = (half, every) if others.any() else ()
    images = formats.any() or names_under(facts, work.op[chosen], _CONVOLUTION).any()
    advice = ("one_layout" if images else "views",)
    yield compute_finding(facts, chosen, saving=saving, codes=work.name, change=most, between=between, advice=advice)
