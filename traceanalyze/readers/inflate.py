"""Gzip and zstd to text, forgiving: what can be read is given, what is wrong is written down."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol, cast

from isal import igzip_lib, isal_zlib

from traceanalyze.readers.detect import GZIP_MAGIC

_LONGEST_PIECE = 1 << 16
_SHORTEST_PIECE = 1 << 8
_BLOCK = 1 << 18
_Damaged = cast("type[Exception]", igzip_lib.error)
_HCRC, _EXTRA, _NAME, _COMMENT = 2, 4, 8, 16


@dataclass(slots=True)
class Inflation:
    """How it went; complete when the text has been read to its end."""

    text_bytes: int = 0
    fault: str | None = None
    trailing_bytes: int = 0
    """Bytes after the last gzip member that are not zero padding."""
    quick_bytes: int = 0
    """Bytes of text that `Gunzip` gave before something was wrong."""

    @property
    def known(self) -> int:
        """Bytes of text that there are, whoever gave more of it."""
        return max(self.text_bytes, self.quick_bytes)


class Readable(Protocol):
    """What fills the beginning of a buffer and tells with how many bytes, 0 at the end."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill it."""


class Joined:
    """Blocks of bytes as a file, which goes on with what is `behind` them."""

    def __init__(self, blocks: Iterator[bytes], behind: Readable | None = None) -> None:
        self._blocks, self._behind, self._rest = blocks, behind, memoryview(b"")

    def read(self) -> bytes:
        """Some bytes, none at the end. What has no such method is no file to isal, though it never calls it."""
        rest, self._rest = bytes(self._rest), memoryview(b"")
        return rest or next(self._blocks, b"")

    def readinto(self, buffer: memoryview) -> int:
        """Fill the beginning of `buffer`; the number of bytes, 0 at the end."""
        while not self._rest and (block := next(self._blocks, None)) is not None:
            self._rest = memoryview(block)
        if not self._rest and self._behind:
            return self._behind.readinto(buffer) or 0
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


class Gunzip:
    """Text of a gzip file in three quarters of the time of `inflate`, which goes on where something is wrong with it.

    It saves copies: from a thread to another it would take none. `again` opens the file anew, from its beginning.
    """

    def __init__(self, packed: Readable, again: Callable[[], Callable[[], bytes]], report: Inflation) -> None:
        # Of isal the one that writes into the buffer of whoever asks.
        self._text: Readable = isal_zlib._GzipReader(cast("BinaryIO", packed), _LONGEST_PIECE)
        self._again, self._report = again, report

    def read(self) -> bytes:
        """Some bytes, none at the end."""
        block = memoryview(bytearray(_LONGEST_PIECE))
        return bytes(block[: self.readinto(block)])

    def readinto(self, buffer: memoryview) -> int:
        """Fill the beginning of `buffer`; the number of bytes, 0 at the end."""
        try:
            count = self._text.readinto(buffer) or 0
        except (EOFError, OSError, OverflowError, _Damaged):
            self._text = Joined(_behind(self._report.quick_bytes, inflate(self._again(), self._report)))
            return self._text.readinto(buffer)
        self._report.quick_bytes += count
        return count


