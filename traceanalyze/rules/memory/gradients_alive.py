from traceanalyze.rules.common.allocations import memory_finding
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, Severity, measured, need, rule


@rule(
    "MEM117",
    "gradients-alive",
    title="gradients kept through the forward pass",
    sentence="{amount} of gradients ({of_peak} of the peak) live through the next forward pass.",
    confidence=Confidence.MEDIUM,
    needs="N",
    advice=("set_to_none",),
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Gradients live through the next forward pass.

    What it finds
        Bytes of gradients that are alive while the next forward pass reaches its peak.
    Why it costs time
        They add to the activations, so the peak is higher than it must be.
    How it is measured
        Blocks allocated in the accumulation of gradients that are alive at the next peak, 5 % of it or more.
    What to do
        `zero_grad(set_to_none=True)` right after `step()`; not while gradients are accumulated.

    References
        Understanding CUDA memory usage; CUDA semantics.
    """
    held = need(facts.snapshot.gradients)
    if held.flagged:
        yield memory_finding(Severity.LOW, "", 1, *measured(of_peak=held.share, amount=held.bytes))
