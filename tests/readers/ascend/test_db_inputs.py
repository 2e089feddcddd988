"""Databases that are damaged, open elsewhere or something else; and that reading leaves everything as it was."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests import ascend_db_builder as made
from tests.ascend_db_builder import OP, Builder, read_profile
from traceanalyze.errors import InputError
from traceanalyze.readers.ascend.db_file import open_database, pairs

if TYPE_CHECKING:
    from pathlib import Path


def content(folder: Path) -> dict[str, str]:
    """Every file and what is in it."""
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def small(folder: Path, ops: int = 3) -> Path:
    build = Builder()
    for number in range(ops):
        build.api(OP, "aten::mul", 10 * number, 5)
    return build.write(folder)


def error_of(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        made.read_profile(folder)
    text = str(caught.value)
    assert "\n" not in text
    assert "ascend_pytorch_profiler_3.db" in text
    return text


def test_reading_changes_nothing(tmp_path: Path) -> None:
    small(tmp_path)
    before = content(tmp_path)
    made.read_profile(tmp_path)
    assert content(tmp_path) == before


def test_a_write_ahead_log_is_read_and_left_alone(tmp_path: Path) -> None:
    """What a viewer wrote last may still be beside the database; SQLite would make a -shm file to look at it."""
    path = small(tmp_path / "writer", ops=1)
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("INSERT INTO PYTORCH_API SELECT * FROM PYTORCH_API")
        writer.commit()
        copied = tmp_path / "read" / "ASCEND_PROFILER_OUTPUT"
        copied.mkdir(parents=True)
        for name in (path.name, f"{path.name}-wal"):
            (copied / name).write_bytes(path.with_name(name).read_bytes())
    before = content(tmp_path / "read")
    assert len(made.read_profile(tmp_path / "read").events) == 2
    assert content(tmp_path / "read") == before


def test_a_change_that_was_not_finished_does_not_count(tmp_path: Path) -> None:
    """A hot journal: the changes in the database are to be taken back."""
    path = small(tmp_path / "writer", ops=2000)
    copied = tmp_path / "read" / "ASCEND_PROFILER_OUTPUT"
    copied.mkdir(parents=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN")
        writer.execute("DELETE FROM PYTORCH_API")
        writer.execute("INSERT INTO STRING_IDS VALUES (12345, zeroblob(1000000))")
        for name in (path.name, f"{path.name}-journal"):
            (copied / name).write_bytes(path.with_name(name).read_bytes())
        writer.execute("ROLLBACK")
    assert (copied / f"{path.name}-journal").stat().st_size > 0
    before = content(tmp_path / "read")
    assert len(made.read_profile(tmp_path / "read").events) == 2000
    assert content(tmp_path / "read") == before


def test_a_database_that_another_program_holds_is_read(tmp_path: Path) -> None:
    path = small(tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        assert len(made.read_profile(tmp_path).events) == 3
        holder.execute("ROLLBACK")


def test_a_name_with_signs_that_mean_something_in_addresses(tmp_path: Path) -> None:
    small(tmp_path / "50% done?mode=rw#1")
    assert len(made.read_profile(tmp_path / "50% done?mode=rw#1").events) == 3


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.95])
def test_cut_short(tmp_path: Path, kept: float) -> None:
    path = small(tmp_path, ops=5000)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * kept)])
    assert "damaged or cut short" in error_of(tmp_path)


def test_a_damaged_schema_of_what_is_no_text(tmp_path: Path) -> None:
    with closing(sqlite3.connect(small(tmp_path))) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET name = CAST(x'61FF' AS TEXT), sql = 'CREATE' WHERE rowid = 1")
    assert "damaged or cut short" in error_of(tmp_path)


def test_overwritten_in_the_middle(tmp_path: Path) -> None:
    path = small(tmp_path, ops=5000)
    whole = bytearray(path.read_bytes())
    whole[100:8192] = b"\xff" * 8092
    path.write_bytes(whole)
    assert "damaged or cut short" in error_of(tmp_path)


def test_empty_file(tmp_path: Path) -> None:
    small(tmp_path).write_bytes(b"")
    assert "the file is empty" in error_of(tmp_path)


def test_no_database_at_all(tmp_path: Path) -> None:
    small(tmp_path).write_text('{"traceEvents": []}')
    assert "not an SQLite database" in error_of(tmp_path)


def test_a_database_of_something_else(tmp_path: Path) -> None:
    path = small(tmp_path)
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER)")
    assert "no Ascend profile" in error_of(tmp_path)


@pytest.mark.parametrize(
    ("table", "said"), [("StepTraceTime", "totals beside a profile"), ("ClusterStepTraceTime", "analysis of a cluster")]
)
def test_the_other_databases_of_the_vendor(tmp_path: Path, table: str, said: str) -> None:
    path = small(tmp_path)
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"CREATE TABLE {table} (step TEXT)")
    assert said in error_of(tmp_path)


def test_tables_without_rows(tmp_path: Path) -> None:
    path = small(tmp_path)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM PYTORCH_API")
    assert "holds no event" in error_of(tmp_path)


def test_damaged_totals_are_noted(tmp_path: Path) -> None:
    small(tmp_path)
    (tmp_path / "ASCEND_PROFILER_OUTPUT" / "analysis.db").write_bytes(b"nonsense")
    trace = made.read_profile(tmp_path)
    assert trace.vendor is None
    assert any("analysis.db" in note for note in trace.read.notes)


def test_totals_without_steps(tmp_path: Path) -> None:
    small(tmp_path)
    made.write_totals(tmp_path, "CREATE TABLE CommAnalyzerTime (step TEXT)")
    assert made.read_profile(tmp_path).vendor is None


def test_a_foreign_database_gets_no_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its schema may call, how large a value may be, how long it may keep us busy: one line, no traceback."""
    build = Builder()
    build.api(OP, "aten::mul", 0, 5)
    path = build.write(tmp_path / "a_ascend_pt")
    with open_database(path) as database:
        settings = [
            database.connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("trusted_schema", "cell_size_check")
        ]
    assert settings == [0, 1]
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("UPDATE STRING_IDS SET value = printf('%.*c', 70000000, 'x')")
    with pytest.raises(InputError, match="too big"):
        read_profile(tmp_path / "a_ascend_pt")
    monkeypatch.setattr("traceanalyze.readers.ascend.db_file._SECONDS", -1000)
    monkeypatch.setattr("traceanalyze.readers.ascend.db_file._STEPS_BETWEEN", 1)
    with pytest.raises(InputError, match="interrupted"):
        read_profile(tmp_path / "a_ascend_pt")


def test_a_default_that_stands_in_every_row_is_refused(tmp_path: Path) -> None:
    """A megabyte of a file stood for a gigabyte of names: the process took all memory there was."""
    small(tmp_path)
    (path,) = tmp_path.rglob("ascend_pytorch_profiler_3.db")
    with closing(sqlite3.connect(path)) as writer, writer:
        writer.execute("DROP TABLE STRING_IDS")
        writer.execute("CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY)")
        writer.executemany("INSERT INTO STRING_IDS VALUES (?)", [(number,) for number in range(300)])
        writer.execute(f"ALTER TABLE STRING_IDS ADD COLUMN value TEXT DEFAULT '{'x' * 500_000}'")
    assert "STRING_IDS: more text than the file has room for" in error_of(tmp_path)


def test_keys_that_all_rows_share_are_not_multiplied() -> None:
    """The square of 2,000 rows would be 4,000,000 pairs; each row of one side with one of the other is 2,000."""
    same, each = np.ones(2000, np.int64), np.arange(2000)
    with pytest.raises(sqlite3.DataError, match="CONNECTION_IDS"):
        pairs(same, same)
    for found in pairs(each, each):
        assert found.tolist() == each.tolist()
