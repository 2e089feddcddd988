"""Gzip to text at full speed, for sound files; at the first sign of damage the forgiving way takes over.

Two routes because the fast one (which also lets other threads run while it inflates) loses the text it was working on
when it meets damage, and cannot say where.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, cast

from isal import igzip, isal_zlib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from traceanalyze.readers.stored import StoredBytes

_BLOCK = 1 << 18
_DAMAGE = (EOFError, OSError, cast("type[Exception]", isal_zlib.IsalError))


class _Joined:
    """The bytes already read of a file, and then the rest of it, as the decompressor asks for them."""

    def __init__(self, first: bytes, rest: StoredBytes) -> None:
        self._first = memoryview(first)
        self._rest = rest

    def readinto(self, buffer: memoryview) -> int:
        if not self._first:
            return self._rest.readinto(memoryview(buffer))
        count = min(len(buffer), len(self._first))
        buffer[:count] = self._first[:count]
        self._first = self._first[count:]
        return count

    def read(self, count: int) -> bytes:
        buffer = bytearray(count)
        return bytes(buffer[: self.readinto(memoryview(buffer))])


def inflate_quickly(first: bytes, rest: StoredBytes, forgiving: Callable[[], Iterator[bytes]]) -> Iterator[bytes]:
    """Text of all members of a gzip file, block by block.

    Args:
        first: The beginning of the file.
        rest: The file from there on.
        forgiving: The text from the very beginning, by the route that survives damage.
    """
    given = 0
    file = igzip.IGzipFile(fileobj=cast(IO[bytes], _Joined(first, rest)), mode="rb")
    try:
        while block := file.read(_BLOCK):
            given += len(block)
            yield block
    except _DAMAGE:
        pass
    else:
        return
    for block in forgiving():
        known = min(given, len(block))
        given -= known
        if known < len(block):
            yield block[known:]
