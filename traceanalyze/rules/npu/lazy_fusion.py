from traceanalyze.model.kernel_classes import KernelGroup
from traceanalyze.rules.common.computing import computing, part_of_compute
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, Scope, Severity, measured, rule


@rule(
    "NPU106",
    "lazy-fusion",
    title="no lazy fusion",
    sentence="{count} element-wise kernels in all take {time} {per} ({part} of compute); no sign of lazy fusion.",
    confidence=Confidence.LOW,
    needs="DE",
    advice_texts={"lazy_fusion": "Try TORCH_NPU_LAZY_FUSION=True (experimental)."},
    options={"share": (0.10, "own: of compute"), "least": (20.0, "own: element-wise kernels a step")},
    platforms=("ascend",),
)
def find(facts: Facts, options: Options) -> Findings:
    """Chains of element-wise operators run without lazy fusion.

    What it finds
        Element-wise operators that take a tenth of compute or more on Ascend, without `TORCH_NPU_LAZY_FUSION`.
    Why it costs time
        Each of them reads and writes its tensors in memory, which a fused kernel would do once.
    How it is measured
        Device time of element-wise kernels; the variable as the profile states it. KRN106 prices the chains themselves.
    What to do
        Try `TORCH_NPU_LAZY_FUSION=True`, which is experimental and needs the task queue.

    References
        torch_npu environment variables.
    """
    stated = facts.context.trace.environment or {}
    if stated.get("TORCH_NPU_LAZY_FUSION", "").lower() in {"1", "true"}:
        return
    work = facts.once(computing)
    chosen = work.group == KernelGroup.ELEMENTWISE
    if not chosen.any() or part_of_compute(facts, chosen) < options.number("share"):
        return
    if int(chosen.sum()) < options.number("least") * facts.window.count:
        return
    yield Finding(
        evidence=measured(
            time=facts.per_step(work.time[chosen]), part=part_of_compute(facts, chosen), count=int(chosen.sum())
        ),
        scope=Scope(ops=("TORCH_NPU_LAZY_FUSION",)),
        severity=Severity.INFO,
    )
