import re
from dataclasses import replace

import numpy as np

from traceanalyze.rules.common.computing import compute_finding, computing
from traceanalyze.rules.common.op_chains import chains, fused_away
from traceanalyze.rules.common.replay import without
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Findings, Options, measured, rule

PATTERNS = {
    "pow, mean, rsqrt, mul": ("r", r"t?[pm]ua?r[mt]{1,3}"),
    "neg, cat, mul, add": ("n", r"nc[mt]{0,2}m?a|m?nc[mt]{1,2}a"),
    "silu, mul": ("i", r"im"),
    "gelu, mul": ("g", r"gm"),
    "group_norm, silu": ("G", r"Gt?i"),
    "add, layer_norm": ("N", r"at?N"),
}
"""Operators in order of launch, see `op_chains`: the rarest of them, and all; what frees no kernel (views, slices)
launches none."""
PATTERNS_NPU = {"matmul, add": ("M", r"Ma"), "sort, gather": ("o", r"ot?x")}
"""Those that only Ascend has a fused kernel for, or whose libraries do."""


@rule(
    "KRN105",
    "unfused-pattern",
    title="operators that have a fused kernel",
    sentence=(
        "{pattern} run one after the other ({count} time(s) in all), {time} {per} ({part} of compute), where one fused "
        "kernel would do."
    ),
    evidence={"pattern": "operators"},
    confidence=Confidence.HIGH,
    needs="DO",
    advice_texts={
        "fused_operators.cuda": (
            "torch.compile on the module, or fused norm, activation and rotary kernels (torch.nn.RMSNorm, Liger, Apex)."
        ),
        "fused_operators.ascend": (
            "torch_npu.npu_rms_norm, npu_rotary_mul, npu_swiglu, npu_geglu, npu_group_norm_silu, npu_add_layer_norm; "
            "MindSpeed npu_matmul_add, npu_moe_token_permute."
        ),
    },
    options={
        "least": (2.0, "own: occurrences a step; a single one is no pattern of a model"),
        "share": (0.02, "own: saving over the step; a model has some such operators in any case"),
    },
    order=-1,
)
def find(facts: Facts, options: Options) -> Findings:
    """Operators that have a fused kernel run one by one.

    What it finds
        Well-known sequences written out in Python: RMS norm (pow, mean, rsqrt, mul), rotary embedding (neg, cat, mul,
        add), SwiGLU (silu, mul), GeGLU (gelu, mul), group norm with SiLU, add with layer norm; on Ascend also a product
        without a bias followed by an addition, and sorting tokens by expert (sort, gather).
    Why it costs time
        Each operator reads its input from memory and writes its result back; one kernel would do that once.
    How it is measured
        Sequences of operators by launch on one thread, with nothing else between them that launches a kernel. The
        saving of each is the time of its kernels but the longest; at most, all of them.
    What to do
        `torch.compile` on the module, or fused norm, activation and rotary kernels; on Ascend `npu_rms_norm`,
        `npu_rotary_mul`, `npu_swiglu`, `npu_geglu`, `npu_group_norm_silu`, `npu_add_layer_norm`, `npu_matmul_add` and
        `npu_moe_token_permute` of MindSpeed (by the version of CANN).

    References
        msprof-analyze advisor; Ascend foundation-model tuning guide; torch.compiler.
    """
    found, work = facts.once(chains), facts.once(computing)
    patterns = PATTERNS | (PATTERNS_NPU if facts.platform == "ascend" else {})
    for name, (letter, pattern) in patterns.items():
        least = max(1, options.number("least") * facts.window.count)
        if found.text.count(letter) < least:
            continue
        runs = [match.span() for match in re.finditer(pattern, found.text)]
        if len(runs) < least:
            continue
        first, last = found.at[np.array(runs)].T
        length = last - first
        rows = found.order[np.repeat(last - np.cumsum(length), length) + np.arange(length.sum())]
        fused = rows[fused_away(work.time[rows], length)]
        saving = facts.per_step(work.time[fused])
        if facts.share(saving) < options.number("share"):
            continue
        one = compute_finding(
            facts, rows, saving=saving, about=name, count=len(runs), change=without(facts, work.event[fused])
        )
        time, part, _ = one.evidence
        yield replace(one, evidence=(Evidence("pattern", name, "TEXT"), time, part, *measured(count=len(runs))))
