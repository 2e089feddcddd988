"""From the synthesis of a job to its report: verdict, causes, actions first, then the rank that decides in detail."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

from traceanalyze.causes.results import Cause, Onset, Postmortem
from traceanalyze.causes.synthesize import SEVERITIES, STRAGGLER, UNRECORDED, worth_telling
from traceanalyze.model.table import Column, Kind, Message, Table, declare, sentences
from traceanalyze.model.vocabulary import Mode
from traceanalyze.ranks.stragglers import WAITS_FOR_ABSENT
from traceanalyze.report.contents import causes
from traceanalyze.report.contents.quality import start_left_out
from traceanalyze.report.contents.recordings import change, recordings_table, unjudged_table
from traceanalyze.report.contents.snapshot import RAN_OUT, MemoryFile
from traceanalyze.report.contents.unexplained import lost_data, unjudged
from traceanalyze.report.contents.words import Said, Setting, cost_of
from traceanalyze.report.model import RankReport, Report, remark
from traceanalyze.rules.finding import Confidence, Severity

_SAY = sentences(
    files_lost="{count} file(s) could not be used: see the table of files (console: -v).",
    files_cut="{count} file(s) could be used only in part: see the table of files (console: -v).",
    limited_alone="What limited this run most: {finding}.",
    limited_all="What limited this run most, on each of the {count} ranks: {finding}.",
    limited_some="What limited this run most, on ranks {ranks} of {count}: {finding}.",
    limited_one="What limited this run most, on rank {ranks} of {count}: {finding}.",
    limited_run="What limited this run most: {finding}.",
    limited_by_rank="Rank {ranks} limited this run.",
    costs_trace="It costs {gain} of {step} ({share}).",
    costs_others_trace="It costs the others {gain} of {step} ({share}).",
    in_time_trace="Without what makes it late, the run would save {gain} of {step} ({share}).",
    told_since_every="It is there in all {steps} analysed steps.",
    told_since_from="It is there from step {step} on, in {affected} of {steps} analysed steps.",
    told_since_from_recording=(
        "It is there from step {step} of recording {recording} on, in {affected} of {steps} analysed steps."
    ),
    told_since_until="It is there until step {step}, in {affected} of {steps} analysed steps.",
    told_since_until_recording=(
        "It is there until step {step} of recording {recording}, in {affected} of {steps} analysed steps."
    ),
    told_grew="It grew from {before} to {after} {per} with recording {recording}.",
    told_since_some="It is there in {affected} of {steps} analysed steps.",
    late_because="It comes late because {phase} ({excess} {per}).",
    do_first="What to do: {text}",
    do_next="What to do about it: {text}",
    limits_next="Next: {finding}, {gain} ({share}).",
    limits_then="Then: {finding}, {gain} ({share}).",
    limits_next_cost="Next: {finding}, which costs {cost} ({share}).",
    limits_then_cost="Then: {finding}, which costs {cost} ({share}).",
    ran_out_rank="The run ran out of memory on rank {rank}.",
    will_run_out_rank="The run is about to run out of memory on rank {rank}.",
    healthy="No problem was found that costs 1 % of the step ({step}) or more.",
    healthy_trace="No problem was found that costs 1 % of the time ({step}) or more.",
    healthy_yet="No rule found a cause that comes back and costs 1 % of the step ({step}) or more.",
    healthy_trace_yet="No rule found a cause that comes back and costs 1 % of the time ({step}) or more.",
    healthy_open=(
        "No rule found a cause that costs 1 % of the step ({step}) or more, but {share} of it could not be judged: "
        "{part}."
    ),
    healthy_trace_open=(
        "No rule found a cause that costs 1 % of the time ({step}) or more, but {share} of it could not be judged: "
        "{part}."
    ),
    limited_likely="That this is the cause is likely, not proven.",
    limited_uncertain="That this is the cause is uncertain.",
    healthy_hint="Perhaps worth a try: {finding} ({gain}).",
    healthy_unjudged=(
        '{count} of {rules} rules could not be judged: see "What could not be judged, and what would show it".'
    ),
    recording_note="{name}: {text}",
    details_of_recording="Details below are those of recording {recording}.",
    details_of_both="Details below are those of rank {rank} in recording {recording}; --ranks chooses others.",
    saves="Removing it saves {gain} of each {step} step ({share}).",
    saves_trace="Removing it saves {gain} of {step} ({share}).",
    costs="It costs {gain} of each {step} step ({share}).",
    costs_others="It costs the others {gain} of each {step} step ({share}).",
    in_time="Without what makes it late, the run would save {gain} of each {step} step ({share}).",
    will_run_out="The run is about to run out of memory.",
)


class IncidentParts(NamedTuple):
    """What logs, dumps and states of devices tell, ready to be shown."""

    verdict: tuple[Message, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[Message, ...] = ()
    found: bool = False
    """Whether anything is known to be wrong: then it comes before all that the recordings say."""


class JobParts(NamedTuple):
    """Everything about one job."""

    name: str
    platform: str
    """ascend or cuda (which stands for all others)"""
    recordings: tuple[Report, ...]
    """In the order of time, as `traceanalyze analyze` reports them."""
    memory: tuple[MemoryFile, ...]
    files: Table
    """What became of each file."""
    notes: tuple[tuple[str, str], ...] = ()
    """Remarks of the readers, each with the name of its recording where there are several."""
    grouping: tuple[Message, ...] = ()
    """Why these recordings were taken together, and apart from others."""
    incident: IncidentParts = IncidentParts()
    every_rank: bool = False
    """Show each rank in detail, not only the one that decides."""


_SHORT = frozenset({"split", "ranks"})
"""Tables of a recording that a short view shows beside the post-mortem's own."""


