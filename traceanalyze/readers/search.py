"""What a folder, a glob or an archive holds: every candidate, in a fixed order."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyze.errors import InputError
from traceanalyze.readers.ascend.folder import profile_at
from traceanalyze.readers.detect import Kind, sniff
from traceanalyze.readers.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

TRACE_SUFFIXES = (".json", ".gz", ".zst", ".zip")
"""Names worth opening when nobody asked for the file by name."""
_RESOURCE_FORKS = "__MACOSX/"


def files_of_folder(folder: Path) -> Iterator[Source]:
    """Files below a folder; hidden ones are left out, links are followed but never into the same folder twice.

    The folder of an Ascend profile is one source, and its files are none, but for databases of other ranks.
    """
    seen: set[tuple[int, int]] = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        status = Path(place).stat()
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        profiles = _ascend_profiles(Path(place))
        if profiles:
            folders.clear()
            yield from profiles
            continue
        shown = sorted(name for name in folders if not name.startswith("."))
        folders[:] = [name for name in shown if may_look_into(Path(place, name))]
        # A folder that may not be looked into stands for what it holds: who wants to read it is told so.
        yield from (Source(str(Path(place, name))) for name in shown if name not in folders)
        for name in sorted(names):
            if not name.startswith("."):
                yield from file_or_members(Path(place, name))


def may_look_into(folder: Path) -> bool:
    """Whether the user may list a folder and open what is in it."""
    return os.access(folder, os.R_OK | os.X_OK)


def _ascend_profiles(folder: Path) -> tuple[Source, ...]:
    """The source of an Ascend profile's folder, and those of other ranks in it, if it is one.

    One that cannot be used says why when it is read.
    """
    try:
        profile = profile_at(folder)
    except InputError:
        return (Source(str(folder), folder=str(folder)),)
    if profile is None or profile.main is None:
        return ()
    main = Source(str(profile.main), folder=str(folder), size=profile.main.stat().st_size)
    return (main, *(Source(str(other), size=other.stat().st_size) for other in profile.others))


def files_of_glob(pattern: str) -> Iterator[Source]:
    """Files a pattern matches, and those below the folders it matches."""
    for name in sorted(glob.glob(pattern, recursive=True)):  # noqa: PTH207  unlike Path.glob it leaves hidden files out
        match = Path(name)
        yield from files_of_folder(match) if match.is_dir() else file_or_members(match)


def file_or_members(path: Path) -> Iterator[Source]:
    """A file found by searching; an archive gives its members instead."""
    if not path.is_file():
        if path.is_symlink() and not path.exists():
            yield Source(str(path))  # a link to nothing: whoever wants to read it is told so
        return
    if path.name.lower().endswith(TRACE_SUFFIXES):
        try:
            if is_archive(path):
                yield from members_of_archive(path)
                return
        except (InputError, OSError):
            pass  # opening it again, by whoever wants to read it, tells why it cannot be read
    yield Source(str(path), size=path.stat().st_size)


def is_archive(path: Path) -> bool:
    """Does the file begin as a zip archive?"""
    with path.open("rb") as file:
        return sniff(file.read(8)) is Kind.ZIP


def members_of_archive(path: Path) -> tuple[Source, ...]:
    """Files inside a zip archive, in the order of their names."""
    # Imported here: most inputs are no archives.
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            entries = sorted((entry.filename, entry.file_size) for entry in archive.infolist() if not entry.is_dir())
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise InputError(f"{path}: this zip archive is damaged or incomplete ({error}); copy it again") from error
    shown = ((name, size) for name, size in entries if not name.startswith(_RESOURCE_FORKS))
    return tuple(
        Source(str(path), member=name, size=size) for name, size in shown if not Path(name).name.startswith(".")
    )
