"""Causes as tables: what limited the run, the evidence, and how it went from recording to recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.causes.memory import rule_of
from traceanalyze.causes.parts import spans
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table
from traceanalyze.report.assembly.findings import EVIDENCE_COLUMNS, proof
from traceanalyze.report.assembly.postmortem.words import rule_id, sentence, title, where
from traceanalyze.report.model import table_of_rows
from traceanalyze.rules.finding import Confidence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.causes.results import Cause, Growth, Postmortem
    from traceanalyze.model.table import Row, Value
    from traceanalyze.report.assembly.postmortem.parts import JobParts

_COLUMNS = (
    Column("position", Kind.COUNT),
    Column("finding", Kind.TERM),
    Column("gain_ns", Kind.DURATION),
    Column("share", Kind.SHARE),
    Column("amount_bytes", Kind.MEMORY),
    Column("on_ranks", Kind.TEXT),
    Column("since", Kind.TERM),
    Column("since_step", Kind.TEXT),
    Column("part_of", Kind.COUNT),
    Column("severity", Kind.TERM),
    Column("rule_id", Kind.TEXT),
    Column("where", Kind.NAME),
    Column("affected", Kind.TEXT, minor=True),
    Column("largest_ns", Kind.DURATION, minor=True),
    Column("mean_saving_ns", Kind.DURATION, minor=True),
    Column("bound_ns", Kind.DURATION, minor=True),
    Column("total_ns", Kind.DURATION, scale="total", minor=True),
    Column("confidence", Kind.TERM, minor=True),
    Column("because", Kind.COUNT, minor=True),
    Column("recording", Kind.COUNT, minor=True),
    Column("since_recording", Kind.COUNT, minor=True),
)
_TREND = (
    Column("position", Kind.COUNT),
    Column("finding", Kind.TERM),
    Column("recording", Kind.COUNT),
    Column("gain_ns", Kind.DURATION),
    Column("share", Kind.SHARE),
)


def causes_table(found: Postmortem) -> Table:
    """All causes, what the run gains most from first."""
    return table_of_rows(
        "run_causes",
        _COLUMNS,
        _rows(found.causes, found),
        ranked=True,
        notes=tuple(growth(one, found) for one in found.growths),
    )


def capture_table(found: Postmortem, job: JobParts) -> Table:
    """Findings about the recordings themselves, on all ranks."""
    notes = tuple(sentence(one, job) for one in found.capture)
    return table_of_rows("capture_causes", _COLUMNS, _rows(found.capture, found), detail=True, notes=notes)


def evidence_table(found: Postmortem, job: JobParts) -> Table:
    """What each cause rests on, on the rank whose finding is shown; all of them in words below."""
    rows = tuple(
        (number, *row)
        for number, one in enumerate(found.causes, 1)
        if one.finding is not None
        for row in proof((one.finding,))
    )
    notes = tuple(note for one in found.causes for note in told(one, found, job))
    return table_of_rows(
        "cause_evidence", (Column("position", Kind.COUNT), *EVIDENCE_COLUMNS), rows, detail=True, notes=notes
    )


def trend_table(found: Postmortem) -> Table:
    """What each cause costs in every recording."""
    rows = tuple(
        (
            number,
            title(one),
            index,
            NotMeasured("rule_not_judged") if gain is None else gain,
            NotMeasured("rule_not_judged") if gain is None else _part(gain, found.recordings[index - 1].step_time),
        )
        for number, one in enumerate(found.causes, 1)
        if any(gain is not None for gain in one.gains)
        for index, gain in enumerate(one.gains, 1)
    )
    return table_of_rows("cause_trend", _TREND, rows, detail=True)


def _rows(causes: tuple[Cause, ...], found: Postmortem) -> tuple[Row, ...]:
    several = len(found.recordings) > 1
    return tuple(_row(number, one, several=several) for number, one in enumerate(causes, 1))


def _row(number: int, one: Cause, *, several: bool) -> Row:
    onset = one.onset
    place = onset.step or (f"{onset.affected}/{onset.steps}" if onset.kind == "some" else None)
    rule = rule_id(one) or (rule_of(one.trouble.key) or None if one.trouble is not None else None)
    return (
        number,
        title(one),
        one.gain,
        one.share,
        None if one.trouble is None else one.trouble.amount,
        on_ranks(one),
        None if onset.kind == "untold" else f"since_{onset.kind}",
        place,
        None if one.part_of is None else one.part_of + 1,
        f"severity_{one.severity.name.lower()}",
        rule,
        where(one),
        f"{onset.affected}/{onset.steps}" if onset.steps else None,
        one.largest,
        one.mean,
        one.bound,
        one.total,
        None if one.finding is None else f"confidence_{Confidence(one.finding.confidence or 0).name.lower()}",
        None if one.because is None else one.because + 1,
        one.recording + 1 if several and one.finding is not None else None,
        onset.recording + 1 if several and onset.step else None,
    )


def on_ranks(one: Cause) -> str | None:
    """`0-3,5`; nothing where ranks are not told."""
    known = [label for label in one.ranks if not label.startswith("?")]
    return spans(known) or None


def told(one: Cause, found: Postmortem, job: JobParts) -> Iterator[Message]:
    """A cause in words, and what is behind it."""
    yield sentence(one, job)
    if one.because is not None:
        yield because(found.causes[one.because])


def because(reason: Cause) -> Message:
    """What is behind a cause."""
    finding = ("finding", Kind.TERM, title(reason))
    if reason.largest is None:
        return Message("cause_because_known", (finding,))
    return Message("cause_because", (finding, ("saving", Kind.DURATION, reason.largest)))


def growth(one: Growth, found: Postmortem) -> Message:
    """That a cause appears or grows from one recording to a later one."""
    finding: tuple[str, Kind, Value] = ("finding", Kind.TERM, title(found.causes[one.cause]))
    values = (finding, *amounts(one))
    return Message("cause_grows" if one.before else "cause_appears", values)


def amounts(one: Growth) -> tuple[tuple[str, Kind, Value], ...]:
    """From which recording on, and how much before and after."""
    return (
        ("recording", Kind.COUNT, one.recording + 1),
        ("after", Kind.DURATION, one.after),
        ("before", Kind.DURATION, one.before),
    )


def _part(amount: int, whole: int) -> float:
    return amount / whole if whole else 0.0
