"""The text of a trace cut at the ends of its event list, block by block: what is added goes inside the list.

Brackets are counted outside of strings only, so the text must be well formed there; numbers, escapes, encodings and
white space are of no matter, and every byte of the text is passed on as it is.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

_QUOTE, _OPEN, _CLOSE = 1, 2, 3
_CLASS = np.zeros(256, np.uint8)
_CLASS[ord('"')] = _QUOTE
_CLASS[[ord("["), ord("{")]] = _OPEN
_CLASS[[ord("]"), ord("}")]] = _CLOSE
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_LIST_KEY = re.compile(rb'"traceEvents"[ \t\n\r]*:[ \t\n\r]*\Z')
_LOOK_BACK = 1024
_BLOCK = 1 << 20


class NoEventListError(ValueError):
    """The text has no event list, or the list has no end."""


class Part(Enum):
    """Where a piece of text stands: up to the bracket that opens the event list, inside it, from its end on."""

    BEFORE = 0
    EVENTS = 1
    AFTER = 2


class Brackets(NamedTuple):
    """Brackets outside of strings: where each stands in a piece of text, and how deep the text is after it."""

    place: NDArray[np.int64]
    depth: NDArray[np.int64]
    begin: int
    """Depth at the beginning of the piece; 0 is outside of the event list's root."""


class _Counter:
    """Depth of nesting over the blocks of a text, each of which ends outside of an escape."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False

    def brackets(self, block: bytes) -> Brackets:
        """Those of the next block."""
        masked = _ESCAPED.sub(b"__", block) if b"\\" in block else block
        classes = _CLASS[np.frombuffer(masked, np.uint8)]
        at = np.flatnonzero(classes)
        kind = classes[at]
        quotes = np.cumsum(kind == _QUOTE) + self._in_string
        outside = (kind != _QUOTE) & (quotes % 2 == 0)
        begin = self._depth
        depth = begin + np.cumsum(np.where(kind[outside] == _OPEN, 1, -1))
        if len(quotes):
            self._in_string = bool(quotes[-1] % 2)
        if len(depth):
            self._depth = int(depth[-1])
        return Brackets(at[outside], depth, begin)


def read_blocks(readinto: Callable[[memoryview], int]) -> Iterator[bytes]:
    """The text of a stream in blocks."""
    buffer = memoryview(bytearray(_BLOCK))
    while count := readinto(buffer):
        yield bytes(buffer[:count])


def parts(blocks: Iterable[bytes]) -> Iterator[tuple[Part, bytes, Brackets | None]]:
    """The text in pieces, none of them across an end of the event list; pieces of events come with their brackets.

    The first `traceEvents` list counts, or the root where it is a list.

    Raises:
        NoEventListError: At the end of a text in which the list was not found, or did not end.
    """
    counter, part, level, before = _Counter(), Part.BEFORE, 0, b""
    for block in _whole_objects(blocks):
        if part is Part.AFTER:
            yield part, block, None
            continue
        found = counter.brackets(block)
        begin = 0
        if part is Part.BEFORE:
            opening = _opening(block, before, found)
            before = (before + block)[-_LOOK_BACK:]
            if opening < 0:
                yield part, block, None
                continue
            begin, level = int(found.place[opening]) + 1, int(found.depth[opening])
            yield part, block[:begin], None
            part = Part.EVENTS
        closing = np.flatnonzero((found.place >= begin) & (found.depth == level - 1))
        end = int(found.place[closing[0]]) if len(closing) else len(block)
        yield part, block[begin:end], _inside(found, begin, end)
        if len(closing):
            part = Part.AFTER
            yield part, block[end:], None
    if part is not Part.AFTER:
        raise NoEventListError


def _opening(block: bytes, before: bytes, found: Brackets) -> int:
    """Position among the brackets of the one that opens the event list, -1 for none."""
    root = (before + block).lstrip(b"\xef\xbb\xbf \t\n\r")[:1] if found.begin == 0 else b""
    if root == b"[" and len(found.place):
        return 0
    # A member of the root that is a list: few, as the header of a trace is small beside its events.
    deeper = np.flatnonzero((found.depth == 2) & (np.diff(found.depth, prepend=found.begin) > 0))
    for one in deeper.tolist():
        place = int(found.place[one])
        ahead = block[max(0, place - _LOOK_BACK) : place]
        ahead = before + ahead if place < _LOOK_BACK else ahead
        if block[place : place + 1] == b"[" and _LIST_KEY.search(ahead[-_LOOK_BACK:]):
            return one
    return -1


def _inside(found: Brackets, begin: int, end: int) -> Brackets:
    """Brackets of a piece of a block."""
    first, last = np.searchsorted(found.place, (begin, end)).tolist()
    depth = int(found.depth[first - 1]) if first else found.begin
    return Brackets(found.place[first:last] - begin, found.depth[first:last], depth)


def _whole_objects(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same text, cut behind closing braces only: no member of an event, and no escape, is cut in two."""
    rest: list[bytes] = []
    for block in blocks:
        cut = block.rfind(b"}") + 1
        if cut:
            yield b"".join((*rest, block[:cut]))
            rest = []
        rest.append(block[cut:])
    last = b"".join(rest)
    if last:
        yield last


def appended(blocks: Iterable[bytes], events: Iterable[bytes]) -> Iterator[bytes]:
    """The text with these events at the end of its event list; the rest as it is, byte by byte.

    Args:
        blocks: The text.
        events: Text of events, as `events.overlay_events` gives it.

    Raises:
        NoEventListError: At the end of the text, when it has no whole event list.
    """
    last, added = b"", False
    for part, text, _ in parts(blocks):
        if part is Part.EVENTS:
            last = text.rstrip()[-1:] or last
        elif part is Part.AFTER and not added:
            added = True
            for piece in events:
                yield piece if last in {b"", b","} else b",\n" + piece
                last = b","
            yield b"\n"
        yield text
