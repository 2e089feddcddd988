"""The two building blocks of every table: dictionary-coded strings and columns that only some rows have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Strings:
    """Dictionary of distinct byte strings; code i is `blob[offsets[i]:offsets[i + 1]]`. Code 0 is the empty string."""

    blob: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def raw(self, code: int) -> bytes:
        """Bytes of one string as decoded from JSON; not necessarily UTF-8."""
        return self.blob[self.offsets[code] : self.offsets[code + 1]].tobytes()

    def text(self, code: int) -> str:
        """One string for people: undecodable bytes become U+FFFD."""
        return self.raw(code).decode("utf-8", "replace")

    def lookup(self, codes: NDArray[np.int32], value: Callable[[str], int]) -> NDArray[np.int32]:
        """`value(text)` for each of `codes`, computed once a distinct code. Shape and order of `codes` are kept."""
        distinct, inverse = distinct_codes(codes, len(self))
        table = np.fromiter((value(self.text(code)) for code in distinct), np.int32, len(distinct))
        return table[inverse]


def distinct_codes(codes: NDArray[np.int32], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct codes (ascending) and the index of each row's code among them; linear where `np.unique` would sort."""
    present = np.zeros(size, np.bool_)
    present[codes] = True
    distinct = np.flatnonzero(present)
    position = np.zeros(size, np.int64)
    position[distinct] = np.arange(len(distinct))
    return distinct, position[codes]


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Distinct values, ascending; `np.unique` would import `numpy.ma`, 10 ms of every run."""
    ordered = np.sort(values)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if len(ordered) else ordered


_TABLE = 16
"""Values are looked up in a table when it has at most this many places a row asked for, else by search."""


@dataclass(frozen=True, slots=True)
class Sparse:
    """A column that only some rows have: `row` (uint32, ascending) and `value` (int64, float64, or int32 codes)."""

    row: NDArray[np.uint32]
    value: NDArray[Any]

    def take(self, rows: NDArray[np.int64], missing: int) -> NDArray[Any]:
        """Values at `rows` (any order), `missing` where a row has none."""
        out = np.full(len(rows), missing, self.value.dtype)
        if len(self.row) == 0 or len(rows) == 0:
            return out
        last = int(self.row[-1])
        if last < _TABLE * len(rows):
            table = np.full(last + 2, missing, self.value.dtype)
            table[self.row] = self.value
            return table[np.minimum(rows.astype(np.uint32), last + 1)]
        at = np.searchsorted(self.row, rows.astype(np.uint32))
        at[at == len(self.row)] = 0
        found = self.row[at] == rows
        out[found] = self.value[at[found]]
        return out
