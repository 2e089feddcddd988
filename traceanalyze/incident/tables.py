"""An incident as sentences and tables: what happened or may have, a timeline of all sources, what is missing."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from traceanalyze.causes.results import in_order
from traceanalyze.incident.divergence import Progress, progress
from traceanalyze.incident.evidence import UNKNOWN, Evidence, FileRead, What
from traceanalyze.incident.explanations import Explanation, spans_of, without_stamp
from traceanalyze.incident.judge import Incident
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Kind, Message, Table, Value, declare, sentences
from traceanalyze.ranks.results import spans
from traceanalyze.report.contents.postmortem import IncidentParts
from traceanalyze.report.model import remark
from traceanalyze.rules.finding import Confidence

_SAY = sentences(
    incident_likely="That this is the cause is likely, not proven.",
    incident_uncertain="That this is the cause is uncertain.",
    incident_silent="Rank(s) {ranks} of at least {count} left no file.",
    incident_none="Nothing in {count} file(s) tells that the run failed{until}.",
    incident_until="; step {step} was reached",
    incident_perhaps="Perhaps: {text}",
    incident_not_understood=(
        "{count} line(s) of {files} file(s) (looks|look) like errors and (is|are) not understood, such as: {line}"
    ),
    incident_zone="Times are UTC; those without a zone were moved by {hours} h: {reason}.",
    incident_no_zone="Times without a zone are taken as UTC.",
    incident_alike="{count} line(s) like many others (is|are) only counted.",
    incident_utc="Times are UTC.",
    incident_timeless="{count} event(s) without a time (is|are) not in the timeline.",
    incident_left_out="{count} more row(s), further from the moment when it began, (is|are) left out.",
    incident_left_out_stacks="{count} more group(s) of threads (is|are) left out.",
    incident_faults="{count} file(s) could be read only in part or not at all, such as {path}: {reason}",
)
OTHERS = 3
"""Further explanations that are told."""
_ROWS = 60
"""Of the timeline; more are counted by kind."""
_NUMBER = regex(r"0x[0-9a-fA-F]+|\d+")
_SOURCES = {
    "flight_recorder": ("flight_recorder",),
    "process_log": ("process_log",),
    "stacks": ("stacks",),
    "kernel_log": ("kernel_log",),
    "device_state": ("nvidia_smi", "dcgm", "npu_smi"),
}
"""What would tell → kinds of files that do."""
_OF_RANKS = ("flight_recorder", "stacks")
"""Those of which there is one a rank."""


def told(evidence: Evidence, incident: Incident) -> IncidentParts:
    """Sentences and tables; nothing where no file tells of a run."""
    # Any text may be a log; one that tells nothing is none.
    used = [one for one in evidence.files if one.kind != "other" and (one.understood or one.notable or one.fault)]
    if not used:
        return IncidentParts()
    tables = (
        _explanations(incident),
        _timeline(evidence, incident),
        _divergences(incident),
        _progress(evidence),
        _stacks(evidence),
        *((_missing(evidence, incident),) if incident.explanations else ()),
        _sources(used),
    )
    kept = tuple(table for table in tables if len(table))
    return IncidentParts(
        tuple(_verdict(evidence, incident, used)), kept, tuple(_notes(evidence, used)), incident.headline is not None
    )


def _verdict(evidence: Evidence, incident: Incident, used: Sequence[FileRead]) -> Iterator[Message]:
    first = incident.headline
    if first is not None:
        yield first.sentence
        if first.confidence != Confidence.HIGH:
            yield Message(_SAY["incident_likely" if first.confidence == Confidence.MEDIUM else "incident_uncertain"])
        yield from first.against
    else:
        steps = [int(one.steps.max()) for one in evidence.series if len(one.steps) and one.steps.max() != UNKNOWN]
        until = (Message(_SAY["incident_until"], (("step", Kind.COUNT, max(steps)),)),) if steps else ()
        yield Message(_SAY["incident_none"], (("count", Kind.COUNT, len(used)), ("until", Kind.LIST, until)))
        for one in incident.explanations[:1]:
            yield Message(_SAY["incident_perhaps"], (("text", Kind.LIST, (one.sentence,)),))
            yield from one.against
    if incident.silent and len(incident.silent) < incident.world:
        values = ("ranks", Kind.TEXT, spans_of(incident.silent)), ("count", Kind.COUNT, incident.world)
        yield Message(_SAY["incident_silent"], values)


def _notes(evidence: Evidence, used: Sequence[FileRead]) -> Iterator[Message]:
    yield from map(remark, evidence.notes)
    zone = evidence.zone
    if not (zone.offset_ns or zone.known):
        yield Message(_SAY["incident_no_zone"])
    elif zone.offset_ns:
        values = ("hours", Kind.TEXT, f"{-zone.offset_ns / 3600e9:+g}"), ("reason", Kind.TEXT, zone.source)
        yield Message(_SAY["incident_zone"], values)
    else:
        yield Message(_SAY["incident_utc"])
    if timeless := sum(one.seen for one in evidence.events if one.what in _TELLING and one.time_ns is None):
        yield Message(_SAY["incident_timeless"], (("count", Kind.COUNT, timeless),))
    if alike := sum(one.alike for one in used):
        yield Message(_SAY["incident_alike"], (("count", Kind.COUNT, alike),))
    odd = [one for one in used if one.notable]
    if odd:
        line = next((each for one in odd for each in one.examples), "")
        counts = ("count", Kind.COUNT, sum(one.notable for one in odd)), ("files", Kind.COUNT, len(odd))
        yield Message(_SAY["incident_not_understood"], (*counts, ("line", Kind.NAME, line[:160])))
    torn = [one for one in used if one.fault]
    if torn:
        example = ("path", Kind.NAME, torn[0].path), ("reason", Kind.NAME, torn[0].fault)
        yield Message(_SAY["incident_faults"], (("count", Kind.COUNT, len(torn)), *example))


_RANKS = Column("on_ranks", Kind.TEXT, "Ranks that have it", heading="ranks")
_EXPLANATIONS = declare(
    "incident",
    "What happened, and what else it could be",
    Column("cause", Kind.TERM, "What it is, the likeliest first"),
    _RANKS,
    Column("time", Kind.TEXT, "When it began, UTC"),
    Column("certainty", Kind.TERM, "How safely it is the cause", heading="confidence"),
    Column("on_host", Kind.NAME, "Host of these ranks", heading="host"),
    Column("on_device", Kind.NAME, "Device of that rank", heading="device"),
    Column("todo", Kind.TERM, "What to do first", heading="what to do", minor=True),
    Column("said", Kind.LIST, "The same in a sentence", heading="in words", minor=True),
    Column("against", Kind.LIST, "What contradicts it, or makes it less sure", minor=True),
    Column("evidence", Kind.NAME, "What it rests on: file, line, words", minor=True),
    Column("severity", Kind.TERM, "high of what happened, else low", machine=True),
)


def _explanations(incident: Incident) -> Table:
    shown = incident.explanations[: 1 + OTHERS]
    table = _EXPLANATIONS.fill_records(_explained(one, first=one is incident.headline) for one in shown)
    others = [one for one in shown if one is not incident.headline]
    notes = (Message(_SAY["incident_perhaps"], (("text", Kind.LIST, (one.sentence,)),)) for one in others)
    return replace(table, notes=tuple(notes))


def _explained(one: Explanation, *, first: bool) -> dict[str, Value]:
    return {
        "cause": one.cause,
        "on_ranks": spans_of(one.ranks) or None,
        "on_host": one.host or None,
        "on_device": one.device or None,
        "time": None if one.time_ns is None else _date(one.time_ns)[:19],
        "certainty": f"confidence_{(one.confidence if first else Confidence.LOW).name.lower()}",
        "todo": one.todo,
        "said": (one.sentence,),
        "against": one.against or None,
        "evidence": " | ".join(one.proof[:4]) or None,
        "severity": "severity_high" if first else "severity_low",
    }


def _date(ns: int) -> str:
    return f"{datetime.fromtimestamp(ns // 10**9, UTC):%Y-%m-%d %H:%M:%S}.{ns % 10**9 // 10**6:03d}"


_TIMELINE = declare(
    "incident_timeline",
    "Timeline of all sources",
    Column("time", Kind.TEXT, "When it began, UTC"),
    Column("on_host", Kind.NAME, "Host of these ranks", heading="host"),
    _RANKS,
    Column("event", Kind.TERM, "What happened"),
    Column("words", Kind.NAME, "In the words of the source", heading="in its words"),
    Column("on_device", Kind.NAME, "Device of that rank", heading="device"),
    Column("seen", Kind.COUNT, "How often", heading="times", minor=True),
    Column("source", Kind.NAME, "File and line", minor=True, cut_start=True),
    Column(
        "weight", Kind.NUMBER, "How much it tells: 1 at the moment when it began, less before and after", machine=True
    ),
    telling="weight",
)
_TELLING = frozenset(set(What) - {What.MARK, What.GROUP_STATUS, What.DUMP_SIGNAL})


class _Line(NamedTuple):
    """A row of the timeline before those of equal words are joined."""

    time_ns: int
    rank: int | None
    host: str | None
    device: str | None
    event: str
    words: str
    source: str
    seen: int = 1


def _timeline(evidence: Evidence, incident: Incident) -> Table:
    """What happened, by time: events of one kind and wording within a minute are one line, with all their ranks."""
    joined: dict[tuple[object, ...], list[_Line]] = defaultdict(list)
    for one in sorted(_lines(evidence, incident), key=lambda line: line.time_ns):
        place = (one.host, one.device) if one.rank is None else None
        kind = one.event, place, _NUMBER.sub("", one.words), one.time_ns // (60 * 10**9)
        joined[kind].append(one)
    groups = sorted(joined.values(), key=lambda each: each[0].time_ns)
    began = next((one.time_ns for one in incident.explanations if one.time_ns is not None), None)
    weights = [_weight(each[0], began) for each in groups]
    kept = sorted(sorted(range(len(groups)), key=lambda at: -weights[at])[:_ROWS])
    table = _TIMELINE.fill_records(_row(groups[at], weights[at]) for at in kept)
    return _cut(table, "incident_left_out", len(groups))


def _cut(table: Table, key: str, count: int) -> Table:
    """The table with a note on how many rows it would have more."""
    left = count - len(table)
    return replace(table, notes=(Message(_SAY[key], (("count", Kind.COUNT, left),)),)) if left else table


def _weight(line: _Line, began: int | None) -> float:
    away = 0.0 if began is None else abs(line.time_ns - began) / 1e9
    return (0.01 if line.event in _USUAL else 1.0) / (1.0 + away / 60)


_USUAL = {"what_step", f"what_{What.CHECKPOINT_BEGIN}", f"what_{What.CHECKPOINT_END}"}
"""What a healthy run has, too."""


def _row(each: list[_Line], weight: float) -> dict[str, Value]:
    first = each[0]
    ranks = in_order(str(one.rank) for one in each if one.rank is not None)
    hosts = {one.host for one in each if one.host}
    return {
        "time": _date(first.time_ns),
        "on_ranks": spans(ranks) or None,
        "on_host": hosts.pop() if len(hosts) == 1 else None,
        "on_device": first.device if len({one.device for one in each}) == 1 else None,
        "event": first.event,
        "words": without_stamp(first.words),
        "seen": sum(one.seen for one in each),
        "source": first.source,
        "weight": round(weight, 4),
    }


def _lines(evidence: Evidence, incident: Incident) -> Iterator[_Line]:
    for one in evidence.events:
        if one.time_ns is not None and one.what in _TELLING:
            rank = incident.rank_of(one)
            place = incident.places.get(rank) if rank is not None else None
            host, device = one.host or (place.host if place else None), one.device or (place.device if place else None)
            yield _Line(
                one.time_ns,
                rank,
                host or None,
                device or None,
                f"what_{one.what}",
                one.message,
                str(one.source),
                one.seen,
            )
    for each in incident.found:
        if each.since_ns is not None:
            waiting = spans_of(each.waiting)
            words = f"{each.op} {each.seq:,} of {each.group.desc or each.group.name}: {waiting} in"
            for rank in each.culprits or each.waiting:
                yield _Line(each.since_ns, rank, None, None, f"diverges_{each.kind}", words, "flight recorder")
    for series in evidence.series:
        timed = series.times != UNKNOWN
        if series.name in {"loss", "step_time"} and timed.any():
            for at in (int(np.flatnonzero(timed)[0]), int(np.flatnonzero(timed)[-1])):
                words = f"step {series.steps[at]:,}: {series.name} {series.values[at]:.4g}"
                yield _Line(
                    int(series.times[at]), series.rank, series.host, None, "what_step", words, series.source.path
                )


_DIVERGENCES = declare(
    "incident_groups",
    "First divergence of each process group",
    Column("group", Kind.NAME, "Name of the group, and what the program calls it"),
    Column("divergence", Kind.TERM, "What differs", heading="what differs"),
    Column("seq", Kind.COUNT, "Number of the collective in its group", heading="collective"),
    Column("op", Kind.NAME, "What most ranks called", heading="operation"),
    Column("other", Kind.NAME, "What the others called"),
    Column("culprits", Kind.TEXT, "Ranks that lack or differ", heading="ranks that differ"),
    Column("waiting", Kind.TEXT, "Ranks that are in it", heading="ranks that wait"),
    Column("came", Kind.TEXT, "When the last of them came, UTC", heading="since"),
    Column("line", Kind.PLACE, "Line of the program that calls it", minor=True),
    detail=True,
)


def _divergences(incident: Incident) -> Table:
    return _DIVERGENCES.fill_records(
        {
            "group": f"{one.group.name} {one.group.desc}".strip(),
            "divergence": f"diverges_{one.kind}",
            "seq": one.seq,
            "op": one.op or None,
            "other": one.other or None,
            "culprits": spans_of(one.culprits) or None,
            "waiting": spans_of(one.waiting) or None,
            "came": None if one.since_ns is None else _date(one.since_ns),
            "line": one.line or None,
        }
        for one in incident.found
    )


_PROGRESS = declare(
    "incident_progress",
    "How far each rank came in its process groups",
    Column("group", Kind.NAME, "Name of the group, and what the program calls it"),
    _RANKS,
    Column("enqueued", Kind.COUNT, "Last collective that the host launched; none where it is −1"),
    Column("started", Kind.COUNT, "Last one that began on the device, where that was recorded"),
    Column("completed", Kind.COUNT, "Last one that ended"),
    detail=True,
)


def _progress(evidence: Evidence) -> Table:
    same: dict[Progress, list[str]] = defaultdict(list)
    for one in progress(evidence.flights):
        same[one._replace(rank=0, group=one.group._replace(id=0, enqueued=0, started=0, completed=0))].append(
            str(one.rank)
        )
    return _PROGRESS.fill_records(
        {
            "group": f"{one.group.name} {one.group.desc}".strip(),
            "on_ranks": spans(in_order(ranks)),
            "enqueued": one.enqueued,
            "started": one.started,
            "completed": one.completed,
        }
        for one, ranks in same.items()
    )


_STACKS = declare(
    "incident_stacks",
    "What the threads of the ranks did",
    _RANKS,
    Column("thread", Kind.NAME, "Name of the thread"),
    Column("state", Kind.TERM, "What it did, by its innermost frames"),
    Column("frames", Kind.NAME, "Frames, innermost first"),
    Column("count", Kind.COUNT, "How many stacks", minor=True),
    detail=True,
)


def _stacks(evidence: Evidence) -> Table:
    """Threads that do the same together; those of fewest ranks first."""
    same = defaultdict(list)
    for one in evidence.stacks:
        same[one.thread if not one.main else "", one.key].append(one)
    groups = sorted(same.values(), key=lambda each: (not each[0].main, len({one.rank for one in each})))
    table = _STACKS.fill_records(
        {
            "on_ranks": spans(in_order(str(one.rank) for one in each if one.rank is not None)) or None,
            "thread": each[0].thread or None,
            "state": f"stack_{each[0].state}",
            "frames": " < ".join(each[0].frames[:6]),
            "count": len(each),
        }
        for each in groups[:_ROWS]
    )
    return _cut(table, "incident_left_out_stacks", len(groups))


_MISSING = declare(
    "incident_missing",
    "What was not in the directory, and would have told",
    Column("missing", Kind.TERM, "Source that is not there"),
    Column("on_ranks", Kind.TEXT, "Ranks of which it is not there; none: of all", heading="ranks"),
    Column("tells", Kind.TERM, "What it would have told", heading="would tell"),
    Column("record", Kind.TERM, "How to record it", heading="next time"),
    detail=True,
)


def _missing(evidence: Evidence, incident: Incident) -> Table:
    kinds = {one.kind for one in evidence.files}
    of = {"flight_recorder": {one.rank for one in evidence.flights}, "stacks": {one.rank for one in evidence.stacks}}
    rows = [] if evidence.of(What.EXIT) else [("launcher", "")]
    for source, files in _SOURCES.items():
        lack = [str(rank) for rank in range(incident.world) if source in of and rank not in of[source]]
        if kinds.isdisjoint(files):
            rows.append((source, ""))
        elif 0 < len(lack) < incident.world:
            rows.append((source, spans(lack)))
    return _MISSING.fill(
        missing=[f"source_{source}" for source, _ in rows],
        on_ranks=[ranks or None for _, ranks in rows],
        tells=[f"tells_{source}" for source, _ in rows],
        record=[f"record_{source}" for source, _ in rows],
    )


_SOURCE_FILES = declare(
    "incident_files",
    "Logs, dumps and device states that were read",
    Column("path", Kind.NAME, "file as it was given", heading="file", cut_start=True),
    Column("file_kind", Kind.TERM, "What the file is, by its content", heading="what it is"),
    Column("rank", Kind.COUNT, "rank of the process; ?n where the profile does not tell"),
    Column("host", Kind.NAME, "machine it was recorded on"),
    Column("lines", Kind.COUNT, "Lines, or records of a binary file"),
    Column("understood", Kind.COUNT, "Of these, how many tell something"),
    Column(
        "notable", Kind.COUNT, "Of these, how many look like errors and are not understood", heading="not understood"
    ),
    Column("example", Kind.NAME, "The first of them"),
    Column("fault", Kind.NAME, "Why the rest of it could not be read"),
    detail=True,
)


def _sources(used: Sequence[FileRead]) -> Table:
    return _SOURCE_FILES.fill_records(
        {
            "path": one.path,
            "file_kind": f"file_{one.kind}",
            "rank": one.rank,
            "host": one.host,
            # Of a file that could not be opened or unpacked nothing was counted.
            "lines": one.lines or None,
            "understood": one.understood if one.lines else None,
            "notable": one.notable or None,
            "example": next(iter(one.examples), None),
            "fault": one.fault or None,
        }
        for one in used
    )
