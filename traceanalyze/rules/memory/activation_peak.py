from traceanalyze.rules.common.allocations import memory_finding, reserved_of_capacity
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, Severity, measured, rule


@rule(
    "MEM107",
    "activation-peak",
    title="activations make the peak",
    sentence="Activations are {of_peak} of the peak ({amount}).",
    confidence=Confidence.MEDIUM,
    needs="N",
    advice_texts={
        "checkpointing": "Activation checkpointing of blocks that are cheap to compute again (attention, MLP)."
    },
    options={"share": (0.5, "own: of the peak"), "near": (0.95, "as MEM109: reserved memory over the capacity")},
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Activations are most of the memory at its peak.

    What it finds
        Half or more of the peak in activations, in programs that run into the limit.
    Why it costs time
        The batch cannot grow, or requests fail.
    How it is measured
        Categories of the blocks at the peak, with retries, a failed request or little
        room left.
    What to do
        Activation checkpointing of blocks that are cheap to compute again; offloading.

    References
        Understanding CUDA memory usage; CUDA semantics.
    """
    allocator, reserved = facts.snapshot, reserved_of_capacity(facts)
    held, share, line = allocator.activations
    near = allocator.near_limit or (reserved is not None and reserved[0] >= options.number("near") * reserved[1])
    if held and share >= options.number("share") and (near or allocator.ooms or allocator.retries):
        yield memory_finding(Severity.MEDIUM, line, 1, *measured(of_peak=share, amount=held))
