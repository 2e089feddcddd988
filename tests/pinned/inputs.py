"""What the pins of readers are made of beside samples: simulated files of every layout, whole and damaged in many ways.

Each case makes its files in the folder it is called in.
"""

from __future__ import annotations

import copy
import csv
import gzip
import hashlib
import io
import json
import pickle
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

Parts = Iterator[tuple[str, object]]
Case = Callable[[], Parts]
_ODD_TEXT = ("", "N/A", "-1", "0", "abc", "1e99", "nan", '"', "7\t", "99999999999999999999")
_ODD_JSON = (None, "", "x", -1, 0, 1.5, 2**63, [], {}, "NaN", True, [1, "a"], {"a": [None]}, "17", 1e300)


def outcome(make: Callable[[], object]) -> object:
    """What comes of it, or how it is refused."""
    from traceanalyze.errors import TraceAnalyzeError

    try:
        return make()
    except TraceAnalyzeError as error:
        return type(error).__name__, str(error)


def _numbers(values: Any) -> object:
    """Whole numbers by their bytes, which is quicker than by their digits."""
    found = np.asarray(values)
    if found.dtype.kind not in "biu":
        return found
    return len(found), hashlib.blake2b(found.astype("<i8").tobytes(), digest_size=8).hexdigest()


def _texts(codes: Any, text: Callable[[int], str]) -> object:
    """Texts, whatever their codes are."""
    known, of = np.unique(np.asarray(codes), return_inverse=True)
    texts = [text(code) for code in known.tolist()]
    order = sorted(range(len(texts)), key=texts.__getitem__)
    place = np.empty(len(texts), np.int64)
    place[order] = np.arange(len(texts))
    return [texts[at] for at in order], _numbers(place[of.reshape(-1)])


def _ids(values: Any) -> object:
    """Ids of flows; those that are no number by their order, for each scanner numbers texts its way."""
    found = np.asarray(values).copy()
    texts: dict[int, int] = {}
    for at in np.flatnonzero(found < -(2**62)).tolist():
        found[at] = texts.setdefault(int(found[at]), -(2**62) - len(texts))
    return _numbers(found)


def columns(trace: Any) -> dict[str, object]:
    """All that a reader found, by kind."""
    text, events, instants, flows = trace.strings.text, trace.events, trace.instants, trace.flows
    tracks = [f"{text(pid)} {text(tid)}" for pid, tid in trace.tracks.tolist()]

    def column(key: str, one: Any) -> tuple[object, ...]:
        texts = np.asarray(one.value).dtype == np.int32
        return key, _numbers(one.row), _texts(one.value, text) if texts else _numbers(one.value)

    rest = {
        each.name: getattr(trace, each.name)
        for each in fields(trace)
        if each.name not in {"origin", "read", "strings", "tracks", "events", "instants", "flows"}
    }
    return {
        "times": (_numbers(events.ts), _numbers(events.dur), _texts(events.track, tracks.__getitem__)),
        "names": (_texts(events.cat, text), _texts(events.name, text)),
        "fields": [column(*one) for one in sorted(events.fields.items())],
        "instants": (
            *(_numbers(instants.ts), _texts(instants.name, text), _texts(instants.track, tracks.__getitem__)),
            [column(*one) for one in sorted(instants.fields.items())],
        ),
        "flows": (
            *(_numbers(flows.ts), _texts(flows.cat, text), _ids(flows.id), _numbers(flows.phase)),
            _texts(flows.track, tracks.__getitem__),
        ),
        # How large a database or a packed file is differs between versions of libraries.
        "origin": trace.origin._replace(size_bytes=0),
        "read": trace.read,
        "rest": rest,
    }


def whole(trace: Any) -> object:
    """All that a reader found, as one."""
    return tuple(columns(trace).items())


def loaded(path: str) -> object:
    """The traces of a path, and what is told of the rest."""
    import traceanalyze

    run = traceanalyze.load(path)
    return [whole(trace) for trace in run.traces], [
        getattr(run, name) for name in ("skipped", "errors", "notes") if hasattr(run, name)
    ]


# ---------------------------------------------------------------------------------------------------------- Kineto


