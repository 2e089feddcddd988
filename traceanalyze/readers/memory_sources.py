"""Which of the files a user names are allocator snapshots or memory timelines; content decides."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyze.errors import InputError
from traceanalyze.readers.detect import Kind, sniff
from traceanalyze.readers.search import is_archive, may_look_into, members_of_archive
from traceanalyze.readers.source import Source
from traceanalyze.readers.streams import read_head

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = frozenset({Kind.SNAPSHOT, Kind.SNAPSHOT_JSON, Kind.PICKLE})
_SUFFIXES = (".pickle", ".pkl", ".json", ".gz", ".zst")
_ARCHIVES = (".zip",)


def is_snapshot(source: Source) -> bool:
    """Does it begin as a snapshot, or as a pickle that may be one? What cannot be opened does not."""
    return _kind(source) in KINDS


def is_timeline(source: Source) -> bool:
    """Does it begin as a timeline of `export_memory_timeline`?"""
    return _kind(source) is Kind.MEMORY_TIMELINE


def snapshots_of(path: str) -> tuple[Source, ...]:
    """The snapshot a path names, or those below a folder or in an archive in the order of their names."""
    return tuple(source for source in candidates(path) if is_snapshot(source))


def candidates(path: str) -> tuple[Source, ...]:
    """The file a path names, or the files below a folder or in an archive that may be snapshots or timelines by name.

    Links to folders are followed, but never into the same folder twice.
    """
    named = _plain_file(path)
    if named is not None:
        members = _members(named)
        return (named,) if members is None else members
    return tuple(found for file in _below(path) for found in _of_file(file))


def _of_file(file: Path) -> Iterator[Source]:
    """A file found by searching, or what an archive holds."""
    found = None if file.name.startswith(".") else _plain_file(str(file))
    if found is None:
        return
    if file.name.lower().endswith(_ARCHIVES):
        yield from _members(found) or ()
    elif file.name.lower().endswith(_SUFFIXES):
        yield found


def _below(folder: str) -> Iterator[Path]:
    """Files in the order of their folders."""
    found: list[tuple[str, list[str]]] = []
    seen: set[tuple[int, int]] = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        status = Path(place).stat()
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        # The folder itself before a link to it, whatever they are called.
        inside = {name for name in folders if may_look_into(Path(place, name))}
        links = {name for name in inside if Path(place, name).is_symlink()}
        folders[:] = [*sorted(inside - links), *sorted(links)]
        found.append((place, sorted(names)))
    return (Path(place, name) for place, names in sorted(found) for name in names)


def _members(source: Source) -> tuple[Source, ...] | None:
    """What an archive holds that may be a snapshot or a timeline by name; None where the file is no archive."""
    try:
        if not is_archive(Path(source.path)):
            return None
        found = members_of_archive(Path(source.path))
    except (InputError, OSError):
        # Who wants to read it is told what is wrong with it.
        return None
    return tuple(one for one in found if one.member.lower().endswith(_SUFFIXES))


def _plain_file(path: str) -> Source | None:
    """None for what is not to be opened: a folder, a pipe, a link to nothing, or what may not be looked at."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return None
    return Source(path, size=status.st_size) if stat.S_ISREG(status.st_mode) else None


def holds_memory_file(path: str) -> bool:
    """Whether a file is a snapshot or a memory timeline, or a folder holds one."""
    return any(_kind(source) in {*KINDS, Kind.MEMORY_TIMELINE} for source in candidates(path))


def _kind(source: Source) -> Kind | None:
    """What it begins as; None for what cannot be opened."""
    try:
        return sniff(read_head(source), source.name)
    except InputError:
        return None
