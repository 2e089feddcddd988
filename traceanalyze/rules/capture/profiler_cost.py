from traceanalyze.rules.capture import failed_checks
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule


@rule(
    "CAP107",
    "profiler-cost",
    title="profiler slowed the host",
    sentence=(
        "Recording details made the host slower, so its share is an upper bound; see {checks} under the quality of the "
        "recording."
    ),
    confidence=Confidence.HIGH,
    needs="",
    advice_texts={
        "light_recording": "Confirm findings about the host with a recording without stacks, shapes and memory."
    },
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Recording details made the host slower.

    What it finds
        Python stacks, shapes or memory recorded.
    Why it costs time
        The host is slower than without the profiler, so its share of the step is an upper bound.
    How it is measured
        By the checks of the recording's quality that stand at the end of the report.
    What to do
        Confirm findings about the host with a recording of activities alone.

    References
        torch.profiler.
    """
    yield from failed_checks(each for each in facts.analysis.checks if each.id == "Q11")
