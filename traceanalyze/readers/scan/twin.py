"""The scanner in plain Python: the executable specification of the native one, and its stand-in without a compiler.

The result is a function of the whole text; it never depends on how the blocks are cut. The text is kept in memory.

Document
    A UTF-8 byte order mark and white space are skipped. Then `{` is an object root, `[` a list root; anything else, or
    nothing, is root "none": the text is only counted.
    Object root: members, with any run of white space and commas between them, up to `}` (or the end: truncated).
    `"traceEvents": [` opens an event list, and so does every further one; any other member is a header value, the last
    of equal keys wins. A member that breaks the grammar is malformed: from its second byte on the next
    `"traceEvents" : [` (at most 256 blanks on each side of the colon) opens the event list; what lies between is
    skipped. None: the rest is skipped, and the text is truncated.
    Behind the root, everything from the first byte that is not white space is trailing.
Event list
    Elements, with any run of white space and commas between them, up to `]` (or the end: truncated). An object is an
    event; another value is counted as not an object; what breaks the grammar is malformed: reading goes on at the next
    `{` whose first key is ph, name, cat, ts, pid or tid (at most 256 blanks on each side of it), unless a `:` stands
    before the `{` (at most 256 blanks between, none of it before the malformed element): that is the value of a member,
    such as args. This is sound because an unescaped quote cannot occur inside a string. None: as above.
Limits
    An element or header value is malformed if it is longer than `max_value_bytes`, nested deeper than `MAX_DEPTH` (the
    value itself is level 1), or not complete at the end of the text.
Event
    The members ph cat name pid tid ts dur id args count, keys compared undecoded; the last of equal keys wins, except
    that every `args` object gives its values, in text order. Texts are decoded strings, or other values as written;
    numbers may be quoted. Times are exact: round-half-even(decimal × 1000) ns, in int64.
    `ph` must be a string that is not empty, and is counted. X: the first of no_ts, bad_ts, no_dur, bad_dur (also when
    ts + dur does not fit), negative_dur that applies drops the event; without a pid it is kept and counted. i and I: as
    X without dur and pid. s, t and f: ts as above; the id is the int64 its text is the canonical form of, otherwise
    INT64_MIN + the code of the text. M: texts as written. `fractional` looks at every time of a row that was kept.
"""

from __future__ import annotations

import io
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from traceanalyze.model.columns import Sparse, strings_of
from traceanalyze.model.patterns import regex
from traceanalyze.model.trace import Events, Flows, Instants
from traceanalyze.readers.scan.grammar import (
    BLANK,
    INT64_MAX,
    INT64_MIN,
    Member,
    canonical_integer,
    decoded,
    integer,
    key_end,
    nanoseconds,
    number_text,
    object_members,
    real,
    skip_blanks,
    value_end,
)
from traceanalyze.readers.scan.result import BEGIN, END, MAX_VALUE_BYTES, REASONS, Field, Kind, Metadata, Scan

_DTYPES = {Kind.INT: np.int64, Kind.REAL: np.float64, Kind.TEXT: np.int32}
_TYPECODES = {Kind.INT: "q", Kind.REAL: "d", Kind.TEXT: "i"}
_TIMED = frozenset({b"X", b"B", b"E", b"i", b"I", b"s", b"t", b"f"})
Time = tuple[int, bool]
"""ns, and whether it is finer than a microsecond."""


class Dictionary:
    """Distinct byte strings in order of first use; the values as written are remembered, so each is decoded once."""

    def __init__(self) -> None:
        self._codes: dict[bytes, int] = {b"": 0}
        self._written: dict[bytes, int] = {b"": 0}

    def code(self, value: bytes) -> int:
        """Code of a value as written in the file; b"" stands for an absent one."""
        code = self._written.get(value)
        if code is None:
            code = self._written[value] = self._codes.setdefault(decoded(value), len(self._codes))
        return code

    def texts(self) -> list[bytes]:
        """All of them, decoded; the position is the code."""
        return list(self._codes)


