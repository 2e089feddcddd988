"""What every table of a database needs: tracks of threads and streams, usable times, joins by id."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from traceanalyze.frozen import frozen
from traceanalyze.readers.ascend import db_file
from traceanalyze.readers.ascend.shared import ABSENT, NONE_32, Block

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from traceanalyze.readers.ascend.db_file import Columns, Database
    from traceanalyze.readers.ascend.db_strings import StringIds
    from traceanalyze.readers.ascend.info import About

HOST = "Python [CPU]"
"""Name of the host's process."""
_NONE = (NONE_32, 2**63 - 1)
"""Numbers that mean "none": 2^32 - 1, and what SQLite makes of 2^64 - 1 as text."""


@frozen
class Reading:
    """A database while it is read. What grows: counts, notes, tracks and their names."""

    database: Database
    strings: StringIds
    about: About
    counts: Counter[str]
    """Rows left out, by reason (`readers/scan/result.py`, `REASONS`)."""
    notes: list[str]
    tracks: dict[tuple[str, str], int] = field(default_factory=dict)
    """Texts of process id and thread id → position."""
    process_names: dict[str, str] = field(default_factory=dict)
    thread_names: dict[tuple[str, str], str] = field(default_factory=dict)

    def track(self, pid: str, tid: str) -> int:
        """Position of a track."""
        return self.tracks.setdefault((pid, tid), len(self.tracks))

    def tracks_of(self, key: NDArray[np.int64], place: Callable[[int], tuple[str, str]]) -> NDArray[np.int32]:
        """Track of each row; `place(key)` gives the texts of process id and thread id, once a distinct key."""
        distinct, inverse = np.unique(key, return_inverse=True)
        positions = np.array([self.track(*place(int(one))) for one in distinct], np.int32)
        return positions[inverse.reshape(-1)] if len(distinct) else np.empty(0, np.int32)

    def threads(self, global_tid: NDArray[np.int64]) -> NDArray[np.int32]:
        """Track of each host event; `globalTid` is process id and thread id, 32 bits each."""

        def place(key: int) -> tuple[str, str]:
            pid, tid = str(key >> 32), str(key & NONE_32)
            self.process_names[pid], self.thread_names[pid, tid] = HOST, f"Thread {tid}"
            return pid, tid

        return self.tracks_of(np.where(global_tid == ABSENT, 0, global_tid), place)


def timed(reading: Reading, table: Columns) -> Columns:
    """Rows with a time and a duration; the others are counted."""
    start, end = table["startNs"], table["endNs"]
    late = start <= 0
    reasons = {"no_ts": start == ABSENT, "bad_ts": late & (start != ABSENT)}
    reasons |= {"no_dur": ~late & (end == ABSENT), "negative_dur": ~late & (end != ABSENT) & (end < start)}
    for reason, rows in reasons.items():
        reading.counts[reason] += int(rows.sum())
    good = ~late & (end >= start)
    return table if good.all() else db_file.select(table, good)


def block(
    cat: str, table: Columns, name: NDArray[np.int32], track: NDArray[np.int32], fields: Mapping[str, NDArray[Any]]
) -> Block:
    """Rows of one category from the columns `startNs` and `endNs`."""
    return Block(cat, table["startNs"], table["endNs"] - table["startNs"], name, track, fields)


def chosen(whole: Block, cat: str, rows: NDArray[np.bool_]) -> Block:
    """Some rows of a block, under a category of their own."""
    fields = {name: column[rows] for name, column in whole.fields.items()}
    return Block(cat, whole.ts[rows], whole.dur[rows], whole.name[rows], whole.track[rows], fields)


def known(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ids with the numbers that mean "none" made absent."""
    return np.where(np.isin(ids, _NONE), ABSENT, ids)


def index_of(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Position in `keys` of each wanted value, the first of equal ones; -1 where it is absent or not there."""
    if len(keys) == 0:
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(keys, kind="stable")
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    found = (keys[order[at]] == wanted) & (wanted != ABSENT)
    return np.where(found, order[at], -1)


def taken(column: NDArray[Any], at: NDArray[np.int64], missing: float) -> NDArray[Any]:
    """Values at positions, `missing` where the position is -1."""
    if len(column) == 0:
        return np.full(len(at), missing, column.dtype)
    return np.where(at >= 0, column[np.maximum(at, 0)], np.array(missing, column.dtype))


def pairs(left: NDArray[np.int64], right: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of all pairs with equal keys, in the order of `left`; absent keys match nothing."""
    order = np.argsort(right, kind="stable")
    first = np.searchsorted(right[order], left, "left")
    size = np.where(left == ABSENT, 0, np.searchsorted(right[order], left, "right") - first)
    source = np.repeat(np.arange(len(left)), size)
    place = np.arange(len(source)) - np.repeat(np.cumsum(size) - size, size)
    return source, order[np.repeat(first, size) + place]
