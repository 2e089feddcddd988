"""Which of the files a user names are allocator snapshots; content decides."""

from __future__ import annotations

import os
from pathlib import Path

from traceanalyze.errors import InputError
from traceanalyze.readers.detect import Kind, sniff
from traceanalyze.readers.source import Source
from traceanalyze.readers.streams import read_head

KINDS = frozenset({Kind.SNAPSHOT, Kind.SNAPSHOT_JSON, Kind.PICKLE})
_SUFFIXES = (".pickle", ".pkl", ".json", ".gz", ".zst")


def is_snapshot(source: Source) -> bool:
    """Does it begin as a snapshot, or as a pickle that may be one? What cannot be opened does not."""
    try:
        return sniff(read_head(source), source.name) in KINDS
    except InputError:
        return False


def is_timeline(source: Source) -> bool:
    """Does it begin as a timeline of `export_memory_timeline`?"""
    try:
        return sniff(read_head(source), source.name) is Kind.MEMORY_TIMELINE
    except InputError:
        return False


def snapshots_of(path: str) -> tuple[Source, ...]:
    """The snapshot a path names, or those below a folder in the order of their names."""
    return tuple(source for source in candidates(path) if is_snapshot(source))


def candidates(path: str) -> tuple[Source, ...]:
    """The file a path names, or the files below a folder whose names may be those of snapshots or timelines."""
    place = Path(path)
    if place.is_file():
        return (Source(path, size=place.stat().st_size),)
    if not place.is_dir():
        return ()
    files = (Path(folder, name) for folder, _, names in sorted(os.walk(place)) for name in sorted(names))
    named = (file for file in files if file.name.lower().endswith(_SUFFIXES) and not file.name.startswith("."))
    return tuple(Source(str(file), size=file.stat().st_size) for file in named)
