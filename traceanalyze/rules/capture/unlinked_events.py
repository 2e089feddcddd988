"""CAP103: device events have no launch record."""

from __future__ import annotations

from collections.abc import Iterator

from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Options, Severity, rule


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
def find(facts: Facts, options: Options) -> Iterator[Finding]:
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
    found = [each for each in facts.analysis.checks if each.id == "Q03" and each.message == "unlinked"]
    if found:
        worst = max(each.level for each in found)
        yield Finding(
            evidence=(Evidence("checks", ", ".join(dict.fromkeys(each.id for each in found)), "TEXT"),),
            count=len(found),
            severity=(Severity.INFO, Severity.LOW, Severity.MEDIUM)[worst],
        )
