from traceanalyze.rules.common.allocations import memory_finding
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Findings, Options, Severity, rule


@rule(
    "MEM120",
    "rounding-waste",
    title="memory lost by rounding",
    sentence="Blocks are {waste} larger than what was asked for.",
    evidence={"waste": "more than asked for"},
    confidence=Confidence.LOW,
    needs="N",
    advice=("contiguous_buffer",),
    options={"share": (0.05, "own; real snapshots have at most 2.95 %")},
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Blocks are notably larger than what was asked for.

    What it finds
        Many tensors of sizes just above a step of the allocator's rounding.
    Why it costs time
        Memory that nobody can use.
    How it is measured
        Block bytes over requested bytes at the dump, 5 % or more; real programs
        rarely exceed 3 %.
    What to do
        One buffer with views in place of many tiny tensors; lower `roundup_power2_divisions`.

    References
        Understanding CUDA memory usage; CUDA semantics.
    """
    waste = facts.snapshot.rounding_waste
    if waste >= options.number("share"):
        yield memory_finding(Severity.INFO, "", 1, Evidence("waste", waste, "SHARE"))
