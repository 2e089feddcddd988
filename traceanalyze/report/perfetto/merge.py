"""The events of several ranks in one file: process ids and arrows of different ranks must not meet."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.report.perfetto.events import FIRST_PID, blocks, metadata
from traceanalyze.report.perfetto.splice import Part, parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from traceanalyze.report.perfetto.splice import Brackets

_MEMBER = re.compile(rb'"(pid|id|ts)"[ \t\n\r]*:[ \t\n\r]*("[^"\\]*(?:\\.[^"\\]*)*"|[^\s,}\]"]+)', re.DOTALL)
_INTEGER = re.compile(rb"-?[0-9]{1,18}")
_HEXADECIMAL = re.compile(rb"0x[0-9a-fA-F]{1,15}")
_RANK_BITS = 48
"""Arrows of a rank are told apart by the bits of their id above these, which counters never reach."""


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
            number = _number(plain)
            if number is not None:
                return b"%d" % (number ^ (self._index << _RANK_BITS))
            return b'"%d:%b"' % (self._index, plain)
        if self._shift is None:
            return value
        try:
            shifted = f"{Decimal(plain.decode()) + self._shift:f}".encode()
        except (ArithmeticError, UnicodeDecodeError):
            return value
        return b'"%b"' % shifted if value != plain else shifted


def _number(written: bytes) -> int | None:
    """An id as a number: viewers bind arrows by nothing else."""
    if _INTEGER.fullmatch(written):
        return int(written)
    return int(written, 16) if _HEXADECIMAL.fullmatch(written) else None


def process_titles(rank: RankText, title: str, names: Mapping[str, str], sort: int) -> Iterator[bytes]:
    """Names of a rank's processes, told apart from those of other ranks, and where they are shown.

    Written before the events of the rank as well as behind them, as viewers differ in which of two names they take.
    """
    for text in names:
        rank.new_pid(text.encode())
    told = {written.decode("utf-8", "replace"): pid for written, pid in rank.pid.items()}
    return blocks(
        event
        for order, (written, pid) in enumerate(told.items(), 1)
        for event in (
            metadata("process_name", pid, pid, name=f"{title} · {names.get(written) or written}"),
            metadata("process_sort_index", pid, pid, sort_index=sort + order),
        )
    )
