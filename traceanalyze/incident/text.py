"""Text that a job left, streamed: lines that a table of patterns knows become events and series.

Each pattern has a *needle*, and a hash of four bytes of each finds the lines that may hold one at some ns a byte,
however long the tables are. Such lines differ in their numbers: they are looked at once a *shape*, what is left without
digits, and of thousands of one kind only some are matched.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import InputError
from traceanalyze.incident.evidence import (
    UNKNOWN,
    YEARLESS,
    Event,
    Evidence,
    FileRead,
    Process,
    Series,
    Source,
    Stack,
    Value,
    What,
    in_year,
)
from traceanalyze.incident.lines import (
    LABELLED,
    MESSAGE,
    Line,
    Stamp,
    bus_of,
    data_of,
    line_of,
    message_of,
    stamp_of,
    stamped,
)
from traceanalyze.model.patterns import regex
from traceanalyze.readers.streams import Stream

_CHUNK = 1 << 20
_LONGEST = 1 << 16
"""Bytes of a line that are kept."""
_MATCHED = 1 << 13
"""Bytes of a line that are looked at: a hostile one costs expressions time by the square of its length."""
_AROUND = 512
"""Bytes before a needle that may be of the same message."""
_SHAPES = 1 << 16
"""Shapes that are remembered; a text of prose has a new one each line."""
_DIGITS = b"0123456789abcdef .,-+#=\t\0"
"""What a shape lacks: digits, of hexadecimal numbers too, and what is printed around and between them."""
_THIN_FROM = 2_000
"""Lines of a kind in one file from which on only those at both ends of each chunk are matched."""
_THIN_SERIES = 40_000
_ENDS = (4, 12)
_RUN = 64
"""Lines of series in a chunk once they are thinned: neighbours, so that each rank of a mixed log has some."""
_DISTINCT = 20
"""Events of one kind, rank and wording that are kept by themselves."""
_BLOCK_LINES = 400
"""Lines of a traceback or a stack."""
_HELD = 1 << 18
_NOTABLE_NEEDLES = (
    *(b"rror", b"RROR", b"xception", b"XCEPTION", b"atal", b"ATAL", b"fail", b"Fail", b"FAIL", b"bort", b"BORT"),
    *(b"kille", b"Kille", b"KILLE", b"panic", b"PANIC", b"orrupt", b"ORRUPT", b"ritical", b"RITICAL"),
)
_NOTABLE = regex(
    rb"(?i)\b(?:error|exception|fatal|fail(?:ed|ure)|abort(?:ed|ing)?|killed|panic|corrupt(?:ed|ion)?|critical)\b"
)
_DULL = regex(rb" FAILED$|^Root Cause \(first|^Failures:$|no error file defined for parent|^Fatal Python error")
"""Around what blocks tell."""
_ODD = regex(rb"(?i)\b(?:nan|inf)\b")
_ANSI = regex(rb"\x1b\[[0-9;?]*[A-Za-z]")
_TEXT_ROOM = 256 << 20
_TEXT_PER_PACKED_BYTE = 200
_UNTOLD = 64 << 20
"""Bytes after which a text without a time, an event or an error is data and no log."""


class Pattern(NamedTuple):
    """A line that tells something. Named groups become `Event.data`, as numbers where they are.

    The groups rank, host and device go to the event's own fields, `stamp` is its time; a group that ends in `_size` is
    a text such as `2.00 GiB`, in `_kb` a number of KiB: both become bytes without the ending.
    """

    what: What
    regex: re.Pattern[bytes]
    needle: bytes
    """Stands in every line that fits; of four bytes or more; empty: the longest text of the expression."""
    also: Mapping[str, Value] = {}
    explain: Callable[[Mapping[str, Value]], Mapping[str, Value]] | None = None
    """What codes in its data mean: more data."""
    expression: bytes = b""


class Loop(NamedTuple):
    """A line that training loops print every few steps."""

    regex: re.Pattern[bytes]
    """With the group `step` (where there is none it is that of a progress bar beside it), and one a quantity."""
    needle: bytes
    quantities: Mapping[str, tuple[str, str, float]]
    """Group → name of the series, unit, factor."""
    derived: str = ""
    expression: bytes = b""


def said(
    what: What,
    expression: bytes,
    needle: bytes = b"",
    explain: Callable[[Mapping[str, Value]], Mapping[str, Value]] | None = None,
    **also: Value,
) -> Pattern:
    """A pattern with the longest text of its expression as the needle, and with more data."""
    return Pattern(what, regex(expression), needle, also, explain, expression)


def loop(
    expression: bytes, quantities: Mapping[str, tuple[str, str, float]], needle: bytes = b"", derived: str = ""
) -> Loop:
    """A loop with the longest text of its expression as the needle."""
    return Loop(regex(expression), needle, quantities, derived, expression)


_TOKEN = regex(rb"(?s)\\([\W_])|(\\\w|\[\^?\]?(?:\\.|[^\]\\])*\]|[.^$])|([()])|([?*+]\??|\{\d*,?\d*\})|(.)")


def needle_of(expression: bytes) -> bytes:
    """The longest text outside of groups, which every match has."""
    runs, depth, run = [b""], 0, b""
    for escaped, other, bracket, repeat, char in _TOKEN.findall(expression):
        if bracket or other or repeat:
            # What is repeated may be missing.
            runs.append(run[:-1] if repeat and repeat[:1] != b"+" else run)
            run, depth = b"", depth + (bracket == b"(") - (bracket == b")")
        elif char == b"|" and not depth:
            return b""
        elif not depth:
            run += escaped or char
    return max(*runs, run, key=len)


def _needle(row: Row) -> bytes:
    return row.needle if row.needle or isinstance(row, Block) else needle_of(row.expression)


class Made(NamedTuple):
    """What a block of lines gave."""

    lines: int
    events: tuple[Event, ...] = ()
    stacks: tuple[Stack, ...] = ()
    closed: bool = False
    """Nothing in these lines tells anything more."""


class Block(NamedTuple):
    """A group of lines that belong together; those of other processes between them are left out."""

    needle: bytes
    regex: re.Pattern[bytes]
    """Of the first line."""
    origin: str
    read: Callable[[Sequence[Line], int, str], Made | None]
    """Gets lines, the place of the first one among them, and the path; None where they are no block."""
    before: int = 0
    """Lines before the first one that it gets, too; at most 3."""
    bare: bool = False
    """Whether only its first line has what launchers and loggers put in front."""


Row = Pattern | Loop | Block


# --- Reading ---------------------------------------------------------------------------------------------------------


class _Points:
    """A series as it grows."""

    def __init__(self, source: Source, unit: str, clock: str, derived: str) -> None:
        self.steps, self.times, self.values = array("q"), array("q"), array("d")
        self.lines = array("q")
        self.source, self.unit, self.clock, self.derived = source, unit, clock, derived


class _Kind(NamedTuple):
    """What lines of a shape may be."""

    rows: tuple[Row, ...]
    notable: bool
    series: bool

    @property
    def most(self) -> int:
        return _THIN_SERIES if self.series else _THIN_FROM


_HASH = np.uint32(2654435761)
"""Knuth's, of which the upper bits are well mixed."""
_BITS = 18
_RARE = b"etaonirslhdcumpfgyb.wvk _-:"
"""Common bytes of logs, the most common first."""


