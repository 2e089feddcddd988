"""Findings of the rules as tables: what, what it costs, where; the sentences and advice below."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.analyses.steps.window import Window
from traceanalyze.locales import texts
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, Word
from traceanalyze.report.model import table_of_rows
from traceanalyze.rules.finding import Confidence, Severity
from traceanalyze.rules.registry import every_rule, own_rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceanalyze.model.table import Row, Value
    from traceanalyze.ranks.results import Cluster
    from traceanalyze.rules.finding import Evidence, Finding, NotApplicable, Outcome

_COLUMNS = (
    Column("severity", Kind.TERM),
    Column("rule_id", Kind.TEXT),
    Column("finding", Kind.TERM),
    Column("saving_ns", Kind.DURATION),
    Column("share", Kind.SHARE),
    Column("bound_ns", Kind.DURATION, minor=True),
    Column("confidence", Kind.TERM, minor=True),
    Column("where", Kind.NAME),
    Column("count", Kind.COUNT, minor=True),
)
EVIDENCE_COLUMNS = (
    Column("rule_id", Kind.TEXT),
    Column("evidence", Kind.TERM),
    Column("duration_ns", Kind.DURATION),
    Column("share", Kind.SHARE),
    Column("figure", Kind.NUMBER),
    Column("bytes", Kind.MEMORY),
    Column("text", Kind.NAME),
    Column("start_ns", Kind.DURATION, scale="start"),
    Column("end_ns", Kind.DURATION, scale="start"),
    Column("source_line", Kind.NAME),
)
_CAPTURE = "CAP"
"""Family of the rules about the recording itself."""
_PLACES = {"DURATION": 0, "SHARE": 1, "COUNT": 2, "NUMBER": 2, "RATIO": 2, "BYTES": 3, "MEMORY": 3}
"""Kind of evidence → which of the value columns it stands in; the rest is text."""
_UNJUDGED = (
    Column("rule_id", Kind.TEXT),
    Column("finding", Kind.TERM),
    Column("saving_ns", Kind.DURATION),
)


def findings_tables(outcome: Outcome, window: Window, platform: str) -> tuple[Table, ...]:
    """Findings, the evidence for them, and the rules that could not be judged."""
    told = [one for one in outcome.findings if not one.rule.startswith(_CAPTURE)]
    capture = [one for one in outcome.findings if one.rule.startswith(_CAPTURE)]
    return (
        _table("findings", told, window, platform),
        # In a short view the quality of the recording has its own place at the end.
        replace(_table("capture_findings", capture, window, platform), detail=True),
        table_of_rows("finding_evidence", EVIDENCE_COLUMNS, tuple(proof(outcome.findings)), detail=True),
        table_of_rows(
            "rules_not_judged",
            _UNJUDGED,
            tuple(_unjudged(one) for one in outcome.not_applicable),
            detail=True,
        ),
    )


def run_findings_tables(outcome: Outcome, cluster: Cluster, platform: str) -> tuple[Table, ...]:
    """Findings about the ranks of a run; shares are of the mean step of all ranks."""
    total = int(cluster.step_time.mean(axis=0).sum()) if cluster.steps else 0
    window = Window(tuple(range(len(cluster.steps))), total)
    unjudged = tuple(_unjudged(one) for one in outcome.not_applicable)
    return (
        _table("rank_findings", outcome.findings, window, platform),
        # Without places: each rank has a trace of its own.
        table_of_rows(
            "rank_finding_evidence",
            EVIDENCE_COLUMNS[:-3],
            tuple(row[:-3] for row in proof(outcome.findings)),
            detail=True,
        ),
        table_of_rows("rank_rules_not_judged", _UNJUDGED, unjudged, detail=True),
    )


def _unjudged(one: NotApplicable) -> Row:
    """Rule, term of what it looks for, why it could not; rules of other packages have their own name."""
    return one.rule, f"rule_{one.rule}" if one.rule in own_rules() else one.slug, NotMeasured(one.reason)


def _table(key: str, found: Sequence[Finding], window: Window, platform: str) -> Table:
    rows = tuple(_row(one, window) for one in found)
    return table_of_rows(key, _COLUMNS, rows, notes=tuple(_notes(found, platform)))


def _row(one: Finding, window: Window) -> Row:
    step = window.mean(window.total)
    return (
        f"severity_{Severity(one.severity or 0).name.lower()}",
        one.rule,
        name_of(one),
        one.saving,
        None if one.saving is None or not step else one.saving / step,
        one.bound,
        f"confidence_{Confidence(one.confidence or 0).name.lower()}",
        next(iter(one.scope.ops), None),
        one.count,
    )


def name_of(one: Finding) -> str:
    """Term of what was found; rules of other packages have their own name."""
    every_rule()  # Another process may have found it: what rules say is known once they are loaded.
    return one.slug if one.text else f"rule_{one.rule}"


def _notes(found: Sequence[Finding], platform: str) -> Iterator[Message]:
    """For each finding its sentence, then what to do; advice that was given already is not repeated."""
    given: set[str] = set()
    for one in found:
        yield sentence_of(one)
        for advice in one.advice:
            if advice not in given:
                given.add(advice)
                yield Message(f"advice_{advice}.{platform}")


def sentence_of(one: Finding) -> Message:
    """What a finding says in words."""
    if one.text:
        return Message("finding_other", (("rule", Kind.TEXT, one.rule), ("text", Kind.TEXT, one.text)))
    key = f"finding_{one.rule}" + (f"_{one.sentence}" if one.sentence else "")
    return Message(key, tuple((each.label, Kind[each.kind], each.value) for each in one.evidence))


def proof(found: Sequence[Finding]) -> Iterator[Row]:
    """Rows of what the findings rest on."""
    for one in found:
        for each in one.evidence:
            values: list[Value] = [None] * 5
            values[_PLACES.get(each.kind, 4)] = _value(each)
            yield (one.rule, _label(one, each), *values, each.start, each.end, each.line)


def _label(one: Finding, each: Evidence) -> str:
    """Term of a measured value; rules of other packages may have words of their own."""
    term = f"evidence_{each.label}"
    return each.label if one.text and term not in texts().terms else term


def _value(each: Evidence) -> Value:
    return Word(each.value) if each.kind == "TERM" else each.value
