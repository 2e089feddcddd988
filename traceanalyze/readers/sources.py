"""Which texts to read: the paths a user gave as one ordered list of sources."""

import glob
import os
import stat
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, NamedTuple, cast

from traceanalyze.errors import InputError, Phrase
from traceanalyze.readers.ascend.folder import OUTPUT, is_database, profile_at
from traceanalyze.readers.detect import Kind, explain, sniff
from traceanalyze.readers.remote import RemoteFile, glob_or_folder, is_remote, look, shown, told
from traceanalyze.readers.runs import NAME as RUN_LIST
from traceanalyze.readers.runs import read_run_list
from traceanalyze.readers.source import STDIN, Source, no_permission, not_found, nothing_found
from traceanalyze.readers.streams import read_head

TRACE_SUFFIXES = (".json", ".gz", ".zst", ".zip")
"""Names worth opening when the file was not named."""
_RESOURCE_FORKS = "__MACOSX/"


def files_of_folder(folder: Path) -> Iterator[Source]:
    """Files below a folder; hidden ones are left out, links are followed but never into the same folder twice.

    The folder of an Ascend profile is one source, and its files are none, but for databases of other ranks.
    """
    for place, folders, names in walk(folder):
        profiles = _ascend_profiles(place)
        if profiles:
            folders.clear()
            yield from profiles
            continue
        shown = sorted(name for name in folders if not name.startswith("."))
        folders[:] = [name for name in shown if may_look_into(place / name)]
        # A folder that may not be looked into stands for what it holds: reading it says so.
        yield from (Source(str(place / name)) for name in shown if name not in folders)
        for name in sorted(names):
            if not name.startswith("."):
                yield from _file_or_members(place / name)


def walk(folder: str | Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """As `os.walk`: follows links, but never into the same folder twice."""
    known: set[tuple[int, int]] = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        status = Path(place).stat()
        if (status.st_dev, status.st_ino) in known:
            folders.clear()
            continue
        known.add((status.st_dev, status.st_ino))
        yield Path(place), folders, names


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
    more = tuple(map(str, profile.more))
    size = sum(path.stat().st_size for path in (profile.main, *profile.more))
    main = Source(str(profile.main), folder=str(folder), size=size, more=more)
    return (main, *(Source(str(other), size=other.stat().st_size) for other in profile.others))


def _files_of_glob(pattern: str) -> Iterator[Source]:
    for name in sorted(glob.glob(pattern, recursive=True)):  # noqa: PTH207  unlike Path.glob it leaves hidden files out
        match = Path(name)
        yield from files_of_folder(match) if match.is_dir() else _file_or_members(match)


def files_of(path: str) -> Iterator[Source]:
    """Files that a path stands for: of a folder, a file or an archive, a glob."""
    place = Path(path)
    if place.is_dir():
        return files_of_folder(place)
    return _file_or_members(place) if place.exists() else _files_of_glob(path)


def _file_or_members(path: Path) -> Iterator[Source]:
    """A file found by searching; an archive gives its members instead."""
    if not path.is_file():
        if path.is_symlink() and not path.exists():
            yield Source(str(path))  # a link to nothing: reading it says so
        return
    if path.name.lower().endswith(TRACE_SUFFIXES):
        try:
            if is_archive(path):
                yield from members_of_archive(path)
                return
        except (InputError, OSError):
            pass  # reading it says why it cannot be read
    yield Source(str(path), size=path.stat().st_size)


def is_archive(path: str | Path) -> bool:
    """Does the file begin as a zip archive?"""
    with _opened(path) as file:
        return sniff(file.read(8)) is Kind.ZIP


def _opened(path: str | Path) -> IO[bytes]:
    text = str(path)
    return cast("IO[bytes]", RemoteFile(text, whole=False)) if is_remote(text) else Path(path).open("rb")


_MOST_MEMBERS = 1024
"""A small archive has room for so many that looking into each would take hours."""


def members_of_archive(path: str | Path) -> tuple[Source, ...]:
    """Files inside a zip archive, in the order of their names."""
    # Imported here: most inputs are no archives.
    import zipfile

    try:
        with _opened(path) as file, zipfile.ZipFile(file) as archive:
            found = [entry for entry in archive.infolist() if not entry.is_dir()]
            overlap = sum(entry.compress_size for entry in found) > file.seek(0, os.SEEK_END)
            entries = sorted((entry.filename, entry.file_size) for entry in found)
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError) as error:
        raise InputError(
            "{path}: this zip archive is damaged or incomplete ({error}); copy it again", shown(str(path)), error
        ) from error
    if overlap:
        raise InputError("{path}: files in this zip archive overlap; unpack what is to be read", shown(str(path)))
    if len(entries) > _MOST_MEMBERS:
        raise InputError(
            "{path}: holds {count} files; of archives with more than {most}, unpack what is to be read",
            shown(str(path)),
            f"{len(entries):,}",
            f"{_MOST_MEMBERS:,}",
        )
    wanted = ((name, size) for name, size in entries if not name.startswith(_RESOURCE_FORKS))
    return tuple(
        Source(str(path), member=name, size=size) for name, size in wanted if not Path(name).name.startswith(".")
    )


