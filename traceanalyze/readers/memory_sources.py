"""Which of the files a user names are allocator snapshots or memory timelines; content decides."""

import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from traceanalyze.errors import InputError
from traceanalyze.model.patterns import regex
from traceanalyze.readers.ascend.folder import rank_of_name
from traceanalyze.readers.detect import Kind, explain
from traceanalyze.readers.remote import is_remote
from traceanalyze.readers.runs import explicit_rank, numbered_ranks, read_run_list
from traceanalyze.readers.source import Source
from traceanalyze.readers.sources import is_archive, kind_of, may_look_into, members_of_archive, remote_files, walk
from traceanalyze.readers.streams import read_head

KINDS = frozenset({Kind.SNAPSHOT, Kind.SNAPSHOT_JSON, Kind.PICKLE})
_SUFFIXES = (".pickle", ".pkl", ".json", ".gz", ".zst")
_ARCHIVES = (".zip",)


def is_snapshot(source: Source) -> bool:
    """Does it begin as a snapshot, or as a pickle that may be one? What cannot be opened does not."""
    return _kind(source) in KINDS


def is_timeline(source: Source) -> bool:
    """Does it begin as a timeline of `export_memory_timeline`?"""
    return _kind(source) is Kind.MEMORY_TIMELINE


def stranger(path: str) -> InputError | None:
    """What a file is that is no recording at all; None for others, which their readers know better."""
    source = _plain_file(path)
    kind = None if source is None else _kind(source)
    if source is None or kind is None or kind in KINDS or kind is Kind.JSON or "give" not in kind.value.values:
        return None
    return explain(kind, source.name, of_memory=True)


def snapshots_of(path: str) -> tuple[Source, ...]:
    """The snapshot a path names, or those below a folder or in an archive in the order of their names."""
    return tuple(source for source in candidates(path) if is_snapshot(source))


def candidates(path: str) -> tuple[Source, ...]:
    """The file a path names, or the files below a folder or in an archive that may be snapshots or timelines by name.

    Links to folders are followed, but never into the same folder twice.
    """
    if is_remote(path):
        return _remote_candidates(path)
    named = _plain_file(path)
    if named is not None:
        members = _members(named)
        return (named,) if members is None else members
    return tuple(found for file in _below(path) for found in _of_file(file))


def _remote_candidates(path: str) -> tuple[Source, ...]:
    try:
        searched, files = remote_files(path)
    except InputError:
        # Whoever reads it says why it cannot be read.
        return ()
    if searched is None:
        return files if (members := _members(files[0])) is None else members
    archives = (_members(each) if each.path.lower().endswith(_ARCHIVES) else None for each in files)
    pairs = zip(files, archives, strict=True)
    return tuple(
        one
        for each, members in pairs
        for one in ((each,) if members is None else members)
        if members is not None or (not each.folder and each.path.lower().endswith(_SUFFIXES))
    )


def _of_file(file: Path) -> Iterator[Source]:
    found = None if file.name.startswith(".") else _plain_file(str(file))
    if found is None:
        return
    if file.name.lower().endswith(_ARCHIVES):
        yield from _members(found) or ()
    elif file.name.lower().endswith(_SUFFIXES):
        yield found


def _below(folder: str) -> Iterator[Path]:
    """Files in the order of their folders."""
    found: dict[str, list[Path]] = {}
    for place, folders, names in walk(folder):
        inside = [name for name in folders if may_look_into(place / name)]
        # The folder itself before a link to it, whatever they are called.
        folders[:] = sorted(inside, key=lambda name: ((place / name).is_symlink(), name))
        found[str(place)] = [place / name for name in sorted(names)]
    return (file for _, files in sorted(found.items()) for file in files)


def _members(source: Source) -> tuple[Source, ...] | None:
    """What an archive holds that may be a snapshot or a timeline by name; None where the file is no archive."""
    try:
        if not is_archive(source.path):
            return None
        found = members_of_archive(source.path)
    except (InputError, OSError):
        # Reading it says what is wrong with it.
        return None
    return tuple(one for one in found if one.member.lower().endswith(_SUFFIXES))


def _plain_file(path: str) -> Source | None:
    """None for what is not to be opened: a folder, a pipe, a link to nothing, or what may not be looked at."""
    if is_remote(path):
        try:
            searched, files = remote_files(path)
        except InputError:
            return None
        return files[0] if searched is None else None
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return None
    return Source(path, size=status.st_size) if stat.S_ISREG(status.st_mode) else None


