"""How a cause is called, told and mended: keys of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.causes.waiting import ABSENT, ALONE, MISSING
from traceanalyze.model.table import Kind, Message
from traceanalyze.report.assembly.findings import name_of, sentence_of

if TYPE_CHECKING:
    from traceanalyze.causes.results import Cause
    from traceanalyze.report.assembly.postmortem.parts import JobParts
    from traceanalyze.rules.finding import Finding


def title(one: Cause) -> str:
    """Term that names it."""
    if one.finding is None:
        return one.trouble.key if one.trouble is not None else ""
    if _no_rule(one.finding):
        unrecorded = one.finding.sentence in {ABSENT, MISSING, ALONE}
        return f"cause_{one.finding.slug}_unrecorded" if unrecorded else f"cause_{one.finding.slug}"
    return name_of(one.finding)


def sentence(one: Cause, job: JobParts) -> Message:
    """What it says in words, with what it measured."""
    if one.trouble is not None:
        return remedy_of_memory(one, job)
    if one.finding is None:
        raise ValueError("a cause is told by a finding or by a snapshot")
    if _no_rule(one.finding):
        variant = f"_{one.finding.sentence}" if one.finding.sentence else ""
        key = f"cause_{one.finding.slug}{variant}"
        return Message(key, tuple((each.label, Kind[each.kind], each.value) for each in one.finding.evidence))
    return sentence_of(one.finding)


def _no_rule(finding: Finding) -> bool:
    """What the post-mortem itself finds."""
    return not (finding.rule or finding.text)


def remedy_of_memory(one: Cause, job: JobParts) -> Message:
    """What a snapshot tells and what to do about it, in one."""
    if one.trouble is None:
        raise ValueError("only a snapshot tells that")
    file, finding = one.trouble.place
    return job.memory[file].findings[finding].advice


def advice(one: Cause) -> tuple[str, ...]:
    """Keys of what to do about it, the most useful first."""
    return () if one.finding is None else one.finding.advice


def where(one: Cause) -> str | None:
    """Line, operator or call it is about."""
    if one.trouble is not None:
        return one.trouble.line or None
    return None if one.finding is None else next(iter(one.finding.scope.ops), None)


def rule_id(one: Cause) -> str | None:
    """Of the rule that found it; None where none did."""
    return one.finding.rule or None if one.finding is not None else None
