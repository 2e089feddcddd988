"""The events of several ranks in one file: process ids and arrows of different ranks must not meet."""

from __future__ import annotations

import re
from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.report.perfetto.events import FIRST_PID, blocks, metadata
from traceanalyze.report.perfetto.splice import Part, parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from traceanalyze.report.perfetto.splice import Brackets

_MEMBER = re.compile(rb'"(pid|id|ts)"[ \t\n\r]*:[ \t\n\r]*("[^"\\]*(?:\\.[^"\\]*)*"|[^\s,}\]"]+)', re.DOTALL)
_NUMBER = re.compile(rb"[0-9]{1,20}|0x[0-9a-fA-F]{1,16}")
_HEXADECIMAL = re.compile(rb"0x.*")
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
    """Rewrites the events of one rank.

    Args:
        index: Position of the rank among those merged.
        pids: Where new process ids come from.
        shift_ns: What is added to its times, so that all ranks count from one zero.
    """

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
        """The events of a trace, rewritten, in pieces as they come; without commas at the ends of all of it.

        Raises:
            NoEventListError: At the end of the text, when it has no whole event list.
        """
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
        mine = depth[np.searchsorted(brackets.place, start, "right")] == event_level
        done = 0
        out: list[bytes] = []
        for each, member in zip(found, mine.tolist(), strict=True):
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
    told = {written.decode("utf-8", "replace"): pid for written, pid in rank.pid.items()}
    return blocks(
        event
        for order, (written, pid) in enumerate(told.items(), 1)
        for event in (
            metadata("process_name", pid, pid, at=at, name=f"{title} · {names.get(written) or written}"),
            metadata("process_sort_index", pid, pid, at=at, sort_index=sort + order),
        )
    )
