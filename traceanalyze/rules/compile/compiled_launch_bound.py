from functools import partial

from traceanalyze.model import intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.common.launching import at_least, late_host, launching
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

_COMPILED = regex(r"^Torch-Compiled Region|^CompiledFunction(Backward)?$|^## Call CompiledFxGraph")
_GRAPH = regex(r"^(cuda|hip)GraphLaunch")


@rule(
    "CGR103",
    "compiled-launch-bound",
    title="compiled code launched kernel by kernel",
    sentence="Compiled code launches its kernels one by one, and the device waits {idle} {per} for it.",
    confidence=Confidence.MEDIUM,
    needs="DLO",
    advice_texts={
        "reduce_overhead": 'torch.compile(mode="reduce-overhead") launches the kernels as a CUDA graph.',
        "reduce_overhead.ascend": "Compile with the torchair backend in graph mode.",
    },
    options={
        "share": (0.10, "as HST101"),
        "late": (0.20, "as HST101"),
        "graphs": (0.05, "own: launches of graphs over calls of compiled code, above which graphs are on"),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """Compiled code launches its kernels one by one, and the host is too slow.

    What it finds
        Programs whose host cannot keep the queue filled although they are compiled, and that launch no CUDA graphs.
    Why it costs time
        Compiled kernels are fewer, but each still costs a launch; a graph launches all of them at once.
    How it is measured
        As HST101, but only idle time while the host was in compiled regions.
    What to do
        `torch.compile(mode="reduce-overhead")` or `"max-autotune"`; inputs of constant shape and address, no inputs on
        the CPU, no mutated inputs; graphs take memory of their own.

    References
        torch.compiler documentation; PyTorch Performance Tuning Guide.
    """
    rows = facts.rows(RANGES, _COMPILED)
    if len(rows) == 0 or not late_host(facts, options):
        return
    if len(facts.rows(EventKind.API, _GRAPH)) > options.number("graphs") * len(rows):
        return
    host = facts.once(launching)
    spans = intervals_of(*intervals.intersect(facts.merged(host.spans), merged(facts.spans(rows))))
    saving = facts.length(spans)
    yield Finding(
        saving=saving,
        at_least=partial(at_least, facts, spans),
        bound=facts.length(host.spans),
        draws="idle",
        intervals=spans,
        evidence=measured(idle=saving, regions=len(rows)),
        scope=Scope(ops=facts.names(rows)),
        count=len(rows),
    )
