"""All that a report says about one rank beside its verdict, and about its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.analyses.steps.window import Steps, Window, step_labels
from traceanalyze.model.table import Column, Kind, Layout, Message, Table, declare, sentences
from traceanalyze.model.trace import Trace
from traceanalyze.model.vocabulary import Mode
from traceanalyze.report.contents.findings import findings_tables
from traceanalyze.report.contents.quality import doubts, hints
from traceanalyze.report.contents.words import name_of, platform_of, said, setting_of, together
from traceanalyze.report.model import FindingExcerpt, Late, RankReport, Timeline
from traceanalyze.rules.finding import Finding, FindingKey, Outcome

if TYPE_CHECKING:
    from traceanalyze.analyses.excerpt import Excerpt, Place

_FILES = declare(
    "files",
    "Recording",
    Column("rank", Kind.COUNT, "rank of the process; ?n where the profile does not tell"),
    Column("path", Kind.NAME, "file as it was given", heading="file"),
    Column("file_bytes", Kind.BYTES, "size of the file as stored", heading="size"),
    Column("text_bytes", Kind.BYTES, "size of the JSON text", heading="JSON text"),
    Column("events", Kind.COUNT, "events in the file"),
    Column("host", Kind.TEXT, "machine it was recorded on"),
    Column("rank_source", Kind.TEXT, "where the file says which rank it is", heading="rank taken from"),
    Column("world_size", Kind.COUNT, "number of ranks of the job"),
    Column("backend", Kind.TEXT, "backend of torch.distributed"),
    Column("devices", Kind.TEXT, "devices of the machine"),
    Column("profiler_options", Kind.TEXT, "options that were on while recording"),
    Column("versions", Kind.TEXT, "versions the file states"),
    Column(
        "resolution_ns", Kind.DURATION, "finest time the file distinguishes", heading="clock resolution", scale="clock"
    ),
    Column(
        "base_ns",
        Kind.COUNT,
        "absolute time of the file's zero, nanoseconds since 1970",
        heading="time base, ns",
        machine=True,
    ),
    layout=Layout.RECORD,
    detail=True,
)


def with_tables(
    report: RankReport,
    analysis: RankAnalysis,
    window: Window,
    outcome: Outcome | None,
    places: Mapping[FindingKey, Place],
    name: str,
) -> RankReport:
    """The report with its tables, checks and pictures, and what the rules say, if they were run.

    `name` tells recordings apart that have no rank.
    """
    found = () if outcome is None else outcome.findings
    told = said(found, setting_of(analysis, window, name)) if found else ()

    def every() -> tuple[Table, ...]:
        tables = tuple(analysis.tables.values()) if "split" in analysis.tables else ()
        if outcome is None:
            return tables
        backward = told[0].setting.backward if told else frozenset[str]()
        return (*tables[:1], *(each.directed(backward) for each in findings_tables(told, outcome)), *tables[1:])

    tables = Late(every)
    return replace(
        report,
        tables=tables,
        checks=doubts(analysis.checks),
        hints=Late(lambda: hints(tables, analysis.checks, ascend=platform_of(analysis.trace) == "ascend")),
        findings=found,
        said=told,
        together=None if outcome is None else together(found, outcome.together),
        excerpts=Late(lambda: _excerpts(found, places, analysis)),
    )


def _excerpts(
    found: Sequence[Finding], places: Mapping[FindingKey, Place], analysis: RankAnalysis
) -> tuple[FindingExcerpt, ...]:
    """Excerpts of the trace at findings that have a place in it, in the order of the findings."""
    shown = [(one, places[one.key]) for one in found if one.key in places]
    return tuple(FindingExcerpt(one.rule, name_of(one), tuple(_in_words(at, analysis)), at) for one, at in shown)


def timeline(whole: Excerpt, steps: Steps, window: Window) -> Timeline:
    """All of a trace, with the time that was analysed."""
    rows = list(window.rows)
    if not rows:
        return Timeline(whole, whole.start, whole.start + whole.length)
    return Timeline(whole, int(steps.start[rows].min()), int(steps.end[rows].max()))


_SAY = sentences(
    excerpt_in_step="It takes {time} and begins {since} after the start of step {step}.",
    excerpt_at_step="It takes {time} and begins with step {step}.",
    excerpt_in_trace="It takes {time} and begins {since} after the first event.",
    excerpt_idle="The device is idle {idle} of it (mainly {cause}).",
    excerpt_idle_throughout="The device is idle throughout (mainly {cause}).",
    excerpt_doing="Meanwhile the host is in {name}.",
)


def _in_words(place: Place, analysis: RankAnalysis) -> Iterator[Message]:
    """Where the instance is, and what one sees there."""
    time = ("time", Kind.DURATION, place.length)
    if analysis.mode == Mode.STEPS and place.step >= 0:
        step = ("step", Kind.TEXT, step_labels(analysis.steps.name)[place.step])
        key = "excerpt_in_step" if place.since_step else "excerpt_at_step"
        yield Message(_SAY[key], (time, step, ("since", Kind.DURATION, place.since_step)))
    else:
        yield Message(_SAY["excerpt_in_trace"], (time, ("since", Kind.DURATION, place.since_first)))
    if place.cause is not None and 2 * place.idle >= place.length:
        whole = "excerpt_idle_throughout" if place.idle == place.length else "excerpt_idle"
        yield Message(_SAY[whole], (("idle", Kind.DURATION, place.idle), ("cause", Kind.TERM, place.cause)))
    if place.doing is not None:
        yield Message(_SAY["excerpt_doing"], (("name", Kind.PLACE, place.doing),))


def files_table(traces: Sequence[Trace]) -> Table:
    """Where each recording came from and what it says about itself."""
    origins = [trace.origin for trace in traces]
    versions = [trace.versions.items() for trace in traces]
    return _FILES.fill(
        rank=[origin.rank for origin in origins],
        path=[origin.path for origin in origins],
        file_bytes=[origin.size_bytes for origin in origins],
        text_bytes=[origin.text_bytes for origin in origins],
        events=[sum(trace.read.phases.values()) for trace in traces],
        host=[origin.host for origin in origins],
        rank_source=[origin.rank_source for origin in origins],
        world_size=[origin.world_size for origin in origins],
        backend=[origin.backend for origin in origins],
        devices=[_device_names(trace) for trace in traces],
        profiler_options=[", ".join(name for name, on in trace.options.items() if on) for trace in traces],
        versions=[", ".join(f"{name} {version}" for name, version in known) for known in versions],
        resolution_ns=[trace.resolution_ns for trace in traces],
        base_ns=[trace.base_ns for trace in traces],
    )


def _device_names(trace: Trace) -> str:
    """Distinct device names with how many there are of each."""
    names = [device.name for device in trace.devices]
    counted = ((names.count(name), name) for name in dict.fromkeys(names))
    return ", ".join(f"{count} × {name}" if count > 1 else name for count, name in counted)