def build_postmortem(found: Postmortem, job: JobParts, *, version: str) -> Report:
    """The report of one job."""
    deciding = None if found.decider is None else job.recordings[found.decider[0]]
    recorded, several = bool(found.recordings), len(found.recordings) > 1
    recordings = tuple(replace(rank, tables=_brief(rank.tables)) for one in job.recordings for rank in one.ranks)
    return Report(
        name=job.name,
        version=version,
        command="postmortem",
        verdict_messages=_with_incident(_verdict(found, job), job.incident),
        note_messages=_notes(found, job),
        summary=(
            *job.incident.tables,
            causes.causes_table(found),
            causes.actions_table(found, job.platform),
            *((recordings_table(found, job.recordings),) if recorded else ()),
            *((_memory_table(job),) if job.memory else ()),
            *((unjudged_table(found, job.platform),) if recorded else ()),
            causes.evidence_table(found),
            *((causes.trend_table(found),) if several else ()),
            *((causes.capture_table(found),) if recorded else ()),
            job.files,
            *(() if deciding is None else _brief(deciding.summary)),
        ),
        ranks=(*recordings, *(rank for one in job.memory for rank in one.report.ranks)),
        focus=_focus(found, job),
        analyses=tuple(one for report in job.recordings for one in report.analyses),
        run_findings=() if deciding is None else deciding.run_findings,
        said=tuple(_said(one, found, job) for one in (*found.causes, *found.capture)),
    )


def _with_incident(verdict: tuple[Message, ...], incident: IncidentParts) -> tuple[Message, ...]:
    return (*incident.verdict, *verdict) if incident.found else (*verdict, *incident.verdict)


