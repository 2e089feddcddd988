from dataclasses import replace

from traceanalyze.rules.common.allocations import memory_finding
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Findings, Options, Severity, measured, rule


@rule(
    "MEM112",
    "oom-cause",
    title="a request for memory failed",
    sentence={
        "": "A request of {request} failed with {free} free, the largest piece {hole}: {kind}.",
        "unlocated": "A request of {request} failed; where memory was free then is not known.",
    },
    evidence={"kind": "kind"},
    confidence=Confidence.HIGH,
    needs="N",
    advice=("less_memory", "expandable_segments"),
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """A request for memory failed.

    What it finds
        Failed requests, and what was free at that moment.
    Why it costs time
        The program ends, or tries again with less.
    How it is measured
        State of the replayed history at the failed request: free in pieces, in
        another stream or pool, on the device, or not at all.
    What to do
        As the kind of failure says: expandable segments, one stream for large tensors, or less memory.

    References
        Understanding CUDA memory usage; CUDA semantics.
    """
    for one in facts.snapshot.ooms:
        if one.free is None or one.largest_hole is None:
            yield memory_finding(Severity.HIGH, one.line, 1, *measured(request=one.request), sentence="unlocated")
            continue
        evidence = measured(request=one.request, free=one.free, hole=one.largest_hole)
        found = memory_finding(Severity.HIGH, one.line, 1, *evidence, Evidence("kind", one.kind, "NAME"))
        # Other segments help where memory is free in pieces, unless the replay says that they do not.
        in_pieces = one.kind in {"fragmentation", "split"} and one.expandable is not False
        yield found if in_pieces else replace(found, advice=("less_memory",))
