from traceanalyze.model import intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.facts import RANGES
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

_COMPILING = regex(
    r"\(dynamo_timed\)|_dynamo/convert_frame\.py\(\d+\): (_compile|compile_inner)"
    r"|CachingAutotuner\.benchmark_all_configs"
    r"|^(compile_fx|async_compile\.wait|GraphLowering)|_inductor/compile_fx\.py\(\d+\): compile_fx"
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
        Work of the compiler (Dynamo, Inductor, autotuning) inside the analysed steps.
    Why it costs time
        The host stands still for the time of a compilation, often seconds, and nothing is launched. After 8
        compilations of one function Dynamo gives up, and it runs eagerly.
    How it is measured
        Idle time of the device during ranges and Python functions of the compiler; on the host alone, their time. The
        first steps compile by right: record after them.
    What to do
        `TORCH_LOGS=recompiles` tells which guard failed; `dynamic=True` or `mark_dynamic` for sizes that change;
        learning rates and counters as tensors.

    References
        torch.compiler documentation.
    """
    rows = facts.rows((*RANGES, EventKind.PYTHON), _COMPILING)
    if len(rows) == 0:
        return
    host = merged(facts.spans(rows))
    spans = facts.overlap(host) if facts.missing("D") is None else intervals_of(*host)
    saving, bound = facts.length(spans), facts.mean(intervals.total(host))
    yield Finding(
        saving=saving,
        bound=bound,
        draws="idle",
        intervals=spans,
        evidence=measured(idle=saving, host=bound, count=len(host.start)),
        scope=Scope(ops=facts.names(rows)),
        count=len(host.start),
    )