def _behind(count: int, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """What is left of blocks behind so many bytes."""
    for block in blocks:
        if count < len(block):
            yield block[count:]
        count = max(count - len(block), 0)


class _Input:
    """The compressed bytes, with as many of them at hand as are needed."""

    def __init__(self, read: Callable[[], bytes]) -> None:
        self._read = read
        self._data = memoryview(b"")
        self.taken = 0

    def peek(self, count: int) -> bytes:
        """The next `count` bytes, fewer at the end."""
        while len(self._data) < count and (block := self._read()):
            self._data = memoryview(bytes(self._data) + block)
        return bytes(self._data[:count])

    def take(self, count: int) -> memoryview:
        """Some bytes, `count` at most; none at the end only."""
        if not self._data:
            self._data = memoryview(self._read())
        piece = self._data[:count]
        self._data = self._data[count:]
        self.taken += len(piece)
        return piece

    def read(self, count: int) -> bytes:
        """The same as bytes, for a decompressor that asks for them itself."""
        return bytes(self.take(count))

    def give_back(self, unused: bytes) -> None:
        """Put the end of the last piece back."""
        self._data = memoryview(unused + bytes(self._data))
        self.taken -= len(unused)


def inflate(read: Callable[[], bytes], report: Inflation) -> Iterator[bytes]:
    """Text of all members of a gzip file, block by block.

    A file that ends early or is damaged gives its text up to there; how it went is in `report`. After damage the last
    piece handed to the decompressor is lost, which is never more than an eighth of what was read before it or 256
    bytes. Zero padding after a member is fine; anything else there is only counted. `read` gives the next compressed
    bytes, none at the end.
    """
    source = _Input(read)
    while source.peek(2) == GZIP_MAGIC:
        if not _skip_header(source):
            report.fault = _ends_early(report)
            return
        yield from _member(source, report)
        if report.fault:
            return
        while source.peek(1) == b"\0":
            source.take(1)
    while piece := source.take(_LONGEST_PIECE):
        report.trailing_bytes += len(piece)


def _member(source: _Input, report: Inflation) -> Iterator[bytes]:
    # Of isal's three decompressors the one that lets other threads run; blocks this small stay in the cache.
    body = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE)
    checksum = length = 0
    while not body.eof:
        size = min(_LONGEST_PIECE, max(_SHORTEST_PIECE, source.taken // 8))
        piece = source.take(size) if body.needs_input else memoryview(b"")
        if body.needs_input and not piece:
            report.fault = _ends_early(report)
            return
        try:
            text = body.decompress(piece, _BLOCK)
        except _Damaged:
            report.fault = f"the gzip stream is damaged after {report.known:,} bytes of text"
            return
        checksum = isal_zlib.crc32(text, checksum)
        length += len(text)
        report.text_bytes += len(text)
        if text:
            yield text
    source.give_back(body.unused_data)
    trailer = source.peek(8)
    source.take(8)
    if len(trailer) < 8:
        report.fault = _ends_early(report)
    elif trailer != checksum.to_bytes(4, "little") + (length & 0xFFFFFFFF).to_bytes(4, "little"):
        report.fault = f"the gzip checksum does not match the {report.known:,} bytes of text before it"


def _skip_header(source: _Input) -> bool:
    """Pass the header of a member; False if the file ends in it."""
    fixed = source.peek(10)
    complete = _skip(source, 10)
    flags = fixed[3] if complete else 0
    if flags & _EXTRA:
        size = source.peek(2)
        complete &= _skip(source, 2) and _skip(source, int.from_bytes(size, "little"))
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            while source.peek(1) not in {b"\0", b""}:
                source.take(1)
            complete &= _skip(source, 1)
    if flags & _HCRC:
        complete &= _skip(source, 2)
    return complete


def _skip(source: _Input, count: int) -> bool:
    there = len(source.peek(count)) == count
    while count > 0 and (piece := source.take(count)):
        count -= len(piece)
    return there


def _ends_early(report: Inflation) -> str:
    return f"the gzip stream ends early, after {report.known:,} bytes of text"


_WINDOW_LOG = 31
"""Largest window accepted, `zstd --long=31`; a stream may not ask for more memory."""


def unzstd(read: Callable[[], bytes], report: Inflation) -> Iterator[bytes]:
    """Text of all frames of a file, as `inflate` gives it, in blocks of bounded size however much a frame expands.

    A stream that ends early is known by the text it cuts.
    """
    # Imported here: most recordings are packed another way.
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    limits = {int(zstd.DecompressionParameter.window_log_max): _WINDOW_LOG}
    frame, packed = zstd.ZstdDecompressor(options=limits), b""
    while True:
        if frame.eof:
            frame, packed = zstd.ZstdDecompressor(options=limits), frame.unused_data
        if frame.needs_input and not packed and not (packed := read()):
            return
        try:
            block = frame.decompress(packed, _BLOCK)
        except zstd.ZstdError as error:
            report.fault = f"the zstd stream is damaged after {report.known:,} bytes of text ({error})"
            return
        packed = b""
        if block:
            report.text_bytes += len(block)
            yield block
