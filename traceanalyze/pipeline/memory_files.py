"""The snapshots and memory timelines of a run: what each says, of which rank it is, and what the traces beside add."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from traceanalyze.analyses.memory.allocator import AllocatorAnalysis, analyze_snapshot
from traceanalyze.analyses.memory.device import Patterns
from traceanalyze.analyses.memory.in_trace import InTrace
from traceanalyze.errors import InputError, Phrase, some
from traceanalyze.model.snapshot import Snapshot
from traceanalyze.model.table import Kind, Message, NotMeasured
from traceanalyze.pipeline.choices import Choices
from traceanalyze.pipeline.gather import ReadProgress, progress_over
from traceanalyze.pipeline.recordings import Allocators, AnalysedRank, allocator_of
from traceanalyze.pipeline.results import Work
from traceanalyze.pipeline.run_report import run_reports
from traceanalyze.readers import memory_sources
from traceanalyze.readers.memory_timeline import read_memory_timeline, statistics_beside
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import Source
from traceanalyze.readers.sources import expand, place_of
from traceanalyze.report.contents.snapshot import MemoryFile, of_snapshot, of_timeline, places_of, with_places
from traceanalyze.report.model import RankReport, Report, remark


def memory_files(
    paths: Sequence[str],
    ranks: Sequence[int | None],
    *,
    capacity: int | None = None,
    patterns: Patterns | None = None,
    progress: ReadProgress | None = None,
) -> tuple[tuple[MemoryFile, ...], tuple[Phrase, ...]]:
    """Every snapshot and memory timeline under the paths, and remarks on those that cannot be used.

    `ranks` are those of the traces beside them, None where one does not tell; `capacity` is in bytes; `patterns` name
    categories of blocks.
    """
    files: list[MemoryFile] = []
    notes: list[Phrase] = []
    sources = list(_distinct(paths))
    for source, tell in zip(sources, progress_over(progress, sources), strict=True):
        kind = _kind(source)
        try:
            if kind == "memory_timeline":
                files.append(of_timeline(read_memory_timeline(source, tell)))
            elif kind:
                files.append(_snapshot(source, capacity, patterns, tell))
        except InputError as error:
            notes.append(Phrase("left out: {error}", error))
    return tuple(_ranked(files, ranks)), tuple(notes)


def _ranked(files: Sequence[MemoryFile], traces: Sequence[int | None]) -> Iterator[MemoryFile]:
    """The files with their ranks; snapshots apart from timelines, as a rank may have both."""
    ranks: dict[str, tuple[int | None, str]] = {}
    for kind in ("snapshot", "memory_timeline"):
        paths = [file.path for file in files if file.kind == kind]
        ranks |= zip(paths, memory_sources.memory_ranks(paths, traces), strict=True)
    for file in files:
        rank, source = ranks[file.path]
        yield file._replace(rank=rank, rank_source=source)


def trace_paths(paths: Sequence[str]) -> tuple[str, ...]:
    """The paths under which there are traces: without files that are snapshots or timelines themselves."""
    return tuple(path for path in paths if not any(map(_kind, _named(path))) and _sources(path))


def expected_ranks(paths: Sequence[str]) -> tuple[int | None, ...]:
    """Ranks of the traces under the paths as far as their beginnings and names tell, before any of them is read."""
    return memory_sources.trace_ranks(_traces(paths))


def expected_capacity(paths: Sequence[str]) -> int | None:
    """Bytes of device memory as the beginnings of the traces tell it."""
    return memory_sources.device_memory(_traces(paths))


def _traces(paths: Sequence[str]) -> list[Source]:
    return [source for path in trace_paths(paths) for source in _sources(path)]


def allocators_of_traces(
    files: Sequence[MemoryFile], paths: Sequence[str]
) -> dict[str, dict[int | None, AllocatorAnalysis]]:
    """For each trace under the paths, by its name, what `allocators_of` tells of the snapshots that are its own.

    Several runs may have a rank 0: a snapshot belongs to the traces of its rank whose folders are nearest to it.
    """
    sources = _traces(paths)
    traces = list(zip((source.name for source in sources), memory_sources.trace_ranks(sources), strict=True))
    own: dict[str, list[MemoryFile]] = {}
    for file in files:
        near = {
            name: nearness(file.path, name) for name, rank in traces if file.rank is None or rank in {file.rank, None}
        }
        most = max(near.values(), default=0)
        for name, shared in near.items():
            if shared == most:
                own.setdefault(name, []).append(file)
    return {name: allocators_of(found) for name, found in own.items()}


def nearness(path: str, other: str) -> int:
    """How many letters of their folders two files share."""
    return len(os.path.commonpath((os.path.abspath(path), os.path.abspath(other))))  # noqa: PTH100  paths are texts


def allocators_of(files: Sequence[MemoryFile]) -> dict[int | None, AllocatorAnalysis]:
    """For each rank the device of its snapshots that reserved most; under None what the rules on the only trace know.

    Of several snapshots of a rank the one of a failed request counts, else the one with the longest history.
    """
    chosen: dict[int | None, AllocatorAnalysis] = {}
    for file in files:
        if not file.analyses or not file.rank_source:
            continue
        best = max(file.analyses, key=lambda one: one.most_reserved)
        # The first of equals.
        chosen[file.rank] = max(chosen.get(file.rank, best), best, key=lambda one: (len(one.ooms), one.events))
    return chosen


def not_empty(snapshot: Snapshot) -> Snapshot:
    """The snapshot, if anything was recorded."""
    if not snapshot.devices:
        raise InputError("{path}: the snapshot is empty: no device had memory, nothing was recorded", snapshot.path)
    return snapshot


def _snapshot(
    source: Source, capacity: int | None, patterns: Patterns | None, tell: Callable[[int], None] | None
) -> MemoryFile:
    snapshot = not_empty(read_snapshot(source, tell))
    beside = (None, None) if source.member else statistics_beside(source.path, memory_sources.named_rank(source.path))
    statistics, remark = beside
    notes = (*snapshot.notes, remark) if remark else snapshot.notes
    snapshot = replace(snapshot, statistics=statistics, notes=notes)
    return of_snapshot(snapshot, analyze_snapshot(snapshot, capacity, patterns))


def _kind(source: Source) -> str:
    return (
        "snapshot"
        if memory_sources.is_snapshot(source)
        else "memory_timeline"
        if memory_sources.is_timeline(source)
        else ""
    )


def _named(path: str) -> tuple[Source, ...]:
    """The file, if the path names one."""
    found = memory_sources.candidates(path)
    return found if [source.name for source in found] == [path] else ()


def _sources(path: str) -> tuple[Source, ...]:
    try:
        return expand([path]).sources
    except InputError:
        return ()


def _distinct(paths: Sequence[str]) -> tuple[Source, ...]:
    """The files that may be snapshots or timelines, each once."""
    found: dict[tuple[str, str], Source] = {}
    for source in (one for path in paths for one in memory_sources.candidates(path)):
        found.setdefault((place_of(source.path), source.member), source)
    return tuple(found.values())


def reports_with_snapshots(
    paths: Sequence[str], choices: Choices, *, progress: ReadProgress | None, work: Work
) -> tuple[Report, ...]:
    """The reports of the runs, whose rules know the snapshots of their ranks; what is not used is said."""
    traces = trace_paths(paths)
    if not traces:
        return run_reports(paths, choices, progress=progress, work=work)[0]
    room = expected_capacity(paths)
    files, notes = memory_files(paths, expected_ranks(paths), capacity=room, progress=progress)
    allocators = allocators_of_traces(files, paths)
    found, results = run_reports(
        traces, choices, progress=progress, work=work, allocators=allocators, known={file.path for file in files}
    )
    used = {id(allocator_of(one.analysis.trace, allocators)) for one in results.values()}
    first, *others = (
        replace(report, ranks=tuple(_with_places(rank, results.get(rank.path)) for rank in report.ranks))
        for report in found
    )
    return replace(first, note_messages=(*first.note_messages, *map(remark, notes), *_uses(files, used))), *others


def _with_places(rank: RankReport, one: AnalysedRank | None) -> RankReport:
    """The report of a trace with the moments of its snapshot."""
    if one is None or one.in_trace is None:
        return rank
    return replace(rank, tables=(*rank.tables, replace(places_of(one.in_trace), detail=True)))


def placed_files(
    files: Sequence[MemoryFile], results: Sequence[AnalysedRank], allocators: Allocators
) -> tuple[MemoryFile, ...]:
    """The files with what the traces of their ranks, which were analysed with `allocators`, tell about them."""
    if not results:
        return tuple(files)
    traced: dict[int, list[InTrace | NotMeasured]] = {}
    for one in results:
        if one.in_trace is not None:
            traced.setdefault(id(allocator_of(one.analysis.trace, allocators)), []).append(one.in_trace)
    recorded = {one.analysis.trace.origin.rank for one in results}
    return tuple(_placed(file, traced, recorded) if file.analyses else file for file in files)


def _placed(
    file: MemoryFile, traced: Mapping[int, Sequence[InTrace | NotMeasured]], recorded: set[int | None]
) -> MemoryFile:
    other = "other_snapshot_placed" if file.rank_source and file.rank in recorded else "no_trace_of_rank"
    if any(id(each) in traced for each in file.analyses):
        other = "other_device_placed"
    ranks = tuple(
        with_places(rank, _best(traced[id(each)]) if id(each) in traced else NotMeasured(other))
        for rank, each in zip(file.report.ranks, file.analyses, strict=True)
    )
    largest = file.report.ranks.index(
        next(one for one in file.report.ranks if one.verdict_messages == file.report.verdict_messages)
    )
    return file._replace(report=replace(file.report, ranks=ranks, verdict_messages=ranks[largest].verdict_messages))


def _best(found: Sequence[InTrace | NotMeasured]) -> InTrace | NotMeasured:
    """Of several recordings of a rank the one that was running at the peak, else one that meets the snapshot."""

    def use(one: InTrace | NotMeasured) -> int:
        if isinstance(one, NotMeasured):
            return -1
        return one.all_calls - one.outside + (1 << 40) * any(one.inside)

    return max(found, key=use)


def _uses(files: Sequence[MemoryFile], used: set[int]) -> Iterator[Message]:
    """Which of the files the rules know, and which they do not."""
    kinds: dict[str, list[str]] = {}
    for file in files:
        known = any(id(one) in used for one in file.analyses)
        kind = "timeline_unused" if file.kind != "snapshot" else "snapshot_used" if known else "snapshot_unused"
        kinds.setdefault(kind, []).append(file.path)
    for kind, paths in kinds.items():
        names = ("path", Kind.NAME, some(paths))
        yield Message(kind, (("count", Kind.COUNT, len(paths)), names))