@cache
def _ranks(vendor: str) -> Any:
    from tests.simulate.simulate import simulate
    from tests.simulate.two_npus import TWO_NPUS
    from tests.simulate.workload import US, Fault, Model, Ranks, Recording, Script, Workload

    small = Model(layers=1, hidden=256, sequence=128, batch=4, vocabulary=1000)
    if vendor == "ascend":
        return simulate(TWO_NPUS)
    return simulate(
        Workload(
            model=small,
            script=Script(optimizer="foreach"),
            ranks=Ranks(2),
            recording=Recording(clock_offset=US),
            faults=(Fault("item_sync", 1), Fault("unlinked", 7), Fault("late_launch", 3)),
            steps=2,
            tick=US,
        )
    )


@cache
def _kineto(name: str, rank: int = 1) -> bytes:
    from tests.simulate.writers.kineto import write
    from tests.simulate.writers.layouts import CPU_ONLY, LAYOUTS

    return write(_ranks("gpu")[rank], next(each for each in (*LAYOUTS, CPU_ONLY) if each.name == name))


def _read(text: bytes) -> object:
    from traceanalyze.readers.kineto import read_text

    return outcome(lambda: whole(read_text(text)))


def _kineto_whole(layout: str) -> Parts:
    from traceanalyze.readers.kineto import read_text

    for rank in (0, 1):
        for key, value in columns(read_text(_kineto(layout, rank))).items():
            yield f"{rank} {key}", value


