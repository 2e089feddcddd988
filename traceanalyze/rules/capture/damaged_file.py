"""CAP104: the file is damaged, or has impossible values."""

from __future__ import annotations

from collections.abc import Iterator

from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Options, Severity, rule


@rule(
    "CAP104",
    "damaged-file",
    title="damaged file",
    sentence="The file is damaged or has impossible values; see {checks} under the quality of the recording.",
    confidence=Confidence.HIGH,
    needs="",
    advice_texts={
        "write_whole": "Let the profiler finish writing before the program ends.",
    },
    rare=True,
)
def find(facts: Facts, options: Options) -> Iterator[Finding]:
    """The file is damaged, or has impossible values.

    What it finds
        Truncated or broken files, events without times, impossible durations.
    Why it costs time
        It costs the program nothing; it touches the numbers of the report.
    How it is measured
        By the checks of the recording's quality that stand at the end of the report.
    What to do
        Let the profiler finish writing before the program ends; copy the file again.

    References
        torch.profiler.
    """
    found = [each for each in facts.analysis.checks if each.id in ("Q01", "Q02") and each.level > 0]
    if found:
        worst = max(each.level for each in found)
        yield Finding(
            evidence=(Evidence("checks", ", ".join(dict.fromkeys(each.id for each in found)), "TEXT"),),
            count=len(found),
            severity=(Severity.INFO, Severity.LOW, Severity.MEDIUM)[worst],
        )
