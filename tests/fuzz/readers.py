"""Fuzz targets of the readers that are written in Python: `readers.py TARGET [libFuzzer's options] CORPUS…`.

The bytes of an input are read as changes of a small sound profile: cells, members and rows become other values, are
lost, repeated or renamed; then bytes of the file change. However it looks, it is read, or one line says why not.
"""

from __future__ import annotations

import csv
import io
import json
import pickle
import sqlite3
import sys
import tempfile
import warnings
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
# Modules that the finder of an editable install loads get no marks of coverage.
sys.meta_path[:] = [finder for finder in sys.meta_path if "Redirecting" not in type(finder).__name__]

with atheris.instrument_imports(include=["traceanalyze"]):
    from traceanalyze.errors import InputError
    from traceanalyze.incident import read_evidence
    from traceanalyze.readers import kineto
    from traceanalyze.readers.snapshot import read_snapshot
    from traceanalyze.readers.source import Source
    from traceanalyze.readers.sources import expand

# After the readers, whose modules are marked as they are first imported.
from tests.fuzz.snapshots import corpus as snapshot_contents  # noqa: E402
from tests.incident.test_flight import dump  # noqa: E402
from tests.incident.test_messages import CASES  # noqa: E402
from tests.simulate.simulate import simulate  # noqa: E402
from tests.simulate.two_npus import TWO_NPUS  # noqa: E402
from tests.simulate.writers.ascend import write_ascend  # noqa: E402

Draw = Any
"""An `atheris.FuzzedDataProvider`."""
_ODD = (
    *(0, -1, 1, 2**31, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 2**90, 10**400, 1.5, -0.0, 1e308, 1e-320),
    *(float("nan"), float("inf"), True, None, "", "x", "N/A", "ü\ud800", "\0", "1e999", "9" * 5000, " 12\t", '"', ","),
    *([], {}, [[]], [1, 2], {"a": 1}, "step1", "Total Op Info", "a@b", "hcom_allReduce__586_0_1", "PTA", "NPU:9"),
)


def _odd(draw: Draw) -> Any:
    value = _ODD[draw.ConsumeIntInRange(0, len(_ODD) - 1)]
    return draw.ConsumeUnicode(12) if value is True and draw.ConsumeBool() else value


def _damaged(text: bytes, draw: Draw) -> bytes:
    """Some bytes replaced, in what is left of the input; mostly none."""
    made = bytearray(text)
    for _ in range(max(draw.ConsumeIntInRange(0, 7) - 4, 0)):
        at = draw.ConsumeIntInRange(0, len(made))
        made[at : at + draw.ConsumeIntInRange(0, 40)] = draw.ConsumeBytes(draw.ConsumeIntInRange(0, 20))
    return bytes(made)


def _edited(content: Any, draw: Draw) -> Any:
    """Members changed, lost, renamed, repeated, of a JSON value."""
    whole = [content]
    for _ in range(draw.ConsumeIntInRange(1, 6)):
        here: Any = whole
        while here:
            key = (
                list(here)[draw.ConsumeIntInRange(0, len(here) - 1)]
                if isinstance(here, dict)
                else draw.ConsumeIntInRange(0, len(here) - 1)
            )
            if not isinstance(here[key], dict | list) or draw.ConsumeIntInRange(0, 9) == 0:
                break
            here = here[key]
        if not here:
            continue
        match draw.ConsumeIntInRange(0, 4):
            case 0 if here is not whole:
                del here[key]
            case 1 if isinstance(here, dict):
                here[str(_odd(draw))] = here.pop(key)
            case 2 if isinstance(here, list):
                here *= 2
            case _:
                here[key] = json.loads(json.dumps(_odd(draw)))
    return whole[0]


def csv_files(folder: Path, draw: Draw) -> None:
    """Cells of one of the tables."""
    paths = sorted(folder.rglob("*.csv"))
    path = paths[draw.ConsumeIntInRange(0, len(paths) - 1)]
    rows = list(csv.reader(io.StringIO(path.read_text(), newline="")))
    for _ in range(draw.ConsumeIntInRange(0, 6)):
        at = draw.ConsumeIntInRange(0, len(rows) - 1)
        cell = draw.ConsumeIntInRange(0, max(len(rows[at]) - 1, 0))
        match draw.ConsumeIntInRange(0, 4):
            case 0:
                rows[at][cell : cell + 1] = []
            case 1:
                rows.insert(at, list(rows[at]))
            case 2:
                rows[at][cell:cell] = [str(_odd(draw))]
            case _:
                rows[at][cell : cell + 1] = [str(_odd(draw))]
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n" if draw.ConsumeBool() else "\n").writerows(rows)
    path.write_bytes(_damaged(text.getvalue().encode("utf-8", "surrogatepass"), draw))


def communication(folder: Path, draw: Draw) -> None:
    """One of the two files of collectives."""
    (path,) = folder.rglob("communication.json" if draw.ConsumeBool() else "communication_matrix.json")
    path.write_bytes(_damaged(json.dumps(_edited(json.loads(path.read_text()), draw)).encode(), draw))


