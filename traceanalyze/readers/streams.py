"""The text of one source as a stream of bytes, whatever it is packed in; content decides, never the name."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Self

from traceanalyze.readers.background import Background
from traceanalyze.readers.detect import GZIP_MAGIC, HEAD_BYTES, ZSTD_MAGIC
from traceanalyze.readers.inflate import Inflation, inflate
from traceanalyze.readers.stored import StoredBytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from traceanalyze.readers.source import Source


class Stream:
    """Text of a source; `fault` and `trailing_bytes` are final at its end. Use it as a context manager."""

    def __init__(self, source: Source, *, progress: Callable[[int], None] | None, ahead: bool) -> None:
        self.text_bytes = 0
        """Bytes of text handed out so far."""
        self._progress = progress
        self._inflation = Inflation()
        self._thread: Background | None = None
        self._stored = StoredBytes(source)
        try:
            first = _at_least(HEAD_BYTES, iter(self._stored.read, b""))
            self.compressed = bool(source.member) or first.startswith((GZIP_MAGIC, ZSTD_MAGIC))
            self._blocks = self._unpacked(first, ahead=ahead) if self.compressed else iter((first,))
            self.head = _at_least(HEAD_BYTES, self._blocks)
        except BaseException:
            self.close()
            raise
        self._pending = memoryview(self.head)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def consumed(self) -> int:
        """Bytes of the file as stored read so far."""
        return self._stored.consumed

    @property
    def fault(self) -> str | None:
        """What was wrong with the packing, for example that the gzip stream ends early; None if nothing was."""
        return self._inflation.fault or self._stored.fault

    @property
    def trailing_bytes(self) -> int:
        """Bytes after the compressed text that are neither text nor padding."""
        return self._inflation.trailing_bytes

    def readinto(self, buffer: memoryview) -> int:
        """Fill the beginning of `buffer` with text; the number of bytes, 0 at the end."""
        if self._progress:
            self._progress(self._stored.consumed)
        while not self._pending:
            block = next(self._blocks, None)
            if block is None:
                count = 0 if self.compressed else self._stored.readinto(buffer)
                self.text_bytes += count
                return count
            self._pending = memoryview(block)
        count = min(len(buffer), len(self._pending))
        buffer[:count] = self._pending[:count]
        self._pending = self._pending[count:]
        self.text_bytes += count
        return count

    def close(self) -> None:
        """End the thread and release the file; may be called twice."""
        if self._thread:
            self._thread.close()
        self._stored.close()

    def _unpacked(self, first: bytes, *, ahead: bool) -> Iterator[bytes]:
        blocks: Iterator[bytes] = chain((first,), iter(self._stored.read, b""))
        if first.startswith(GZIP_MAGIC):
            stored = blocks
            blocks = inflate(lambda: next(stored, b""), self._inflation)
        elif first.startswith(ZSTD_MAGIC):
            from traceanalyze.readers.unzstd import unzstd

            packed = blocks
            blocks = unzstd(lambda: next(packed, b""), self._inflation)
        if ahead:
            blocks = self._thread = Background(blocks)
        return blocks


def _at_least(count: int, blocks: Iterator[bytes]) -> bytes:
    """Join blocks until there are `count` bytes, or no more blocks."""
    joined = b""
    while len(joined) < count and (block := next(blocks, b"")):
        joined += block
    return joined


def open_stream(source: Source, progress: Callable[[int], None] | None = None) -> Stream:
    """Open the text of a source; a compressed file is inflated in a thread while its text is used.

    Args:
        source: What to read.
        progress: Called with the bytes of the stored file read so far, whenever text is asked for.
    """
    # A read from a pipe cannot be interrupted, so its inflation stays in this thread.
    return Stream(source, progress=progress, ahead=source.size is not None)


def read_head(source: Source) -> bytes:
    """The first bytes of the text of a source."""
    with Stream(source, progress=None, ahead=False) as stream:
        return stream.head
