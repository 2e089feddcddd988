"""SQLite read without leaving a trace: columns of tables, tracks and usable times, and one line for what goes wrong."""

import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import InputError, Phrase
from traceanalyze.model.columns import Strings, find, strings_of
from traceanalyze.readers.ascend.info import About
from traceanalyze.readers.ascend.shared import ABSENT, NO_TEXT, NONE_32, Block, Texts, values_at

Columns = dict[str, NDArray[np.int64]]
"""Rows of a table: column name → int64 values, `ABSENT` where there is none."""

_MAGIC = b"SQLite format 3\0"
_HEAD = 100
_SIZES = (16, 2), (24, 4), (28, 4), (92, 4)
"""Places and lengths in it: page size, counter of changes, pages, and the counter for which these hold."""
_MOST_PAIRS = 1 << 16
_UNFINISHED = ("-wal", "-journal")
"""Endings of the files in which SQLite keeps changes that are not in the database yet, or are to be taken back."""
_MOST_BYTES, _MOST_SQL = 1 << 26, 1 << 20
"""Of one value (a stack of calls has some kB), and of one statement, those of the file's schema too."""
_SECONDS, _BYTES_A_SECOND, _STEPS_BETWEEN = 60, 1 << 20, 1 << 16
"""How long reading may take: a hundredth of the speed of a slow machine. SQLite asks every so many of its steps."""
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"


class Database(NamedTuple):
    """An open database and its tables."""

    connection: sqlite3.Connection
    tables: Mapping[str, frozenset[str]]
    """Table name (upper case) → column names (lower case)."""
    room: int
    """Bytes that the texts of a table may take."""

    def is_empty(self, table: str) -> bool:
        """Whether there is no such table, or no row in it."""
        query = f'SELECT 1 FROM "{table}" LIMIT 1'  # noqa: S608
        return table.upper() not in self.tables or self.connection.execute(query).fetchone() is None

    def integers(
        self, table: str, columns: Sequence[str | tuple[str, ...]], only: tuple[str, Sequence[int]] | None = None
    ) -> Columns:
        """Columns of a table as int64, by their first name; no rows when there is no such table.

        A tuple holds the names of one column over the versions. Reals are rounded, numbers stored as text converted.
        `only` is a column, and the values that it must have one of.
        """
        present = self.tables.get(table.upper())
        names = [(column,) if isinstance(column, str) else column for column in columns]
        if present is None or (only is not None and only[0].lower() not in present):
            return {name[0]: np.empty(0, np.int64) for name in names}
        selected = ", ".join(_expression(name, present) for name in names)
        where = "" if only is None else f' WHERE "{only[0]}" IN ({", ".join(map(str, only[1]))})'
        # Names are constants of this package and values are integers: nothing of the file enters the statement.
        query = f'SELECT {selected} FROM "{table}"{where}'  # noqa: S608
        flat = np.fromiter(chain.from_iterable(self.connection.execute(query)), np.int64)
        rows = flat.reshape(-1, len(names))
        return {name[0]: np.ascontiguousarray(rows[:, place]) for place, name in enumerate(names)}

    def texts(self, table: str, key: str, value: str) -> list[tuple[int, bytes]]:
        """Rows (integer key, text) without those that hold a NULL; none without the table or a column of it."""
        if not {key.lower(), value.lower()} <= self.tables.get(table.upper(), frozenset()):
            return []
        query = (
            f'SELECT CAST("{key}" AS INTEGER), CAST("{value}" AS BLOB) FROM "{table}" '  # noqa: S608
            f'WHERE "{key}" IS NOT NULL AND "{value}" IS NOT NULL'
        )
        found, room = list[tuple[int, bytes]](), self.room
        for row in self.connection.execute(query):
            room -= len(row[1])
            if room < 0:
                raise sqlite3.DataError(f"{table}: more text than the file has room for")
            found.append(row)
        return found

    def vocabulary(self, table: str) -> dict[int, str]:
        """The names in a table of ids and names."""
        return {key: name.decode("utf-8", "replace") for key, name in self.texts(table, "id", "name")}


