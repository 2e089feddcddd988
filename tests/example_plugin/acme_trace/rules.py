"""What Acme wants to be told about its steps."""

from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, rule


@rule(
    "ACM101",
    "step-over-budget",
    confidence=Confidence.HIGH,
    needs="D",
    advice=(),
    options={"most_ms": (50.0, "what Acme has promised for a step")},
    threshold=False,
)
def find(facts: Facts, options: Options) -> Findings:
    """Steps take longer than Acme has promised.

    What it finds
        A mean step above `most_ms`.
    How it is measured
        Steps as the report has them.
    """
    if facts.step_time > options.number("most_ms") * 1e6:
        took, most = facts.step_time / 1e6, options.number("most_ms")
        yield Finding(
            text=f"a step takes {took:.3g} ms, the budget is {most:g} ms",
            evidence=(Evidence("time", facts.step_time, "DURATION"),),
        )