def _said(one: Cause, found: Postmortem, job: JobParts) -> Said:
    """A cause as a finding; its times are of the rank whose finding is shown."""
    if one.finding is None:
        file = None if one.trouble is None else job.memory[one.trouble.file].path
        return causes.as_finding(one, Setting(platform=job.platform, path=file or ""))
    recording = found.recordings[one.recording]
    ranks = job.recordings[one.recording].ranks
    rank = next((each for each, part in zip(ranks, recording.ranks, strict=True) if part.label == one.rank), None)
    setting = Setting(recording.step, job.platform, whole=not recording.marked)
    if found.decider is not None and one.recording != found.decider[0]:
        setting = setting._replace(recording=one.recording + 1)
    return causes.as_finding(
        one, setting if rank is None else setting._replace(path=rank.path, resolution_ns=rank.resolution_ns)
    )


def _brief(tables: Sequence[Table]) -> tuple[Table, ...]:
    """All of them, of which a short view shows only where the time went."""
    return tuple(table if table.key in _SHORT else replace(table, detail=True) for table in tables)


def _focus(found: Postmortem, job: JobParts) -> tuple[int, ...]:
    """Positions of the rank that decides, and of the devices whose snapshots tell more than notes."""
    telling = {one.trouble.file for one in found.causes if one.trouble and one.severity > Severity.INFO}
    chosen: list[int] = []
    at = 0
    for number, report in enumerate([*job.recordings, *(one.report for one in job.memory)]):
        places = range(at, at + len(report.ranks))
        at = places.stop
        if number >= len(job.recordings):
            chosen += places if found.decider is None or number - len(job.recordings) in telling else ()
        elif found.decider is not None and number == found.decider[0]:
            chosen += places if job.every_rank else (places[found.decider[1]],)
    return tuple(chosen)


def _remark(name: str, note: str) -> Message:
    known = ("name", Kind.NAME, name), ("text", Kind.TEXT, note)
    return Message(_SAY["recording_note"], known) if name else remark(note)


def _notes(found: Postmortem, job: JobParts) -> tuple[Message, ...]:
    remarks = [*job.grouping, *(_remark(name, note) for name, note in job.notes), *job.incident.notes]
    for key, fate in ((_SAY["files_lost"], "left_out"), (_SAY["files_cut"], "salvaged")):
        count = job.files.column("fate").count(f"fate_{fate}")
        if count:
            remarks.append(Message(key, (("count", Kind.COUNT, count),)))
    if found.decider is not None:
        recording, rank = found.decider
        part = found.recordings[recording]
        place = ("rank", Kind.TEXT, part.ranks[rank].label), ("recording", Kind.COUNT, recording + 1)
        several_ranks = len(part.ranks) > 1 and not job.every_rank
        if several_ranks and len(found.recordings) > 1:
            remarks.append(Message(_SAY["details_of_both"], place))
        elif several_ranks:
            remarks.append(Message("details_of_rank", place[:1]))
        elif len(found.recordings) > 1:
            remarks.append(Message(_SAY["details_of_recording"], place[1:]))
    return tuple(remarks)


_MEMORY_FILES = declare(
    "memory_files",
    "Memory snapshots and timelines",
    Column("path", Kind.NAME, "File", heading="file"),
    Column("file_kind", Kind.TERM, "What the file is, by its content", heading="what it is"),
    Column("rank", Kind.COUNT, "rank of the process; ?n where the profile does not tell"),
    Column("rank_source", Kind.TEXT, "where the file says which rank it is", heading="rank taken from"),
    Column("peak_bytes", Kind.MEMORY, "Most bytes in blocks at any time"),
    Column("findings", Kind.COUNT, "How many findings there are, mere notes included"),
    Column("severity", Kind.TERM, "The worst finding"),
)


def _memory_table(job: JobParts) -> Table:
    """One row a snapshot or timeline; its findings are among the causes."""
    return _MEMORY_FILES.fill_records(
        {
            "path": one.path,
            "file_kind": f"file_{one.kind}",
            "rank": one.rank,
            "rank_source": one.rank_source or None,
            "peak_bytes": one.peak,
            "findings": len(one.findings) if one.kind == "snapshot" else None,
            "severity": max((each.severity for each in one.findings), key=SEVERITIES.__getitem__, default=None),
        }
        for one in job.memory
    )


