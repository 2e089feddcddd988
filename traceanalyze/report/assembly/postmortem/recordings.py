"""The recordings of a job, one after the other: how long the step was and what it was spent on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.causes.parts import comparable, decider, spans
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.causes.parts import RankPart
    from traceanalyze.causes.results import Postmortem
    from traceanalyze.model.table import Value
    from traceanalyze.report.assembly.postmortem.parts import JobParts
    from traceanalyze.report.model import RankReport

CHANGED = 0.05
"""Of the step: a smaller change between recordings is not worth a sentence."""


def recordings_table(found: Postmortem, job: JobParts) -> Table:
    """One row a recording; the shares are those of the rank that decides how long its step is."""
    deciding = [decider(one.ranks) for one in found.recordings]
    parts = [_parts(report.ranks[at]) for report, at in zip(job.recordings, deciding, strict=True)]
    keys = tuple(dict.fromkeys(key for each in parts for key in each))
    columns = (
        Column("recording", Kind.COUNT),
        Column("name", Kind.NAME),
        Column("steps", Kind.TEXT),
        Column("on_ranks", Kind.TEXT),
        Column("step_ns", Kind.DURATION),
        Column("deciding_rank", Kind.TEXT),
        *(Column(f"{key}_share", Kind.SHARE) for key in keys),
    )
    rows = tuple(
        (
            number,
            name,
            steps_text(one.ranks[at]),
            spans([rank.label for rank in one.ranks if not rank.label.startswith("?")]) or None,
            one.step_time,
            one.ranks[at].label if len(one.ranks) > 1 else None,
            *(shares.get(key) for key in keys),
        )
        for number, (one, name, at, shares) in enumerate(
            zip(found.recordings, job.names, deciding, parts, strict=True), 1
        )
    )
    return table_of_rows("recordings", columns, rows, notes=change(found), detail=len(rows) < 2)


def change(found: Postmortem) -> tuple[Message, ...]:
    """How the step went from the first recording to the last that can be compared, if it went anywhere."""
    places = comparable(found.recordings)
    if len(places) < 2:
        return ()
    first, last = (found.recordings[at].step_time for at in (places[0], places[-1]))
    if not first or abs(last - first) < CHANGED * first:
        return ()
    values = (
        ("first", Kind.DURATION, first),
        ("last", Kind.DURATION, last),
        ("before", Kind.COUNT, places[0] + 1),
        ("after", Kind.COUNT, places[-1] + 1),
        ("factor", Kind.RATIO, last / first),
    )
    return (Message("step_grew" if last > first else "step_shrank", values),)


def steps_text(rank: RankPart) -> str:
    """`10-13`; their number where they have none."""
    return spans(rank.steps) if all(step.isdecimal() for step in rank.steps) else str(len(rank.steps))


def _parts(rank: RankReport) -> dict[str, Value]:
    """Shares of the step, by the key of the part."""
    split = next((table for table in rank.tables if table.key == "split"), None)
    if split is None or isinstance(split.rows, NotMeasured):
        return {}
    keys = [column.key for column in split.columns]
    at = keys.index("share")
    return {str(row[0]): row[at] for row in split.rows}
