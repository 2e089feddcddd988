"""Files that are not on this machine, `s3://bucket/run/`, by fsspec; nothing of it is imported for other paths.

Credentials are those that fsspec and what it stands on find by themselves. Addresses are shown without what may be one,
and of errors only their kind, as their texts may hold an address.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from traceanalyze.errors import InputError, Phrase
from traceanalyze.model.patterns import regex

_SCHEME = regex(r"([a-z][a-z0-9+]+)://", re.IGNORECASE)
_USER = regex(r"(?<=://)[^/@]*@")
_WEB = frozenset({"http", "https"})
_GLOB = frozenset("*?[")
HEAD = 1 << 18
"""Bytes asked for at a time where only the beginning is wanted."""
_BLOCK = 1 << 23
"""The same of a file that is read to its end: less would wait for the network more often."""
_PATIENCE_S = 60
"""Seconds without a byte from a web server; other storages have clients of their own, which know when to give up."""


def is_remote(path: str) -> bool:
    """Whether a path is an address; a letter alone is a drive of Windows."""
    return _SCHEME.match(path) is not None


def shown(path: str) -> str:
    """A path as it may be seen: an address without user, password and signature."""
    if not is_remote(path):
        return path
    scheme = path.partition("://")[0].lower()
    # Azure names a container so.
    plain = path if scheme in {"abfs", "abfss"} else _USER.sub("", path, count=1)
    return plain.partition("?")[0].partition("#")[0] if scheme in _WEB else plain


class Found(NamedTuple):
    """Where a file lies, and its bytes, None where nobody knows."""

    path: str
    size: int | None


class Place(NamedTuple):
    """What is behind an address."""

    what: str
    """file, folder or glob"""
    files: tuple[Found, ...]


def look(path: str) -> Place:
    """The file at an address, or those below a folder or of a glob, without hidden ones.

    Raises:
        InputError: Nothing is there, or it cannot be asked.
    """
    with told(path):
        system, inside = _system(path)
        if not _GLOB.isdisjoint(shown(path)):
            found = system.glob(inside, detail=True).values()
            files = [one for each in found for one in _below(system, each)]
            return Place("glob", _in_order(path, files, ""))
        about = system.info(inside)
        # Of the web a page of links is a folder.
        folder = {"type": "directory", "name": inside} if inside.endswith("/") else about
        if folder["type"] == "file":
            return Place("file", (Found(path, about.get("size")),))
        files = [each if each.get("size") else system.info(each["name"]) for each in _below(system, folder)]
        return Place("folder", _in_order(path, files, inside))


def _below(system: Any, about: dict[str, Any]) -> list[dict[str, Any]]:
    return [about] if about["type"] == "file" else [*system.find(about["name"], detail=True).values()]


def _in_order(path: str, files: list[dict[str, Any]], folder: str) -> tuple[Found, ...]:
    """In the order of their folders, as on a disk."""
    scheme = path.partition("://")[0]
    start = folder.strip("/")
    found = []
    for each in files:
        name = str(each["name"])
        own = name.strip("/").removeprefix(start).split("/")
        if not any(part.startswith(".") for part in own):
            address = name if is_remote(name) else f"{scheme}://{name.lstrip('/')}"
            found.append(((tuple(own[:-1]), own[-1]), Found(address, each.get("size"))))
    return tuple(one for _, one in sorted(found))


def stamp(path: str) -> tuple[str, ...]:
    """What changes whenever the file does, as far as its storage tells: size, ETag, time.

    Raises:
        OSError: It tells nothing but its size.
    """
    try:
        system, inside = _system(path)
        about = system.info(inside)
        names = ("ETag", "etag", "md5Hash", "crc32c", "generation", "blob_id", "LastModified", "last_modified", "mtime")
        told = {name: str(about[name]) for name in names if about.get(name)}
    except Exception as error:
        raise OSError(_kind(error)) from None
    if not told:
        raise OSError("no stamp")
    return str(about.get("size")), *(f"{name}={value}" for name, value in sorted(told.items()))


class RemoteFile(io.RawIOBase):
    """A file that is read from its beginning to its end, mostly; its errors are `OSError` without any address."""

    def __init__(self, path: str, *, whole: bool) -> None:
        with told(path):
            system, inside = _system(path)
            self._file = system.open(inside, "rb", block_size=_BLOCK if whole else HEAD)

    def readinto(self, buffer: Any, /) -> int:
        """Fill the beginning of `buffer`; the number of bytes, 0 at the end."""
        try:
            found = self._file.read(len(buffer))
        except Exception as error:
            raise OSError(0, _kind(error)) from None
        buffer[: len(found)] = found
        return len(found)

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """Whether its storage gives any part of it."""
        return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go somewhere else."""
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """Where it is."""
        return int(self._file.tell())

    def close(self) -> None:
        """Give it back."""
        if not self.closed:
            self._file.close()
        super().close()