class Table:
    """Rows, and a filter for the lines that may fit one.

    Of each needle four bytes stand in a hash table; where they are, four others have to stand beside them.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = tuple(rows)
        self.marks = [_needle(row).translate(None, _DIGITS) for row in rows]
        self._needle = np.zeros(1 << _BITS, np.uint16)
        """By hash: number of the needle, 0 for none."""
        first, second, apart = [0], [0], [0]
        for needle in sorted({*map(_needle, rows), *_NOTABLE_NEEDLES}, key=len):
            windows = [needle[at : at + 4] for at in range(len(needle) - 3)]
            free = [(_commonness(four), at) for at, four in enumerate(windows) if not self._needle[_hashed(four)]]
            if not free:
                raise ValueError(f"{needle!r} is too much like other needles")
            _, at = min(free)
            # The farther from the first, the more of the needle the two are.
            other = 0 if 2 * at >= len(windows) else len(windows) - 1
            self._needle[_hashed(needle[at : at + 4])] = len(first)
            first.append(int.from_bytes(needle[at : at + 4], "little"))
            second.append(int.from_bytes(needle[other : other + 4], "little"))
            apart.append(other - at)
        self._hit = self._needle > 0
        self._first, self._second = np.array(first, np.uint32), np.array(second, np.uint32)
        self._apart = np.array(apart, np.int64)

    def lines_of(self, text: bytes) -> list[int]:
        """Lines that may hold a needle, by their places."""
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == 10)
        lines = np.searchsorted(ends, self.places_of(text))
        return lines[np.diff(lines, prepend=-1) > 0].tolist()  # type: ignore[no-any-return]

    def places_of(self, text: bytes) -> NDArray[np.int64]:
        """Where a text may hold a needle, in order."""
        places = []
        for offset in range(min(4, len(text))):
            codes = np.frombuffer(text, "<u4", (len(text) - offset) // 4, offset)
            # Of bytes, and with a mode that checks no bounds: half the time of the whole reader is here.
            at = np.flatnonzero(self._hit.take((codes * _HASH) >> _SHIFT, mode="wrap"))
            needle = self._needle[(codes[at] * _HASH) >> _SHIFT]
            right = codes[at] == self._first[needle]
            at, needle = at[right] * 4 + offset, needle[right]
            beside = at + self._apart[needle]
            inside = (beside >= 0) & (beside <= len(text) - 4)
            at, needle, beside = at[inside], needle[inside], beside[inside]
            places.append(at[_codes(text, beside) == self._second[needle]])
        return np.sort(np.concatenate(places)) if places else np.zeros(0, np.int64)


_SHIFT = np.uint32(32 - _BITS)


def _hashed(four: bytes) -> int:
    return int.from_bytes(four, "little") * int(_HASH) % (1 << 32) >> int(_SHIFT)


def _codes(text: bytes, places: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Four bytes of a text as a number, at some places."""
    source = np.frombuffer(text, np.uint8)
    parts = (source[places + byte].astype(np.uint32) << np.uint32(8 * byte) for byte in range(4))
    return np.bitwise_or.reduce(np.array(list(parts), np.uint32).reshape(4, -1))  # type: ignore[no-any-return]


