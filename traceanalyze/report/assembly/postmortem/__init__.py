"""From the synthesis of a job to its report: verdict, causes, actions first, then the rank that decides in detail."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.model.table import Kind, Message
from traceanalyze.report.assembly.postmortem.actions import actions_table
from traceanalyze.report.assembly.postmortem.causes import capture_table, causes_table, evidence_table, trend_table
from traceanalyze.report.assembly.postmortem.files import files_table, memory_table
from traceanalyze.report.assembly.postmortem.recordings import recordings_table
from traceanalyze.report.assembly.postmortem.unjudged import unjudged_table
from traceanalyze.report.assembly.postmortem.verdict import verdict
from traceanalyze.report.assembly.ranks import leading_sentence
from traceanalyze.report.model import Report
from traceanalyze.rules.finding import Severity

if TYPE_CHECKING:
    from traceanalyze.causes.results import Postmortem
    from traceanalyze.model.table import Table
    from traceanalyze.report.assembly.postmortem.parts import JobParts
    from traceanalyze.report.model import RankReport

_SHORT = frozenset({"split", "ranks"})
"""Tables of a recording that a short view shows beside the post-mortem's own."""


def build_postmortem(found: Postmortem, job: JobParts, *, version: str) -> Report:
    """The report of one job."""
    recorded = tuple(_brief(rank) for report in job.recordings for rank in report.ranks)
    remembered = tuple(rank for one in job.memory for rank in one.report.ranks)
    place = _place(found, job)
    deciding = recorded[place] if place is not None else None
    return Report(
        name=job.name,
        version=version,
        verdict=verdict(found, job, deciding),
        notes=_notes(found, job),
        summary=(*_own(found, job), *_compared(found, job)),
        ranks=(*recorded, *remembered),
        focus=_focus(found, job, place, len(recorded)),
        analyses=tuple(one for report in job.recordings for one in report.analyses),
        run_findings=() if found.decider is None else job.recordings[found.decider[0]].run_findings,
    )


def _own(found: Postmortem, job: JobParts) -> tuple[Table, ...]:
    several = len(found.recordings) > 1
    recorded = bool(found.recordings)
    return (
        causes_table(found),
        actions_table(found, job),
        *((recordings_table(found, job),) if recorded else ()),
        *((memory_table(job),) if job.memory else ()),
        *((unjudged_table(found, job.platform),) if recorded else ()),
        evidence_table(found, job),
        *((trend_table(found),) if several else ()),
        *((capture_table(found, job),) if recorded else ()),
        files_table(job),
    )


def _place(found: Postmortem, job: JobParts) -> int | None:
    """Position of the rank that decides among all recorded ones."""
    if found.decider is None:
        return None
    recording, rank = found.decider
    return sum(len(report.ranks) for report in job.recordings[:recording]) + rank


def _compared(found: Postmortem, job: JobParts) -> tuple[Table, ...]:
    """What the recording of the deciding rank says about its ranks side by side."""
    if found.decider is None:
        return ()
    tables = job.recordings[found.decider[0]].summary
    return tuple(table if table.key in _SHORT else replace(table, detail=True) for table in tables)


def _brief(rank: RankReport) -> RankReport:
    """The rank with all its tables, of which a short view shows only where the time went."""
    tables = tuple(table if table.key in _SHORT else replace(table, detail=True) for table in rank.tables)
    return replace(rank, tables=tables)


def _focus(found: Postmortem, job: JobParts, place: int | None, recorded: int) -> tuple[int, ...]:
    """The rank that decides, and the devices whose snapshots tell more than notes."""
    chosen: list[int] = []
    if place is not None:
        whole = _place_of_recording(found, job) if job.every_rank else (place,)
        chosen += whole
    telling = {one.trouble.place[0] for one in found.causes if one.trouble and one.severity > Severity.INFO}
    at = recorded
    for index, one in enumerate(job.memory):
        if place is None or index in telling:
            chosen += range(at, at + len(one.report.ranks))
        at += len(one.report.ranks)
    return tuple(chosen)


def _place_of_recording(found: Postmortem, job: JobParts) -> tuple[int, ...]:
    recording = (found.decider or (0, 0))[0]
    first = sum(len(report.ranks) for report in job.recordings[:recording])
    return tuple(range(first, first + len(job.recordings[recording].ranks)))


def _remark(name: str, note: str) -> Message:
    text = ("text", Kind.TEXT, note)
    return Message("recording_note", (("name", Kind.NAME, name), text)) if name else Message("run_note", (text,))


def _notes(found: Postmortem, job: JobParts) -> tuple[Message, ...]:
    remarks = [*job.told, *(_remark(name, note) for name, note in job.notes)]
    for key, fate in (("files_lost", "left_out"), ("files_cut", "salvaged")):
        count = sum(one.fate == fate for one in job.files)
        if count:
            remarks.append(Message(key, (("count", Kind.COUNT, count),)))
    if found.decider is not None:
        recording, rank = found.decider
        part = found.recordings[recording]
        told = ("rank", Kind.TEXT, part.ranks[rank].label), ("recording", Kind.COUNT, recording + 1)
        several_ranks = len(part.ranks) > 1 and not job.every_rank
        if several_ranks and len(found.recordings) > 1:
            remarks.append(Message("details_of_both", told))
        elif several_ranks:
            remarks.append(Message("details_of_rank", told[:1]))
        elif len(found.recordings) > 1:
            remarks.append(Message("details_of_recording", told[1:]))
        if several_ranks:
            times, own = [each.step_time for each in part.ranks], [each.own for each in part.ranks]
            remarks += leading_sentence([each.label for each in part.ranks], times, own)
    return tuple(remarks)