def _kineto_files(layout: str) -> Parts:
    """The same in files, packed and cut."""
    text = _kineto(layout)
    packed = gzip.compress(text, 6, mtime=0)
    folder = Path("run")
    for number, name in enumerate(("host_4242.1700000000000000000.pt.trace.json", "rank1.json", "trace_7.json")):
        (folder / str(number)).mkdir(parents=True)
        (folder / str(number) / name).write_bytes(text)
        yield name, outcome(partial(loaded, str(folder / str(number))))
    for share in (0.1, 0.5, 0.99):
        Path("cut.json").write_bytes(text[: int(share * len(text))])
        yield f"cut {share}", outcome(partial(loaded, "cut.json"))
    stored = gzip.compress(text, 0, mtime=0)  # Where a byte lies does not depend on the library.
    for name, content in (
        ("whole.json.gz", packed),
        ("cut.json.gz", stored[: len(stored) // 2]),
        ("head.json.gz", stored[:8]),
        ("behind.json.gz", stored + b"garbage"),
        ("two.json.gz", stored + gzip.compress(b"", 0, mtime=0)),
        ("bad.json.gz", stored[:-8] + b"01234567"),
        ("named.json", stored),
        ("plain.json.gz", text),
    ):
        Path(name).write_bytes(content)
        yield name, outcome(partial(loaded, name))


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*at, key)
            yield from _places(each, (*at, key))


def odd_json(value: Any, generator: random.Random) -> tuple[Any, str]:
    """The same with one member that is another, missing or twice."""
    found = copy.deepcopy(value)
    # Every kind of place is as likely as any other.
    kinds: dict[str, list[tuple[Any, ...]]] = {}
    for place in _places(found):
        kinds.setdefault("/".join("*" if isinstance(key, int) else str(key) for key in place), []).append(place)
    place = generator.choice(kinds[generator.choice(sorted(kinds))])
    parent = found
    for key in place[:-1]:
        parent = parent[key]
    how = generator.randrange(4)
    if how == 0:
        del parent[place[-1]]
    elif how == 1 and isinstance(parent, list):
        parent.append(copy.deepcopy(parent[place[-1]]))
    else:
        parent[place[-1]] = generator.choice(_ODD_JSON)
    return found, "/".join(map(str, place))


def _kineto_odd(layout: str, seed: int) -> Parts:
    """A short trace with members of another kind."""
    generator = random.Random(seed)
    document = json.loads(_kineto(layout))
    kinds: dict[tuple[object, ...], list[Any]] = {}
    for event in document["traceEvents"]:
        kinds.setdefault((event["ph"], event.get("cat"), event["name"][:6]), []).append(event)
    document["traceEvents"] = [each for some in kinds.values() for each in some[:2]]
    for number in range(25):
        odd, _ = odd_json(document, generator)
        yield f"member {number}", _read(json.dumps(odd).encode())
    text = json.dumps(document).encode()
    for number in range(20):
        at = generator.randrange(len(text))
        piece = generator.choice((b"", b'"', b"}", b"]", b",", b"{", b"\\", b"\x00", b"\xff", b"1", b" "))
        yield f"bytes {number}", _read(text[:at] + piece + text[at + generator.randrange(3) :])
    for number in range(10):
        yield f"cut {number}", _read(text[: generator.randrange(len(text))])


def _kineto_twin(layout: str) -> Parts:
    """What the scanner in Python makes of the same."""
    from traceanalyze.readers.header import EVENT_FIELDS, INSTANT_FIELDS
    from traceanalyze.readers.scan import twin

    generator = random.Random(layout)
    text = _kineto(layout)[:60_000]
    for number in range(12):
        at = generator.randrange(len(text))
        odd = text if not number else text[:at] + generator.choice((b"", b'"', b"}", b"9", b"e")) + text[at + 1 :]
        stream = io.BytesIO(odd)
        found = twin.scan(stream.readinto, event_fields=EVENT_FIELDS, instant_fields=INSTANT_FIELDS)
        yield (
            f"twin {number}",
            (found.counts, found.phases, found.fault, found.truncated, found.size, found.header, found.events.ts),
        )


_OTHERS = {
    "empty": b"",
    "blank": b" \n\t ",
    "null": b"null",
    "number": b"17",
    "no events": b'{"traceEvents": []}',
    "other": b'{"a": 1, "b": [1, 2, 3]}',
    "metadata": b'{"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "x"}}]}',
    "counters": b'[{"ph": "C", "name": "c", "pid": 1, "ts": 1, "args": {"v": 3}}]',
    "list of numbers": b"[1, 2, 3]",
    "begin and end": b'[{"ph": "B", "name": "a", "ts": 1, "pid": 1}, {"ph": "E", "ts": 2, "pid": 1}]',
    "sqlite": b"SQLite format 3\0" + bytes(100),
    "zip": b"PK\3\4" + bytes(40),
    "parquet": b"PAR1\0\0",
    "protobuf": b"\x0a\x03abc\x12\x04",
    "pickle": pickle.dumps([1, 2, 3], 4),
    "stacks": b"main;f;g 17\nmain;f 3\n",
    "csv": b"Name,Type\na,b\n",
    "html": b"<!DOCTYPE html><html></html>",
    "text": b"Epoch 1 loss 0.5\n",
    "utf-16": '{"traceEvents": []}'.encode("utf-16"),
    "mark": b'\xef\xbb\xbf[{"ph":"X","name":"k","cat":"kernel","pid":0,"tid":7,"ts":1,"dur":2}]',
}


def _others() -> Parts:
    """Files that are something else, under several names."""
    for name, content in _OTHERS.items():
        for ending in (".json", ".pickle", ".bin", ".json.gz", ".csv", ".db"):
            path = Path(f"file{ending}")
            path.write_bytes(gzip.compress(content, mtime=0) if ending.endswith("gz") else content)
            yield f"{name} {ending}", outcome(partial(loaded, str(path)))
    for path in ("missing.json", "missing/*.json", "."):
        yield f"path {path}", outcome(partial(loaded, path))


# ---------------------------------------------------------------------------------------------------------- Ascend


_UNREAD = ("api_statistic.csv", "op_statistic.csv", "operator_details.csv")
_TIMELINE = "trace_view.json"


def _short(files: dict[str, bytes], most: int) -> dict[str, bytes]:
    """With at most so many events of a kind, and without the tables that no reader needs."""
    kinds: dict[tuple[object, ...], list[Any]] = {}
    name = next(name for name in files if name.endswith(_TIMELINE))
    for event in json.loads(files[name]):
        kinds.setdefault((event["ph"], event.get("cat"), event["pid"], event["name"][:8]), []).append(event)
    events = [each for some in kinds.values() for each in some[:most]]
    kept = {key: value for key, value in files.items() if not key.endswith(_UNREAD)}
    return kept | {name: json.dumps(events).encode()}


@cache
def _ascend_files(era: str, form: str, **more: Any) -> dict[str, bytes]:
    """Name → content of the files of one rank."""
    import tempfile

    from tests.simulate.writers.ascend import write_ascend
    from tests.simulate.writers.ascend_layouts import AscendLayout

    with tempfile.TemporaryDirectory() as folder:
        home = write_ascend(Path(folder), _ranks("ascend")[0], AscendLayout(era, **more), form)
        return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


def _written(files: dict[str, bytes]) -> Path:
    import shutil

    home = Path(next(iter(files))).parts[0]
    shutil.rmtree(home, ignore_errors=True)
    for name, content in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)
    return Path(home)


def _ascend(files: dict[str, bytes]) -> object:
    return outcome(lambda: loaded(str(_written(files))))


