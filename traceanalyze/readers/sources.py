"""Which texts to read: files, folders, globs, archives and standard input as one ordered list of sources."""

from __future__ import annotations

import glob
import os
import stat
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traceanalyze.errors import InputError
from traceanalyze.readers.detect import Kind, sniff
from traceanalyze.readers.hints import not_found, nothing_found

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STDIN = "-"
_TRACE_SUFFIXES = (".json", ".gz", ".zip")
_GLOB_CHARACTERS = frozenset("*?[")
_OWN_SCHEMA = b'"traceanalyze'
_TRACES = {Kind.TRACE, Kind.BLANK}


@dataclass(frozen=True, slots=True)
class Source:
    """One text to read."""

    path: str
    """File to open, "-" for standard input."""
    member: str = ""
    """Name inside the archive `path`; empty for a plain file."""
    size: int | None = None
    """Bytes that reading it takes from the file (of an archive: the unpacked member); None if unknown, as for a pipe."""

    @property
    def name(self) -> str:
        """What a user calls it."""
        if self.path == STDIN:
            return "standard input"
        return f"{self.path}!{self.member}" if self.member else self.path


@dataclass(frozen=True, slots=True)
class Selection:
    """The sources found, and the files of searched folders and archives that were passed over because they are not traces."""

    sources: tuple[Source, ...]
    ignored: tuple[str, ...] = ()


def expand(paths: Sequence[str]) -> Selection:
    """Find the traces behind the paths a user gave.

    A file that is named is taken as it is; a folder, a glob or an archive is searched for traces, and what is not one
    is passed over. The order is that of the paths, sorted inside a folder; a file is taken once.

    Raises:
        InputError: A path does not exist, cannot be read, or holds no trace.
    """
    found: dict[tuple[str, str], Source] = {}
    ignored: list[str] = []
    for path in paths:
        sources, skipped = _expand_one(path)
        for source in sources:
            found.setdefault((os.path.realpath(source.path), source.member), source)
        ignored += skipped
    return Selection(tuple(found.values()), tuple(ignored))


def _expand_one(path: str) -> tuple[list[Source], list[str]]:
    if path == STDIN:
        return [Source(STDIN)], []
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        if _GLOB_CHARACTERS.isdisjoint(path):
            raise not_found(path) from None
        return _searched(path, "glob", _matches(path))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if stat.S_ISDIR(status.st_mode):
        return _searched(path, "folder", _files(path))
    if stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode):
        return [Source(path)], []
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: this is a device, not a file")
    if status.st_size == 0:
        raise explain(Kind.EMPTY, path)
    if is_archive(path):
        return _searched(path, "archive", members(path))
    return [Source(path, size=status.st_size)], []


def _searched(path: str, place: str, candidates: Iterator[Source]) -> tuple[list[Source], list[str]]:
    sources, ignored = [], []
    for candidate in candidates:
        reason = _not_a_trace(candidate)
        if reason is None:
            sources.append(candidate)
        else:
            ignored.append(_relative(candidate, path) + reason)
    if not sources:
        raise nothing_found(path, place, ignored)
    return sources, ignored


def _not_a_trace(source: Source) -> str | None:
    """Why a file that was found by searching is passed over (may be empty: its name says it), None for a trace."""
    if not (source.member or source.path).lower().endswith(_TRACE_SUFFIXES):
        return ""
    try:
        kind = sniff(read_head(source), source.name)
    except InputError as error:
        return f" ({str(error).removeprefix(source.name + ': ')})"
    return None if kind is Kind.TRACE else f" ({kind.name.lower().replace('_', ' ')})"


def _relative(source: Source, place: str) -> str:
    return source.member or os.path.relpath(source.path, place if os.path.isdir(place) else None)


def _matches(pattern: str) -> Iterator[Source]:
    hits = sorted(glob.glob(pattern, recursive=True))
    if not hits:
        raise InputError(f"{pattern}: no file matches")
    for hit in hits:
        yield from _files(hit) if os.path.isdir(hit) else _candidates(hit)


def _files(folder: str) -> Iterator[Source]:
    """Files below a folder, in order; hidden ones are left out, links are followed but never into a folder twice."""
    seen: set[tuple[int, int]] = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        status = os.stat(place)
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield from _candidates(os.path.join(place, name))


def _candidates(path: str) -> Iterator[Source]:
    """A file found by searching, or the members of an archive."""
    if not os.path.isfile(path):
        return
    size = os.path.getsize(path)
    try:
        archive = path.lower().endswith(_TRACE_SUFFIXES) and is_archive(path)
        inside = list(members(path)) if archive else []
    except InputError:
        archive = False
    yield from inside if archive else (Source(path, size=size),)
