"""Recordings to runs: which files are the ranks of one execution, and which are different recordings.

Files belong to one run if they lie in one folder (Ascend profiles: or in folders of the hosts of one job), tell
different ranks (or at least different processes) of a world of one size, and overlap in time. The clocks of hosts may
differ, so a rank that is missing may also come from a file that does not overlap. Nothing is put together without such
evidence.
"""

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import compress
from operator import itemgetter
from pathlib import Path, PurePath
from typing import NamedTuple

from traceanalyze.errors import Apart, InputError, Phrase, ranges
from traceanalyze.model.patterns import regex
from traceanalyze.model.trace import Run, Trace, at_other_times
from traceanalyze.readers.source import ARCHIVE_MARK

_HANDLER = regex(r"(?P<worker>.+)\.\d{10,}\.pt\.trace\.json(?:\.gz)?")
_HOST_AND_PID = regex(r"(?P<host>.+)_(?P<pid>\d{1,18})")
_EXPLICIT = (
    regex(r"(?:^|[^a-z])rank[_-]?(\d{1,6})(?!\d)", re.IGNORECASE),
    regex(r"(?:^|[^a-z])worker[_-]?(\d{1,6})(?!\d)", re.IGNORECASE),
)
_ASCEND_OUTPUT = "ASCEND_PROFILER_OUTPUT"
_ENDINGS = regex(r"(?:\.pt\.trace)?\.json(?:\.gz)?$|\.gz$", re.IGNORECASE)
_NUMBERED = regex(r"[_.-](\d{1,6})\.(?:pt\.trace\.)?json(?:\.gz)?$", re.IGNORECASE)


def host_and_pid(path: str) -> tuple[str | None, int | None]:
    """Host and process from the name torch's tensorboard_trace_handler gives: `host_pid.time.pt.trace.json`."""
    handler = _HANDLER.fullmatch(PurePath(path).name)
    found = _HOST_AND_PID.fullmatch(handler["worker"]) if handler else None
    return (found["host"], int(found["pid"])) if found else (None, None)


def explicit_rank(path: str) -> int | None:
    """The rank a file or its folder is named after: `rank_3`, `-rank3-`, `worker3.`; None if it is not."""
    pure = PurePath(path.replace(ARCHIVE_MARK, "/"))
    for text in (pure.name, pure.parent.name):
        for pattern in _EXPLICIT:
            found = pattern.search(text)
            if found:
                return int(found[1])
    return None


def numbered_ranks(paths: Sequence[str], lost: Collection[str] = ()) -> list[int] | None:
    """Ranks of files that are numbered at the end of their names, `trace_3.json`.

    A number alone says little, so all files must be numbered alike, from 0 to the number of files without a gap but
    where files are `lost`.
    """
    numbers, others = (
        [int(match[1]) for path in those if (match := _NUMBERED.search(PurePath(path).name))] for those in (paths, lost)
    )
    every = sorted({*numbers, *others})
    whole = len(paths) > 1 and len({*numbers}) == len(paths) and every == list(range(len(every)))
    return numbers if whole else None


@lru_cache(1 << 16)
def run_folder(path: str) -> str:
    """The folder that stands for a run: that of the file, or the one above if that is named after a rank."""
    parent = PurePath(path.replace(ARCHIVE_MARK, "/")).parent
    while any(pattern.search(parent.name) for pattern in _EXPLICIT):
        parent = parent.parent
    return str(parent)


def short_name(path: str) -> str:
    """File name without the endings every trace has; an Ascend profile's output folder goes by the one above."""
    return _ENDINGS.sub("", PurePath(profile_path(path)).name)


def profile_path(path: str) -> str:
    """Path of a recording, also within an archive; an Ascend profile's output folder goes by the one above."""
    pure = PurePath(path.replace(ARCHIVE_MARK, "/"))
    return str(pure.parent if pure.name == _ASCEND_OUTPUT and pure.parent.name else pure)


