"""The bytes of a source as stored: a file, standard input, or a member of a zip archive."""

from __future__ import annotations

import sys
import zlib
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol, cast

from traceanalyze.errors import InputError
from traceanalyze.readers.hints import no_permission

if TYPE_CHECKING:
    from traceanalyze.readers.source import Source

_BLOCK = 1 << 18


class _Readable(Protocol):
    def readinto(self, buffer: memoryview, /) -> int | None: ...


class StoredBytes:
    """Reads a source and counts what was read; an archive that is damaged ends early and says so in `fault`."""

    def __init__(self, source: Source) -> None:
        self.consumed = 0
        self.fault: str | None = None
        self._name = source.name
        self._resources = ExitStack()
        self._file = self._open(source)
        self._buffer = memoryview(bytearray(_BLOCK))

    def read(self) -> bytes:
        """Some bytes, none at the end."""
        return bytes(self._buffer[: self.readinto(self._buffer)])

    def readinto(self, buffer: memoryview) -> int:
        """Fill the beginning of `buffer`; the number of bytes, 0 at the end."""
        try:
            count = self._file.readinto(buffer) or 0
        except OSError as error:
            raise InputError(f"{self._name}: cannot be read: {error.strerror or error}") from error
        except Exception as error:
            if not _damaged(error):
                raise
            self.fault = f"the archive member is damaged after {self.consumed:,} bytes ({error or 'it ends early'})"
            return 0
        self.consumed += count
        return count

    def close(self) -> None:
        """Release the file; may be called twice."""
        self._resources.close()

    def _open(self, source: Source) -> _Readable:
        if source.path == "-":
            return cast(_Readable, sys.stdin.buffer)
        if source.member:
            return self._member(source)
        try:
            return self._resources.enter_context(open(source.path, "rb", buffering=0))  # noqa: PTH123  any openable name
        except PermissionError as error:
            raise no_permission(self._name) from error
        except OSError as error:
            raise self._closed_after(error) from error

    def _member(self, source: Source) -> _Readable:
        # Imported here, as below: most sources are no archives, and with zipfile come shutil, bz2 and lzma.
        import zipfile

        try:
            archive = self._resources.enter_context(zipfile.ZipFile(source.path))
            return cast(_Readable, self._resources.enter_context(archive.open(source.member)))
        except PermissionError as error:
            raise no_permission(self._name) from error
        except (OSError, RuntimeError, zipfile.BadZipFile) as error:
            raise self._closed_after(error) from error

    def _closed_after(self, error: Exception) -> InputError:
        self.close()
        return InputError(f"{self._name}: cannot be opened: {error}")


def _damaged(error: Exception) -> bool:
    """Whether a member of an archive could not be unpacked."""
    import zipfile

    return isinstance(error, zipfile.BadZipFile | EOFError | zlib.error)
