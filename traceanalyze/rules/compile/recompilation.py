from traceanalyze.model import intervals
from traceanalyze.replay.replay import Change
from traceanalyze.rules.common.one_off import comes_back, compiling
from traceanalyze.rules.rule import (
    Confidence,
    Facts,
    Finding,
    Findings,
    Options,
    Scope,
    intervals_of,
    measured,
    merged,
    rule,
)


@rule(
    "CGR102",
    "recompilation",
    title="compiling again",
    sentence="Compilation ({count} time(s) in all) takes {host} {per}; the device has no work for {idle} of it.",
    confidence=Confidence.HIGH,
    needs="O",
    advice_texts={
        "find_recompiles": (
            "TORCH_LOGS=recompiles names the guard that fails; dynamic=True or torch._dynamo.mark_dynamic for sizes, "
            "tensors for numbers that change."
        )
    },
    rare=True,
    order=-1,
)
def find(facts: Facts, options: Options) -> Findings:
    """Functions are compiled again in the midst of training.

    What it finds
        Work of the compiler (Dynamo, Inductor, autotuning) in three of the analysed steps or more, or again after a
        step without it.
    Why it costs time
        The host stands still for the time of a compilation, often seconds, and nothing is launched. After 8
        compilations of one function Dynamo gives up, and it runs eagerly.
    How it is measured
        Idle time of the device during ranges and Python functions of the compiler; on the host alone, their time. The
        first steps compile by right: CGR106 tells what that costs.
    What to do
        `TORCH_LOGS=recompiles` tells which guard failed; `dynamic=True` or `mark_dynamic` for sizes that change;
        learning rates and counters as tensors.

    References
        torch.compiler documentation.
    """
    rows = compiling(facts)
    if not comes_back(facts, facts.spans(rows)):
        return
    host = merged(facts.spans(rows))
    spans = facts.overlap(host) if facts.missing("D") is None else intervals_of(*host)
    saving, bound = facts.length(spans), facts.mean(intervals.total(host))
    yield Finding(
        saving=saving,
        bound=bound,
        change=Change(host),
        draws="idle",
        intervals=spans,
        evidence=measured(idle=saving, host=bound, count=len(host.start)),
        scope=Scope(ops=facts.names(rows)),
        count=len(host.start),
    )