def database(folder: Path, draw: Draw) -> None:
    """Cells, rows, columns and tables; any value may stand in any column of SQLite."""
    (path,) = folder.rglob("ascend_pytorch_profiler_*.db")
    with closing(sqlite3.connect(path)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for _ in range(draw.ConsumeIntInRange(1, 6)):
            table = tables[draw.ConsumeIntInRange(0, len(tables) - 1)]
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] or ["rowid"]
            column = columns[draw.ConsumeIntInRange(0, len(columns) - 1)]
            value = _odd(draw)
            if isinstance(value, list | dict | float | bool):
                value = draw.ConsumeBytes(8) if isinstance(value, list) else draw.ConsumeFloat()
            elif isinstance(value, str):
                value = value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
            elif isinstance(value, int):
                value = max(min(value, 2**63 - 1), -(2**63))
            row = draw.ConsumeIntInRange(0, 8)
            with suppress(sqlite3.Error):
                match draw.ConsumeIntInRange(0, 9):
                    case 0:
                        connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
                    case 1:
                        connection.execute(f"DELETE FROM {table} WHERE rowid % 3 = {row % 3}")
                    case 2:
                        connection.execute(f"INSERT INTO {table} SELECT * FROM {table}")
                    case 3 if row == 0:
                        connection.execute(f"DROP TABLE {table}")
                    case _:
                        where = f"WHERE rowid = (SELECT rowid FROM {table} LIMIT 1 OFFSET {row})" if row < 8 else ""
                        connection.execute(f"UPDATE {table} SET {column} = ? {where}", (value,))
        connection.commit()
    path.write_bytes(_damaged(path.read_bytes(), draw))


def snapshot_json(folder: Path, draw: Draw) -> None:
    """An allocator snapshot that was converted to JSON."""
    path = folder / "snapshot.json"
    path.write_bytes(_damaged(json.dumps(_edited(json.loads(path.read_text()), draw)).encode(), draw))


def log(folder: Path, draw: Draw) -> None:
    """Words and lines of what a job printed."""
    path = folder / "job.log"
    lines = path.read_text().splitlines()
    for _ in range(draw.ConsumeIntInRange(0, 6)):
        at, to = (draw.ConsumeIntInRange(0, len(lines) - 1) for _ in range(2))
        words = lines[at].split(" ")
        match draw.ConsumeIntInRange(0, 4):
            case 0:
                lines[to:to] = lines[at : at + draw.ConsumeIntInRange(0, 20)]
            case 1:
                lines[at] += draw.PickValueInList(["", " ", "\r", "\x1b[0m"]) + lines[to]
            case 2:
                lines[at] = lines[at][draw.ConsumeIntInRange(0, 40) :]
            case _:
                words[draw.ConsumeIntInRange(0, len(words) - 1)] = str(_odd(draw))
                lines[at] = " ".join(words)
    path.write_bytes(_damaged("\n".join(lines).encode("utf-8", "surrogatepass"), draw))


def flight(folder: Path, draw: Draw) -> None:
    """A dump of the flight recorder, as JSON or as a pickle."""
    path = folder / "nccl_trace_rank_3"
    content = _edited(json.loads(path.read_text()), draw)
    text = json.dumps(content).encode() if draw.ConsumeBool() else pickle.dumps(content, draw.ConsumeIntInRange(0, 5))
    path.write_bytes(_damaged(text, draw))


def read_job(folder: Path) -> None:
    """What a job left."""
    read_evidence([str(folder)])


def read_profile(folder: Path) -> None:
    """All ranks of a folder."""
    for source in expand([str(folder)]).sources:
        kineto.read_trace(source)


def read_json_snapshot(folder: Path) -> None:
    """The snapshot of a folder."""
    path = folder / "snapshot.json"
    read_snapshot(Source(str(path), size=path.stat().st_size))


def text_form(folder: Path) -> None:
    """An Ascend profile of text, of one rank."""
    write_ascend(folder, simulate(SMALL)[0])


def database_form(folder: Path) -> None:
    """An Ascend profile as databases."""
    write_ascend(folder, simulate(SMALL)[0], form="db")


def snapshot(folder: Path) -> None:
    """A short allocator snapshot of the simulator."""
    folder.mkdir()
    (folder / "snapshot.json").write_text(json.dumps(snapshot_contents()[0]))


def printed(folder: Path) -> None:
    """A line of every message that is known."""
    folder.mkdir()
    (folder / "job.log").write_text("\n".join(text for text, *_ in CASES))


def recorder(folder: Path) -> None:
    """A dump of the flight recorder."""
    folder.mkdir()
    (folder / "nccl_trace_rank_3").write_text(json.dumps(dump()))


SMALL = replace(TWO_NPUS, model=replace(TWO_NPUS.model, layers=1), steps=2)
TARGETS = {
    "csv": (text_form, csv_files, "*.csv", read_profile),
    "communication": (text_form, communication, "communication*.json", read_profile),
    "database": (database_form, database, "*.db", read_profile),
    "snapshot-json": (snapshot, snapshot_json, "*.json", read_json_snapshot),
    "log": (printed, log, "*.log", read_job),
    "flight": (recorder, flight, "nccl_trace*", read_job),
}


def main() -> None:
    """Fuzz one target."""
    make, change, changed, read = TARGETS[sys.argv.pop(1)]
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        folder = Path(name, "profile")
        make(folder)
        sound = {path: path.read_bytes() for path in folder.rglob(changed)}
        with atheris.instrument_imports(include=["traceanalyze"]):
            read(folder)
        warnings.simplefilter("error")

        def one(data: bytes) -> None:
            for path, text in sound.items():
                path.write_bytes(text)
            change(folder, atheris.FuzzedDataProvider(data))
            try:
                read(folder)
            except InputError as error:
                if "\n" in str(error):
                    raise AssertionError("an error of several lines") from error

        atheris.Setup(sys.argv, one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
