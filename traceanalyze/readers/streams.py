"""The text of one source as a stream of bytes, whatever it is packed in; content decides, never the name."""

import os
import queue
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self, cast

from traceanalyze.errors import InputError, Phrase
from traceanalyze.model.patterns import regex
from traceanalyze.readers.detect import GZIP_MAGIC, HEAD_BYTES, ZSTD_MAGIC
from traceanalyze.readers.inflate import Gunzip, Inflation, Joined, Readable, inflate, unzstd
from traceanalyze.readers.remote import RemoteFile, is_remote
from traceanalyze.readers.source import STDIN, Source, no_permission

if TYPE_CHECKING:
    from traceanalyze.readers.scan.result import Part, Read

_BATCH_BYTES = 1 << 20
_BATCHES_AHEAD = 4


class Background:
    """Iterates over the blocks of another iterator, which runs in a thread a few batches ahead.

    An exception of the other iterator is raised here, after the blocks before it. The thread ends with `close`.
    """

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._ready: queue.Queue[list[bytes] | BaseException] = queue.Queue(_BATCHES_AHEAD)
        self._closed = threading.Event()
        self._batch: Iterator[bytes] = iter(())
        self._thread = threading.Thread(target=self._work, name="traceanalyze-inflate", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        while (block := next(self._batch, None)) is None:
            if self._closed.is_set():
                raise StopIteration
            batch = self._ready.get()
            if isinstance(batch, BaseException):
                self._closed.set()
                raise batch
            self._batch = iter(batch)
        return block

    def close(self) -> None:
        """Stop the thread and wait for it; blocks not taken yet are dropped."""
        self._closed.set()
        while self._thread.is_alive():
            # A full queue may hold the thread up: make room until it meets the flag.
            while not self._ready.empty():
                self._ready.get_nowait()
            self._thread.join(0.01)

    def _work(self) -> None:
        try:
            batch, size = [], 0
            for block in self._blocks:
                if self._closed.is_set():
                    return
                batch.append(block)
                size += len(block)
                if size >= _BATCH_BYTES:
                    self._ready.put(batch)
                    batch, size = [], 0
            self._ready.put(batch)
            self._ready.put(StopIteration())
        except BaseException as error:  # it belongs to whoever reads the blocks
            self._ready.put(error)


_BLOCK = 1 << 18


def _one_list(paths: Sequence[str]) -> Iterator[bytes]:
    """The text of files that hold a JSON list each as that of one list."""
    yield b"["
    for path in paths:
        body = Path(path).read_bytes().strip().removeprefix(b"[").removesuffix(b"]").strip(b" \t\r\n,")
        yield body + (b"," if body else b"")
    yield b"]"


class StoredBytes:
    """Reads a source and counts what was read; an archive that is damaged ends early and says so in `fault`.

    Of a plain file also the bytes from `begin` to before `end` only.
    """

    def __init__(self, source: Source, *, whole: bool = True, begin: int = 0, end: int = sys.maxsize) -> None:
        self.consumed = 0
        self.fault: str | None = None
        self.packed: int | None = None
        """Of a member of an archive: how many bytes it has there."""
        self._name = source.name
        self._resources = ExitStack()
        self._file = self._open(source, whole=whole)
        self._most = end - begin
        if begin:
            cast("BinaryIO", self._file).seek(begin)
        self._buffer = memoryview(b"")

    def read(self, most: int = _BLOCK) -> bytes:
        """Some bytes, none at the end."""
        if len(self._buffer) < most:
            self._buffer = memoryview(bytearray(most))
        return bytes(self._buffer[: self.readinto(self._buffer[:most])])

    def readinto(self, buffer: memoryview) -> int:
        """Fill the beginning of `buffer`; the number of bytes, 0 at the end."""
        try:
            count = self._file.readinto(buffer[: self._most - self.consumed]) or 0
        except OSError as error:
            raise InputError("{name}: cannot be read: {why}", self._name, error.strerror or error) from error
        except Exception as error:
            import zipfile

            if not isinstance(error, zipfile.BadZipFile | EOFError | zlib.error):
                raise
            why = error if str(error) else Phrase("it ends early")
            self.fault = Phrase("the archive member is damaged after {count:,} bytes ({error})", self.consumed, why)
            return 0
        self.consumed += count
        return count

    def close(self) -> None:
        """Release the file; may be called twice."""
        self._resources.close()

    def _open(self, source: Source, *, whole: bool) -> Readable:
        if source.path == "-":
            return cast("Readable", sys.stdin.buffer)
        if source.member:
            return self._member(source)
        if source.more:
            return Joined(_one_list((source.path, *source.more)))
        if is_remote(source.path):
            return self._resources.enter_context(RemoteFile(source.path, whole=whole))
        try:
            return self._resources.enter_context(open(source.path, "rb", buffering=0))  # noqa: PTH123  any openable name
        except PermissionError as error:
            raise no_permission(self._name) from error
        except OSError as error:
            raise self._closed_after(error) from error

    def _member(self, source: Source) -> Readable:
        # Imported here, as below: most sources are no archives, and with zipfile come shutil, bz2 and lzma.
        import zipfile

        try:
            remote = is_remote(source.path)
            file: Any = self._resources.enter_context(RemoteFile(source.path, whole=True)) if remote else source.path
            archive = self._resources.enter_context(zipfile.ZipFile(file))
            self.packed = archive.getinfo(source.member).compress_size
            return cast("Readable", self._resources.enter_context(archive.open(source.member)))
        except PermissionError as error:
            raise no_permission(self._name) from error
        except (OSError, RuntimeError, ValueError, zipfile.BadZipFile) as error:
            raise self._closed_after(error) from error

    def _closed_after(self, error: Exception) -> InputError:
        self.close()
        return InputError("{name}: cannot be opened: {error}", self._name, error)


def cores() -> int:
    """Those that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


_PART_BYTES = 1 << 25
"""Parts of a file that threads read are not smaller."""
_EVENT = regex(rb'(?<=,)\s{0,256}\{\s{0,256}"(?:ph|name|cat|ts|pid|tid)"\s{0,256}:')


_FIRST_BYTES = 1 << 14
"""How much is read to see whether it is packed: where it is, the head is in it."""


class Stream:
    """Text of a source; `fault` and `trailing_bytes` are final at its end. Use it as a context manager."""

    def __init__(self, source: Source, *, progress: Callable[[int], None] | None, ahead: bool) -> None:
        self.text_bytes = 0
        """Bytes of text handed out so far."""
        self.name = source.name
        self._progress = progress
        self._inflation = Inflation()
        self._thread: Background | None = None
        self._source = source
        self._stored = StoredBytes(source, whole=ahead)
        self._end = sys.maxsize
        self._parts: list[StoredBytes] = []
        self._direct: Readable | None = None
        """What text is read from behind `head` where no thread does."""
        # What comes over a network is waited for in a thread, too.
        remote = ahead and is_remote(source.path)
        try:
            first = _at_least(_FIRST_BYTES, iter(partial(self._stored.read, _FIRST_BYTES), b""))
            self.compressed = bool(source.member) or first.startswith((GZIP_MAGIC, ZSTD_MAGIC))
            self._threaded = self.compressed or remote
            if not self._threaded:
                self._direct = self._stored
                first = _at_least(HEAD_BYTES, chain((first,), iter(self._stored.read, b"")))
            self._blocks = self._unpacked(first, ahead=ahead) if self._threaded else iter((first,))
            self.head = _at_least(HEAD_BYTES, self._blocks)
        except BaseException:
            self.close()
            raise
        self._pending = memoryview(self.head)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def insert(self, at: int, text: bytes) -> None:
        """Have more text at a place of `head`, before any is handed out."""
        self._pending = memoryview(self.head[:at] + text + self.head[at:])

    def swells(self, amount: int, room: int, most: int) -> bool:
        """Whether what was made of it so far is more than `room` and `most` times what it was packed in.

        Beyond 16 MiB twice as much: whoever records so much has a machine to read it.
        """
        packed = self.consumed if self._stored.packed is None else self._stored.packed
        return self.compressed and amount > room + most * (packed + max(packed - (1 << 24), 0))

    @property
    def consumed(self) -> int:
        """Bytes of the file as stored read so far."""
        return self._stored.consumed + sum(part.consumed for part in self._parts)

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
            self._progress(min(self.consumed, self._source.size or sys.maxsize))  # a part may be read twice
        buffer = buffer[: self._end - self.text_bytes]
        if self._direct and not self._pending:
            count = self._direct.readinto(buffer) or 0
            self.text_bytes += count
            return count
        while not self._pending and (block := next(self._blocks, None)) is not None:
            self._pending = memoryview(block)
        count = min(len(buffer), len(self._pending))
        buffer[:count] = self._pending[:count]
        self._pending = self._pending[count:]
        self.text_bytes += count
        return count

    def split(self) -> "Sequence[Part]":
        """Later parts of a plain file, for as many threads as there are cores; `readinto` ends where they begin."""
        size = self._source.size or 0
        count = min(cores(), size // _PART_BYTES)
        whole = self.text_bytes or len(self._pending) != len(self.head)
        if count < 2 or whole or self._threaded or self._source.more or self._source.path == STDIN:
            return ()
        # Imported when needed: most texts are no traces of that size.
        from traceanalyze.readers.scan.result import Part

        begins = list[int]()
        for place in (size * number // count for number in range(1, count)):
            with closing(StoredBytes(self._source, begin=place)) as window:
                found = _EVENT.search(window.read())
            begins += [place + found.start()] if found else []
        self._end = min(begins, default=self._end)
        root = "object" if self.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else "list"
        bounds = pairwise((*begins, sys.maxsize))
        return [Part(begin, root, partial(self._part, begin, end)) for begin, end in bounds]

    def _part(self, begin: int, end: int) -> "Read":
        self._parts.append(StoredBytes(self._source, begin=begin, end=end))
        return self._parts[-1].readinto

    def read(self) -> bytes:
        """All text that is left."""
        buffer, parts = memoryview(bytearray(1 << 20)), []
        while count := self.readinto(buffer):
            parts.append(bytes(buffer[:count]))
        return b"".join(parts)

    def close(self) -> None:
        """End the thread and release the file; may be called twice."""
        if self._thread:
            self._thread.close()
        for stored in (self._stored, *self._parts):
            stored.close()

    def _unpacked(self, first: bytes, *, ahead: bool) -> Iterator[bytes]:
        if first.startswith(GZIP_MAGIC) and self._source.size is not None and not ahead:
            source, parts = self._source, self._parts

            def again() -> Callable[[], bytes]:
                parts.append(StoredBytes(source))
                return parts[-1].read

            self._direct = text = Gunzip(Joined(iter((first,)), self._stored), again, self._inflation)
            return iter(text.read, b"")
        blocks: Iterator[bytes] = chain((first,), iter(self._stored.read, b""))
        for magic, unpack in ((GZIP_MAGIC, inflate), (ZSTD_MAGIC, unzstd)):
            if first.startswith(magic):
                blocks = unpack(partial(next, blocks, b""), self._inflation)
        if ahead:
            blocks = self._thread = Background(blocks)
        return blocks


def _at_least(count: int, blocks: Iterator[bytes]) -> bytes:
    joined = b""
    while len(joined) < count and (block := next(blocks, b"")):
        joined += block
    return joined


def open_stream(source: Source, progress: Callable[[int], None] | None = None, *, threads: bool = True) -> Stream:
    """Open the text of a source; a compressed file is inflated in a thread while its text is used.

    `progress` is called with the bytes of the stored file read so far, whenever text is read. Without `threads`, as
    where other cores are busy, only what comes over a network is waited for in one.
    """
    # A read from a pipe cannot be interrupted, so its inflation stays in this thread.
    ahead = source.size is not None and (threads or is_remote(source.path))
    return Stream(source, progress=progress, ahead=ahead)


def read_head(source: Source) -> bytes:
    """The first bytes of the text of a source."""
    with Stream(source, progress=None, ahead=False) as stream:
        return stream.head