def _expression(names: tuple[str, ...], present: frozenset[str]) -> str:
    name = next((name for name in names if name.lower() in present), None)
    if name is None:
        return str(ABSENT)
    return (
        f"CASE typeof(\"{name}\") WHEN 'integer' THEN \"{name}\" WHEN 'null' THEN {ABSENT} "
        f'WHEN \'real\' THEN CAST(ROUND("{name}") AS INTEGER) ELSE CAST("{name}" AS INTEGER) END'
    )


@contextmanager
def open_database(path: Path) -> Iterator[Database]:
    """Open a database for reading; errors of SQLite inside the block become one line as well.

    The file is opened as immutable: no lock is taken, no file is made beside it. When a program left changes beside
    it, a copy in a temporary folder is read, because SQLite would have to write to take them into account.
    """
    try:
        _check_head(path)
        with ExitStack() as stack:
            beside = [file for file in map(path.name.__add__, _UNFINISHED) if _holds_bytes(path.with_name(file))]
            if beside:
                folder = Path(stack.enter_context(TemporaryDirectory()))
                for name in (path.name, *beside):
                    shutil.copyfile(path.with_name(name), folder / name)
                uri = f"{(folder / path.name).as_uri()}?mode=rw"
            else:
                uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
            connection = stack.enter_context(closing(sqlite3.connect(uri, uri=True)))
            connection.text_factory = bytes
            _guard(connection, path.stat().st_size)
            # A default of a column, or what is computed, stands in every row and in the file but once.
            yield Database(connection, _tables(connection), _MOST_BYTES + 2 * path.stat().st_size)
    # What SQLite says of a damaged schema may hold bytes that are no text.
    except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
        damaged = Phrase(
            "the database is damaged or cut short ({error}); copy it again, or export the profile again", error
        )
        why = error.strerror if isinstance(error, OSError) else damaged
        raise InputError("{path}: {why}", path, why or error) from error


def _guard(connection: sqlite3.Connection, size: int) -> None:
    """No trust in the functions of a foreign schema or in its cells, no huge value, no endless query."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _MOST_SQL)
    end = monotonic() + _SECONDS + size / _BYTES_A_SECOND
    connection.set_progress_handler(lambda: monotonic() > end, _STEPS_BETWEEN)


def check_finished(path: Path) -> None:
    """Refuse a database with changes beside it, which only a copy of all of it could be read with."""
    if any(_holds_bytes(path.with_name(path.name + ending)) for ending in _UNFINISHED):
        raise InputError("{name}: another program has left changes beside it", path.name)


def _check_head(path: Path) -> None:
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    if not head:
        raise InputError("{path}: the file is empty; export the profile again, or copy it again", path)
    if not head.startswith(_MAGIC):
        raise InputError(
            "{path}: this is not an SQLite database; give ascend_pytorch_profiler_*.db or its folder", path
        )
    size, changes, pages, valid_for = (int.from_bytes(head[at : at + length]) for at, length in _SIZES)
    # SQLite itself reads the tables whose pages are there. A size of 1 stands for 65536.
    if changes == valid_for and path.stat().st_size < pages * (size if size > 1 else 1 << 16):
        raise sqlite3.DatabaseError("file is shorter than it says")


def _holds_bytes(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _tables(connection: sqlite3.Connection) -> dict[str, frozenset[str]]:
    names = [row[0].decode("utf-8", "replace") for row in connection.execute(_TABLES)]
    return {name.upper(): _columns(connection, name) for name in names}


def _columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    found = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
    return frozenset(row[0].decode("utf-8", "replace").lower() for row in found)


def select(columns: Columns, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Columns:
    """Some of the rows, by mask or index."""
    return {name: values[rows] for name, values in columns.items()}


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
    # Rows are launches, each of hardly more than one operator; a key that all of them share would be their square.
    if size.sum() > _MOST_PAIRS + 4 * (len(left) + len(right)):
        raise sqlite3.DataError("CONNECTION_IDS: more launches than it has rows for")
    source = np.repeat(np.arange(len(left)), size)
    place = np.arange(len(source)) - np.repeat(np.cumsum(size) - size, size)
    return source, order[np.repeat(first, size) + place]
