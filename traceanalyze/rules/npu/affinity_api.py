import numpy as np

from traceanalyze.model import intervals
from traceanalyze.model.patterns import regex
from traceanalyze.rules.common.computing import computing
from traceanalyze.rules.facts import RANGES
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Facts,
    Finding,
    Findings,
    Options,
    Scope,
    Severity,
    merged,
    rule,
)

_OPTIMIZER = regex(r"^Optimizer\.step#(SGD|Adam|AdamW|AdamP|Adadelta|Lamb|RMSprop|RMSpropTF|BertAdam)\.step$")


@rule(
    "NPU107",
    "affinity-api",
    title="optimizer that is not fused",
    sentence="{optimizer} launches {kernels} kernels {per} ({time}); torch_npu has a fused one.",
    evidence={"optimizer": "optimizer"},
    confidence=Confidence.HIGH,
    needs="DO",
    advice_texts={"npu_fused_optimizer": "torch_npu.optim.NpuFusedAdamW, NpuFusedSGD and the like in its place."},
    options={"least": (100.0, "as HST111: kernels a step")},
    platforms=("ascend",),
)
def find(facts: Facts, options: Options) -> Findings:
    """The optimizer of torch is used where torch_npu has a fused one.

    What it finds
        `Optimizer.step` of an optimizer that torch_npu also has as `NpuFused…`, with many kernels.
    Why it costs time
        The plain optimizer launches several kernels for every parameter; the fused one keeps all parameters in one
        buffer.
    How it is measured
        Kernels launched inside `Optimizer.step#…` ranges of such optimizers, 100 and more a step, and their device
        time. Fused attention and norms are told by KRN104 and KRN105.
    What to do
        `torch_npu.optim.NpuFusedAdamW` and the like (SGD, Adam, AdamP, Adadelta, Lamb, RMSprop, RMSpropTF, BertAdam).

    References
        torch_npu.optim; msprof-analyze advisor.
    """
    rows = facts.rows(RANGES, _OPTIMIZER)
    if len(rows) == 0:
        return
    spans = facts.spans(rows)
    work, context = facts.once(computing), facts.context
    linked = context.event_op[work.event] >= 0
    started = np.where(linked, context.op_nest.start[np.maximum(context.event_op[work.event], 0)], -1)
    chosen = linked & intervals.contains(merged(spans), started)
    if int(chosen.sum()) < options.number("least") * facts.window.count:
        return
    yield Finding(
        evidence=(
            Evidence("optimizer", facts.name(int(rows[0])).partition("#")[2].partition(".")[0], "NAME"),
            Evidence("kernels", int(chosen.sum()) / facts.window.count, "NUMBER"),
            Evidence("time", facts.per_step(work.time[chosen]), "DURATION"),
        ),
        scope=Scope(ops=(facts.name(int(rows[0])),)),
        count=len(rows),
        severity=Severity.LOW,
    )
