from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, Severity, measured, rule


@rule(
    "CAP110",
    "few-steps",
    title="few steps recorded",
    sentence="Only {steps} complete step(s): medians and patterns are uncertain.",
    confidence=Confidence.HIGH,
    needs="",
    advice_texts={"more_steps": "Record more steps: schedule(…, active=5)."},
    options={"steps": (3.0, "own: medians of fewer are shaky")},
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Few complete steps were recorded.

    What it finds
        Recordings of less than three complete steps.
    Why it costs time
        It costs the program nothing, but what varies from step to step cannot be told.
    How it is measured
        Number of complete steps.
    What to do
        Record more: `schedule(…, active=5)`.

    References
        torch.profiler.
    """
    complete = facts.window.count
    if facts.marked and complete < options.number("steps"):
        yield Finding(evidence=measured(steps=complete), count=complete, severity=Severity.INFO)
