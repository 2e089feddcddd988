"""Every file of a run directory, and what became of it."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

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


_BESIDE = (
    (re.compile(r"run(_rank\d+)?\.json"), "run_list"),
    (re.compile(r".*memory[_-]stats.*\.json"), "statistics"),
)
"""What lies beside recordings and is read with them."""


class Unused(NamedTuple):
    """What belongs to no job."""

    gathered: Gathered
    """What became of all recordings."""
    left_out: tuple[str, ...]
    """Remarks on snapshots and timelines that cannot be used."""
    passed: tuple[Trace, ...]
    """Recordings without any of the ranks that the user chose."""


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
    return used if unused is None else (*used, *_unused(unused, {one.path for one in memory}))


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


def _unused(unused: Unused, known: set[str]) -> Iterator[RunFile]:
    gathered = unused.gathered
    for trace in unused.passed:
        yield RunFile(trace.origin.path, _kind(trace), "not_chosen", trace.origin.rank, trace.origin.rank_source)
    for name, why in gathered.failed:
        if name not in known:
            yield RunFile(name, "trace", "left_out", why=why.removeprefix(f"{name}: "))
    known = set(known)
    for note in unused.left_out:
        name, _, why = note.removeprefix("left out: ").partition(": ")
        known.add(name)
        yield RunFile(name, "snapshot", "left_out", why=why)
    names = {PurePath(path).as_posix() for path in known}
    for name in gathered.ignored:
        plain, _, reason = name.partition(" (")
        if not any(path.endswith(plain) for path in names):
            own = PurePath(plain).name
            read = next((kind for pattern, kind in _BESIDE if pattern.fullmatch(own)), "")
            fate = "used" if read else "passed_over"
            yield RunFile(plain, read or "other", fate, why=reason.removesuffix(")"))
