"""Zstandard to text, forgiving as `inflate`: what can be read is given, what is wrong is written down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import zstandard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from traceanalyze.readers.inflate import Inflation

_BLOCK = 1 << 18
_WINDOW = 1 << 31
"""Largest window accepted, `zstd --long=31`; a stream may not ask for more memory."""


class _Stored:
    """The compressed bytes as the decompressor asks for them."""

    def __init__(self, read: Callable[[], bytes]) -> None:
        self._read = read
        self._left = memoryview(b"")

    def read(self, size: int) -> bytes:
        """Some bytes, `size` at most; none at the end only."""
        if not self._left:
            self._left = memoryview(self._read())
        piece, self._left = self._left[:size], self._left[size:]
        return bytes(piece)


def unzstd(read: Callable[[], bytes], report: Inflation) -> Iterator[bytes]:
    """Text of all frames of a file, in blocks of bounded size however much a frame expands.

    Args:
        read: Gives the next compressed bytes, none at the end.
        report: Filled while reading. A stream that ends early is told by the text it cuts.
    """
    decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    stream = decompressor.stream_reader(_Stored(read), read_size=_BLOCK, read_across_frames=True)  # type: ignore[arg-type]
    while True:
        try:
            block = stream.read(_BLOCK)
        except zstandard.ZstdError as error:
            report.fault = f"the zstd stream is damaged after {report.text_bytes:,} bytes of text ({error})"
            return
        if not block:
            return
        report.text_bytes += len(block)
        yield block
