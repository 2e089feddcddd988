"""Which recordings are of one job, and what tells the others apart.

One job may be recorded again and again, over days and in other phases: that is no reason to take recordings apart. What
is: another format, number of ranks, device or library version; the same rank recorded twice at one time; other work.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from traceanalyze.causes.results import RecordingPart
from traceanalyze.errors import InputError
from traceanalyze.incident.evidence import FileRead
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Kind, Message, Table, Value, declare, sentences
from traceanalyze.model.trace import Run, Trace
from traceanalyze.pipeline.gather import ReadRecordings
from traceanalyze.pipeline.recordings import AnalysedRank
from traceanalyze.readers.memory_sources import named_rank
from traceanalyze.readers.memory_timeline import statistics_beside
from traceanalyze.readers.runs import NAME, read_run_list
from traceanalyze.readers.sources import Skipped
from traceanalyze.report.contents.ranks import rank_label
from traceanalyze.report.contents.recordings import steps_text
from traceanalyze.report.contents.snapshot import MemoryFile

_SAY = sentences(
    job_together=(
        "{count} recordings are taken as one job, in the order of time: device, number of ranks and work are alike."
    ),
    job_apart="A job of its own beside others in this input: {reason}.",
)

ALIKE = 0.6
"""Of the device time of one of two recordings, in kernels that the other has, too: then it may be the same program.
Recordings of one program share all but a hundredth (public profiles), and evaluation is part of training; those of
different programs share up to half of it."""
_EPOCH = 10**18
"""Ns; times before it (2001) count from somewhere else."""
_LIBRARIES = ("torch", "torch_npu", "cann", "mindspore", "cuda_runtime", "hip_runtime")
_INSTANCE = regex(r"(?:_\d+)+$")
"""What numbers the instances of a kernel (`trans_TransData_12`)."""

_REASONS = ("apart_kind", "apart_libraries", "apart_same_time", "apart_work")
"""What tells jobs apart; of those told apart from several the last one is named: there the rest is alike."""


class Job(NamedTuple):
    """Recordings of one job, in the order of time."""

    runs: tuple[Run, ...]
    reasons: tuple[Message, ...] = ()
    """Why they were taken together, and apart from others."""


class _Traits(NamedTuple):
    """What is compared of a recording."""

    run: Run
    kind: tuple[object, ...]
    libraries: Mapping[str, str]
    begin: int
    end: int
    work: Mapping[str, int]
    """Device time, else host time, by kernel or operator."""
    talks: bool
    """Its ranks communicate with others."""


def jobs_of(runs: Sequence[Run], analysed: Mapping[str, AnalysedRank]) -> tuple[Job, ...]:
    """Recordings of one job together, in the order of time; jobs in the order in which they were found.

    `analysed` is what was found in each trace, by its path.
    """
    jobs: list[list[_Traits]] = []
    apart: list[tuple[Message, ...]] = []
    for one in sorted((_traits(run, analysed) for run in runs), key=lambda each: each.begin):
        reasons = [_difference(one, job) for job in jobs]
        home = next((job for job, reason in zip(jobs, reasons, strict=True) if reason is None), None)
        if home is not None:
            home.append(one)
        else:
            nearest = max((reason for reason in reasons if reason is not None), key=_REASONS.index, default=None)
            jobs.append([one])
            apart.append(() if nearest is None else (Message(_SAY["job_apart"], (("reason", Kind.TERM, nearest),)),))
    order = {id(run): at for at, run in enumerate(runs)}
    found = []
    jobs_and_reasons = zip(jobs, apart, strict=True)
    for job, others in sorted(jobs_and_reasons, key=lambda each: min(order[id(one.run)] for one in each[0])):
        together = (Message(_SAY["job_together"], (("count", Kind.COUNT, len(job)),)),) if len(job) > 1 else ()
        found.append(Job(tuple(one.run for one in job), (*together, *others)))
    return tuple(found)


def _difference(one: _Traits, job: Sequence[_Traits]) -> str | None:
    """What tells that a recording is not of a job; None where nothing does."""
    for other in job:
        reason = _contradiction(one, other)
        if reason is not None:
            return reason
    # One recording of a job may be of its training, another one of its evaluation.
    alike = max(max(_shared(one.work, other.work), _shared(other.work, one.work)) for other in job)
    return "apart_work" if alike < ALIKE else None


def _contradiction(one: _Traits, other: _Traits) -> str | None:
    if one.kind != other.kind:
        return "apart_kind"
    if any(one.libraries[name] != other.libraries[name] for name in one.libraries.keys() & other.libraries.keys()):
        return "apart_libraries"
    overlap = one.begin < other.end and other.begin < one.end and min(one.begin, other.begin) > _EPOCH
    if overlap and not (one.talks or other.talks) and not set(one.run.ranks).isdisjoint(other.run.ranks):
        return "apart_same_time"
    return None


def _shared(work: Mapping[str, int], other: Mapping[str, int]) -> float:
    """Share of the time in what the other has, too; 1 where there is nothing to compare."""
    total = sum(work.values())
    return sum(time for name, time in work.items() if name in other) / total if total and other else 1.0


def _traits(run: Run, analysed: Mapping[str, AnalysedRank]) -> _Traits:
    first = run.traces[0]
    device = first.devices[0].name if first.devices else ""
    times = [trace.span for trace in run.traces]
    ranks = [analysed[trace.origin.path] for trace in run.traces]
    return _Traits(
        run=run,
        kind=(first.origin.format, first.origin.world_size, device),
        libraries={name: first.versions[name] for name in _LIBRARIES if name in first.versions},
        begin=min(start for start, _ in times),
        end=max(end for _, end in times),
        work=_work(ranks),
        talks=any(len(one.summary.collectives) for one in ranks),
    )


def _work(ranks: Sequence[AnalysedRank]) -> Counter[str]:
    """Time of kernels; of recordings without a device that of operators."""
    device, host = Counter[str](), Counter[str]()
    for one in ranks:
        for kernel in one.analysis.records("classification"):
            device[_INSTANCE.sub("", kernel.name)] += kernel.device_time_ns if kernel.class_ != "class_comm" else 0
        for each in one.analysis.records("operators"):
            host[each.op] += each.host_self_ns if isinstance(each.host_self_ns, int) else 0
    return +device or +host


_FILES = declare(
    "run_files",
    "Files",
    Column("path", Kind.NAME, "File or folder", heading="file"),
    Column("file_kind", Kind.TERM, "What the file is, by its content", heading="what it is"),
    Column("fate", Kind.TERM, "Whether it is behind the numbers", heading="what became of it"),
    Column("why", Kind.NAME, "Why it was left out or passed over, or what of it could not be read"),
    Column("rank", Kind.COUNT, "rank of the process; ?n where the profile does not tell"),
    Column("rank_source", Kind.TEXT, "where the file says which rank it is", heading="rank taken from", minor=True),
    Column("recording", Kind.COUNT, "Number of the recording, in the order of time", minor=True),
    Column("steps", Kind.TEXT, "Numbers of the complete steps, or how many there are", minor=True),
    detail=True,
)
File = dict[str, Value]
"""A row of that table."""


def _file(
    path: str,
    kind: str,
    fate: str,
    rank: int | None = None,
    rank_source: str = "",
    recording: int | None = None,
    steps: str = "",
    why: str = "",
) -> File:
    return {
        "path": path,
        "file_kind": f"file_{kind}",
        "fate": f"fate_{fate}",
        "why": why or None,
        "rank": rank,
        "rank_source": rank_source or None,
        "recording": recording,
        "steps": steps or None,
    }


class Unused(NamedTuple):
    """What belongs to no job."""

    read: ReadRecordings
    """What became of all recordings."""
    left_out: tuple[str, ...]
    """Remarks on snapshots and timelines that cannot be used."""
    passed: tuple[Run, ...]
    """Recordings without any of the ranks that the user chose."""
    memory: tuple[MemoryFile, ...]
    """Snapshots and timelines of all jobs."""
    incident: tuple[FileRead, ...] = ()
    """Logs, dumps and states of devices among all files."""


def run_files(
    runs: Sequence[Run], recordings: Sequence[RecordingPart], memory: Sequence[MemoryFile], unused: Unused | None
) -> Table:
    """Files that a job used, then those of no job, where they go with this one.

    `recordings` are the runs as parts, which hold the ranks that were looked at.
    """
    others = () if unused is None else _unused(unused)
    remembered = (_file(one.path, one.kind, "used", one.rank, one.rank_source) for one in memory)
    return _FILES.fill_records([*_used(runs, recordings), *remembered, *others])


def _used(runs: Sequence[Run], recordings: Sequence[RecordingPart]) -> Iterator[File]:
    for number, (run, part) in enumerate(zip(runs, recordings, strict=True), 1):
        by_label = {rank.label: rank for rank in part.ranks}
        for index, trace in enumerate(run.traces):
            rank = by_label.get(rank_label(trace.origin, index))
            # What keeps it from being whole.
            fault = trace.read.stream_fault or ("cut short" if trace.read.truncated else "")
            fate = "not_chosen" if rank is None else "salvaged" if fault else "used"
            yield _file(
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


def _repeated(run: Run) -> Iterator[File]:
    for note in run.notes:
        path, _, rest = note.partition(" has the same content as ")
        if rest:
            yield _file(path, "trace", "repeated", why=rest.removesuffix(" and was left out"))


def _kind(trace: Trace) -> str:
    return "ascend_profile" if trace.origin.format == "ascend" else "trace"


def _unused(unused: Unused) -> Iterator[File]:
    told = {one.path: one for one in unused.incident if one.kind != "other"}
    read = unused.read
    left_out = {name: why for name, why in _left_out(unused) if name not in told}
    known, statistics = {*(one.path for one in unused.memory), *told}, _statistics(unused.memory)
    for file in told.values():
        yield _file(
            file.path, file.kind, "salvaged" if file.fault else "used", file.rank, file.rank_source, why=file.fault
        )
    for run in unused.passed:
        for trace in run.traces:
            yield _file(trace.origin.path, _kind(trace), "not_chosen", trace.origin.rank, trace.origin.rank_source)
        yield from _repeated(run)
    for name, why in read.failed:
        if name not in known and name not in left_out:
            yield _file(name, "trace", "left_out", why=why.removeprefix(f"{name}: "))
    for name, why in left_out.items():
        yield _file(name, "snapshot", "left_out", why=why)
    listed = {*known, *left_out, *(name for name, _ in read.failed)}
    # Of a log that is torn at its head nothing else is told but that it holds nothing.
    faults = {one.path: one.fault for one in unused.incident}
    for other in {one.name: one for one in read.skipped}.values():
        if other.name not in listed:
            yield _run_list(other) or (
                _file(other.name, "statistics", "used")
                if other.name in statistics
                else _file(other.name, "other", "passed_over", why=faults.get(other.name) or other.reason)
            )


def _run_list(other: Skipped) -> File | None:
    """What became of the list of a recording's files; None where it is something else."""
    if not NAME.fullmatch(PurePath(other.name).name) or not Path(other.name).is_file():
        return None
    try:
        found = read_run_list(Path(other.name))
    except InputError as error:
        return _file(other.name, "run_list", "left_out", why=str(error))
    return None if found is None else _file(other.name, "run_list", "used")


def _statistics(memory: Sequence[MemoryFile]) -> set[str]:
    """Files with statistics of the allocator that were read with snapshots beside them."""
    paths = [one.path for one in memory if one.kind == "snapshot" and Path(one.path).is_file()]
    found = (statistics_beside(path, named_rank(path))[0] for path in paths)
    return {one.path for one in found if one is not None}


def _left_out(unused: Unused) -> Iterator[tuple[str, str]]:
    """Names of snapshots and timelines that cannot be used, and why; a name may hold the mark between the two."""
    files = {name for name, _ in unused.read.failed} | {one.name for one in unused.read.skipped}
    for note in unused.left_out:
        text = note.removeprefix("left out: ")
        ends = [found.start() for found in re.finditer(": ", text)]
        end = next((at for at in ends if text[:at] in files), ends[0] if ends else len(text))
        yield text[:end], text[end + 2 :]
