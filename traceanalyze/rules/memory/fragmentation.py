from traceanalyze.model.table import NotMeasured
from traceanalyze.rules.common.allocations import memory_finding
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Findings, NotApplicable, Options, Severity, rule


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
        Replay of the snapshot's history at every growth (memory-snapshot specification, D4); never at the dump, where
        most is free in healthy programs.
    What to do
        `expandable_segments:True`; allocate long-lived tensors first.

    References
        Understanding CUDA memory usage; CUDA semantics.
    """
    found = facts.snapshot.fragmentation
    if isinstance(found, NotMeasured):
        yield NotApplicable(found.reason)
    elif found.level != "none":
        yield memory_finding(
            {"info": Severity.INFO, "warn": Severity.MEDIUM}.get(found.level, Severity.HIGH),
            found.pinner,
            found.growths,
            Evidence("request", found.request, "MEMORY"),
            Evidence("free", found.free, "MEMORY"),
            Evidence("hole", found.largest_hole, "MEMORY"),
            Evidence("amount", found.avoidable, "MEMORY"),
        )