NAMED = 2
"""Further causes that the verdict names."""


def _verdict(found: Postmortem, job: JobParts) -> tuple[Message, ...]:
    """Memory that ends the run first, then what limits its step; of a healthy run, that it is one."""
    ending = [one for one in found.causes if one.trouble is not None and one.severity == Severity.HIGH]
    memory = tuple(_memory(ending[0])) if ending else ()
    if found.decider is None:
        # Without a trace: what the file with the worst finding says, of equal ones that with the highest peak.
        worst = max(job.memory, key=lambda one: (_worst(one), one.peak or 0), default=None)
        return memory or (() if worst is None else (*worst.report.verdict_messages,))
    recording, rank = found.decider
    report = job.recordings[recording]
    deciding = report.ranks[rank]
    limits = [one for one in found.causes if worth_telling(one) and one.part_of is None]
    if not limits:
        measured = found.recordings[recording].waits_known
        # How long others wait for the deciding rank shows in them.
        looked_at = [
            report.analyses[rank],
            *(each for each in report.analyses if not measured and each.trace.read.whole),
        ]
        doubts = filter(None, (unjudged(each, waits_known=measured) for each in looked_at))
        doubt = max(doubts, key=itemgetter(1), default=None)
        return (*memory, *_healthy(found, deciding, doubt), *report.about_ranks, *change(found))
    others = [
        Message(
            _SAY[f"limits_{'then' if place else 'next'}{'' if one.gain else '_cost'}"],
            (
                ("finding", Kind.TERM, causes.title(one)),
                ("gain", Kind.DURATION, causes.gained(one)) if one.gain else ("cost", Kind.DURATION, one.worth),
                ("share", Kind.SHARE, one.share),
            ),
        )
        for place, one in enumerate(limits[1 : NAMED + 1])
    ]
    analysis = report.analyses[rank]
    # Where that limits the run it has been said.
    known = WAITS_FOR_ABSENT if limits[0].finding is not None and limits[0].finding.rule == UNRECORDED else frozenset()
    about_ranks = [one for one in report.about_ranks if one.key not in known]
    about = *about_ranks, *deciding.open_parts, *start_left_out(analysis), *lost_data(analysis)
    return (*memory, *_limited(limits[0], found, job, first=not memory), *others, *about, *change(found))


def _worst(one: MemoryFile) -> int:
    return max((SEVERITIES[each.severity] for each in one.findings), default=-1)


def _memory(one: Cause) -> Iterator[Message]:
    failed = causes.title(one).startswith("oom")
    known = causes.on_ranks(one.ranks)
    if known:
        key = "ran_out_rank" if failed else "will_run_out_rank"
        yield Message(_SAY[key], (("rank", Kind.TEXT, known),))
    else:
        yield RAN_OUT if failed else Message(_SAY["will_run_out"])
    yield causes.sentence(one)


def _limited(one: Cause, found: Postmortem, job: JobParts, *, first: bool) -> Iterator[Message]:
    recording = found.recordings[one.recording]
    extent = _extent(one, len(recording.ranks))
    ranks = ("ranks", Kind.TEXT, causes.on_ranks(one.ranks) or ""), ("count", Kind.COUNT, len(recording.ranks))
    yield Message(_SAY[f"limited_{extent}"], (("finding", Kind.TERM, causes.title(one)), *ranks))
    yield from _sure(one)
    for price, amount in _prices(one, extent):
        share = amount / recording.step if recording.step else 0.0
        costs = ("gain", Kind.DURATION, amount), ("step", Kind.DURATION, recording.step)
        yield Message(_SAY[price if recording.marked else f"{price}_trace"], (*costs, ("share", Kind.SHARE, share)))
    known = {} if one.finding is None else {each.label: each.value for each in one.finding.evidence}
    if one.because is not None:
        yield from causes.because(one, found)
    elif one.finding is not None and one.finding.rule == STRAGGLER:
        # What it takes longer for than the others, where that is known.
        if "phase" in known and "excess" in known:
            values = ("phase", Kind.TERM, known["phase"]), ("excess", Kind.DURATION, known["excess"])
            yield Message(_SAY["late_because"], values)
    elif one.about_ranks:
        yield causes.sentence(one)
    yield from _since(one.onset, several=len(found.recordings) > 1)
    for each in found.growths:
        if found.causes[each.cause] is one and each.before:
            yield Message(_SAY["told_grew"], causes.amounts(each))
    todo = next((keys[0] for each, keys in causes.actions(found) if each is one and keys), None)
    if todo is not None:
        yield Message(_SAY["do_first" if first else "do_next"], (("text", Kind.TERM, f"do_{todo}.{job.platform}"),))