def holds_memory_file(path: str) -> bool:
    """Whether a file is a snapshot or a memory timeline, or a folder holds one."""
    return any(_kind(source) in {*KINDS, Kind.MEMORY_TIMELINE} for source in candidates(path))


def _kind(source: Source) -> Kind | None:
    try:
        return kind_of(source)
    except InputError:
        return None


_DISTRIBUTED = regex(rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*?"rank"\s*:\s*(\d{1,6})\b')
_MEMORY = regex(rb'"totalGlobalMem"\s*:\s*(\d{9,15})\b')
_PROFILE_INFO = "profiler_info_*.json"
_RUN_FILES = ("run.json", "run_rank*.json")
_SHORT = regex(r"(?:^|[_.-])r(\d{1,6})(?=[_.-]|$)", re.IGNORECASE)
_NUMBERED = regex(r"[_.-](\d{1,6})\.(?:pickle|pkl|json)(?:\.gz|\.zst)?$", re.IGNORECASE)


def memory_ranks(paths: Sequence[str], traces: Sequence[int | None]) -> tuple[tuple[int | None, str], ...]:
    """The rank of each file of a run, and what states it: "run.json", "file name", "folder", "only one", or nothing.

    `traces` are the ranks of the traces found beside them, None where a trace does not state it.
    """
    ranks = [_stated_by_name(path) for path in paths]
    unknown = [index for index, (rank, _) in enumerate(ranks) if rank is None]
    numbers = _numbers([paths[index] for index in unknown], traces)
    if numbers is not None:
        for index, number in zip(unknown, numbers, strict=True):
            ranks[index] = number, "file name"
    elif len(traces) == 1 and len(paths) == 1 and unknown:
        ranks[0] = traces[0], "only one"
    return tuple(ranks)


def trace_ranks(sources: Sequence[Source]) -> tuple[int | None, ...]:
    """Ranks of traces as far as their beginnings, and what lies around them, tell; before any is read."""
    ranks = [named_rank(source.name) if (rank := _stated(source)) is None else rank for source in sources]
    numbers = numbered_ranks([source.name for source in sources]) if set(ranks) == {None} else None
    return tuple(ranks if numbers is None else numbers)


def _stated(source: Source) -> int | None:
    """What the recording itself says of its rank: in its header, or as the name of a file of the profile (Ascend)."""
    if source.folder:
        return rank_of_name(file.name for file in Path(source.folder).glob(_PROFILE_INFO))
    found = _DISTRIBUTED.search(_head(source))
    return int(found[1]) if found else None


def _head(source: Source) -> bytes:
    """Beginning of the text of a file; empty where it cannot be read, or not twice."""
    try:
        return read_head(source) if is_remote(source.path) or Path(source.path).is_file() else b""
    except InputError:
        return b""


def device_memory(sources: Sequence[Source]) -> int | None:
    """Bytes of memory of the devices, if the beginnings of the traces tell it and all devices have the same."""
    found = {int(size) for source in sources for size in _MEMORY.findall(_head(source))}
    return found.pop() if len(found) == 1 else None


def named_rank(path: str) -> int | None:
    """The rank that a file's own surroundings state, whatever else is there."""
    return _stated_by_name(path)[0]


def rank_in_name(path: str) -> int | None:
    """The rank a file is named after: `rank3`, `rank_3`, `_r3`."""
    name = PurePath(path).name
    rank = explicit_rank(name)
    short = _SHORT.search(name)
    return int(short[1]) if rank is None and short else rank


def _stated_by_name(path: str) -> tuple[int | None, str]:
    """By the list of files that `traceanalyze record` leaves, the name of the file, that of a folder around it."""
    listed, named = (_listed(PurePath(path)), "run.json"), (rank_in_name(path), "file name")
    stated = (listed, named, (explicit_rank(path), "folder"))
    return next((each for each in stated if each[0] is not None), (None, ""))


def _listed(path: PurePath) -> int | None:
    """Rank of the recording that lists this file among those it wrote."""
    folder = Path(path.parent)
    for file in sorted(file for pattern in _RUN_FILES for file in folder.glob(pattern)):
        try:
            found = read_run_list(file)
        except InputError:
            continue
        if found is not None and found.rank is not None and path.name in found.files:
            return found.rank
    return None


def _numbers(paths: Sequence[str], traces: Sequence[int | None]) -> list[int] | None:
    """Numbers at the end of the names, if they are all different and all of them are ranks of traces."""
    found = [_NUMBERED.search(PurePath(path).name) for path in paths]
    numbers = [int(match[1]) for match in found if match]
    alike = paths and len(numbers) == len(paths) == len(set(numbers))
    return numbers if alike and set(numbers) <= set(traces) else None
