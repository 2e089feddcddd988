"""SQLite read without leaving a trace: tables as integer columns, and one clear line for what goes wrong."""

import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import InputError, Phrase
from traceanalyze.readers.ascend.shared import ABSENT

Columns = dict[str, NDArray[np.int64]]
"""Rows of a table: column name → int64 values, `ABSENT` where there is none."""

_MAGIC = b"SQLite format 3\0"
_HEAD = 100
_SIZES = (16, 2), (24, 4), (28, 4), (92, 4)
"""Places and lengths in it: page size, counter of changes, pages, and the counter for which these hold."""
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
        return self.connection.execute(query).fetchall()

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
            yield Database(connection, _tables(connection))
    except (sqlite3.Error, OSError) as error:
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