def _prices(one: Cause, extent: str) -> Iterator[tuple[str, int]]:
    """What it costs and what the run saves without it, each as what it is."""
    saving = causes.gained(one)
    if saving is None:
        yield "costs", one.worth
    elif extent != "by_rank":
        yield "saves", saving
    else:
        cost = None if one.finding is None else cost_of(one.finding)
        if cost is not None or one.low is None:
            # What was not replayed is what the others wait.
            yield "costs_others", saving if cost is None else cost
        if one.low is not None:
            yield "in_time", saving


def _sure(one: Cause) -> Iterator[Message]:
    """How safely it is the cause, where that is not certain."""
    sure = Confidence.HIGH if one.finding is None else one.finding.confidence
    if sure != Confidence.HIGH:
        yield Message(_SAY["limited_likely" if sure == Confidence.MEDIUM else "limited_uncertain"])


def _extent(one: Cause, ranks: int) -> str:
    if ranks < 2:
        return "alone"
    if one.finding is not None and one.finding.rule == STRAGGLER:
        return "by_rank"
    if one.about_ranks or not one.ranks:
        return "run"
    if len(one.ranks) >= ranks:
        return "all"
    return "one" if len(one.ranks) == 1 else "some"


def _since(onset: Onset, *, several: bool) -> Iterator[Message]:
    values = (
        ("step", Kind.TEXT, onset.step),
        ("affected", Kind.COUNT, onset.affected),
        ("steps", Kind.COUNT, onset.steps),
        ("recording", Kind.COUNT, onset.recording + 1),
    )
    if onset.kind != "unknown":
        place = "_recording" if several and onset.step else ""
        yield Message(_SAY[f"told_since_{onset.kind}{place}"], values)


def _healthy(found: Postmortem, deciding: RankReport, doubt: tuple[str, float] | None) -> Iterator[Message]:
    """That nothing was found, no more than that, and what the step was spent on."""
    if deciding.mode == Mode.EMPTY:
        yield from deciding.verdict_messages
        return
    if deciding.mode != Mode.HOST_ONLY:
        recording = found.recordings[(found.decider or (0, 0))[0]]
        time = (("step", Kind.DURATION, recording.step),)
        key = "healthy" if recording.marked else "healthy_trace"
        if doubt is None:
            unknown = any(not one.key.startswith("compute") for one in deciding.open_parts)
            yield Message(_SAY[f"{key}_yet" if unknown else key], time)
        else:
            part, share = doubt
            yield Message(_SAY[f"{key}_open"], (*time, ("part", Kind.TERM, part), ("share", Kind.SHARE, share)))
    yield from deciding.verdict_messages
    hint = next((one for one in found.causes if one.gain and one.part_of is None), None)
    if hint is not None:
        values = ("finding", Kind.TERM, causes.title(hint)), ("gain", Kind.DURATION, causes.gained(hint))
        yield Message(_SAY["healthy_hint"], values)
    missing = len({rule for one in found.not_evaluated for rule in one.rules})
    if missing:
        yield Message(_SAY["healthy_unjudged"], (("count", Kind.COUNT, missing), ("rules", Kind.COUNT, found.rules)))