def _commonness(four: bytes) -> int:
    return sum(max(len(_RARE) - _RARE.find(byte), 0) ** 2 if byte in _RARE else 0 for byte in four)


class _Reading:
    """Reads one text; of many lines of one kind it matches the ends of each chunk."""

    def __init__(self, path: str, table: Table, rank: int | None) -> None:
        self.path, self.rank, self.table = path, rank, table
        self.known: dict[bytes, int] = {}
        self.kinds: list[_Kind] = [_Kind((), notable=False, series=False)]
        self.numbers: dict[tuple[object, ...], int] = {(False, False): 0}
        self.totals = Counter[int]()
        self.lines = self.understood = self.notable = self.thinned = 0
        self.examples: list[str] = []
        self.events: list[Event] = []
        self.stacks: list[Stack] = []
        self.kept: dict[tuple[object, ...], list[int]] = {}
        self.points: dict[tuple[str, int | None, bytes], _Points] = {}
        self.ranks = Counter[int]()
        self.world = 0
        """Ranks of the largest communicator: in others a process has another number."""
        self.of_key: dict[bytes, int] = {}
        """Rank of the process that a label stands for."""
        self.times: list[Stamp] = []
        """The first and the last, of the clock that the text begins with."""
        self.before: Stamp | None = None
        """The last before this chunk."""
        self.bodies: list[bytes] = []
        self.line_numbers: Sequence[int] = ()
        self.resume = 0
        """The line that a block was held back from: those before it were read."""
        self.doubtful: list[tuple[int, bytes]] = []
        self.closed: set[int] = set()
        self.inside: set[int] = set()
        """Lines of this chunk that a block took."""

    def chunk(self, text: bytes, *, last: bool) -> bytes:
        """Read whole lines; the end that may go on in the next chunk is given back."""
        if b"\x1b" in text:
            text = _ANSI.sub(b"", text)
        first = self.lines + 1
        numbers: Sequence[int] | None = None
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n")
            numbers = _numbers(text, first) if b"\r" in text else None
            text = text.replace(b"\r", b"\n")
        self.bodies = text.split(b"\n")
        self.line_numbers = range(first, first + len(self.bodies)) if numbers is None else numbers
        candidates = self.table.lines_of(text)
        if any(len(self.bodies[at]) > _MATCHED for at in candidates):
            self._break(candidates)
            candidates = self.table.lines_of(b"\n".join(self.bodies))
        count = len(self.bodies) - (not self.bodies[-1])
        if not self.times and self.lines < 50_000:
            self._first_time()
        self._last_time(text)
        for found in LABELLED.finditer(text, 0, _LONGEST):
            self.of_key.setdefault(found[1], int(found[2]))
        stop = self._read(self._chosen(candidates), last=last)
        self.doubtful = [one for one in self.doubtful if stop is None or one[0] < stop]
        self._settle()
        self.before = self._time(len(self.bodies) - 1 if stop is None else stop) or self.before
        rest = b""
        if stop is not None:
            numbered = zip(self.bodies[stop:], self.line_numbers[stop:], self.line_numbers[stop + 1 :], strict=False)
            # Of one line again what was one.
            rest = b"".join(body + (b"\r" if number == after else b"\n") for body, number, after in numbered)
            rest, count = rest + self.bodies[-1], stop
        behind = self.line_numbers[count] if count < len(self.bodies) else self.line_numbers[-1] + 1
        self.lines += int(behind) - first
        return rest

    def _break(self, candidates: Sequence[int]) -> None:
        """Long lines become pieces: what is far inside one would not be looked at."""
        bodies, numbers, known = [], [], {*candidates}
        for at, (body, number) in enumerate(zip(self.bodies, self.line_numbers, strict=True)):
            pieces = self._pieces(body) if at in known and len(body) > _MATCHED else [body]
            bodies += pieces
            numbers += [number] * len(pieces)
        self.bodies, self.line_numbers = bodies, numbers

    def _pieces(self, line: bytes) -> list[bytes]:
        """A line cut somewhat before needles, with what launchers put in front before each piece."""
        begins, before = [0], 0
        for place in self.table.places_of(line).tolist():
            room, apart = place - begins[-1], place - before
            if (room > _MATCHED // 2 and apart > 2 * _AROUND) or room > _MATCHED - _AROUND:
                begins.append(place - min(_AROUND, apart // 2))
            before = place
        head = line[: len(line) - len(line_of(line, 0).body)]
        cut = [line[begin:end] for begin, end in zip(begins, [*begins[1:], len(line)], strict=True)]
        return [cut[0], *(head + each for each in cut[1:])]

    def _chosen(self, candidates: Sequence[int]) -> list[tuple[int, _Kind]]:
        """Lines to match, each with what it may be; of too many of one kind only some."""
        by_kind: dict[int, list[int]] = {}
        known = self.known
        for at in candidates:
            raw = self.bodies[at][:_MATCHED]
            shape = raw.translate(None, _DIGITS)
            number = known.get(shape)
            if number is None:
                if len(known) > _SHAPES:
                    known.clear()
                number = known[shape] = self._kind(raw, shape)
            if number:
                by_kind.setdefault(number, []).append(at)
        chosen = []
        for number, places in by_kind.items():
            kind = self.kinds[number]
            self.totals[number] += len(places)
            if not kind.rows:
                self._unknown(places)
                continue
            some = places
            if self.totals[number] > kind.most:
                some = places[:_RUN] if kind.series else [*places[: _ENDS[0]], *places[_ENDS[0] :][-_ENDS[1] :]]
                self.thinned += len(places) - len(some)
            chosen += [(at, kind) for at in some]
        return sorted(chosen, key=itemgetter(0))

    def _kind(self, raw: bytes, shape: bytes) -> int:
        rows = tuple(row for row, mark in zip(self.table.rows, self.table.marks, strict=True) if mark in shape)
        body = line_of(raw, 0).body if rows else raw
        matched = next((row for row in rows if row.regex.search(body)), None)
        # Several may fit in lines of one shape, as codes are digits; where none does, the shape is dull.
        if matched is None:
            rows = ()
        notable = not rows and _NOTABLE.search(raw) is not None
        series = isinstance(matched, Loop)
        # A loss that is no number is never among those that are only counted.
        odd = series and _ODD.search(raw) is not None
        key = (notable, odd, *map(id, rows))
        if key not in self.numbers:
            self.numbers[key] = len(self.kinds)
            self.kinds.append(_Kind(rows, notable, series))
        return self.numbers[key]

    def _read(self, chosen: Sequence[tuple[int, _Kind]], *, last: bool) -> int | None:
        """Match lines; the first one that the next chunk has to begin with, None where all are read."""
        self.inside.clear()
        self.closed.clear()
        for at, kind in chosen:
            if not self._line(at, kind, last=last):
                return max(0, at - max(row.before for row in kind.rows if isinstance(row, Block)))
        return None

    def _line(self, at: int, kind: _Kind, *, last: bool) -> bool:
        """Match one line; False where a block in it may go on in the next chunk."""
        if at in self.closed or self.line_numbers[at] < self.resume:
            return True
        line = line_of(self.bodies[at][:_MATCHED], self.line_numbers[at])
        for row in kind.rows:
            found = row.regex.search(line.body)
            if found is None:
                continue
            if line.rank is not None:
                self.ranks[line.rank] += 1
            if isinstance(row, Loop):
                self._loop(row, found, line, at)
                self.understood += 1
                return True
            if isinstance(row, Block):
                if at in self.inside:
                    continue
                if not last and at + _BLOCK_LINES > len(self.bodies) and sum(map(len, self.bodies[at:])) < _HELD:
                    self.resume = line.number
                    return False
                self._block(row, at, line)
                continue
            self._event(row, found, line, at)
            self.understood += at not in self.inside
            return True
        return True

    def _unknown(self, places: Sequence[int]) -> None:
        """Lines that look like an error to nobody's knowledge."""
        for at in places[:_RUN]:
            body = line_of(self.bodies[at][:_MATCHED], 0).body
            if not body.startswith((b"    ", b"\t", b"  File ")) and not _DULL.search(body):
                self.doubtful.append((at, body))
        self.notable += len(places[_RUN:])

    def _settle(self) -> None:
        """Count those that no block took."""
        for at, body in self.doubtful:
            if at not in self.inside:
                self.notable += 1
                text = message_of(body)
                if len(self.examples) < 3 and text not in self.examples:
                    self.examples.append(text)
        self.doubtful.clear()

    def _time(self, at: int) -> Stamp | None:
        """Of a line, else of the nearest one before it."""
        for back in range(at, max(at - 60, -1), -1):
            stamp = stamp_of(self.bodies[back][:160])
            if stamp is not None:
                return stamp
        return self.before if at < 60 else None

    def _event(self, row: Pattern, found: re.Match[bytes], line: Line, at: int) -> None:
        data = data_of(found.groupdict())
        data.update(row.also)
        if row.explain is not None:
            data.update(row.explain(data))
        stamp = stamp_of(found["stamp"]) if "stamp" in found.groupdict() and found["stamp"] else self._time(at)
        data.pop("stamp", None)
        rank, host, device = data.pop("rank", line.rank), data.pop("host", None), data.pop("device", None)
        if line.local_rank is not None:
            data.setdefault("local_rank", line.local_rank)
        if line.pid is not None:
            data.setdefault("pid", line.pid)
        world = data.get("world", 0)
        if isinstance(world, int) and isinstance(rank, int) and world:
            if world < self.world:
                rank = None
            else:
                self.world = world
                self.ranks[rank] += 1
                self.of_key[line.key] = rank
        if rank is None and line.key:
            rank = self.of_key.get(line.key)
        if device is not None and str(device).isdecimal():
            device = f"{'NPU' if 'ascend' in row.also.values() or 'HCCL' in row.also.values() else 'GPU'} {device}"
        begin = found.start() if row.what is not What.DEVICE_ERROR or found.end() > MESSAGE else 0
        body = line.body if len(line.body) <= MESSAGE else line.body[max(0, begin - 100) :]
        if host is None and stamp is not None:
            host = stamp.host
        event = Event(
            row.what,
            message_of(body),
            Source(self.path, line.number),
            rank=rank if isinstance(rank, int) and rank >= 0 else line.rank,
            host=str(host) if host else None,
            device=None if device is None else bus_of(str(device)) or str(device),
            data=data,
        )
        self.add(stamped(event, stamp))

    def add(self, event: Event) -> None:
        """Keep an event, or count it with those like it."""
        key = event.what, event.rank, event.host, event.device, event.message.translate(_NO_DIGITS)[:200]
        rows = self.kept.setdefault(key, [])
        if len(rows) < _DISTINCT:
            rows.append(len(self.events))
            self.events.append(event)
            return
        last = self.events[rows[-1]]
        self.events[rows[-1]] = last._replace(seen=last.seen + 1, until_ns=event.stamp_ns or last.until_ns)

    def _block(self, row: Block, at: int, first: Line) -> None:
        begin = max(0, at - row.before)
        places, lines = [], []
        for place in range(begin, min(at + _BLOCK_LINES, len(self.bodies))):
            line = line_of(self.bodies[place][:_MATCHED], self.line_numbers[place])
            if line.key == first.key or (row.bare and not line.key):
                places.append(place)
                lines.append(line)
        made = row.read(lines, bisect_left(places, at), self.path)
        if made is None:
            return
        self.understood += made.lines - bisect_left(places, at)
        stamp = self._time(at)
        rank = self.of_key.get(first.key) if first.rank is None and first.key else first.rank
        for event in made.events:
            timed = stamped(event, stamp) if event.clock == "none" else event
            self.add(timed if timed.rank is not None else timed._replace(rank=rank))
        self.stacks += [one if one.rank is not None else one._replace(rank=rank) for one in made.stacks]
        self.inside.update(places[: made.lines])
        if made.closed:
            self.closed.update(places[: made.lines])

    def _loop(self, row: Loop, found: re.Match[bytes], line: Line, at: int) -> None:
        groups = found.groupdict()
        step = _integer(groups["step"]) if "step" in groups else self._bar(at)
        stamp = stamp_of(self.bodies[at][:160])
        for group, (name, unit, factor) in row.quantities.items():
            raw = groups.get(group)
            value = None if raw is None else _number(raw)
            if value is None:
                continue
            rank = line.rank if line.rank is not None or not line.key else self.of_key.get(line.key)
            key = (name, rank, line.key if rank is None else b"")
            points = self.points.get(key)
            if points is None:
                clock = "none" if stamp is None else stamp.clock
                points = self.points[key] = _Points(Source(self.path, line.number), unit, clock, row.derived)
            points.steps.append(UNKNOWN if step is None else step)
            points.times.append(UNKNOWN if stamp is None else stamp.ns)
            points.values.append(value * factor)
            points.lines.append(line.number)

    def _bar(self, at: int) -> int | None:
        """The step of a progress bar beside a line."""
        for place in (at, at + 1, at - 1, at + 2):
            found = _BAR.search(self.bodies[place][:_MATCHED]) if 0 <= place < len(self.bodies) else None
            if found:
                return int(found[1])
        return None

    def _last_time(self, text: bytes) -> None:
        lines = text[-4096:].split(b"\n")
        for raw in reversed(lines if len(text) <= 4096 else lines[1:]):
            stamp = stamp_of(raw[:160])
            if stamp is not None and self.times and (stamp.clock in _SAME) == (self.times[0].clock in _SAME):
                self.times[1:] = [stamp]
                break

    def _first_time(self) -> None:
        for raw in self.bodies[:500]:
            stamp = stamp_of(raw[:160])
            if stamp is not None:
                self.times.append(stamp)
                break


_SAME = {"local", YEARLESS}
"""Clocks that may be mixed in one file: one is in the year of the other."""
_NO_DIGITS = {ord(each): None for each in "0123456789"}
_BAR = regex(rb"[| ](\d{1,12})/(\d{1,12}) \[")


def _numbers(text: bytes, first: int) -> list[int]:
    """Numbers of lines where a progress bar writes several on one."""
    codes = np.frombuffer(text, np.uint8)
    marks = codes[(codes == 10) | (codes == 13)] == 10
    return [first, *(first + np.cumsum(marks)).tolist()]


def _integer(raw: bytes | None) -> int | None:
    try:
        return None if raw is None else int(raw.replace(b",", b""))
    except ValueError:
        return None


def _number(raw: bytes) -> float | None:
    try:
        return float(raw.replace(b",", b"").strip(b"'\""))
    except ValueError:
        return None


def chunks(stream: Stream) -> Iterator[tuple[bytes, bool, str]]:
    """Whole lines, whether they are the last, and what of the text was not read; a line without end is cut."""
    buffer, carry, cut, cuts = memoryview(bytearray(_CHUNK)), b"", False, 0
    while count := stream.readinto(buffer):
        block = bytes(buffer[:count])
        if stream.swells(stream.text_bytes, _TEXT_ROOM, _TEXT_PER_PACKED_BYTE):
            yield carry, True, f"{stream.text_bytes:,} bytes of text in {stream.consumed:,}: the rest is not read"
            return
        if cut:
            end = block.find(b"\n")
            if end < 0:
                continue
            block, cut = block[end:], False
        end = block.rfind(b"\n")
        if end < 0:
            end = block.rfind(b"\r")
        if end < 0:
            carry += block
        else:
            yield carry + block[: end + 1], False, ""
            carry = block[end + 1 :]
        if len(carry) > _LONGEST:
            carry, cut, cuts = carry[:_LONGEST], True, cuts + 1
    long = f"lines of more than {_LONGEST >> 10} KiB, of which the rest is not read: {cuts:,}" if cuts else ""
    yield carry, True, "; ".join(filter(None, (stream.fault, long)))


def read_text(stream: Stream, path: str, size: int, table: Table, *, rank: int | None, alone: bool) -> Evidence:
    """Everything that a table knows in a text.

    `rank` is that of the whole file, where its name tells it; `alone`: it is of one process, so one rank named in it
    is the rank of all of it.
    """
    reading, rest, fault = _Reading(path, table, rank), b"", ""
    try:
        for text, last, why in chunks(stream):
            fault = why or fault
            rest = reading.chunk(rest + text, last=last)
            if stream.text_bytes > _UNTOLD and not (reading.understood or reading.notable or reading.times):
                fault = f"nothing of a log in its first {stream.text_bytes:,} bytes: the rest is not read"
                break
    except InputError as error:
        fault = str(error)
    if rest:
        reading.chunk(rest, last=True)
    return _found(reading, size, fault, alone=alone)


_STEPS_AFTER = 3
"""Steps behind an event in its file that are counted, of each series."""
_OF_OTHERS = {What.EXIT, What.SIGNAL, What.CANCELLED, What.RESTART, What.XID, What.HOST_OOM, What.SEGFAULT}


def _found(reading: _Reading, size: int, fault: str, *, alone: bool) -> Evidence:
    own = reading.rank
    if own is None and alone and len(reading.ranks) == 1:
        own = next(iter(reading.ranks))
    # Launchers tell of other processes.
    events = [
        one if one.rank is not None or one.what in _OF_OTHERS else one._replace(rank=own) for one in reading.events
    ]
    series = []
    printed = sorted(
        (line, step)
        for (name, *_), points in reading.points.items()
        if name in {"loss", "step_time", "throughput"}
        for line, step in zip(points.lines[-_STEPS_AFTER:], points.steps[-_STEPS_AFTER:], strict=True)
    )
    for at, each in enumerate(events if printed else ()):
        after = len({step for line, step in printed if line > each.source.line})
        events[at] = each._replace(data={**each.data, "steps_after": after}) if after else each
    for (name, rank, _), points in reading.points.items():
        one = _series(name, own if rank is None else rank, points)
        series.append(one)
        bad = _not_finite(one, points.lines)
        events += [] if bad is None else [bad]
    processes = [
        Process(one.rank, int(one.data["pid"]), one.host, one.source, one.device)
        for one in events
        if one.rank is not None and isinstance(one.data.get("pid"), int) and one.what is not What.HOST_OOM
    ]
    stacks = tuple(one if one.rank is not None else one._replace(rank=own) for one in reading.stacks)
    first, last = (reading.times[0], reading.times[-1]) if reading.times else (None, None)
    if first and last and first.clock != last.clock:
        first, last = (
            one if one.clock == "local" else Stamp(in_year(one.ns, other.ns), "local")
            for one, other in ((first, last), (last, first))
        )
    read = FileRead(
        reading.path,
        _kind_of(events, series, stacks, reading),
        size,
        reading.lines,
        reading.understood,
        reading.notable,
        tuple(reading.examples),
        fault,
        alike=reading.thinned,
        rank=own,
        first_ns=None if first is None else first.ns,
        last_ns=None if last is None else last.ns,
        clock="none" if first is None else first.clock,
    )
    return Evidence(tuple(events), tuple(series), stacks, (), tuple(processes), (), (read,))


def _kind_of(events: Sequence[Event], series: Sequence[Series], stacks: Sequence[Stack], reading: _Reading) -> str:
    if stacks and not events and not series:
        return "stacks"
    if any(event.clock == "boot" or event.what in {What.XID, What.SXID} for event in events):
        return "kernel_log"
    return "process_log" if reading.understood or reading.notable or reading.times else "other"


def _series(name: str, rank: int | None, points: _Points) -> Series:
    columns = (np.array(points.steps, np.int64), np.array(points.times, np.int64), np.array(points.values, np.float64))
    return Series(name, points.unit, *columns, points.source, rank, clock=points.clock, derived=points.derived)


def _not_finite(series: Series, lines: Sequence[int]) -> Event | None:
    """Where a loss or the norm of gradients stops being a number."""
    if series.name == "nan_iterations":
        bad = np.flatnonzero(series.values > 0)
    elif series.name in {"loss", "grad_norm"}:
        bad = np.flatnonzero(~np.isfinite(series.values))
    else:
        return None
    if not len(bad):
        return None
    first, step, time = (int(one[bad[0]]) for one in (np.arange(len(series.steps)), series.steps, series.times))
    data: dict[str, Value] = {"series": series.name, "count": len(bad)}
    data |= {"recovered": 1} if len(series.values) - int(bad[-1]) > _STEPS_AFTER else {}
    data |= {"step": step} if step != UNKNOWN else {}
    text = f"{series.name} {series.values[first]}" + (f" at step {step:,}" if step != UNKNOWN else "")
    event = Event(What.NAN, text, Source(series.source.path, lines[first]), rank=series.rank, data=data)
    return event._replace(clock=series.clock, stamp_ns=None if time == UNKNOWN else time)
