import numpy as np

from traceanalyze.model.patterns import regex
from traceanalyze.rules.common.communication import comm_finding, communicating
from traceanalyze.rules.facts import RANGES
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, measured, rule

_BACKWARD = regex(r"^CompiledFunctionBackward$")
_DDP = regex(r"^DistributedDataParallel\.forward$")


@rule(
    "CGR105",
    "ddp-compile-order",
    title="gradients reduced after the compiled backward",
    sentence=(
        "All-reduces of gradients begin only after the whole compiled backward: {exposed} {per} nothing hides them."
    ),
    confidence=Confidence.MEDIUM,
    needs="DLO",
    advice_texts={
        "compile_after_ddp": "Wrap the module in DistributedDataParallel first, then compile the wrapped module."
    },
    order=-1,
)
def find(facts: Facts, options: Options) -> Findings:
    """Gradients are reduced only after the whole compiled backward.

    What it finds
        DistributedDataParallel with a backward that is compiled as one graph, and all-reduces that are asked for only
        when it is over.
    Why it costs time
        Gradients come out of one graph all at once, so that no reduction overlaps with the backward.
    How it is measured
        One `CompiledFunctionBackward` a step, and no all-reduce launched before its end. The saving is the exposed time
        of the all-reduces.
    What to do
        Wrap the module in DistributedDataParallel first and compile the wrapped module: then the graph is split where
        buckets are full (`torch._dynamo.config.optimize_ddp`).

    References
        DistributedDataParallel; torch.compiler documentation.
    """
    backward = facts.rows(RANGES, _BACKWARD)
    if not len(backward) or len(backward) > facts.window.count or not len(facts.rows(RANGES, _DDP)):
        return
    work = facts.once(communicating)
    reduces = work.of_kind("all_reduce") & (work.issued > 0)
    count = int(reduces.sum())
    if count < 2:
        return
    spans = facts.spans(backward)
    at = np.searchsorted(spans[:, 0], work.issued[reduces], "right") - 1
    if (at < 0).any() or (work.issued[reduces] < spans[at, 1]).any():
        return
    exposed = work.exposed_mean(facts, reduces)
    evidence = measured(exposed=exposed, count=count)
    yield comm_finding(facts, reduces, evidence, saving=exposed, about="CompiledFunctionBackward")
