"""The columns that grow while the twin reads: the dictionary of strings, and the arguments only some events have."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from traceanalyze.readers.scan.grammar import decoded, number_text
from traceanalyze.readers.scan.numbers import integer, real
from traceanalyze.readers.scan.result import Field, Kind, Sparse, Strings

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping, Sequence

    from traceanalyze.readers.scan.grammar import Member

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
