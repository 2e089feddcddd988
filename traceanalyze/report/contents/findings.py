"""Findings of the rules as tables: what, what it costs, where; the sentences and advice below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from traceanalyze.analyses.steps.window import Window
from traceanalyze.locales import texts
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, Value, Word, declare, sentences
from traceanalyze.ranks.results import Cluster
from traceanalyze.rules.finding import Confidence, Evidence, Finding, NotApplicable, Outcome, Severity
from traceanalyze.rules.registry import every_rule, own_rules

_SAY = sentences(finding_other="{rule}: {text}")

RULE_ID = Column("rule_id", Kind.TEXT, "Id of the rule; `traceanalyze rule ID` explains it", heading="rule")
BOUND = Column("bound_ns", Kind.DURATION, "What it can save at most, per step", heading="at most", minor=True)
CONFIDENCE = Column("confidence", Kind.TERM, "How safely the recording alone proves it", minor=True)
_WHERE = Column("where", Kind.NAME, "Operator, call, kernel or source line")

_FINDINGS = declare(
    "findings",
    "Findings",
    Column(
        "severity",
        Kind.TERM,
        "By its share of the step: high from 20 %, medium from 5 %; of those without a saving by the rule",
    ),
    RULE_ID,
    Column("finding", Kind.TERM, "What was found"),
    Column(
        "saving_ns", Kind.DURATION, "Estimate of the time per step without it; different findings save different time"
    ),
    Column("share", Kind.SHARE, "Saving over the mean step"),
    BOUND,
    CONFIDENCE,
    _WHERE,
    Column("count", Kind.COUNT, "Instances in the analysed steps", minor=True),
)
_ON_RECORDING = declare(
    "capture_findings",
    "Findings on the recording",
    Column("severity", Kind.TERM, "How far it touches the numbers"),
    RULE_ID,
    Column("finding", Kind.TERM, "What was found"),
    Column("saving_ns", Kind.DURATION, "None: the recording costs the program nothing"),
    Column("share", Kind.SHARE, "None"),
    BOUND,
    CONFIDENCE,
    _WHERE,
    Column("count", Kind.COUNT, "Instances", minor=True),
    # In a short view the quality of the recording has its own place at the end.
    detail=True,
)
_OF_RANKS = declare(
    "rank_findings",
    "Findings about the ranks",
    _FINDINGS["severity"],
    RULE_ID,
    _FINDINGS["finding"],
    Column("saving_ns", Kind.DURATION, "Estimate of the time per step without it; findings may overlap"),
    Column("share", Kind.SHARE, "Saving over the mean step of all ranks"),
    BOUND,
    CONFIDENCE,
    _WHERE,
    _FINDINGS["count"],
)
EVIDENCE = declare(
    "finding_evidence",
    "What the findings rest on",
    RULE_ID,
    Column("evidence", Kind.TERM, "What was measured"),
    Column("duration_ns", Kind.DURATION, "Its value, where it is a time", heading="time"),
    Column("share", Kind.SHARE, "Its value, where it is a share"),
    Column("figure", Kind.NUMBER, "Its value, where it is a number", heading="number"),
    Column("bytes", Kind.MEMORY, "Its value, where it is a size"),
    Column("text", Kind.NAME, "Its value, where it is a name"),
    Column("start_ns", Kind.DURATION, "Where to look in the trace: begin", scale="start"),
    Column("end_ns", Kind.DURATION, "Where to look in the trace: end", scale="start"),
    Column("source_line", Kind.NAME, "Line of the program", heading="line"),
    detail=True,
)
# Without places: each rank has a trace of its own.
_EVIDENCE_OF_RANKS = replace(
    EVIDENCE.drop("start_ns", "end_ns", "source_line"),
    key="rank_finding_evidence",
    title="What the findings about the ranks rest on",
)
_NOT_JUDGED = declare(
    "rules_not_judged",
    "Rules that could not be judged",
    RULE_ID,
    Column("finding", Kind.TERM, "What the rule finds"),
    Column("saving_ns", Kind.DURATION, "Not measured, with the reason"),
    detail=True,
)
_NOT_JUDGED_OF_RANKS = replace(
    _NOT_JUDGED, key="rank_rules_not_judged", title="Rules about ranks that could not be judged"
)
_CAPTURE = "CAP"
"""Family of the rules about the recording itself."""
_COLUMN_OF = {
    "DURATION": "duration_ns",
    "SHARE": "share",
    "COUNT": "figure",
    "NUMBER": "figure",
    "RATIO": "figure",
    "BYTES": "bytes",
    "MEMORY": "bytes",
}
"""Where evidence of each kind stands; the rest is text."""


def findings_tables(outcome: Outcome, window: Window, platform: str) -> tuple[Table, ...]:
    """Findings, the evidence for them, and the rules that could not be judged."""
    found = [one for one in outcome.findings if not one.rule.startswith(_CAPTURE)]
    capture = [one for one in outcome.findings if one.rule.startswith(_CAPTURE)]
    return (
        _filled(_FINDINGS, found, window, platform),
        _filled(_ON_RECORDING, capture, window, platform),
        EVIDENCE.fill_records(evidence_rows(outcome.findings)),
        _NOT_JUDGED.fill_records(map(_not_judged, outcome.not_applicable)),
    )


def run_findings_tables(outcome: Outcome, cluster: Cluster, platform: str) -> tuple[Table, ...]:
    """Findings about the ranks of a run; shares are of the mean step of all ranks."""
    total = int(cluster.step_time.mean(axis=0).sum()) if cluster.steps else 0
    window = Window(tuple(range(len(cluster.steps))), total)
    return (
        _filled(_OF_RANKS, outcome.findings, window, platform),
        _EVIDENCE_OF_RANKS.fill_records(evidence_rows(outcome.findings)),
        _NOT_JUDGED_OF_RANKS.fill_records(map(_not_judged, outcome.not_applicable)),
    )


def _not_judged(one: NotApplicable) -> dict[str, Value]:
    """Rule, term of what it looks for, why it could not; rules of other packages have their own name."""
    name = f"rule_{one.rule}" if one.rule in own_rules() else one.slug
    return {"rule_id": one.rule, "finding": name, "saving_ns": NotMeasured(one.reason)}


def _filled(table: Table, found: Sequence[Finding], window: Window, platform: str) -> Table:
    step = window.mean(window.total)
    rows: list[dict[str, Value]] = [
        {
            "severity": f"severity_{Severity(one.severity or 0).name.lower()}",
            "rule_id": one.rule,
            "finding": name_of(one),
            "saving_ns": one.saving,
            "share": None if one.saving is None or not step else one.saving / step,
            "bound_ns": one.bound,
            "confidence": f"confidence_{Confidence(one.confidence or 0).name.lower()}",
            "where": next(iter(one.scope.ops), None),
            "count": one.count,
        }
        for one in found
    ]
    return replace(table.fill_records(rows), notes=tuple(_notes(found, platform)))


def name_of(one: Finding) -> str:
    """Term of what was found; rules of other packages have their own name."""
    every_rule()  # Another process may have found it: what rules say is known once they are loaded.
    if one.text:
        return one.slug
    own = own_rules().get(one.rule)
    return f"rule_{one.rule}" + (f"_{one.sentence}" if own is not None and one.sentence in own.titles else "")


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
        return Message(_SAY["finding_other"], (("rule", Kind.TEXT, one.rule), ("text", Kind.TEXT, one.text)))
    return Message(f"finding_{one.rule}" + (f"_{one.sentence}" if one.sentence else ""), values_of(one))


def values_of(one: Finding) -> tuple[tuple[str, Kind, Value], ...]:
    """What it measured, as its sentence mentions it."""
    return tuple((each.label, Kind[each.kind], each.value) for each in one.evidence)


def evidence_rows(found: Sequence[Finding]) -> Iterator[dict[str, Value]]:
    """Rows of what the findings rest on."""
    empty = dict.fromkeys(EVIDENCE.keys)
    for one in found:
        for each in one.evidence:
            value = Word(each.value) if each.kind == "TERM" else each.value
            place = {"start_ns": each.start, "end_ns": each.end, "source_line": each.line}
            head = {"rule_id": one.rule, "evidence": _label(one, each)}
            yield {**empty, **head, _COLUMN_OF.get(each.kind, "text"): value, **place}


def _label(one: Finding, each: Evidence) -> str:
    """Term of a measured value; rules of other packages may have words of their own."""
    term = f"evidence_{each.label}"
    return each.label if one.text and term not in texts().terms else term