def _ascend_whole(era: str, form: str) -> Parts:
    import traceanalyze

    (trace,) = traceanalyze.load(_written(_ascend_files(era, form))).traces
    yield from columns(trace).items()
    for more in ({"level": 0}, {"level": 2, "crlf": True}, {"memory": False, "shapes": False}, {"planes": False}):
        yield str(more), _ascend(_ascend_files(era, form, **more))
    for damage in ("open", "comma", "cut", "host_open", "host_comma") if form == "text" else ():
        yield damage, _ascend(_ascend_files(era, form, damage=damage))


def _ascend_missing(era: str, form: str) -> Parts:
    """Without each of its files, and with each of them empty, cut or without rows."""
    files = _ascend_files(era, form)
    if form == "text":
        files = _short(files, 3)
    for name, content in files.items():
        short = name.rpartition("/")[2]
        yield f"without {short}", _ascend({key: value for key, value in files.items() if key != name})
        damaged = {"empty": b"", "half": content[: len(content) // 2], "first": content[: content.find(b"\n") + 1]}
        for how, left in damaged.items():
            if not (short.endswith(".db") and how == "half"):  # What is found in a half depends on the library.
                yield f"{how} {short}", _ascend(files | {name: left})
        if name.endswith(_TIMELINE):
            continue
        alone = {key: value for key, value in files.items() if key == name}
        yield f"only {short}", _ascend(alone)


def _ascend_cells(era: str, seed: int) -> Parts:
    """Tables with a cell, a column or a row that is another."""
    files = _short(_ascend_files(era, "text"), 3)
    generator = random.Random(seed)
    for name in sorted(files):
        short = name.rpartition("/")[2]
        if name.endswith(".csv"):
            rows = list(csv.reader(io.StringIO(files[name].decode())))
            for at, column in list(enumerate(rows[0]))[seed % 2 :: 2]:
                odd = [list(row) for row in rows]
                if generator.random() < 0.3:
                    odd = [row[:at] + row[at + 1 :] for row in odd]
                else:
                    for row in range(1 + at % 3, len(odd), 3):
                        odd[row][at : at + 1] = [generator.choice(_ODD_TEXT)]
                text = io.StringIO()
                csv.writer(text).writerows(odd)
                yield f"{short} {column}", _ascend(files | {name: text.getvalue().encode()})
        elif name.endswith(".json") and not name.endswith(_TIMELINE):
            for number in range(8):
                odd, _ = odd_json(json.loads(files[name]), generator)
                yield f"{short} {number}", _ascend(files | {name: json.dumps(odd).encode()})


def _ascend_events(era: str, seed: int) -> Parts:
    """A short timeline with members of another kind."""
    generator = random.Random(seed)
    files = _short(_ascend_files(era, "text"), 2)
    name = next(name for name in files if name.endswith(_TIMELINE))
    events = json.loads(files[name])
    for number in range(25):
        odd, _ = odd_json(events, generator)
        yield f"event {number}", _ascend(files | {name: json.dumps(odd).encode()})


@cache
def _short_bases(era: str) -> dict[str, bytes]:
    """Databases with few rows in each table."""
    import tempfile

    files = dict(_ascend_files(era, "db"))
    for name in [each for each in files if each.endswith(".db")]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "short.db"
            path.write_bytes(files[name])
            with closing(sqlite3.connect(path)) as base, base:
                for (table,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                    if not table.startswith(("STRING_IDS", "ENUM")):
                        first = f"SELECT rowid FROM {table} ORDER BY rowid LIMIT 120"
                        base.execute(f"DELETE FROM {table} WHERE rowid NOT IN ({first})")
            files[name] = path.read_bytes()
    return files


def _ascend_tables(era: str, seed: int) -> Parts:
    """Databases without a table, a row or a column, and with values of another kind."""
    generator = random.Random(seed)
    files = _short_bases(era)
    for name in sorted(each for each in files if each.endswith(".db")):
        short = name.rpartition("/")[2].partition("_")[0]
        home = _written(files)
        with closing(sqlite3.connect(name)) as base:
            known = sorted(each for (each,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
            listed = {each: [row[1] for row in base.execute(f"PRAGMA table_info({each})")] for each in known}
        for table in known:
            changes = [f"DROP TABLE {table}", f"DELETE FROM {table}", f"DELETE FROM {table} WHERE rowid % 2 = 0"]
            for column in listed[table]:
                odd = generator.choice(("NULL", "-1", "0", "'abc'", "''", "1e30", "x'00ff'", f"{column} + 1"))
                changes.append(f"UPDATE OR IGNORE {table} SET {column} = {odd} WHERE rowid % 3 = 0")
            changes.append(f"ALTER TABLE {table} RENAME COLUMN {generator.choice(listed[table])} TO other")
            for change in changes[seed::7]:
                Path(name).write_bytes(files[name])
                try:
                    with closing(sqlite3.connect(name)) as base, base:
                        base.execute("PRAGMA synchronous = OFF")
                        base.execute(change)
                except sqlite3.Error:  # Keys are whole numbers.
                    continue
                yield f"{short} {change}", outcome(lambda home=home: loaded(str(home)))  # type: ignore[misc]


def _ascend_built() -> Parts:
    """Hand-made profiles of each spelling."""
    from tests.ascend_builder import EIGHT, NEW, OLD, AscendBuilder

    for number, era in enumerate((EIGHT, NEW, OLD, replace(EIGHT, named_cann=False), replace(NEW, size="data_size"))):
        for level in ("Level0", "Level1", "Level2", "Level_none"):
            b = AscendBuilder(era, level=level, device=number)
            b.step(4, 0, 900)
            b.op("aten::mm", 10, 40, sequence=5, **{"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]})
            queued = b.queued("aclnnMatmul", 20, 60, 30)
            b.call("Node@launch", 65, 5, connection=queued)
            b.kernel("aclnnMatmul_MatMul", 100, 50, op_type="MatMulV3", core="MIX_AIC", launch=70)
            b.kernel("Add", 160, 7.5, op_type="Add", core="AI_VECTOR_CORE", launch=120)
            b.kernel("Cpu", 170, 9, op_type="Index", core="AI_CPU", launch=130, **{"Duration(us)": "N/A"})
            parts = [(0, "Notify_Wait", 210, 20, 1), (1, "Memcpy", 215, 30, 2), (1, "Reduce_Inline", 250, 10, 3)]
            b.collective("hcom_allReduce__123_0_1", 200, 90, parts)
            b.collective("hcom_broadcast__123_1_1", 300, 9, data_type="BFP16", count=-1)
            b.task("EVENT_WAIT", 400, 20, "EVENT_WAIT_SQE", stream=9)
            b.tables["memory_record.csv"] = [
                ["Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)", "Device Type"],
                *(
                    [kind, b.time(10 * at), str(at), str(at + 1.5), f"NPU:{number}"]
                    for kind in ("PTA", "APP", "PTA+GE")
                    for at in range(4)
                ),
            ]
            path = b.write(Path(f"{number}{level}_ascend_pt"), rank=number)
            yield f"{number} {level}", outcome(partial(loaded, str(path)))
            yield f"{number} {level} text", _read(b.text().encode())


# ------------------------------------------------------------------------------------------------------- snapshots


@cache
def _snapshot() -> dict[str, Any]:
    from tests.readers.test_snapshot import SMALL

    # Which equal texts are one object, and are written once, depends on who imported what.
    found: dict[str, Any] = json.loads(json.dumps(SMALL))
    events = found["device_traces"][0]
    events[1]["frames"] = events[0]["frames"]
    return found


def _snapshot_read(content: bytes, name: str = "snapshot.pickle") -> object:
    from traceanalyze.model.snapshot import Snapshot
    from traceanalyze.readers.snapshot import read_snapshot
    from traceanalyze.readers.source import Source

    path = Path(name)
    path.write_bytes(content)
    found = outcome(lambda: read_snapshot(Source(str(path), size=len(content))))
    if not isinstance(found, Snapshot):
        return found
    calls: dict[int, int] = {}
    for device in found.devices:
        for call in device.history.call.tolist():
            calls.setdefault(call, len(calls))
    numbered = [[calls[call] for call in device.history.call.tolist()] for device in found.devices]
    devices = [
        device._replace(history=replace(device.history, call=numbers))  # Whatever number a call has.
        for device, numbers in zip(found.devices, numbered, strict=True)
    ]
    return replace(found, devices=tuple(devices))


def _snapshots(seed: int) -> Parts:
    """A snapshot with members that are others, in both forms."""
    generator = random.Random(seed)
    for number in range(60):
        odd, _ = odd_json(_snapshot(), generator)
        yield f"pickle {number}", _snapshot_read(pickle.dumps(odd, 2 + number % 4))
        yield f"json {number}", _snapshot_read(json.dumps(odd).encode(), "snapshot.json")
    content = pickle.dumps(_snapshot(), 4)
    for number in range(60):
        at = generator.randrange(len(content))
        odd_bytes = content[:at] + bytes([generator.randrange(256)]) + content[at + 1 :]
        yield f"byte {number}", _snapshot_read(odd_bytes)
        yield f"cut {number}", _snapshot_read(content[:at])


def _timelines(seed: int) -> Parts:
    """Memory timelines of both forms with members that are others."""
    from tests.readers.test_memory_timeline import RAW
    from traceanalyze.readers.memory_timeline import read_memory_timeline
    from traceanalyze.readers.source import Source

    generator = random.Random(seed)
    sums = [[1, 2, 5], [[0, 100, 0, 0, 0, 0, 0, 0, 50], [0, 100, 0, 0, 0, 30, 0, 0, 50], [0, 1, 2, 3, 4, 5, 6, 7, 8]]]
    for name, value in (("t.raw.json", RAW), ("t.json", sums), ("rank3.json", sums)):
        for number in range(20):
            odd = odd_json(value, generator)[0] if number else value
            content = json.dumps(odd).encode()
            Path(name).write_bytes(content)
            yield f"{name} {number}", outcome(partial(read_memory_timeline, Source(name, size=len(content))))


# ------------------------------------------------------------------------------------------------------ several files


def _folders() -> Parts:
    """Folders of several ranks and runs, and what is told of each file."""
    import traceanalyze

    plans: dict[str, dict[str, tuple[str, int]]] = {
        "two ranks": {"run/rank0.json": ("today", 0), "run/rank1.json": ("today", 1)},
        "twice": {"run/rank0.json": ("today", 0), "run/copy/rank0.json": ("today", 0)},
        "two runs": {f"{run}/rank{rank}.json": ("today", rank) for run in "ab" for rank in (0, 1)},
        "tensorboard": {f"host_{n}.{17 + n}00000000000000000.pt.trace.json": ("today", n) for n in (0, 1)},
        "other layouts": {"a.json": ("2021", 0), "b.json": ("amd", 1), "c.json": ("cpu", 1)},
        "strangers": {"a.json": ("2022", 0), "notes.txt": ("", 0), "log.json": ("", 1), "x.json.gz": ("", 2)},
    }
    for name, plan in plans.items():
        folder = Path(name)
        for path, (layout, rank) in plan.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(_kineto(layout, rank) if layout else b"{}"[:rank])
        for path in (name, f"{name}/*", f"{name}/**/*.json"):
            runs = outcome(lambda path=path: traceanalyze.load_runs(path))  # type: ignore[misc]
            if not isinstance(runs, tuple) or isinstance(runs[0], str):
                yield path, runs
                continue
            yield (
                path,
                [
                    [
                        [(trace.origin._replace(size_bytes=0), len(trace.events)) for trace in run.traces],
                        *(getattr(run, each) for each in run._fields if each != "traces"),
                    ]
                    for run in runs
                ],
            )


KINETO = ("today", "2022", "2021", "amd", "cpu")
ERAS = ("2023", "8.0", "8.3", "2026")
READERS: dict[str, Case] = {
    **{f"kineto {name}": partial(_kineto_whole, name) for name in KINETO},
    **{f"kineto files {name}": partial(_kineto_files, name) for name in KINETO},
    **{f"kineto odd {name}": partial(_kineto_odd, name, seed) for seed, name in enumerate(KINETO)},
    **{f"kineto twin {name}": partial(_kineto_twin, name) for name in ("today", "2021")},
    "others": _others,
    **{f"ascend {form} {era}": partial(_ascend_whole, era, form) for form in ("text", "db") for era in ERAS},
    **{
        f"ascend missing {form} {era}": partial(_ascend_missing, era, form)
        for era, form in zip(ERAS, ("text", "db") * 2, strict=True)
    },
    **{f"ascend cells {era}": partial(_ascend_cells, era, seed) for seed, era in enumerate(ERAS)},
    **{f"ascend events {era}": partial(_ascend_events, era, seed) for seed, era in enumerate(ERAS)},
    **{f"ascend tables {era}": partial(_ascend_tables, era, seed) for seed, era in enumerate(ERAS)},
    "ascend built": _ascend_built,
    "snapshots": partial(_snapshots, 1),
    "timelines": partial(_timelines, 1),
    "folders": _folders,
}
