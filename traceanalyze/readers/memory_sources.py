"""Which of the files a user names are allocator snapshots or memory timelines; content decides."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from traceanalyze.errors import InputError
from traceanalyze.readers.detect import Kind, sniff
from traceanalyze.readers.source import Source
from traceanalyze.readers.streams import read_head

KINDS = frozenset({Kind.SNAPSHOT, Kind.SNAPSHOT_JSON, Kind.PICKLE})
_SUFFIXES = (".pickle", ".pkl", ".json", ".gz", ".zst")


def is_snapshot(source: Source) -> bool:
    """Does it begin as a snapshot, or as a pickle that may be one? What cannot be opened does not."""
    return _kind(source) in KINDS


def is_timeline(source: Source) -> bool:
    """Does it begin as a timeline of `export_memory_timeline`?"""
    return _kind(source) is Kind.MEMORY_TIMELINE


def snapshots_of(path: str) -> tuple[Source, ...]:
    """The snapshot a path names, or those below a folder in the order of their names."""
    return tuple(source for source in candidates(path) if is_snapshot(source))


def candidates(path: str) -> tuple[Source, ...]:
    """The file a path names, or the files below a folder whose names may be those of snapshots or timelines."""
    named = _plain_file(path)
    if named is not None:
        return (named,)
    files = (Path(folder, name) for folder, _, names in sorted(os.walk(path)) for name in sorted(names))
    likely = (file for file in files if file.name.lower().endswith(_SUFFIXES) and not file.name.startswith("."))
    return tuple(found for file in likely if (found := _plain_file(str(file))) is not None)


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
