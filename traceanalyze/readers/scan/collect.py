"""Events to columns: the meaning of `ph`, `ts`, `dur`, `id` and `args`, member by member."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyze.readers.scan.grammar import (
    INT64_MAX,
    INT64_MIN,
    Member,
    canonical_integer,
    decoded,
    integer,
    nanoseconds,
    number_text,
    object_members,
    real,
)
from traceanalyze.readers.scan.result import Events, Field, Flows, Instants, Kind, Metadata, Sparse, Strings

_DTYPES = {Kind.INT: np.int64, Kind.REAL: np.float64, Kind.TEXT: np.int32}
_TYPECODES = {Kind.INT: "q", Kind.REAL: "d", Kind.TEXT: "i"}


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

    def table(self) -> Strings:
        """All of them; the position is the code."""
        texts = list(self._codes)
        offsets = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        return Strings(np.frombuffer(b"".join(texts), np.uint8), offsets)


class Arguments:
    """The sparse columns of one kind of event."""

    def __init__(self, fields: Sequence[Field], strings: Dictionary, counts: Counter[str]) -> None:
        self._fields = fields
        self._strings = strings
        self._counts = counts
        self._rows = [array("I") for _ in fields]
        self._values: list[array[Any]] = [array(_TYPECODES[field.kind]) for field in fields]
        self._columns_of: dict[bytes, tuple[int, ...]] = {}
        for column, field in enumerate(fields):
            for key in field.keys:
                known = self._columns_of.get(key.encode(), ())
                self._columns_of[key.encode()] = (*known, column)

    def add(self, row: int, members: Sequence[Member]) -> None:
        """Take the values of one event from its `args`; of several aliases of a column the last in the text wins."""
        columns_of = self._columns_of
        found: dict[int, bytes] = {}
        for key, value in members:
            for column in columns_of.get(key, ()):
                found[column] = value
        for column, value in found.items():
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
        self.phases: Counter[str] = Counter()
        self.metadata: list[Metadata] = []
        self.fractional = False
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
        self.phases[phase.decode("utf-8", "replace")] += 1
        if phase == b"X":
            self._complete(event, members)
        elif phase in {b"i", b"I"}:
            self._instant(event, members)
        elif phase in {b"s", b"t", b"f"}:
            self._flow(event, phase)
        elif phase == b"M":
            name, pid, tid = (decoded(event.get(key, b"")) for key in (b"name", b"pid", b"tid"))
            self.metadata.append(Metadata(name, pid, tid, event.get(b"args", b"")))

    def _complete(self, event: dict[bytes, bytes], members: list[Member]) -> None:
        start = self._time(event)
        if start is None:
            return
        if b"dur" not in event:
            self._counts["no_dur"] += 1
            return
        length = nanoseconds(number_text(event[b"dur"]))
        if length is None or not INT64_MIN <= start[0] + length[0] <= INT64_MAX:
            self._counts["bad_dur"] += 1
            return
        if length[0] < 0:
            self._counts["negative_dur"] += 1
            return
        if b"pid" not in event:
            self._counts["no_pid"] += 1
        self.fractional |= start[1] or length[1]
        row = len(self._events[0])
        code = self._strings.code
        values = (start[0], length[0], code(event.get(b"name", b"")), code(event.get(b"cat", b"")), self._track(event))
        _append(self._events, values)
        self._event_args.add(row, _arguments(event, members))

    def _instant(self, event: dict[bytes, bytes], members: list[Member]) -> None:
        start = self._time(event)
        if start is None:
            return
        self.fractional |= start[1]
        row = len(self._instants[0])
        code = self._strings.code
        values = (start[0], code(event.get(b"name", b"")), code(event.get(b"cat", b"")), self._track(event))
        _append(self._instants, values)
        self._instant_args.add(row, _arguments(event, members))

    def _flow(self, event: dict[bytes, bytes], phase: bytes) -> None:
        start = self._time(event)
        if start is None:
            return
        self.fractional |= start[1]
        written = event.get(b"id", b"")
        number = canonical_integer(decoded(written))
        flow_id = INT64_MIN + self._strings.code(written) if number is None else number
        values = (start[0], self._track(event), self._strings.code(event.get(b"cat", b"")), flow_id, phase[0])
        _append(self._flows, values)

    def _time(self, event: dict[bytes, bytes]) -> tuple[int, bool] | None:
        if b"ts" not in event:
            self._counts["no_ts"] += 1
            return None
        start = nanoseconds(number_text(event[b"ts"]))
        if start is None:
            self._counts["bad_ts"] += 1
        return start

    def _track(self, event: dict[bytes, bytes]) -> int:
        code = self._strings.code
        return self._tracks.setdefault((code(event.get(b"pid", b"")), code(event.get(b"tid", b""))), len(self._tracks))

    def strings(self) -> Strings:
        """The dictionary all codes refer to."""
        return self._strings.table()

    def tracks(self) -> NDArray[np.int32]:
        """Codes of the pid and tid texts, a row for each track."""
        return np.array(list(self._tracks), np.int32).reshape(-1, 2)

    def events(self) -> Events:
        """The complete events."""
        ts, dur, name, cat, track = (np.array(column) for column in self._events)
        return Events(ts, dur, name, cat, track, self._event_args.columns())

    def instants(self) -> Instants:
        """The instant events."""
        ts, name, cat, track = (np.array(column) for column in self._instants)
        return Instants(ts, name, cat, track, self._instant_args.columns())

    def flows(self) -> Flows:
        """The flow events."""
        ts, track, cat, flow_id, phase = (np.array(column) for column in self._flows)
        return Flows(ts, track, cat, flow_id, phase)


def _append(columns: tuple[array[int], ...], values: tuple[int, ...]) -> None:
    for column, value in zip(columns, values, strict=True):
        column.append(value)


def _arguments(event: dict[bytes, bytes], members: list[Member]) -> list[Member]:
    """Members of the event's `args` objects, in the order of the text."""
    last = event.get(b"args", b"")
    if len(event) == len(members):
        return object_members(last, 0, len(last))[0] if last[:1] == b"{" else []
    objects = (value for key, value in members if key == b"args" and value[:1] == b"{")
    return [member for value in objects for member in object_members(value, 0, len(value))[0]]
