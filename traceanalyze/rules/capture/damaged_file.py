from traceanalyze.rules.capture import failed_checks
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule


@rule(
    "CAP104",
    "damaged-file",
    title="damaged file",
    sentence=(
        "The recording is damaged, incomplete or has impossible values; see {checks} under the quality of the "
        "recording."
    ),
    confidence=Confidence.HIGH,
    needs="",
    advice_texts={"write_whole": "Let the profiler finish writing before the program ends."},
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """The file is damaged, tables of it are missing, or it has impossible values.

    What it finds
        Truncated or broken files, missing tables, events without times, impossible durations.
    Why it costs time
        It costs the program nothing; it touches the numbers of the report.
    How it is measured
        By the checks of the recording's quality that stand at the end of the report.
    What to do
        Let the profiler finish writing before the program ends; copy the file again.

    References
        torch.profiler.
    """
    yield from failed_checks(each for each in facts.analysis.checks if each.id in ("Q01", "Q02") and each.level > 0)