def names_apart(names: Sequence[str], paths: Sequence[str]) -> list[str]:
    """Names, those that occur more than once with as many of the folders of their paths as tell them apart.

    In one folder the endings of the files do.
    """
    same: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        same.setdefault(name, []).append(row)
    found = list(names)
    for name, rows in same.items():
        if len(rows) == 1:
            continue
        above = [PurePath(paths[row]).parent.parts for row in rows]
        depths = range(1, max(map(len, above)) + 1)
        longer = [[str(PurePath(*parts[-depth:], name)) for parts in above] for depth in depths]
        whole = [PurePath(paths[row]).name for row in rows]
        apart = next((those for those in (*longer, whole) if len(set(those)) == len(those)), ())
        for row, one in zip(rows, apart, strict=False):
            found[row] = one
    return found


@dataclass(slots=True)
class _Recording:
    """Traces that were recorded together."""

    folder: str
    traces: list[Trace] = field(default_factory=list)
    apart: bool = False
    """Some of them do not overlap in time."""
    absent: list[str] = field(default_factory=list)
    """Names of others that cannot be read."""
    until: int = 0
    """When the last of them ends."""
    identities: dict[tuple[str, str | None, int] | None, None] = field(default_factory=dict)
    worlds: set[int | None] = field(default_factory=set)
    """Sizes of the worlds they tell."""

    def add(self, trace: Trace, end: int) -> None:
        """One more, which ends then."""
        self.traces.append(trace)
        self.until = max(self.until, end)
        self.identities[_identity(trace)] = None
        self.worlds |= _worlds((trace,))


def group_runs(traces: Sequence[Trace], lost: Collection[str] = ()) -> tuple[Run, ...]:
    """Put traces together that are ranks of one run; runs in the order of their folders, then of time.

    `lost` names recordings that cannot be read: where ranks are numbered by their files, these keep their numbers.
    """
    every, repeats = _distinct(traces)
    distinct, captures = _replayed(every)
    above = _folders_of_hosts(distinct)
    folders: dict[str, list[Trace]] = {}
    profiles = {trace.origin.path for trace in distinct if trace.origin.format == "ascend"}
    for trace in distinct:
        # A database of another rank may lie in the folder of a profile: both are of one run.
        above_it = PurePath(trace.origin.path).parents if profiles else ()
        around = next((str(place) for place in above_it if str(place) in profiles), None)
        folder = run_folder(around or trace.origin.path)
        folders.setdefault(above.get(folder, folder), []).append(trace)
    found = []
    for folder, members in folders.items():
        absent = [path for path in lost if run_folder(path) == folder]
        recordings = _recordings(folder, members, absent)
        found += [(one, number if len(recordings) > 1 else 0) for number, one in enumerate(recordings, 1)]
        if len(recordings) == 1:
            recordings[0].absent += absent
    runs = [_run(recording, (repeats, captures), number) for recording, number in found]
    names = names_apart([run.name for run in runs], [_place(recording) for recording, _ in found])
    return tuple(run._replace(name=name) for run, name in zip(runs, names, strict=True))


def _place(recording: _Recording) -> str:
    """What a run is named after: its folder, or its only recording."""
    return recording.folder if len(recording.traces) > 1 else profile_path(recording.traces[0].origin.path)


def _folders_of_hosts(traces: Sequence[Trace]) -> dict[str, str]:
    """Folders that the one above stands for: those of the hosts of one job, which Ascend profiles may lie in.

    They lie side by side, and all their ranks are known and different.
    """
    jobs: dict[str, list[Trace]] = {}
    for trace in traces:
        if trace.origin.format == "ascend":
            jobs.setdefault(str(PurePath(run_folder(trace.origin.path)).parent), []).append(trace)
    above: dict[str, str] = {}
    for job, members in jobs.items():
        ranks = [trace.origin.rank for trace in members]
        if None not in ranks and len(set(ranks)) == len(ranks):
            above |= {run_folder(trace.origin.path): job for trace in members}
    hosts = {job: {folder for folder, found in above.items() if found == job} for job in set(above.values())}
    return {folder: job for folder, job in above.items() if len(hosts[job]) > 1}


