from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, Severity, rule

_QUERY = regex(r"EventQuery")


@rule(
    "MEM110",
    "late-release",
    title="many queries of events",
    sentence="The host asks {queries} times {per} whether an event has happened.",
    evidence={"queries": "queries a step"},
    confidence=Confidence.MEDIUM,
    needs="DLA",
    advice_texts={
        "record_streams.cuda": "torch before 2.8: TORCH_NCCL_AVOID_RECORD_STREAMS=1.",
        "record_streams.ascend": "MULTI_STREAM_MEMORY_REUSE=1, and keep references to tensors until wait().",
    },
    options={"queries": (500.0, "own: event queries a step")},
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Memory used by other streams is released late.

    What it finds
        More than 500 queries of events a step.
    Why it costs time
        The allocator keeps blocks that another stream used until an event tells that it is done, and asks at each
        request: memory stays reserved longer. The watchdog of collectives asks, too.
    How it is measured
        Calls `*EventQuery` a step.
    What to do
        torch before 2.8: `TORCH_NCCL_AVOID_RECORD_STREAMS=1`; Ascend: `MULTI_STREAM_MEMORY_REUSE=1`.

    References
        torch.distributed; torch_npu environment variables.
    """
    each = len(facts.rows(EventKind.API, _QUERY)) / max(facts.window.count, 1)
    if facts.marked and each > options.number("queries"):
        yield Finding(evidence=(Evidence("queries", round(each), "COUNT"),), count=round(each), severity=Severity.INFO)
