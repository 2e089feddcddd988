from traceanalyze.rules.common.checks import failed_checks
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule


@rule(
    "CAP103",
    "unlinked-events",
    title="device events without launch",
    sentence="Device events have no launch record; see {checks} under the quality of the recording.",
    confidence=Confidence.HIGH,
    needs="",
    advice=("profiler_warmup",),
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Device events have no launch record.

    What it finds
        Kernels and copies whose launch was not recorded.
    Why it costs time
        It costs the program nothing; it touches the numbers of the report.
    How it is measured
        By the checks of the recording's quality that stand at the end of the report.
    What to do
        Record longer than the queue is deep: a warm-up before the steps that count.

    References
        torch.profiler.
    """
    yield from failed_checks(each for each in facts.analysis.checks if each.id == "Q03" and each.message == "unlinked")
