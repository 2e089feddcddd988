"""Results of recordings from run to run, in a folder, by all that they follow from: a hit is what analysing would give.

Where the folder cannot be used there is no cache, and a file that is damaged is no hit: nothing here ever fails.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, NamedTuple

import numpy as np

from traceanalyze import plugins
from traceanalyze.errors import Phrase
from traceanalyze.pipeline import parts
from traceanalyze.readers.ascend.folder import around
from traceanalyze.readers.remote import is_remote, stamp
from traceanalyze.readers.source import STDIN, Source
from traceanalyze.readers.sources import place_of, walk
from traceanalyze.version import __version__

MOST = 2 << 30
"""Bytes of a cache; what was not used for longest goes first."""
_ENDING = ".part"
_LEFT_BEHIND_S = 86_400
"""Seconds after which a file that is not complete is of a run that was killed."""


class Cache(NamedTuple):
    """A folder of parts by their keys."""

    folder: Path
    most: int = MOST

    def find(self, key: str) -> bytes | None:
        """A part that was kept; it counts as used now."""
        path = self._path(key)
        try:
            content = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        return content

    def keep(self, key: str, part: bytes) -> None:
        """Keep a part, if there is room; others see all of it or nothing.

        Nobody waits until it is on the disk: what a crash of the machine damages is made again.
        """
        hidden = self.folder / f".{os.urandom(8).hex()}{_ENDING}"
        with suppress(OSError):
            try:
                hidden.write_bytes(part)
                hidden.replace(self._path(key))
            except BaseException:
                hidden.unlink(missing_ok=True)
                raise

    def trim(self) -> None:
        """Delete the oldest-used parts of a cache that is too large."""
        try:
            with os.scandir(self.folder) as members:
                found = [(each.stat(), each.path) for each in members if each.name.endswith(_ENDING)]
        except OSError:
            return
        newest_first = sorted(((one.st_mtime, one.st_size, path) for one, path in found), reverse=True)
        total, now = 0, newest_first[0][0] if newest_first else 0.0
        for used, size, path in newest_first:
            total += size
            hidden = Path(path).name.startswith(".")
            if total > self.most or (hidden and used < now - _LEFT_BEHIND_S):
                # Another process has, or nobody but its owner may.
                with suppress(OSError):
                    Path(path).unlink()

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_ENDING}"


def open_cache(folder: str) -> Cache | Phrase:
    """The cache in a folder, in that of the user if it is empty; why there is none where it cannot be written."""
    try:
        place = Path(folder) if folder else default_folder()
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return Phrase("no cache: {path}: {why}", str(place), error.strerror)
    except (RuntimeError, ValueError) as error:
        return Phrase("no cache: {why}", str(error))
    if not os.access(place, os.W_OK | os.X_OK):
        return Phrase("no cache: {path} cannot be written", str(place))
    return Cache(place)


def default_folder() -> Path:
    """Where programs of this user keep what they could make again (XDG).

    Raises:
        RuntimeError: The user has no home.
    """
    stated = os.environ.get("XDG_CACHE_HOME", "")
    # A relative one is to be ignored.
    home = Path(stated) if os.path.isabs(stated) else Path.home() / ".cache"  # noqa: PTH117
    return home / "traceanalyze"


def digest_of(about: object) -> str | None:
    """What stands for all that is asked about recordings, and for the tool; None where it cannot be told."""
    if plugins.found().entries:
        return None
    try:
        return digest(parts.dumps((_tool(), about)))
    except (OSError, TypeError):
        return None


def key_of(source: Source, about: str | None) -> str | None:
    """What stands for a recording and what is asked about it; None where something unknown may change the answer."""
    # Of a folder elsewhere nothing tells whether its files changed.
    if about is None or source.path == STDIN or (source.folder and is_remote(source.path)):
        return None
    try:
        return digest(repr((place_of(source.path), source, _stamps(source), about)).encode())
    except OSError:
        return None


def digest(content: bytes) -> str:
    """A short name for some bytes, another for any others."""
    return blake2b(content, digest_size=20).hexdigest()


def _stamps(source: Source) -> tuple[tuple[object, ...], ...]:
    """Of every file that may be read for it: size and times, of which a program can set but one, and its identity."""
    if is_remote(source.path):
        return (stamp(source.path),)
    return tuple((str(path), *_stamp(path)) for path in _files(source))


def _stamp(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _files(source: Source) -> Iterator[Path]:
    path = Path(source.path)
    yield path
    yield from map(Path, source.more)
    profile = Path(source.folder) if source.folder else None
    if profile is not None:
        for place, folders, names in walk(profile):
            folders.sort()
            yield from (place / name for name in sorted(names))
    for folder in filter(Path.is_dir, around(path, profile)):
        yield from sorted(each for each in folder.iterdir() if each.is_file())


@cache
def _tool() -> tuple[object, ...]:
    """The tool and what it computes with; of the tool every file, as a developer does not count versions."""
    package = Path(__file__).parents[1]
    code = sorted(
        (entry.path, entry.stat().st_size, entry.stat().st_mtime_ns)
        for place, _, _ in os.walk(package)
        for entry in os.scandir(place)
        if entry.name.endswith((".py", ".so", ".dylib"))
    )
    return __version__, sys.version, np.__version__, digest(repr(code).encode())


_IN_MEMORY = 1 << 20
"""Bytes up to which a spool needs no file."""


class Spool:
    """What is seldom looked at again: in memory while it is little, else in a file without a name."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  closed when none of it can be asked for
        self.shared: dict[Any, Any] = {}
        """What the summaries have in common (`parts.loads`)."""

    def __del__(self) -> None:
        """Without a word: nobody else knows of the file."""
        self._file.close()

    def add(self, content: bytes) -> Callable[[], bytes]:
        """Put something away; what gives it back."""
        try:
            start = self._file.seek(0, os.SEEK_END)
            self._file.write(content)
            # Where no room is left it says so here, not when the file is closed.
            self._file.flush()
        except OSError:
            return BytesIO(content).getvalue
        return partial(self._read, start, len(content))

    def _read(self, start: int, size: int) -> bytes:
        self._file.seek(start)
        return self._file.read(size)
