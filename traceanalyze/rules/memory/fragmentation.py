from traceanalyze.rules.common.allocations import memory_finding
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, Severity, measured, need, rule


@rule(
    "MEM104",
    "fragmentation",
    title="memory free only in pieces",
    sentence=(
        "The reserve grew for a request of {request} although {free} were free, the largest piece {hole}; {amount} "
        "could be saved."
    ),
    confidence=Confidence.MEDIUM,
    needs="N",
    advice=("expandable_segments", "allocate_first"),
    advice_texts={"allocate_first": "Allocate long-lived tensors first."},
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """The reserve grows although enough memory is free.

    What it finds
        Growth of the reserve for requests smaller than what was free, in pieces too small for them.
    Why it costs time
        The device's memory fills up early; at its limit the allocator waits for the device and tries again.
    How it is measured
        Replay of the snapshot's history at every growth; never at the dump, where
        most is free in healthy programs.
    What to do
        `expandable_segments:True`; allocate long-lived tensors first.

    References
        Understanding CUDA memory usage; CUDA semantics.
    """
    found = need(facts.snapshot.fragmentation)
    if found.level != "none":
        severity = {"info": Severity.INFO, "warn": Severity.MEDIUM}.get(found.level, Severity.HIGH)
        evidence = measured(request=found.request, free=found.free, hole=found.largest_hole, amount=found.avoidable)
        yield memory_finding(severity, found.pinner, found.growths, *evidence)
