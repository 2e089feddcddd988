"""Every file of a run directory, and what became of it."""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

from traceanalyze.errors import InputError
from traceanalyze.readers.memory_ranks import named_rank
from traceanalyze.readers.memory_stats import statistics_beside
from traceanalyze.readers.run_list import NAME, read_run_list
from traceanalyze.report.build.postmortem.parts import RunFile
from traceanalyze.report.build.postmortem.recordings import steps_text
from traceanalyze.report.build.ranks import rank_label

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceanalyze.api.gather import Gathered
    from traceanalyze.api.memory_files import MemoryFile
    from traceanalyze.model.run import Run
    from traceanalyze.model.trace import Trace
    from traceanalyze.postmortem.parts import RecordingPart
    from traceanalyze.readers.sources import Passed


class Unused(NamedTuple):
    """What belongs to no job."""

    gathered: Gathered
    """What became of all recordings."""
    left_out: tuple[str, ...]
    """Remarks on snapshots and timelines that cannot be used."""
    passed: tuple[Run, ...]
    """Recordings without any of the ranks that the user chose."""
    memory: tuple[MemoryFile, ...]
    """Snapshots and timelines of all jobs."""


def run_files(
    runs: Sequence[Run], recordings: Sequence[RecordingPart], memory: Sequence[MemoryFile], unused: Unused | None
) -> tuple[RunFile, ...]:
    """Files that were used, then those that were not.

    Args:
        runs: Recordings of the job.
        recordings: The same as parts, which hold the ranks that were looked at.
        memory: Snapshots and timelines of the job.
        unused: What is told with this job although it belongs to none.
    """
    used = tuple(_used(runs, recordings)) + tuple(_remembered(memory))
    return used if unused is None else (*used, *_unused(unused))


def _used(runs: Sequence[Run], recordings: Sequence[RecordingPart]) -> Iterator[RunFile]:
    for number, (run, part) in enumerate(zip(runs, recordings, strict=True), 1):
        by_label = {rank.label: rank for rank in part.ranks}
        for index, trace in enumerate(run.traces):
            rank = by_label.get(rank_label(trace.origin, index))
            fault = _fault(trace)
            fate = "not_chosen" if rank is None else "salvaged" if fault else "used"
            yield RunFile(
                trace.origin.path,
                _kind(trace),
                fate,
                trace.origin.rank,
                trace.origin.rank_source,
                number,
                "" if rank is None else steps_text(rank),
                fault,
            )
        yield from _repeated(run)


def _repeated(run: Run) -> Iterator[RunFile]:
    for note in run.notes:
        path, _, rest = note.partition(" has the same content as ")
        if rest:
            yield RunFile(path, "trace", "repeated", why=rest.removesuffix(" and was left out"))


def _kind(trace: Trace) -> str:
    return "ascend_profile" if trace.origin.format == "ascend" else "trace"


def _fault(trace: Trace) -> str:
    """What keeps a recording from being whole."""
    read = trace.read
    return read.stream_fault or ("cut short" if read.truncated else "")


def _remembered(memory: Sequence[MemoryFile]) -> Iterator[RunFile]:
    for one in memory:
        yield RunFile(one.path, one.kind, "used", one.rank, one.rank_source)


def _unused(unused: Unused) -> Iterator[RunFile]:
    gathered, left_out = unused.gathered, dict(_left_out(unused))
    known, statistics = {one.path for one in unused.memory}, _statistics(unused.memory)
    for run in unused.passed:
        for trace in run.traces:
            yield RunFile(trace.origin.path, _kind(trace), "not_chosen", trace.origin.rank, trace.origin.rank_source)
        yield from _repeated(run)
    for name, why in gathered.failed:
        if name not in known and name not in left_out:
            yield RunFile(name, "trace", "left_out", why=why.removeprefix(f"{name}: "))
    for name, why in left_out.items():
        yield RunFile(name, "snapshot", "left_out", why=why)
    told = {*known, *left_out, *(name for name, _ in gathered.failed)}
    for other in {one.name: one for one in gathered.passed}.values():
        if other.name not in told:
            yield _run_list(other) or (
                RunFile(other.name, "statistics", "used")
                if other.name in statistics
                else RunFile(other.name, "other", "passed_over", why=other.reason)
            )


def _run_list(other: Passed) -> RunFile | None:
    """What became of the list of a recording's files; None where it is something else."""
    if not NAME.fullmatch(PurePath(other.name).name) or not Path(other.name).is_file():
        return None
    try:
        found = read_run_list(Path(other.name))
    except InputError as error:
        return RunFile(other.name, "run_list", "left_out", why=str(error))
    return None if found is None else RunFile(other.name, "run_list", "used")


def _statistics(memory: Sequence[MemoryFile]) -> set[str]:
    """Files with statistics of the allocator that were read with snapshots beside them."""
    paths = [one.path for one in memory if one.kind == "snapshot" and Path(one.path).is_file()]
    found = (statistics_beside(path, named_rank(path))[0] for path in paths)
    return {one.path for one in found if one is not None}


def _left_out(unused: Unused) -> Iterator[tuple[str, str]]:
    """Names of snapshots and timelines that cannot be used, and why; a name may hold the mark between the two."""
    files = {name for name, _ in unused.gathered.failed} | {one.name for one in unused.gathered.passed}
    for note in unused.left_out:
        text = note.removeprefix("left out: ")
        ends = [found.start() for found in re.finditer(": ", text)]
        end = next((at for at in ends if text[:at] in files), ends[0] if ends else len(text))
        yield text[:end], text[end + 2 :]