def _distinct(traces: Sequence[Trace]) -> tuple[list[Trace], dict[str, list[str]]]:
    """Drop files with the same content as an earlier one: path of the one kept → paths left out."""
    if len(traces) < 2:
        return list(traces), {}
    # Imported here: most runs are one recording.

    kept: dict[tuple[object, ...], Trace] = {}
    repeats: dict[str, list[str]] = {}
    for trace in traces:
        first = kept.setdefault((trace.origin.text_bytes, trace.origin.rank, trace.base_ns, *trace.content), trace)
        if first is not trace:
            repeats.setdefault(first.origin.path, []).append(trace.origin.path)
    return list(kept.values()), repeats


def _replayed(traces: Sequence[Trace]) -> tuple[list[Trace], dict[str, list[str]]]:
    """Drop those of how a rank captured graphs, where one of how it runs them lies beside or above.

    Path of that one → paths left out. A recording that runs graphs more often than it captures some stays.
    """
    runs = {}
    for trace in traces:
        captured, launched = trace.origin.graphs
        if launched and not captured:
            runs[_identity(trace), run_folder(trace.origin.path)] = trace.origin.path
    if not runs:
        return [*traces], {}
    kept, left_out = list[Trace](), dict[str, list[str]]()
    for trace in traces:
        captured, launched = trace.origin.graphs
        folder = run_folder(trace.origin.path)
        places = ((_identity(trace), place) for place in (folder, str(PurePath(folder).parent)))
        run = next((runs[place] for place in places if place in runs), None) if captured >= max(launched, 1) else None
        if run is None:
            kept.append(trace)
        else:
            left_out.setdefault(run, []).append(trace.origin.path)
    return kept, left_out


def _recordings(folder: str, traces: Sequence[Trace], absent: Collection[str]) -> list[_Recording]:
    recordings: list[_Recording] = []
    timed = [(trace.span, trace) for trace in _numbered(traces, absent)]
    for (start, end), trace in sorted(timed, key=itemgetter(0)):
        fitting = [recording for recording in recordings if _fits(trace, recording)]
        # They come in the order of their starts.
        together = [recording for recording in fitting if start < recording.until]
        known_world = trace.origin.rank is not None and trace.origin.world_size is not None
        if not together and not (fitting and known_world):
            recordings.append(_Recording(folder, until=end))
            recordings[-1].add(trace, end)
            continue
        recording = (together or fitting)[0]
        recording.add(trace, end)
        recording.apart |= not together
    return recordings


def _numbered(traces: Sequence[Trace], absent: Collection[str]) -> list[Trace]:
    """Traces without any rank get the numbers of their file names, if these and their times leave no doubt."""
    numbers = numbered_ranks([trace.origin.path for trace in traces], absent)
    together = max(trace.span[0] for trace in traces) < min(trace.span[1] for trace in traces)
    if numbers is None or not together or any(_identity(trace) is not None for trace in traces):
        return list(traces)
    return [_ranked(trace, rank, "file name") for trace, rank in zip(traces, numbers, strict=True)]


def _fits(trace: Trace, recording: _Recording) -> bool:
    """May the trace be one more rank of the recording?"""
    identity, first = _identity(trace), next(iter(recording.identities))
    same_world = len(_worlds((trace,)) | recording.worlds) < 2
    same_kind = first is not None and identity is not None and first[0] == identity[0]
    return same_world and same_kind and identity not in recording.identities


def _worlds(traces: Sequence[Trace]) -> set[int | None]:
    """Sizes of the worlds they tell; a file that is cut short may have lost it."""
    return {trace.origin.world_size for trace in traces if trace.read.whole or trace.origin.world_size is not None}


def _identity(trace: Trace) -> tuple[str, str | None, int] | None:
    """What tells a rank apart: its number, else its process."""
    origin = trace.origin
    if origin.rank is not None:
        return "rank", None, origin.rank
    return None if origin.host is None or origin.pid is None else ("process", origin.host, origin.pid)


