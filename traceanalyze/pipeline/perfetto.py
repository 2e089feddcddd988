"""A trace with the analyses drawn over it, for Perfetto: one rank, or the ranks of a run in one file."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple

from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.steps.window import StepKey
from traceanalyze.errors import InputError, UsageError
from traceanalyze.locales import Texts, texts
from traceanalyze.model.table import Kind as ValueKind
from traceanalyze.model.table import Message, NotMeasured
from traceanalyze.model.trace import Trace
from traceanalyze.model.vocabulary import Mode
from traceanalyze.pipeline.choices import Choices, path_texts, span_of
from traceanalyze.pipeline.gather import ReadProgress, disagreeing, gather, without_events
from traceanalyze.pipeline.recordings import AnalysedRank
from traceanalyze.pipeline.run_report import SideBySide, side_by_side
from traceanalyze.ranks.match import clock_offsets
from traceanalyze.ranks.results import leading
from traceanalyze.ranks.summary import summarize
from traceanalyze.readers.detect import Kind, sniff
from traceanalyze.readers.memory_sources import is_snapshot, snapshots_of
from traceanalyze.readers.runs import group_runs
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import Source
from traceanalyze.readers.sources import expand
from traceanalyze.readers.streams import open_stream
from traceanalyze.report.contents.ranks import whole_recordings
from traceanalyze.report.format import Formatter
from traceanalyze.report.output import refuse_input, refuse_other
from traceanalyze.report.perfetto import overlay, snapshot_overlay, with_findings
from traceanalyze.report.perfetto.events import (
    FIRST_PID,
    PROCESS,
    Clock,
    Overlay,
    Process,
    alone,
    free_pid,
    overlay_events,
    sections,
)
from traceanalyze.report.perfetto.merge import NoEventListError, Pids, RankText, appended, process_titles, read_blocks
from traceanalyze.rules.evaluate import evaluate
from traceanalyze.rules.facts import Facts
from traceanalyze.rules.finding import Finding
from traceanalyze.whole_file import whole_file

_ROOM = 1_000
"""Places for the processes of one rank in the order in which processes are shown."""
_SPEED_LEVEL = 1
"""Of compression: the file is made to be looked at once, not to be kept."""


class Rank(NamedTuple):
    """What is kept of one recording once it was analysed."""

    trace: Trace
    """A sample: origin, names, bases."""
    source: Source
    tracks: Overlay
    worst: tuple[int, int] | None = None
    """From where to where its first finding is worth a look, ns."""
    ahead_ns: int = 0
    """By how much its clock is ahead of that of the first rank; taken out where ranks are drawn together."""
    begin: int = 0
    """When its first event begins, ns."""

    @property
    def text_base_ns(self) -> int:
        """Absolute time of the zero of the times in the text; those of Ascend profiles are absolute themselves."""
        return (0 if self.trace.origin.format == "ascend" else self.trace.base_ns) - self.ahead_ns

    def place(self, ranks: "Sequence[Rank]") -> tuple[int, int] | None:
        """`worst` on the clock of the text that these ranks are written into."""
        zero = min(rank.text_base_ns for rank in ranks)
        offset = self.clock(zero).offset_ns
        return None if self.worst is None else (self.worst[0] + offset, self.worst[1] + offset)

    def clock(self, zero_ns: int) -> Clock:
        """How its times are written in a text whose zero is an absolute time."""
        absolute = self.trace.base_ns - self.ahead_ns - zero_ns
        return Clock(absolute, quoted=self.trace.origin.format == "ascend")


def write(file: IO[bytes], target: Path, ranks: list[Rank], words: Texts, *, overlay_only: bool) -> list[str]:
    """Write the output; remarks on recordings whose text could not be taken over."""
    notes: list[str] = []
    if len(ranks) == 1:
        text = _single(ranks[0], words, notes, overlay_only=overlay_only)
    else:
        moved = max(abs(rank.ahead_ns) for rank in ranks)
        notes.append(
            said(words, "overlay_aligned", count=len(ranks), most=(moved, ValueKind.DURATION))
            if moved
            else said(words, "overlay_merged", count=len(ranks))
        )
        text = _merged(ranks, words, notes, overlay_only=overlay_only)
    with packed(file, target) as write:
        for piece in text:
            write(piece)
    return notes


@contextmanager
def packed(file: IO[bytes], target: Path) -> Iterator[Callable[[bytes], object]]:
    """Where to write text to: compressed if the name says so. The same text gives the same bytes."""
    if target.suffix.lower() != ".gz":
        yield file.write
        return
    from isal import isal_zlib

    packer = isal_zlib.compressobj(_SPEED_LEVEL, isal_zlib.DEFLATED, 31)
    yield lambda piece: file.write(packer.compress(piece))
    file.write(packer.flush())


def _single(rank: Rank, words: Texts, notes: list[str], *, overlay_only: bool) -> Iterator[bytes]:
    zero = rank.text_base_ns
    process = Process(free_pid(rank.trace.process_names), PROCESS)
    events = overlay_events(rank.tracks, process, rank.clock(zero))
    if overlay_only or not _usable(rank, words, notes):
        yield from alone(events, zero)
        return
    with open_stream(rank.source) as stream:
        yield from appended(read_blocks(stream.readinto), events)


def _merged(ranks: list[Rank], words: Texts, notes: list[str], *, overlay_only: bool) -> Iterator[bytes]:
    zero, pids = min(rank.text_base_ns for rank in ranks), Pids()

    def every() -> Iterator[Iterator[bytes]]:
        for index, rank in enumerate(ranks):
            number = rank.trace.origin.rank
            title = f"rank {index if number is None else number}"
            sort = index * _ROOM
            process = Process(pids.new(), f"{title} · {PROCESS}", sort)
            if not overlay_only and _usable(rank, words, notes):
                text = RankText(index, pids, rank.text_base_ns - zero)
                names = rank.trace.process_names
                yield process_titles(text, title, names, sort)
                with open_stream(rank.source) as stream:
                    yield text.events(read_blocks(stream.readinto))
                yield process_titles(text, title, names, sort, at=rank.clock(zero).text(_end(rank.trace)))
            yield overlay_events(rank.tracks, process, rank.clock(zero))

    return alone(sections(every()), zero)


def _end(trace: Trace) -> int:
    """Time of its last event."""
    return trace.span[1] - trace.base_ns if trace.content[0] else 0


def _usable(rank: Rank, words: Texts, notes: list[str]) -> bool:
    """Whether the text of a recording can be passed on; if not, that is remarked."""
    path, read = rank.trace.origin.path, rank.trace.read
    damaged = not read.whole or read.counts.get("malformed", 0) > 0
    if rank.trace.origin.form == "db" or rank.trace.origin.plugin or not _is_json(rank.source):
        notes.append(said(words, "overlay_alone_not_json", path=path))
    elif damaged:
        notes.append(said(words, "overlay_alone_damaged", path=path))
    else:
        return True
    return False


def _is_json(source: Source) -> bool:
    with open_stream(source) as stream:
        return sniff(stream.head, source.name) in {Kind.TRACE, Kind.JSON, Kind.BLANK}


def said(words: Texts, key: str, **values: str | int | tuple[int, ValueKind]) -> str:
    """A remark in words; a value may come with its kind."""
    kinds = tuple(
        (name, value[1], value[0]) if isinstance(value, tuple) else (name, ValueKind.TEXT, value)
        for name, value in values.items()
    )
    return Formatter(words).message(Message(key, kinds))


AnyPath = str | os.PathLike[str]

__all__ = ["annotate"]

_ENDINGS = (".json", ".gz")


def annotate(
    paths: AnyPath | Sequence[AnyPath],
    output: AnyPath,
    *,
    overlay_only: bool = False,
    categories: Sequence[str] = (),
    language: str = "en",
    progress: ReadProgress | None = None,
    overwrite: bool = False,
) -> tuple[str, ...]:
    """Write a trace with tracks of steps, phases, idle time by cause, sync points, findings and counters over it.

    The text of the trace is passed on unchanged, and the tracks are added at the end of its event list, on a process
    named `traceanalyze`. Of several ranks of one run, all are written into one file: process ids and ids of arrows are
    replaced so that they do not collide, times count from the earliest zero, and clocks are moved by the offsets that
    collectives show (definitions §12) where these are known well for all ranks.

    Args:
        paths: The trace, or the ranks of one run, as `analyze` takes them.
        output: File to write, `.json` or `.json.gz`.
        overlay_only: Leave the traces out.
        categories: What unknown event categories are, as in `Choices`.
        language: Of the names of tracks.
        progress: Called as recordings are read.
        overwrite: Replace what is there, even if this tool did not write it.

    Returns:
        Remarks: tracks the profile cannot give and why, and recordings whose text could not be taken over.

    Raises:
        InputError: An input cannot be used.
        UsageError: The inputs are several runs, or the output is one of them or cannot be written.
    """
    made = annotated(
        paths,
        output,
        overlay_only=overlay_only,
        categories=categories,
        language=language,
        progress=progress,
        overwrite=overwrite,
    )
    return made.notes


class Annotated(NamedTuple):
    """What was written."""

    notes: tuple[str, ...]
    """Remarks, as `annotate` returns them."""
    place: tuple[int, int] | None
    """From where to where to look first, ns on the clock of the text; None where no finding has a place."""


def annotated(
    paths: AnyPath | Sequence[AnyPath],
    output: AnyPath,
    *,
    overlay_only: bool = False,
    categories: Sequence[str] = (),
    language: str = "en",
    progress: ReadProgress | None = None,
    overwrite: bool = False,
    at: str | None = None,
) -> Annotated:
    """As `annotate`, and where to look first: `at` a time of the rank that a report would be about, else the worst."""
    wanted = None if at is None else span_of(at, "--at")
    given = path_texts(paths)
    target, words = Path(output), texts(language)
    if target.suffix.lower() not in _ENDINGS:
        raise UsageError("{path}: end the name in .json or .json.gz", target)
    if not target.parent.is_dir():
        raise UsageError("{path}: the folder {parent} does not exist", target, target.parent)
    sources = {source.name: source for source in _sources(given)}
    refuse_input(target, (source.path for source in sources.values()))
    if not overwrite:
        refuse_other(target)
    if not overlay_only and any(source.size is None for source in sources.values()):
        raise UsageError("a pipe is empty once it was analysed: save it to a file first, or --overlay-only")
    if any(source.size is not None and is_snapshot(source) for source in sources.values()):
        return Annotated(_snapshot(list(sources.values()), target, words), None)
    ranks, lead, notes = _ranks(given, sources, words, Choices(categories=categories), progress)
    try:
        with whole_file(target) as file:
            notes += write(file, target, ranks, words, overlay_only=overlay_only)
    except NoEventListError:
        # What the reader took for a list is none for a strict reader: then the tracks alone.
        with whole_file(target) as file:
            write(file, target, ranks, words, overlay_only=True)
        notes += [said(words, "overlay_alone_damaged", path=rank.trace.origin.path) for rank in ranks]
    first = ranks[lead]
    if wanted is not None:
        first = first._replace(worst=(first.begin + wanted[0], first.begin + wanted[1]))
    looked_at = (first, *ranks)
    return Annotated(tuple(notes), next((rank.place(ranks) for rank in looked_at if rank.worst is not None), None))


def _sources(given: Sequence[str]) -> tuple[Source, ...]:
    """Traces; where there is none, snapshots."""
    try:
        return expand(given).sources
    except InputError:
        found = tuple(source for path in given for source in snapshots_of(path))
        if not found:
            raise
        return found


def _snapshot(sources: list[Source], target: Path, words: Texts) -> tuple[str, ...]:
    """An allocator snapshot is no timeline: its memory over time stands alone."""
    if len(sources) > 1:
        raise UsageError("snapshots are drawn one at a time: name one file")
    tracks, zero = snapshot_overlay(read_snapshot(sources[0]), words.terms)
    if not tracks.counters:
        ((title, why),) = tracks.missing
        raise InputError("{text}", said(words, "overlay_missing", track=title, reason=words.reasons[why.reason]))
    events = overlay_events(tracks, Process(FIRST_PID, PROCESS), Clock())
    with whole_file(target) as file, packed(file, target) as write:
        for piece in alone(events, zero):
            write(piece)
    return (said(words, "overlay_alone_not_json", path=sources[0].name),)


def _ranks(
    given: Sequence[str], sources: dict[str, Source], words: Texts, choices: Choices, progress: ReadProgress | None
) -> tuple[list[Rank], int, list[str]]:
    """Every recording analysed, in the order of the ranks, which to look at first, and remarks.

    Each is dropped before the next is read.
    """
    options, rules = choices.options(), choices.rules()
    drawn: dict[str, Overlay] = {}
    analyses: dict[str, AnalysedRank] = {}
    begin: dict[str, int] = {}
    agreed: dict[str, frozenset[StepKey]] = {}

    def analysed(trace: Trace) -> Trace:
        context = Context(trace, options._replace(agreed=agreed.get(trace.origin.path)))
        small = replace(without_events(context.trace), process_names=trace.process_names)
        analysis = analyze_context(context)
        begin[trace.origin.path] = context.begin if context.mode != Mode.EMPTY else 0
        drawn[trace.origin.path] = overlay(context, analysis, (), words)
        outcome, summary = evaluate(Facts(analysis, context), rules), summarize(context, analysis, spread=False)
        analyses[trace.origin.path] = AnalysedRank(analysis._replace(trace=small), outcome, summary)
        # Process ids of the text, of which the sample has no strings.
        pids = dict.fromkeys(trace.strings.text(int(code)) for code in set(trace.tracks[:, 0].tolist()))
        return replace(small, process_names={**dict.fromkeys(pids, ""), **trace.process_names})

    read = gather(given, analysed, progress=progress)
    agreed |= disagreeing(read.traces, {path: one.analysis for path, one in analyses.items()}, read.lost)
    if agreed:
        read = gather(given, analysed, progress=None)
    runs = group_runs(read.traces, read.lost)
    if len(runs) > 1:
        names = ", ".join(run.name for run in runs)
        raise UsageError("the input holds {count} runs ({names}); name one of them", len(runs), names)
    traces = runs[0].traces
    # As `analyze` does: beside other ranks, what waiting for these is no saving of a rank's own.
    beside = side_by_side([analyses[trace.origin.path].with_trace(trace) for trace in traces], rules)
    across = () if beside.across is None else beside.across.findings
    found = [
        Rank(
            trace,
            sources[trace.origin.path],
            with_findings(drawn[trace.origin.path], one.analysis, outcome.findings, words),
            _worst(outcome.findings),
            ahead,
            begin[trace.origin.path],
        )
        for trace, one, outcome, ahead in zip(traces, beside.ranks, beside.outcomes, _ahead(beside), strict=True)
    ]
    unplaced = sum(rank.tracks.unplaced for rank in found) + len(across)
    notes = [
        *read.notes,
        *runs[0].notes,
        *_missing(found, words),
        *(note for trace in traces for note in _clocks(trace, words)),
        *([said(words, "overlay_no_windows", count=unplaced)] if unplaced else []),
    ]
    return found, _lead(beside), notes


def _lead(beside: SideBySide) -> int:
    """Position of the rank that a report would be about."""
    cluster = beside.cluster
    if cluster is None or not cluster.steps:
        return 0
    whole = whole_recordings([beside.ranks[at].analysis for at in cluster.places])
    steps = (cluster.step_time.sum(axis=1) // len(cluster.steps)).tolist()
    return cluster.places[leading(steps, cluster.own_time, whole)]


def _ahead(beside: SideBySide) -> list[int]:
    """By how much the clocks are ahead of that of the first rank, ns; zeros unless they are known well for all."""
    clocks = [] if beside.cluster is None else list(clock_offsets(beside.cluster).records())
    if len(clocks) < len(beside.ranks):
        return [0] * len(beside.ranks)
    trusted = not any(isinstance(one.skew_ns, NotMeasured) for one in clocks)
    return [one.offset_ns if trusted else 0 for one in clocks]


def _worst(findings: Sequence[Finding]) -> tuple[int, int] | None:
    """The longest interval of the first finding that has any, with half as much before and after it."""
    for one in findings:
        if one.intervals is not None and len(one.intervals):
            start, end = one.intervals[int((one.intervals[:, 1] - one.intervals[:, 0]).argmax())].tolist()
            return start - (end - start) // 2, end + (end - start) // 2
    return None


def _clocks(trace: Trace, words: Texts) -> Iterator[str]:
    """Clocks that were moved: the text of the recording is passed on as it is."""
    for clock in trace.clocks or ():
        if clock.moved:
            most = (max(clock.first, clock.last, key=abs), ValueKind.DURATION)
            yield said(words, "overlay_clock", path=trace.origin.path, device=str(clock.device), most=most)


def _missing(ranks: Sequence[Rank], words: Texts) -> list[str]:
    """What is not drawn, and why: once where it is the same for all ranks, else by rank."""
    by_rank = [
        [
            said(words, "overlay_missing", track=title, reason=words.reasons[why.reason])
            for title, why in rank.tracks.missing
        ]
        for rank in ranks
    ]
    common = [note for note in by_rank[0] if all(note in notes for notes in by_rank)]
    others = [
        f"{rank.trace.origin.path}: {note}"
        for rank, notes in zip(ranks, by_rank, strict=True)
        for note in notes
        if note not in common
    ]
    return [*common, *others]
