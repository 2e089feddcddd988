"""Events to columns: the meaning of `ph`, `ts`, `dur`, `id` and `args`, member by member."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from traceanalyze.model.columns import Sparse, strings_of
from traceanalyze.model.trace import Events, Flows, Instants
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
from traceanalyze.readers.scan.result import Field, Kind, Metadata

_DTYPES = {Kind.INT: np.int64, Kind.REAL: np.float64, Kind.TEXT: np.int32}
_TYPECODES = {Kind.INT: "q", Kind.REAL: "d", Kind.TEXT: "i"}
_TIMED = frozenset({b"X", b"i", b"I", b"s", b"t", b"f"})
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
        self._columns_of: defaultdict[bytes, list[int]] = defaultdict(list)
        for column, field in enumerate(fields):
            for key in field.keys:
                self._columns_of[key.encode()].append(column)

    def add(self, row: int, members: Sequence[Member]) -> None:
        """Take the values of one event from its `args`; of several aliases of a column the last in the text wins."""
        found = {column: value for key, value in members for column in self._columns_of.get(key, ())}
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
