"""Findings of the rules as tables: what, what it costs, where; the sentences and advice below."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from traceanalyze.locales import texts
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value, Word, declare
from traceanalyze.report.contents.words import Ends, Said, cost_of, grade_of, label_of, notes, saving_of, share_of
from traceanalyze.rules.finding import Confidence, Finding, NotApplicable, Outcome, Severity
from traceanalyze.rules.registry import own_rules

RULE_ID = Column("rule_id", Kind.TEXT, "Id of the rule; `traceanalyze rule ID` explains it", heading="rule")
BOUND = Column("bound_ns", Kind.DURATION, "What it can save at most, per step", heading="at most", minor=True)
CONFIDENCE = Column("confidence", Kind.TERM, "How safely the recording alone proves it", machine=True)
COST = Column(
    "cost_ns", Kind.DURATION, "Idle or exposed time that it explains, per step, where that is not what it saves"
)
GRADE = Column(
    "grade",
    Kind.TERM,
    "High from 20 % of the step, medium from 5 %, of those without a saving by the rule; and whether it is certain",
    heading="severity",
)
LOW = Column("low_ns", Kind.DURATION, "What it saves at least, per step", heading="at least", machine=True)

_FINDINGS = declare(
    "findings",
    "Findings",
    GRADE,
    Column(
        "severity",
        Kind.TERM,
        "By its share of the step: high from 20 %, medium from 5 %; of those without a saving by the rule",
        machine=True,
    ),
    RULE_ID,
    Column("finding", Kind.TERM, "What was found"),
    Column(
        "saving_ns", Kind.DURATION, "Estimate of the time per step without it; different findings save different time"
    ),
    COST,
    Column("share", Kind.SHARE, "Saving over the mean step; the cost over it where no saving was measured"),
    LOW,
    BOUND,
    CONFIDENCE,
    Column("where", Kind.PLACE, "Operator, call, kernel or source line"),
    Column("once", Kind.FLAG, "Done once in a run: later steps do without it", machine=True),
    Column("count", Kind.COUNT, "Instances in the analysed steps", minor=True),
)
_ON_RECORDING = _FINDINGS.variant(
    "capture_findings",
    "Findings on the recording",
    {
        **dict.fromkeys(("grade", "severity"), "How far it touches the numbers"),
        "saving_ns": "None: the recording costs the program nothing",
        "share": "None",
        "count": "Instances",
    },
    # In a short view the quality of the recording has its own place at the end.
    detail=True,
)
_OF_RANKS = _FINDINGS.variant(
    "rank_findings",
    "Findings about the ranks",
    {
        "saving_ns": "Estimate of the time per step without it; findings may overlap",
        "share": "Saving over the mean step of the rank that works longest; the cost where no saving was measured",
    },
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
    Column("text", Kind.PLACE, "Its value, where it is a name"),
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
    Column("finding", Kind.TERM, "What the rule finds", minor=True),
    Column("why", Kind.TERM, "Why it could not"),
    Column("saving_ns", Kind.DURATION, "Not measured, with the reason", machine=True),
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


def findings_tables(found: Sequence[Said], outcome: Outcome) -> tuple[Table, ...]:
    """Findings, the evidence for them, and the rules that could not be judged."""
    costly = [one for one in found if not one.found.rule.startswith(_CAPTURE)]
    capture = [one for one in found if one.found.rule.startswith(_CAPTURE)]
    return (
        _filled(_FINDINGS, costly, outcome.together, outcome.with_ranks),
        _filled(_ON_RECORDING, capture),
        EVIDENCE.fill_records(evidence_rows(outcome.findings)),
        _NOT_JUDGED.fill_records(map(_not_judged, outcome.not_applicable)),
    )


def run_findings_tables(found: Sequence[Said], outcome: Outcome) -> tuple[Table, ...]:
    """Findings about the ranks of a run."""
    return (
        _filled(_OF_RANKS, found, outcome.together),
        _EVIDENCE_OF_RANKS.fill_records(evidence_rows(outcome.findings)),
        _NOT_JUDGED_OF_RANKS.fill_records(map(_not_judged, outcome.not_applicable)),
    )


def _not_judged(one: NotApplicable) -> dict[str, Value]:
    """Rule, term of what it looks for, why it could not; rules of other packages have their own name."""
    name = f"rule_{one.rule}" if one.rule in own_rules() else one.slug
    return {"rule_id": one.rule, "finding": name, "why": f"reason_{one.reason}", "saving_ns": NotMeasured(one.reason)}


UNPRICED = NotMeasured("saving_not_replayed")


def _filled(table: Table, found: Sequence[Said], *replayed: Ends | None) -> Table:
    rows = [_row(one.found, one.title, one.setting.step) for one in found]
    return replace(table.fill_records(rows), notes=tuple(notes(found, *replayed)))


def _row(one: Finding, title: str, step: int) -> dict[str, Value]:
    unpriced = one.saving is None and one.cost is not None and not one.once
    return {
        "grade": grade_of(one.severity, one.confidence),
        "severity": f"severity_{Severity(one.severity or 0).name.lower()}",
        "rule_id": one.rule,
        "finding": title,
        "saving_ns": UNPRICED if unpriced else saving_of(one),
        "cost_ns": cost_of(one),
        "share": share_of(one, step),
        "low_ns": one.least,
        "bound_ns": one.bound,
        "confidence": f"confidence_{Confidence(one.confidence or 0).name.lower()}",
        "where": next(iter(one.scope.ops), None),
        "once": one.once,
        "count": one.count,
    }


def evidence_rows(found: Sequence[Finding]) -> Iterator[dict[str, Value]]:
    """Rows of what the findings rest on."""
    empty = dict.fromkeys(EVIDENCE.keys)
    for one in found:
        for each in one.evidence:
            value = Word(each.value) if each.kind == "TERM" else each.value
            place = {"start_ns": each.start, "end_ns": each.end, "source_line": each.line}
            head = {"rule_id": one.rule, "evidence": label_of(one, each.label, texts())}
            yield {**empty, **head, _COLUMN_OF.get(each.kind, "text"): value, **place}