class Arguments:
    """The sparse columns of one kind of event."""

    def __init__(self, fields: Sequence[Field], strings: Dictionary, counts: Counter[str]) -> None:
        self._fields = fields
        self._strings = strings
        self._counts = counts
        self._rows = [array("I") for _ in fields]
        self._values: list[array[Any]] = [array(_TYPECODES[field.kind]) for field in fields]
        self._columns_of: defaultdict[bytes, list[tuple[int, int]]] = defaultdict(list)
        for column, field in enumerate(fields):
            for place, key in enumerate(field.keys):
                self._columns_of[key.encode()].append((column, place))

    def add(self, row: int, members: Sequence[Member]) -> None:
        """Take the values of one event from its `args`; of several keys of a column the first that it names wins."""
        found: dict[int, tuple[int, bytes]] = {}
        for key, value in members:
            for column, place in self._columns_of.get(key, ()):
                if place <= found.get(column, (place,))[0]:
                    found[column] = place, value
        for column, (_, value) in found.items():
            number = self._read(self._fields[column].kind, value)
            if number is None:
                self._counts["bad_value"] += 1
            else:
                self._rows[column].append(row)
                self._values[column].append(number)

    def _read(self, kind: Kind, value: bytes) -> float | None:
        if kind is Kind.TEXT:
            return self._strings.code(value)
        return integer(number_text(value)) if kind is Kind.INT else real(number_text(value))

    def columns(self) -> Mapping[str, Sparse]:
        """The columns by name, those without a value as well."""
        return {
            field.name: Sparse(np.array(rows, np.uint32), np.array(values, _DTYPES[field.kind]))
            for field, rows, values in zip(self._fields, self._rows, self._values, strict=True)
        }


class Collector:
    """Fills the columns, one accepted event at a time."""

    def __init__(self, event_fields: Sequence[Field], instant_fields: Sequence[Field], counts: Counter[str]) -> None:
        self._phases: Counter[str] = Counter()
        self._metadata: list[Metadata] = []
        self._fractional = False
        self._counts = counts
        self._strings = Dictionary()
        self._tracks: dict[tuple[int, int], int] = {}
        self._event_args = Arguments(event_fields, self._strings, counts)
        self._instant_args = Arguments(instant_fields, self._strings, counts)
        self._events = (array("q"), array("q"), array("i"), array("i"), array("i"))
        self._instants = (array("q"), array("i"), array("i"), array("i"))
        self._flows = (array("q"), array("i"), array("i"), array("q"), array("B"))

    def event(self, members: list[Member]) -> None:
        """Take one event object; what cannot be used is counted under its reason."""
        event = dict(members)
        phase = event.get(b"ph", b"")
        if phase[:1] != b'"' or len(phase) == 2:
            self._counts["no_phase"] += 1
            return
        phase = phase[1:-1]
        self._phases[phase.decode("utf-8", "replace")] += 1
        if phase == b"M":
            name, pid, tid = (decoded(event.get(key, b"")) for key in (b"name", b"pid", b"tid"))
            self._metadata.append(Metadata(name, pid, tid, event.get(b"args", b"")))
        elif phase in _TIMED and (start := self._start(event)) is not None:
            if phase == b"X":
                self._complete(event, members, start)
            elif phase in {b"B", b"E"}:
                self._counts["no_pid"] += b"pid" not in event
                length = BEGIN if phase == b"B" else END, False
                self._add(self._events, self._event_args, event, members, start, length)
            elif phase in {b"i", b"I"}:
                self._add(self._instants, self._instant_args, event, members, start)
            else:
                self._flow(event, phase, start)

    def _start(self, event: dict[bytes, bytes]) -> Time | None:
        if b"ts" not in event:
            self._counts["no_ts"] += 1
            return None
        start = nanoseconds(number_text(event[b"ts"]))
        if start is None:
            self._counts["bad_ts"] += 1
        return start

    def _complete(self, event: dict[bytes, bytes], members: list[Member], start: Time) -> None:
        if b"dur" not in event:
            self._counts["no_dur"] += 1
            return
        length = nanoseconds(number_text(event[b"dur"]))
        if length is None or not INT64_MIN <= start[0] + length[0] <= INT64_MAX:
            self._counts["bad_dur"] += 1
        elif length[0] < 0:
            self._counts["negative_dur"] += 1
        else:
            if b"pid" not in event:
                self._counts["no_pid"] += 1
            self._add(self._events, self._event_args, event, members, start, length)

    def _add(
        self,
        columns: Sequence[array[int]],
        arguments: Arguments,
        event: dict[bytes, bytes],
        members: list[Member],
        *times: Time,
    ) -> None:
        code, row = self._strings.code, len(columns[0])
        texts = code(event.get(b"name", b"")), code(event.get(b"cat", b""))
        _append(columns, *(time for time, _ in times), *texts, self._track(event))
        self._fractional |= any(finer for _, finer in times)
        arguments.add(row, _arguments(event, members))

    def _flow(self, event: dict[bytes, bytes], phase: bytes, start: Time) -> None:
        self._fractional |= start[1]
        written = event.get(b"id", b"")
        number = canonical_integer(decoded(written))
        flow_id = INT64_MIN + self._strings.code(written) if number is None else number
        track = self._track(event)
        _append(self._flows, start[0], track, self._strings.code(event.get(b"cat", b"")), flow_id, phase[0])

    def _track(self, event: dict[bytes, bytes]) -> int:
        code = self._strings.code
        return self._tracks.setdefault((code(event.get(b"pid", b"")), code(event.get(b"tid", b""))), len(self._tracks))

    def tables(self) -> dict[str, Any]:
        """The members of `Scan` that are made of events."""
        return {
            "strings": strings_of(self._strings.texts()),
            "tracks": np.array(list(self._tracks), np.int32).reshape(-1, 2),
            "events": Events(*_table(self._events, self._event_args)),
            "instants": Instants(*_table(self._instants, self._instant_args)),
            "flows": Flows(*map(np.array, self._flows)),
            "metadata": self._metadata,
            "phases": dict(self._phases),
            "fractional": self._fractional,
        }


