"""Snapshots and traces of the same run: each report is given what the other file tells."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.model.table import Kind, Message, NotMeasured
from traceanalyze.pipeline.memory_files import (
    allocators_of_traces,
    expected_capacity,
    expected_ranks,
    memory_files,
    trace_paths,
)
from traceanalyze.pipeline.recordings import allocator_of
from traceanalyze.pipeline.run_report import judged_reports
from traceanalyze.report.assembly.snapshot import places_of, with_places

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from traceanalyze.analyses.memory.in_trace import InTrace
    from traceanalyze.pipeline.choices import Choices
    from traceanalyze.pipeline.gather import ReadProgress
    from traceanalyze.pipeline.memory_files import MemoryFile
    from traceanalyze.pipeline.recordings import Allocators, Judged
    from traceanalyze.report.model import RankReport, Report

_NAMED = 3
"""Files that a note names."""


def reports_with_snapshots(
    paths: Sequence[str], choices: Choices, *, progress: ReadProgress | None, parallel: bool
) -> tuple[Report, ...]:
    """The reports of the runs, whose rules know the snapshots of their ranks; what is not used is said."""
    traces = trace_paths(paths)
    if not traces:
        return judged_reports(paths, choices, progress=progress, parallel=parallel)[0]
    room = expected_capacity(paths)
    files, notes = memory_files(paths, expected_ranks(paths), capacity=room, progress=progress)
    allocators = allocators_of_traces(files, paths)
    found, results = judged_reports(
        traces,
        choices,
        progress=progress,
        parallel=parallel,
        allocators=allocators,
        known={file.path for file in files},
    )
    by_path = {path: one.in_trace for path, one in results.items() if one.in_trace is not None}
    used = {id(allocator_of(one.analysis.trace, allocators)) for one in results.values()}
    said = (*map(_note, notes), *_uses(files, used))
    first, *others = (_with_places(report, by_path) for report in found)
    return replace(first, notes=(*first.notes, *said)), *others


def placed_files(
    files: Sequence[MemoryFile], results: Sequence[Judged], allocators: Allocators
) -> tuple[MemoryFile, ...]:
    """The files with what the traces of their ranks tell about them.

    Args:
        files: Snapshots and timelines.
        results: The traces beside them, judged with `allocators`.
        allocators: From `allocators_of_traces`.
    """
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
    largest = file.report.ranks.index(next(one for one in file.report.ranks if one.verdict == file.report.verdict))
    return replace(file, report=replace(file.report, ranks=ranks, verdict=ranks[largest].verdict))


def _best(found: Sequence[InTrace | NotMeasured]) -> InTrace | NotMeasured:
    """Of several recordings of a rank the one that was running at the peak, else one that meets the snapshot."""

    def use(one: InTrace | NotMeasured) -> int:
        if isinstance(one, NotMeasured):
            return -1
        return one.all_calls - one.outside + (1 << 40) * any(one.inside)

    return max(found, key=use)


def _with_places(report: Report, found: Mapping[str, InTrace | NotMeasured]) -> Report:
    ranks = tuple(_with_place(rank, found.get(rank.path)) for rank in report.ranks)
    return replace(report, ranks=ranks)


def _with_place(rank: RankReport, found: InTrace | NotMeasured | None) -> RankReport:
    if found is None:
        return rank
    return replace(rank, tables=(*rank.tables, replace(places_of(found), detail=True)))


def _uses(files: Sequence[MemoryFile], used: set[int]) -> Iterator[Message]:
    """Which of the files the rules know, and which they do not."""
    kinds: dict[str, list[str]] = {}
    for file in files:
        known = any(id(one) in used for one in file.analyses)
        kind = "timeline_unused" if file.kind != "snapshot" else "snapshot_used" if known else "snapshot_unused"
        kinds.setdefault(kind, []).append(file.path)
    for kind, paths in kinds.items():
        more = ", …" if len(paths) > _NAMED else ""
        names = ("path", Kind.NAME, ", ".join(paths[:_NAMED]) + more)
        yield Message(kind, (("count", Kind.COUNT, len(paths)), names))


def _note(text: str) -> Message:
    return Message("run_note", (("text", Kind.TEXT, text),))
