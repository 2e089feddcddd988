"""Findings of what a snapshot of the allocator tells: they cost bytes, not time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.rules.finding import Evidence, Finding, Scope

if TYPE_CHECKING:
    from traceanalyze.rules.finding import Severity


def memory_finding(severity: Severity, line: str, count: int, *evidence: Evidence) -> Finding:
    """A finding about memory at a line of the program, empty where none is known."""
    return Finding(evidence=evidence, severity=severity, count=count, scope=Scope(ops=(line,) if line else ()))
