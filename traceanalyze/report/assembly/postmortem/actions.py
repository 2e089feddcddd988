"""What to do first: each cause in words with the advice on it, in the order of what the run gains; nothing twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from traceanalyze.causes.synthesize import STRAGGLER, worth_telling
from traceanalyze.model.table import Column, Kind, Message, Table
from traceanalyze.report.assembly.postmortem.causes import told
from traceanalyze.report.assembly.postmortem.words import advice, title
from traceanalyze.report.model import table_of_rows
from traceanalyze.rules.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.causes.results import Cause, Postmortem
    from traceanalyze.report.assembly.postmortem.parts import JobParts

_COLUMNS = (
    Column("position", Kind.COUNT),
    Column("finding", Kind.TERM),
    Column("gain_ns", Kind.DURATION),
    Column("share", Kind.SHARE),
    Column("bound_ns", Kind.DURATION),
    Column("amount_bytes", Kind.MEMORY),
    Column("advice", Kind.TERM),
)


class Action(NamedTuple):
    """What to do about one cause."""

    cause: Cause
    keys: tuple[str, ...]
    """Advice by key, the most useful first; none where a snapshot's own sentence tells it."""


def actions(found: Postmortem) -> tuple[Action, ...]:
    """Of each cause that is worth it, and is not told by another one, what was not advised before."""
    given: set[str] = set()
    chosen: list[Action] = []
    for at, one in enumerate(found.causes):
        if one.part_of is not None or not _worth(one):
            continue
        keys = tuple(key for key in dict.fromkeys(_remedies(at, found)) if key not in given)
        given.update(keys)
        if keys or one.trouble is not None:
            chosen.append(Action(one, keys))
    return tuple(chosen)


def actions_table(found: Postmortem, job: JobParts) -> Table:
    """One row a piece of advice; the sentences below are for people."""
    rows = []
    notes: list[Message] = []
    for number, (one, keys) in enumerate(actions(found), 1):
        amount = None if one.trouble is None else one.trouble.amount
        rows += [
            (number, title(one), one.gain, one.share, one.bound, amount, f"do_{key}.{job.platform}" if key else None)
            for key in keys or ("",)
        ]
        notes += _notes(number, one, keys, found, job)
    return table_of_rows("actions", _COLUMNS, tuple(rows), notes=tuple(notes), told=True)


def _notes(number: int, one: Cause, keys: tuple[str, ...], found: Postmortem, job: JobParts) -> Iterator[Message]:
    values = ("number", Kind.COUNT, number), ("finding", Kind.TERM, title(one))
    if one.gain:
        yield Message("action_for_gain", (*values, ("gain", Kind.DURATION, one.gain)))
    else:
        yield Message("action_for", values)
    yield from told(one, found, job)
    for key in keys:
        yield Message(f"advice_{key}.{job.platform}")


def _remedies(at: int, found: Postmortem) -> tuple[str, ...]:
    """Of what explains the cause; else its own, and for a late rank those of the first thing found on it."""
    one = found.causes[at]
    if one.because is not None:
        return advice(found.causes[one.because])
    late = one.finding is not None and one.finding.rule == STRAGGLER
    part = next((each for each in found.causes if late and each.part_of == at and not each.of_run), None)
    return (*advice(one), *(() if part is None else advice(part)))


def _worth(one: Cause) -> bool:
    if one.trouble is not None:
        return one.severity > Severity.INFO
    return worth_telling(one) or (one.gain is None and one.severity > Severity.LOW)
