"""Findings of what a snapshot of the allocator tells: they cost bytes, not time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.rules.finding import Evidence, Finding, Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.analyses.allocator.results import AllocatorAnalysis, ReleaseRun
    from traceanalyze.rules.facts import Facts
    from traceanalyze.rules.finding import Severity


def memory_finding(severity: Severity, line: str, count: int, *evidence: Evidence, sentence: str = "") -> Finding:
    """A finding about memory at a line of the program, empty where none is known."""
    scope = Scope(ops=(line,) if line else ())
    return Finding(evidence=evidence, severity=severity, count=count, scope=scope, sentence=sentence)


def retries(allocator: AllocatorAnalysis | None) -> Sequence[ReleaseRun]:
    """Requests that found the device full, whether or not the second try succeeded."""
    return () if allocator is None else [run for run in allocator.runs if run.kind in {"retry", "failed_retry"}]


def reserved_of_capacity(facts: Facts) -> tuple[int, int] | None:
    """The snapshot's highest reserve, and the device's memory by whoever tells it; None where either is unknown."""
    if facts.allocator is None:
        return None
    told = {device.id: device.memory_bytes for device in facts.context.trace.devices}
    capacity = facts.allocator.capacity or (None if facts.analysis.device is None else told.get(facts.analysis.device))
    return (max(moment.reserved for moment in facts.allocator.moments), capacity) if capacity else None
