"""The events of several ranks in one file: process ids and arrows of different ranks must not meet."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from enum import Enum
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.patterns import regex
from traceanalyze.report.perfetto.events import FIRST_PID, blocks, metadata

_QUOTE, _OPEN, _CLOSE = 1, 2, 3
_CLASS = np.zeros(256, np.uint8)
_CLASS[ord('"')] = _QUOTE
_CLASS[[ord("["), ord("{")]] = _OPEN
_CLASS[[ord("]"), ord("}")]] = _CLOSE
_ESCAPED = regex(rb"\\.", re.DOTALL)
_LIST_KEY = regex(rb'"traceEvents"[ \t\n\r]*:[ \t\n\r]*\Z')
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
    """The text with these events at the end of its event list; the rest as it is, byte by byte."""
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


_MEMBER = regex(rb'"(pid|id|ts)"[ \t\n\r]*:[ \t\n\r]*("[^"\\]*(?:\\.[^"\\]*)*"|[^\s,}\]"]+)', re.DOTALL)
_NUMBER = regex(rb"[0-9]{1,20}|0x[0-9a-fA-F]{1,16}")
_HEXADECIMAL = regex(rb"0x.*")
_RANK_BITS = 48
"""Arrows of a rank are told apart by the bits of their id above these, which counters never reach."""
_DIGEST = 1 << 62
"""Set in every digest, so that none is a counter; signed 64 bits hold it."""


class Pids:
    """New process ids over all ranks, in the order they are asked for; they are no ids of threads."""

    def __init__(self) -> None:
        self._next = FIRST_PID

    def new(self) -> int:
        """The next one."""
        self._next += 1
        return self._next - 1


class RankText:
    """Rewrites the events of the rank at this position; `shift_ns` is added so that all ranks count from one zero."""

    def __init__(self, index: int, pids: Pids, shift_ns: int) -> None:
        self.pid: dict[bytes, int] = {}
        """Process id as written, without quotation marks → the new one."""
        self._index = index
        self._pids = pids
        self._shift = Decimal(shift_ns) / 1000 if shift_ns else None

    def new_pid(self, written: bytes) -> int:
        """The new number of a process."""
        if written not in self.pid:
            self.pid[written] = self._pids.new()
        return self.pid[written]

    def events(self, text: Iterable[bytes]) -> Iterator[bytes]:
        """The events of a trace, rewritten, in pieces as they come; without commas at the ends of all of it."""
        held = b""
        level = -1
        for part, piece, brackets in parts(text):
            if part is Part.EVENTS and brackets is not None:
                level = brackets.begin if level < 0 else level
                written = held + self._rewritten(piece, brackets, level + 1)
                kept = written.rstrip(b" \t\n\r,")
                # Commas between events are passed on with the next event, so that none is left at the end.
                held = written[len(kept) :] if kept else written
                yield kept
        # What is held back now is the white space or comma in front of the list's end.

    def _rewritten(self, text: bytes, brackets: Brackets, event_level: int) -> bytes:
        found = list(_MEMBER.finditer(text))
        start = np.fromiter((each.start() for each in found), np.int64, len(found))
        depth = np.concatenate(([brackets.begin], brackets.depth))
        of_event = depth[np.searchsorted(brackets.place, start, "right")] == event_level
        done = 0
        out: list[bytes] = []
        for each, member in zip(found, of_event.tolist(), strict=True):
            if member:
                begin, end = each.span(2)
                out += (text[done:begin], self._value(each[1], each[2]))
                done = end
        out.append(text[done:])
        return b"".join(out)

    def _value(self, key: bytes, value: bytes) -> bytes:
        plain = value.strip(b'"')
        if key == b"pid":
            return b"%d" % self.new_pid(plain)
        if key == b"id":
            return b"%d" % _arrow(plain, self._index)
        if self._shift is None:
            return value
        try:
            shifted = f"{Decimal(plain.decode()) + self._shift:f}".encode()
        except (ArithmeticError, UnicodeDecodeError):
            return value
        return b'"%b"' % shifted if value != plain else shifted


def _arrow(written: bytes, index: int) -> int:
    """The id of an arrow of the rank at this position: a number, as Perfetto binds arrows by nothing else.

    Counters get the position into their upper bits; for what is larger (addresses, times), or a text, a digest stands.
    """
    number = int(written, 16 if _HEXADECIMAL.fullmatch(written) else 10) if _NUMBER.fullmatch(written) else -1
    if 0 <= number < 1 << _RANK_BITS:
        return number | (index << _RANK_BITS)
    digest = blake2b(b"%d:%b" % (index, written if number < 0 else b"%d" % number), digest_size=8).digest()
    return int.from_bytes(digest) >> 2 | _DIGEST


def process_titles(rank: RankText, title: str, names: Mapping[str, str], sort: int, *, at: str = "") -> Iterator[bytes]:
    """Names of a rank's processes, told apart from those of other ranks, and where they are shown.

    Written before the events of the rank, and behind them with the time of their end (`at`): of the names of a process
    some viewers take the first, Perfetto that of the latest time.
    """
    for text in names:
        rank.new_pid(text.encode())
    processes = {written.decode("utf-8", "replace"): pid for written, pid in rank.pid.items()}
    return blocks(
        event
        for order, (written, pid) in enumerate(processes.items(), 1)
        for event in (
            metadata("process_name", pid, pid, at=at, name=f"{title} · {names.get(written) or written}"),
            metadata("process_sort_index", pid, pid, at=at, sort_index=sort + order),
        )
    )
