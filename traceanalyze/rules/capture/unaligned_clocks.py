from traceanalyze.rules.capture import failed_checks
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule


@rule(
    "CAP108",
    "unaligned-clocks",
    title="clocks coarse or apart",
    sentence="Clocks are coarse or disagree; see {checks} under the quality of the recording.",
    confidence=Confidence.HIGH,
    needs="",
    advice_texts={
        "newer_torch": "A newer torch (2.3 or later) records nanoseconds.",
        "newer_torch.ascend": "A newer driver and torch_npu align the clocks better; durations are right in any case.",
    },
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Clocks are coarse or do not agree.

    What it finds
        Clocks of whole microseconds, and of host and device that differ.
    Why it costs time
        It costs the program nothing; it touches the numbers of the report.
    How it is measured
        By the checks of the recording's quality that stand at the end of the report.
    What to do
        A newer torch records nanoseconds; on Ascend `mstx` or a newer driver aligns the clocks.

    References
        torch.profiler.
    """
    yield from failed_checks(each for each in facts.analysis.checks if each.id in ("Q04", "Q09"))