_OWN_FILES = frozenset({"report.json", "tables.json"})
"""What this tool itself leaves beside recordings."""
_GLOB_CHARACTERS = frozenset("*?[")


class Skipped(NamedTuple):
    """A file of a searched folder or archive that is no trace."""

    name: str
    """What a user calls it."""
    inside: str
    """The same without the folder or archive that was searched."""
    reason: str
    """Empty where the name says it."""

    @property
    def text(self) -> str:
        """Its name where it was searched, with the reason in brackets."""
        return f"{self.inside} ({self.reason})" if self.reason else self.inside


class Selection(NamedTuple):
    """The sources found, and the files of searched folders and archives skipped as no traces."""

    sources: tuple[Source, ...]
    skipped: tuple[Skipped, ...] = ()


def expand(paths: Sequence[str], *, required: bool = True) -> Selection:
    """Find the traces behind the paths a user gave.

    A file that is named is taken as it is; a folder, a glob or an archive is searched for traces, and what is not one
    is skipped. The order is that of the paths, sorted inside a folder; a file is taken once.

    Raises:
        InputError: A path does not exist, cannot be read, or holds no trace although one is `required`.
    """
    if "" in paths:
        # `Path("")` would be the current folder.
        raise InputError("a path is empty; was it a variable that is not set?")
    found: dict[tuple[str, str], Source] = {}
    skipped: list[Skipped] = []
    for path in paths:
        sources, others = (_expand_remote if is_remote(path) else _expand_one)(path, required=required)
        for source in sources:
            found.setdefault((place_of(source.path), source.member), source)
        skipped += others
    return Selection(tuple(found.values()), tuple(skipped))


def place_of(path: str) -> str:
    """What is the same for all paths of a file."""
    return path if is_remote(path) else os.path.realpath(path)


def remote_files(text: str) -> tuple[Phrase | None, tuple[Source, ...]]:
    """What was searched behind an address, None if it names a file, and the files; an Ascend profile is one of them.

    Raises:
        InputError: Nothing is there, or it cannot be asked.
    """
    place = look(text)
    if place.what == "file":
        return None, tuple(Source(one.path, size=one.size) for one in place.files)
    found: dict[str, Source] = {}
    for one in place.files:
        profile, mark, _ = one.path.rpartition(f"/{OUTPUT}/")
        source = Source(profile, folder=profile, size=0) if mark else Source(one.path, size=one.size)
        known = found.get(source.path, source)
        found[source.path] = known._replace(size=(known.size or 0) + (one.size or 0)) if mark else known
    # Of what else lies in the folder of a profile its reader knows more.
    profiles = tuple(f"{each.folder}/" for each in found.values() if each.folder)
    files = [each for each in found.values() if each.folder or not each.path.startswith(profiles)]
    wanted = [each for each in files if not each.folder and each.path.lower().endswith(TRACE_SUFFIXES)]
    if len(wanted) > 1:
        # Imported here, as below: a look at the beginning of each, many at a time, is remembered.
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            deque(pool.map(_beginning, wanted), 0)
    return glob_or_folder(place), tuple(files)


_AT_A_TIME = 16
_FRESH_NS = 2_000_000_000
"""A file that was changed so little ago may change again without its times telling."""


@lru_cache(1 << 16)
def _beginning(source: Source, *_state: int) -> Kind | InputError:
    try:
        return sniff(read_head(source), source.name)
    except InputError as error:
        return error


