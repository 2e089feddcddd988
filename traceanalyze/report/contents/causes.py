"""Causes in words and as tables: what limited the run, what that rests on, what to do first, what was not judged."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from traceanalyze.causes.results import Cause, Growth, Postmortem
from traceanalyze.causes.synthesize import STRAGGLER, rule_of, worth_telling
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, Value, declare, sentences
from traceanalyze.ranks.results import spans
from traceanalyze.report.contents import findings
from traceanalyze.report.contents.words import Said, Setting, between, grade_of, name_of, of_memory, sentence_of
from traceanalyze.rules.finding import Confidence, Severity

_SAY = sentences(
    cause_because="Behind it: {finding} ({saving} {per} on that rank).",
    cause_because_known="Behind it: {finding}.",
    cause_because_also="Besides: {finding} at {where} ({saving} {per} on that rank).",
    cause_appears="{finding}: appears with recording {recording}, {after} {per}.",
    cause_grows="{finding}: grows from {before} to {after} {per} with recording {recording}.",
    action_for="{number}. {finding}:",
    action_for_cost="{number}. {finding}: costs {cost} {per}, saving not measured.",
    action_for_gain="{number}. {finding}: {gain} {per}.",
)


def title(one: Cause) -> str:
    """Term that names it."""
    if one.finding is None:
        return one.trouble.finding.key if one.trouble is not None else ""
    return name_of(one.finding)


def sentence(one: Cause) -> Message:
    """What it says in words, with what it measured."""
    if one.trouble is not None:
        return one.trouble.finding.advice
    if one.finding is None:
        raise ValueError("a cause rests on a finding or on a snapshot")
    return sentence_of(one.finding)


def as_finding(one: Cause, setting: Setting) -> Said:
    """The cause as a finding about the run, whose saving is what the run gains."""
    ranks = tuple(int(label) for label in one.ranks if label.isdecimal())
    if one.trouble is not None:
        return of_memory(one.trouble.finding, setting, ranks)
    if one.finding is None:
        raise ValueError("a cause rests on a finding or on a snapshot")
    # As in an analysis: by the recording where that tells of no rank.
    setting = setting._replace(place="".join(label for label in one.ranks if not label.isdecimal()))
    scope = one.finding.scope._replace(ranks=ranks)
    priced = replace(one.finding, saving=one.gain, low=one.low, severity=one.severity, bound=one.bound, scope=scope)
    return Said(priced, title(one), sentence(one), setting)


def advice(one: Cause) -> tuple[str, ...]:
    """Keys of what to do about it, the most useful first."""
    return () if one.finding is None else one.finding.advice


def where(one: Cause) -> str | None:
    """Line, operator or call it is about."""
    if one.trouble is not None:
        return one.trouble.finding.line or None
    return None if one.finding is None else next(iter(one.finding.scope.ops), None)


def gained(one: Cause) -> int | None:
    """What the run gains, with the range where that is known to be one."""
    return one.gain if one.gain is None or one.low is None else between(one.low, one.gain, one.bound or one.gain)


def amount(one: Cause) -> int | None:
    """Bytes it is about; None where it is about time."""
    return None if one.trouble is None else one.trouble.finding.amount


def on_ranks(labels: Sequence[str]) -> str | None:
    """`0-3,5`; nothing where the ranks are not known."""
    return spans([label for label in labels if not label.startswith("?")]) or None


def in_words(one: Cause, found: Postmortem) -> Iterator[Message]:
    """A cause in words, and what is behind it."""
    yield sentence(one)
    yield from because(one, found)


def because(one: Cause, found: Postmortem) -> Iterator[Message]:
    """What is behind a cause, if that is known."""
    if one.because is None:
        return
    reason = found.causes[one.because]
    finding = ("finding", Kind.TERM, title(reason))
    if reason.largest is None:
        yield Message(_SAY["cause_because_known"], (finding,))
    else:
        yield Message(_SAY["cause_because"], (finding, ("saving", Kind.DURATION, reason.largest)))
    at = next(number for number, each in enumerate(found.causes) if each is one)
    for number, each in enumerate(found.causes):
        own = each.part_of == at and number != one.because and not each.about_ranks
        if own and worth_telling(each) and where(each):
            values = ("where", Kind.NAME, where(each)), ("saving", Kind.DURATION, each.largest)
            yield Message(_SAY["cause_because_also"], (("finding", Kind.TERM, title(each)), *values))


def amounts(one: Growth) -> tuple[tuple[str, Kind, Value], ...]:
    """From which recording on, and how much before and after."""
    return (
        ("recording", Kind.COUNT, one.recording + 1),
        ("after", Kind.DURATION, one.after),
        ("before", Kind.DURATION, one.before),
    )


_GAIN = "What the step of the run gets shorter without it: the rank that needs most time of its own counts"
_POSITION = Column("position", Kind.COUNT, "Place in the order of what the run gains", heading="#")
_CAUSES = declare(
    "run_causes",
    "What limited the run",
    _POSITION,
    Column("finding", Kind.TERM, "What was found"),
    Column("gain_ns", Kind.DURATION, _GAIN),
    findings.COST,
    Column("share", Kind.SHARE, "Gain over the mean step; the cost over it where no saving was measured"),
    Column("amount_bytes", Kind.MEMORY, "Memory it is about"),
    Column("on_ranks", Kind.TEXT, "Ranks that have it", heading="ranks"),
    Column("part_of", Kind.COUNT, "Number of the cause that is about the same time: the two must not be added"),
    Column("since", Kind.TERM, "In which of the analysed steps it takes 1 % of the step or more"),
    Column("since_step", Kind.TEXT, "The first of them, or the last; else how many of how many", heading="step"),
    findings.GRADE,
    Column(
        "severity",
        Kind.TERM,
        "By what the run gains: high from 20 % of the step, medium from 5 %; of memory by its kind",
        machine=True,
    ),
    findings.RULE_ID,
    Column("where", Kind.PLACE, "Operator, call, kernel or source line"),
    Column("affected", Kind.TEXT, "Steps in which it is there, of how many", heading="steps", minor=True),
    Column("largest_ns", Kind.DURATION, "Largest saving of a single rank, per step", minor=True),
    Column(
        "mean_saving_ns", Kind.DURATION, "Mean saving over all ranks, per step", heading="mean of ranks", minor=True
    ),
    findings.LOW,
    findings.BOUND,
    Column("total_ns", Kind.DURATION, "Savings summed over all ranks and analysed steps", scale="total", minor=True),
    findings.CONFIDENCE,
    Column("because", Kind.COUNT, "Number of the cause that explains it", heading="because of", minor=True),
    Column("recording", Kind.COUNT, "Recording in which it costs most; the numbers are from there", minor=True),
    Column("since_recording", Kind.COUNT, "Recording which that step is in", heading="in recording", minor=True),
    ranked=True,
)
_OF_CAPTURE = {
    "grade": "How far it touches the numbers",
    "severity": "How far it touches the numbers",
    "share": "None",
    "amount_bytes": "None",
    "where": "What it is about",
    "total_ns": "None",
    "recording": "Number of the recording, in the order of time",
}
_CAPTURE = _CAUSES.variant("capture_causes", "On the recordings themselves", _OF_CAPTURE, ranked=False, detail=True)


def causes_table(found: Postmortem) -> Table:
    """All causes, what the run gains most from first; below it which appear or grow from one recording to the next."""
    notes = tuple(
        Message(
            _SAY["cause_grows"] if one.before else _SAY["cause_appears"],
            (("finding", Kind.TERM, title(found.causes[one.cause])), *amounts(one)),
        )
        for one in found.growths
    )
    return replace(_CAUSES.fill_records(_rows(found.causes, found)), notes=notes)


def capture_table(found: Postmortem) -> Table:
    """Findings about the recordings themselves, on all ranks."""
    return replace(_CAPTURE.fill_records(_rows(found.capture, found)), notes=tuple(map(sentence, found.capture)))


def _rows(causes: Sequence[Cause], found: Postmortem) -> Iterator[dict[str, Value]]:
    several = len(found.recordings) > 1
    for number, one in enumerate(causes, 1):
        onset, finding = one.onset, one.finding
        yield {
            "position": number,
            "finding": title(one),
            "gain_ns": gained(one) if one.cost is None else findings.UNPRICED,
            "cost_ns": one.cost,
            "share": one.share,
            "amount_bytes": amount(one),
            "on_ranks": on_ranks(one.ranks),
            "since": None if onset.kind == "unknown" else f"since_{onset.kind}",
            "since_step": onset.step or (f"{onset.affected}/{onset.steps}" if onset.kind == "some" else None),
            "part_of": None if one.part_of is None else one.part_of + 1,
            "grade": grade_of(one.severity, Confidence.HIGH if finding is None else finding.confidence),
            "severity": f"severity_{one.severity.name.lower()}",
            "rule_id": (finding.rule if finding else rule_of(title(one))) or None,
            "where": where(one),
            "affected": f"{onset.affected}/{onset.steps}" if onset.steps else None,
            "largest_ns": one.largest,
            "mean_saving_ns": one.mean,
            "low_ns": one.low,
            "bound_ns": one.bound,
            "total_ns": one.total,
            "confidence": None if finding is None else f"confidence_{Confidence(finding.confidence or 0).name.lower()}",
            "because": None if one.because is None else one.because + 1,
            "recording": one.recording + 1 if several and finding is not None else None,
            "since_recording": onset.recording + 1 if several and onset.step else None,
        }


_EVIDENCE = declare("cause_evidence", "What the causes rest on", _POSITION, *findings.EVIDENCE.columns, detail=True)


def evidence_table(found: Postmortem) -> Table:
    """What each cause rests on, on the rank whose finding is shown; all of them in words below."""
    rows = [
        {_POSITION.key: number, **row}
        for number, one in enumerate(found.causes, 1)
        if one.finding is not None
        for row in findings.evidence_rows((one.finding,))
    ]
    return replace(
        _EVIDENCE.fill_records(rows), notes=tuple(note for one in found.causes for note in in_words(one, found))
    )


_TREND = declare(
    "cause_trend",
    "What each cause costs in every recording",
    _POSITION,
    Column("finding", Kind.TERM, "What was found"),
    Column("recording", Kind.COUNT, "Number of the recording, in the order of time"),
    Column("gain_ns", Kind.DURATION, _GAIN),
    Column("share", Kind.SHARE, "Gain over the mean step of that recording"),
    detail=True,
)


def trend_table(found: Postmortem) -> Table:
    """What each cause costs in every recording."""
    unknown = NotMeasured("rule_not_judged")
    steps = [recording.step_time for recording in found.recordings]
    return _TREND.fill_records(
        {
            "position": number,
            "finding": title(one),
            "recording": at,
            "gain_ns": unknown if gain is None else gain,
            "share": unknown if gain is None else gain / step if step else 0.0,
        }
        for number, one in enumerate(found.causes, 1)
        if any(gain is not None for gain in one.gains)
        for at, (gain, step) in enumerate(zip(one.gains, steps, strict=True), 1)
    )


_ACTIONS = declare(
    "actions",
    "What to do first",
    _POSITION,
    Column("finding", Kind.TERM, "The cause it removes"),
    Column("gain_ns", Kind.DURATION, _GAIN),
    Column("share", Kind.SHARE, "Gain over the mean step"),
    replace(findings.BOUND, minor=False),
    Column("amount_bytes", Kind.MEMORY, "Memory it is about"),
    Column("advice", Kind.TERM, "What to do", heading="what to do"),
    in_words=True,
)


def actions(found: Postmortem) -> Iterator[tuple[Cause, tuple[str, ...]]]:
    """Of each cause that is worth it, and is not part of another one, what was not advised before.

    Advice comes by key, the most useful first; none where a snapshot's own sentence has it.
    """
    given: set[str] = set()
    for at, one in enumerate(found.causes):
        if one.part_of is not None or not _worth(one):
            continue
        keys = tuple(key for key in dict.fromkeys(_remedies(at, found)) if key not in given)
        given.update(keys)
        if keys or one.trouble is not None:
            yield one, keys


def actions_table(found: Postmortem, platform: str) -> Table:
    """One row a piece of advice; the sentences below are for people."""
    numbered = list(enumerate(actions(found), 1))
    rows: list[dict[str, Value]] = [
        {
            "position": number,
            "finding": title(one),
            "gain_ns": gained(one),
            "share": one.share,
            "bound_ns": one.bound,
            "amount_bytes": amount(one),
            "advice": f"do_{key}.{platform}" if key else None,
        }
        for number, (one, keys) in numbered
        for key in keys or ("",)
    ]
    notes: list[Message] = []
    for number, (one, keys) in numbered:
        priced = "gain" if one.gain else "cost" if one.cost else ""
        values = (
            ("number", Kind.COUNT, number),
            ("finding", Kind.TERM, title(one)),
            *(((priced, Kind.DURATION, gained(one) if one.gain else one.worth),) if priced else ()),
        )
        notes.append(Message(_SAY[f"action_for_{priced}" if priced else "action_for"], values))
        notes += in_words(one, found)
        notes += [Message(f"advice_{key}.{platform}") for key in keys]
    return replace(_ACTIONS.fill_records(rows), notes=tuple(notes))


def _remedies(at: int, found: Postmortem) -> tuple[str, ...]:
    """Of what explains the cause; else its own, and for a late rank those of the first thing found on it."""
    one = found.causes[at]
    if one.because is not None:
        return advice(found.causes[one.because])
    late = one.finding is not None and one.finding.rule == STRAGGLER
    part = next((each for each in found.causes if late and each.part_of == at and not each.about_ranks), None)
    return (*advice(one), *(() if part is None else advice(part)))


def _worth(one: Cause) -> bool:
    if one.trouble is not None:
        return one.severity > Severity.INFO
    return worth_telling(one) or (one.gain is None and one.severity > Severity.LOW)
