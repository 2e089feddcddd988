from dataclasses import replace

from traceanalyze.rules.common.allocations import memory_finding
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Findings, Options, Severity, measured, need, rule


@rule(
    "MEM108",
    "leak",
    title="memory left behind by every step",
    sentence="Every step leaves {amount} behind at {line} (seen over {steps} steps).",
    confidence=Confidence.HIGH,
    needs="N",
    advice_texts={
        "drop_references": (
            "Keep .item() or .detach() instead of tensors with their graph; drop references after the step."
        )
    },
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Every step leaves memory behind.

    What it finds
        Blocks of one line that survive every step.
    Why it costs time
        Memory fills up until a request fails.
    How it is measured
        Survivors of all complete steps by their stack, constant and equal, within 20 %, to the rise of what is in use
        between steps.
    What to do
        Keep `.item()` or `.detach()` instead of tensors with their graph; drop references at the end of the step.

    References
        Understanding CUDA memory usage; CUDA semantics.
    """
    for leak in need(facts.snapshot.leaks):
        sure = leak.confidence == "likely"
        found = memory_finding(
            Severity.HIGH if sure else Severity.LOW,
            leak.line,
            leak.steps,
            Evidence("amount", leak.per_step, "MEMORY", line=leak.line),
            *measured(steps=leak.steps),
            Evidence("line", leak.line, "NAME", line=leak.line),
        )
        yield replace(found, confidence=Confidence.HIGH if sure else Confidence.MEDIUM)
