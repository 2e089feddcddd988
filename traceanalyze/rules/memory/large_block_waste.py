from traceanalyze.rules.common.allocations import memory_finding
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, Severity, measured, need, rule


@rule(
    "MEM106",
    "large-block-waste",
    title="free blocks too large to be used",
    sentence=(
        "The reserve grew {count} times for requests such as {request} although {hole} lay free in one piece, too "
        "large to be given away; {amount} could be saved."
    ),
    confidence=Confidence.LOW,
    needs="N",
    advice_texts={
        "non_split_rounding": "Raise max_non_split_rounding_mb (default 20), or leave max_split_size_mb out."
    },
    options={"growths": (2.0, "own: the first may be a change of phase")},
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Free blocks are too large to be used.

    What it finds
        Growth of the reserve for requests above `max_split_size_mb`, while a free block was larger by more than 20 MiB.
    Why it costs time
        Such blocks are never split, and are given away whole only to requests of nearly their size; so they lie idle
        while the device's memory fills up.
    How it is measured
        Free blocks of the snapshot's history at every growth, against the request. Without `max_split_size_mb` blocks
        are split, and there is nothing to find. What could be saved is what a replay of the allocator
        reserves less with all blocks split.
    What to do
        Raise `max_non_split_rounding_mb` (default 20), or leave `max_split_size_mb` out.

    References
        CUDA semantics: memory management.
    """
    found = need(facts.snapshot.oversized)
    if found.growths >= options.number("growths") and (saved := need(found.saved)) > 0:
        evidence = measured(count=found.growths, request=found.request, hole=found.unused, amount=saved)
        yield memory_finding(Severity.LOW, found.line, found.growths, *evidence)