def _append(columns: Sequence[array[int]], *values: int) -> None:
    for column, value in zip(columns, values, strict=True):
        column.append(value)


def _table(columns: Sequence[array[int]], arguments: Arguments) -> list[Any]:
    return [*map(np.array, columns), arguments.columns()]


def _arguments(event: dict[bytes, bytes], members: list[Member]) -> list[Member]:
    """Members of the event's `args` objects, in the order of the text."""
    last = event.get(b"args", b"")
    if len(event) == len(members):
        return object_members(last, 0, len(last))[0] if last[:1] == b"{" else []
    objects = (value for key, value in members if key == b"args" and value[:1] == b"{")
    return [member for value in objects for member in object_members(value, 0, len(value))[0]]


_BLOCK = 1 << 20
_BOM = b"\xef\xbb\xbf"
_LOOK_BACK = 256
_SEPARATORS = regex(rb"[ \t\n\r,]*")
_EVENT_LIST = regex(rb'"traceEvents"[ \t\n\r]{0,256}:[ \t\n\r]{0,256}\[')
_EVENT = regex(rb'\{[ \t\n\r]{0,256}"(?:ph|name|cat|ts|pid|tid)"[ \t\n\r]{0,256}:')


def scan(
    readinto: Callable[[memoryview], int],
    *,
    event_fields: Sequence[Field],
    instant_fields: Sequence[Field],
    max_value_bytes: int = MAX_VALUE_BYTES,
) -> Scan:
    """As `readers.scan.scan`; an event or header value longer than `max_value_bytes` is malformed."""
    text, start, size = _read(readinto)
    counts: Counter[str] = Counter()
    rows = Collector(event_fields, instant_fields, counts)
    document = _Document(text, rows, counts, max_value_bytes)
    root = {b"{": "object", b"[": "list"}.get(text[:1], "none")
    if root == "object":
        document.read_object()
    elif root == "list":
        document.read_list()
    return Scan(
        **rows.tables(),
        header=document.header,
        counts={reason: counts[reason] for reason in REASONS},
        fault=None if document.fault is None else start + document.fault,
        root=root,
        truncated=document.truncated,
        size=size,
    )


def _read(readinto: Callable[[memoryview], int]) -> tuple[bytes, int, int]:
    """The text from the first byte of its root on (b"" if it has none), the offset of that byte, and the size of all.

    What comes before is not kept, nor is a text without a root: gigabytes of blanks need no memory.
    """
    kept = io.BytesIO()
    size = start = 0
    first = b""
    for block in _blocks(readinto):
        part = block if size else block.removeprefix(_BOM)
        size += len(block)
        if not first:
            part = part.lstrip(BLANK)
            first = part[:1]
            start = size - len(part)
        if first in {b"{", b"["}:
            kept.write(part)
    return kept.getvalue(), start, size