def kind_of(source: Source) -> Kind:
    """What a source is by its beginning, which is read once, unless the file has changed or is just being written.

    Raises:
        InputError: It cannot be read.
    """
    state: tuple[int, ...] = ()
    if not is_remote(source.path):
        try:
            file = os.stat(source.path)  # noqa: PTH116  of thousands
        except (OSError, ValueError):
            return sniff(read_head(source), source.name)
        state = file.st_size, file.st_mtime_ns, file.st_ctime_ns, file.st_ino
        if abs(time.time_ns() - file.st_ctime_ns) < _FRESH_NS:
            return sniff(read_head(source), source.name)
    found = _beginning(source, *state)
    if isinstance(found, InputError):
        raise found
    return found


def _expand_remote(text: str, *, required: bool) -> tuple[list[Source], list[Skipped]]:
    searched, files = remote_files(text)
    if searched is None and files[0].size == 0:
        raise explain(Kind.EMPTY, files[0].name)
    with told(text):
        plain = searched is None and not is_archive(text)
    if plain:
        return list(files), []
    inside = (
        one
        for each in files
        for one in (members_of_archive(each.path) if searched is None or each.path.endswith(".zip") else (each,))
    )
    return _searched(shown(text), searched or Phrase("archive"), inside, required=required)


def _expand_one(text: str, *, required: bool) -> tuple[list[Source], list[Skipped]]:
    if text == STDIN:
        return [Source(STDIN)], []
    path = Path(text)
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            if not may_look_into(path):
                raise no_permission(text)
            return _searched(text, Phrase("folder"), files_of_folder(path), required=required)
        if stat.S_ISREG(status.st_mode):
            return _named_file(path, status.st_size, required=required)
    except (FileNotFoundError, NotADirectoryError):
        if _GLOB_CHARACTERS.isdisjoint(text):
            raise not_found(path) from None
        return _searched(text, Phrase("glob"), _files_of_glob(text), required=required)
    except PermissionError:
        raise no_permission(text) from None
    except (OSError, ValueError) as error:
        raise InputError("{text}: cannot be read: {why}", text, getattr(error, "strerror", None) or error) from error
    if stat.S_ISFIFO(status.st_mode):
        return [Source(text)], []
    raise InputError("{text}: this is a device or a socket, not a file", text)


def _named_file(path: Path, size: int, *, required: bool) -> tuple[list[Source], list[Skipped]]:
    if size == 0:
        raise explain(Kind.EMPTY, str(path))
    if is_archive(path):
        return _searched(str(path), Phrase("archive"), members_of_archive(path), required=required)
    return [Source(str(path), size=size)], []


def _searched(
    place: str, what: str, candidates: Iterable[Source], *, required: bool
) -> tuple[list[Source], list[Skipped]]:
    # Imported here: named files are read without it.
    from traceanalyze.readers.plugin import wants

    sources: list[Source] = []
    skipped: list[Skipped] = []
    for candidate in candidates:
        reason = _why_not(candidate)
        if reason is None or wants(candidate):
            sources.append(candidate)
        else:
            skipped.append(Skipped(candidate.name, candidate.name.removeprefix(place).lstrip("/!"), reason))
    if not sources and required:
        raise nothing_found(place, what, [one.text for one in skipped])
    return sources, skipped


def _why_not(source: Source) -> str | None:
    """Why a file found by searching is skipped (empty if its name says it); None for a trace."""
    if source.folder:
        return None
    name = source.member or source.path
    if not source.member and os.path.isdir(source.path):  # noqa: PTH112  never an error, whatever may be read
        return "no permission to look into this folder"
    if not source.member and is_database(Path(name).name):
        return None
    if not name.lower().endswith(TRACE_SUFFIXES) or Path(name).name in _OWN_FILES:
        return ""
    try:
        kind = kind_of(source)
    except InputError as error:
        return str(error).removeprefix(f"{source.name}: ")
    return None if kind is Kind.TRACE else _no_trace(source, kind)


def _no_trace(source: Source, kind: Kind) -> str:
    """What it is instead; of the list of a recording's files only why it cannot be used."""
    name = Path(source.path).name
    if not source.member and RUN_LIST.fullmatch(name):
        try:
            found = read_run_list(Path(source.path))
        except InputError as error:
            return str(error)
        if found is not None or name == "run.json":
            return ""
    return kind.name.lower().replace("_", " ")
