"""Rules about the recording itself."""

from collections.abc import Iterable, Iterator

from traceanalyze.analyses.results import Check
from traceanalyze.rules.rule import Finding, Severity, measured


def failed_checks(checks: Iterable[Check]) -> Iterator[Finding]:
    """One finding on all of them, if there are any."""
    found = tuple(checks)
    if found:
        yield Finding(
            evidence=measured(checks=", ".join(dict.fromkeys(each.id for each in found))),
            count=len(found),
            severity=(Severity.INFO, Severity.LOW, Severity.MEDIUM)[max(each.level for each in found)],
        )