@contextmanager
def local_copy(folder: str) -> Iterator[Path]:
    """A folder on this machine while it is needed, for what is many files that know each other (Ascend)."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="traceanalyze-") as temporary:
        names = PurePath(folder.partition("://")[2]).parts[-2:]
        place = Path(temporary, *names)
        place.parent.mkdir(parents=True, exist_ok=True)
        with told(folder):
            system, inside = _system(folder)
            system.get(inside.rstrip("/") + "/", str(place) + "/", recursive=True)
        yield place


@cache
def _check(scheme: str) -> None:
    """Make sure that the packages for a storage are there, and that they say nothing by themselves."""
    import logging

    for name in ("adlfs", "azure", "fsspec", "gcsfs", "s3fs"):
        # What fails is told in one line, without addresses; a program that wants their logs has handlers of its own.
        logging.getLogger(name).addHandler(logging.NullHandler())
    try:
        import fsspec
    except ImportError:
        raise InputError("{scheme}:// needs fsspec: pip install 'traceanalyze[remote]'", scheme) from None
    try:
        fsspec.get_filesystem_class(scheme)
    except ImportError:
        raise InputError("{scheme}:// needs another package: pip install 'traceanalyze[remote]'", scheme) from None
    except ValueError:
        raise InputError("{scheme}:// is no storage that fsspec knows", scheme) from None


def _system(path: str) -> tuple[Any, str]:
    """The storage, one client of it a process, and the path in it."""
    _check(path.partition("://")[0].lower())
    from fsspec.core import url_to_fs

    more: dict[str, Any] = {}
    if path.partition("://")[0].lower() in _WEB:
        from aiohttp import ClientTimeout

        # A file may take any time, but not without a byte of it.
        more["client_kwargs"] = {"timeout": ClientTimeout(total=None, sock_connect=_PATIENCE_S, sock_read=_PATIENCE_S)}
    system, inside = url_to_fs(path, **more)
    return system, str(inside) + ("/" if path.endswith("/") and not str(inside).endswith("/") else "")


@contextmanager
def told(path: str) -> Iterator[None]:
    """What goes wrong, in words that hold no secret."""
    name = shown(path)
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        # Of the web every answer but a file is one that was not found; behind it stands what came.
        cause = error.__cause__ if isinstance(error, FileNotFoundError) and error.__cause__ is not None else error
        status = getattr(cause, "status", None) or _code(cause)
        if isinstance(cause, PermissionError) or status in _DENIED:
            raise InputError("{path}: no permission; are the credentials of this storage set?", name) from None
        if isinstance(cause, FileNotFoundError) or status in _ABSENT:
            raise InputError("{path}: no such file or folder", name) from None
        raise InputError("{path}: cannot be read: {why}", name, _kind(cause)) from None


_DENIED, _ABSENT = frozenset({401, 403, "400", "ExpiredToken", "InvalidToken"}), frozenset({404, 410})
"""Answers of web servers, and of S3, which says 400 of expired credentials where there is no room for words."""


def _code(error: BaseException) -> object:
    """What an S3 server answered; s3fs keeps it behind an error of its own."""
    found = getattr(error.__cause__, "response", None)
    return found.get("Error", {}).get("Code") if isinstance(found, dict) else None


def _kind(error: BaseException) -> str:
    """What sort of error it is; its text may hold an address, but where it is from here."""
    if isinstance(error, OSError) and error.errno == 0:
        return str(error.strerror)
    status = getattr(error, "status", None)
    return f"{type(error).__name__} {status}" if isinstance(status, int) else type(error).__name__


def glob_or_folder(place: Place) -> Phrase:
    """What was searched."""
    return Phrase("glob") if place.what == "glob" else Phrase("folder")
