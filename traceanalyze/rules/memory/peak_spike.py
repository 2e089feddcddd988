from traceanalyze.rules.common.allocations import memory_finding
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, Severity, measured, need, rule


@rule(
    "MEM114",
    "peak-spike",
    title="short-lived blocks make the peak",
    sentence="Blocks that are freed again at once are {of_peak} of the peak ({amount}).",
    confidence=Confidence.MEDIUM,
    needs="N",
    advice_texts={"smaller_temporaries": "Compute in pieces, in place, or with a fused operator."},
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Short-lived blocks make the peak.

    What it finds
        A fifth or more of the peak in blocks that are freed again at once.
    Why it costs time
        The peak decides how large a batch can be; temporaries of softmax, cat, one-hot or casts raise it for an
        instant.
    How it is measured
        Blocks at the peak that are freed within the next 10 allocations.
    What to do
        Compute in pieces, in place, or with a fused operator.

    References
        Understanding CUDA memory usage; CUDA semantics.
    """
    spike = need(facts.snapshot.spike)
    if spike.flagged:
        yield memory_finding(Severity.MEDIUM, spike.line, 1, *measured(of_peak=spike.share, amount=spike.bytes))
