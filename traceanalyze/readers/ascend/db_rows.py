"""What every table of a database needs: tracks of threads and streams, usable times, joins by id."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.columns import Strings, find, strings_of
from traceanalyze.readers.ascend.db_file import Columns, Database, select
from traceanalyze.readers.ascend.info import About
from traceanalyze.readers.ascend.shared import ABSENT, NO_TEXT, NONE_32, Block, Texts, values_at

_GROUPS = ("COMMUNICATION_OP", "COMMUNICATION_TASK_INFO")


class StringIds(NamedTuple):
    """The texts of a database by id."""

    table: Strings
    """The texts themselves."""
    texts: Texts
    """The dictionary of the trace, which begins with `table`."""
    ids: NDArray[np.int64]
    codes: NDArray[np.int32]
    """Code of each id."""
    known: Mapping[bytes, int]
    """Text → code, of the texts read."""
    private: Mapping[int, str]
    """Texts that are not for the dictionary, because they hold addresses: the names of groups."""

    def of(self, ids: NDArray[np.int64]) -> NDArray[np.int32]:
        """Codes of ids; `NO_TEXT` for those that are not there."""
        return values_at(self.codes, find(ids, self.ids), NO_TEXT)

    def names(self, ids: NDArray[np.int64]) -> NDArray[np.int32]:
        """Codes of ids; that of the empty text for those that are not there."""
        return np.maximum(self.of(ids), 0)

    def ids_of(self, *wanted: str) -> list[int]:
        """Ids of texts, of those that are there."""
        codes = [self.known[text.encode()] for text in wanted if text.encode() in self.known]
        return [int(one) for one in self.ids[np.isin(self.codes, codes)]]


def read_strings(database: Database) -> StringIds:
    """All texts of a database. Equal texts get one code; ids without a text are unknown ids."""
    groups = [database.integers(table, ["groupName"])["groupName"] for table in _GROUPS]
    hidden = set(np.unique(np.concatenate(groups)).tolist())
    rows = database.texts("STRING_IDS", "id", "value")
    known: dict[bytes, int] = {b"": 0}
    codes = [0 if key in hidden else known.setdefault(value, len(known)) for key, value in rows]
    ids, table = np.array([key for key, _ in rows], np.int64), strings_of(list(known))
    private = {key: value.decode("utf-8", "replace") for key, value in rows if key in hidden}
    return StringIds(table, Texts(table), ids, np.array(codes, np.int32), known, private)


HOST = "Python [CPU]"
"""Name of the host's process."""
_NONE = (NONE_32, 2**63 - 1)
"""Numbers that mean "none": 2^32 - 1, and what SQLite makes of 2^64 - 1 as text."""


@dataclass(frozen=True)
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
    return table if good.all() else select(table, good)


def block(
    cat: str, table: Columns, name: NDArray[np.int32], track: NDArray[np.int32], fields: Mapping[str, NDArray[Any]]
) -> Block:
    """Rows of one category from the columns `startNs` and `endNs`."""
    return Block(cat, table["startNs"], table["endNs"] - table["startNs"], name, track, fields)


def selected(whole: Block, cat: str, rows: NDArray[np.bool_], **fields: NDArray[Any]) -> Block:
    """Some rows of a block, under a category of their own, with fields that only these have."""
    kept = {name: column[rows] for name, column in whole.fields.items()}
    return Block(cat, whole.ts[rows], whole.dur[rows], whole.name[rows], whole.track[rows], kept | fields)


def known(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ids with the numbers that mean "none" made absent."""
    return np.where(np.isin(ids, _NONE), ABSENT, ids)


def pairs(left: NDArray[np.int64], right: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of all pairs with equal keys, in the order of `left`; absent keys match nothing."""
    order = np.argsort(right, kind="stable")
    first = np.searchsorted(right[order], left, "left")
    size = np.where(left == ABSENT, 0, np.searchsorted(right[order], left, "right") - first)
    source = np.repeat(np.arange(len(left)), size)
    place = np.arange(len(source)) - np.repeat(np.cumsum(size) - size, size)
    return source, order[np.repeat(first, size) + place]