def _blocks(readinto: Callable[[memoryview], int]) -> Iterator[bytes]:
    """The text in blocks of some bytes at least, so that a byte order mark is never split."""
    buffer = memoryview(bytearray(_BLOCK))
    block = b""
    while count := readinto(buffer):
        block += buffer[:count]
        if len(block) >= len(_BOM):
            yield block
            block = b""
    if block:
        yield block


class _Document:
    """One walk over a text that begins with its root."""

    def __init__(self, text: bytes, rows: Collector, counts: Counter[str], longest: int) -> None:
        self.header: dict[bytes, bytes] = {}
        self.fault: int | None = None
        self.truncated = False
        self._text = text
        self._rows = rows
        self._counts = counts
        self._longest = longest

    def read_list(self) -> None:
        """Read a list root: events, then the tail."""
        self._read_tail(self._read_events(1))

    def read_object(self) -> None:
        """Read an object root: header members and event lists, then the tail."""
        pos = self._skip_separators(1)
        while self._text[pos : pos + 1] not in {b"}", b""}:
            pos = self._skip_separators(self._read_member(pos))
        self._read_tail(pos + 1)

    def _read_tail(self, pos: int) -> None:
        """Count what follows the root, which ends before `pos`; beyond the text it has no end."""
        self.truncated = pos > len(self._text)
        if not self.truncated:
            self._counts["trailing_bytes"] += len(self._text) - skip_blanks(self._text, pos)

    def _read_member(self, pos: int) -> int:
        """Read a header member or an event list; the position after it."""
        key = key_end(self._text, pos)
        if key and key[0] == b"traceEvents" and self._text[key[1] : key[1] + 1] == b"[":
            return self._read_events(key[1] + 1)
        end = self._value_end(key[1]) if key else -1
        if key and end >= 0:
            self.header[key[0]] = self._text[key[1] : end]
            return end
        self._malformed(pos)
        found = _EVENT_LIST.search(self._text, pos + 1)
        self._counts["skipped_bytes"] += (found.start() if found else len(self._text)) - pos
        return self._read_events(found.end()) if found else len(self._text)

    def _read_events(self, pos: int) -> int:
        """Read an event list from behind its bracket; the position after it, one beyond the text if it does not end."""
        text = self._text
        pos = self._skip_separators(pos)
        while pos < len(text) and text[pos : pos + 1] != b"]":
            pos = self._skip_separators(self._read_element(pos))
        return pos + 1

    def _read_element(self, pos: int) -> int:
        if self._text[pos : pos + 1] == b"{":
            members, end = object_members(self._text, pos, self._stop(pos))
            if 0 <= end - pos <= self._longest:
                self._rows.event(members)
                return end
        else:
            end = self._value_end(pos)
            if end >= 0:
                self._counts["not_object"] += 1
                return end
        self._malformed(pos)
        following = self._next_event(pos)
        self._counts["skipped_bytes"] += following - pos
        return following

    def _next_event(self, start: int) -> int:
        """Position of the first event after the malformed element at `start`, or the end of the text."""
        for found in _EVENT.finditer(self._text, start + 1):
            before = self._text[max(start, found.start() - _LOOK_BACK) : found.start()].rstrip(BLANK)
            if not before.endswith(b":"):
                return found.start()
        return len(self._text)

    def _malformed(self, pos: int) -> None:
        self._counts["malformed"] += 1
        self.fault = pos if self.fault is None else min(self.fault, pos)

    def _value_end(self, pos: int) -> int:
        end = value_end(self._text, pos, self._stop(pos))
        return end if end - pos <= self._longest else -1

    def _stop(self, pos: int) -> int:
        """One byte beyond the longest value, which tells a value that is too long from one that just fits."""
        return min(len(self._text), pos + self._longest + 1)

    def _skip_separators(self, pos: int) -> int:
        found = _SEPARATORS.match(self._text, pos)
        return found.end() if found else pos