def _run(recording: _Recording, beside: Sequence[dict[str, list[str]]], number: int) -> Run:
    """One run; `number` tells the recordings of one folder apart, 0 if there is only one."""
    traces = _in_order(recording.traces, recording.absent)
    name = short_name(traces[0].origin.path)
    if len(traces) > 1:
        name = (PurePath(recording.folder).name or recording.folder) + (f" (recording {number})" if number else "")
    return Run(name=name, traces=tuple(traces), notes=tuple(_notes(recording, traces, beside, number)))


def _in_order(traces: list[Trace], absent: Collection[str]) -> list[Trace]:
    """By rank; ranks nobody states are given in the order of host and process."""
    if len(traces) > 1 and traces[0].origin.rank is None:
        processes = {(trace.origin.host or "", trace.origin.pid or 0): trace for trace in traces}
        known = ((host or "", pid or 0) for host, pid in map(host_and_pid, absent) if host is not None)
        every = sorted({*processes, *known})
        return [_ranked(processes[each], rank, "order") for rank, each in enumerate(every) if each in processes]
    return sorted(traces, key=lambda trace: trace.origin.rank or 0)


def _ranked(trace: Trace, rank: int, source: str) -> Trace:
    return replace(trace, origin=trace.origin._replace(rank=rank, rank_source=source))


def _notes(
    recording: _Recording, traces: Sequence[Trace], beside: Sequence[dict[str, list[str]]], number: int
) -> Iterable[str]:
    ranks = {trace.origin.rank for trace in traces}
    world = next(iter(_worlds(traces) or {None}))
    missing = [] if world is None or ranks == {None} else sorted(set(range(world)) - ranks)
    if missing:
        yield Phrase("no recording of {missing:,} of {all:,} ranks: {which}", len(missing), world, ranges(missing))
    if traces[0].origin.rank_source == "order":
        yield Phrase("the files do not tell their ranks: they are numbered in the order of host and process")
    damaged = [trace.origin.rank for trace in traces if not trace.read.whole and trace.origin.rank is not None]
    if len(traces) > 1 and damaged:
        yield Phrase("damaged or cut short, and in no comparison of ranks: {which}", ranges(damaged))
    of_others = [one.origin.rank for one in compress(traces, at_other_times(traces)) if one.origin.rank is not None]
    if of_others:
        yield Phrase("recorded at another time, and in no comparison of ranks: {which}", ranges(of_others))
    elif recording.apart:
        yield Phrase("some ranks do not overlap in time with the others: different recordings, or clocks that differ")
    if number:
        yield Apart(
            "{folder} holds several recordings, analysed apart; this is number {number}", recording.folder, number
        )
    for trace in traces:
        repeats, captures = (paths.get(trace.origin.path, []) for paths in beside)
        for path in repeats:
            yield Phrase("{path} has the same content as {other} and was left out", path, trace.origin.path)
        for path in captures:
            yield Phrase("{path} records how graphs were captured, not how they run: left out, read it alone", path)


NAME = regex(r"run(_rank\d+)?\.json")
_SCHEMA = "traceanalyze.run/"
_MOST = 1 << 20
"""Bytes: such a list is a few kB."""


class RunList(NamedTuple):
    """What a list tells."""

    rank: int | None
    files: tuple[str, ...]


def read_run_list(path: Path) -> RunList | None:
    """The list; None for a file of another program that is only called so."""
    try:
        # A pipe that is called so would be waited for.
        if not path.is_file() or path.stat().st_size > _MOST:
            return None
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError("cannot be read: {why}", error.strerror or error) from error
    except (ValueError, RecursionError) as error:
        raise InputError("no JSON: damaged or cut short") from error
    if not isinstance(content, dict) or not str(content.get("schema", "")).startswith(_SCHEMA):
        return None
    files, rank = content.get("files"), content.get("rank")
    if not isinstance(files, list):
        raise InputError("lists no files")
    known = rank if type(rank) is int and rank >= 0 else None
    return RunList(known, tuple(each for each in files if isinstance(each, str)))
