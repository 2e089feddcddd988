"""Files made to hurt, of 10 MB each: `python -m tests.bombs [--bytes N] [--command C] [NAME …]`.

Each is given to the commands that would read it, or to those that are named; a NAME is the begin of theirs: `csv`,
`snapshot-memo`. None takes more than 1 GB or 60 s of CPU, none ends in a traceback, and what cannot be read is refused in one line.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import pickle
import resource
import sqlite3
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from backports import zstd

from tests.simulate.simulate import simulate
from tests.simulate.two_npus import TWO_NPUS
from tests.simulate.writers.ascend import write_ascend
from traceanalyze.readers.kineto import _PER_PACKED_BYTE, _ROOM

MOST_BYTES, MOST_SECONDS = 1 << 30, 60
_EVENT = b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1.5,"dur":1,"args":{"stream":7}},'


def repeated(piece: bytes, size: int, begin: bytes = b"", end: bytes = b"") -> bytes:
    """A piece again and again."""
    return begin + piece * (size // len(piece)) + end


def numbered(piece: str, size: int, begin: str = "", end: str = "") -> bytes:
    """A piece again and again, each with a number of its own."""
    return (begin + "".join(piece.replace("#", str(i)) for i in range(size // len(piece))) + end).encode()


def traces(size: int) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Timelines."""
    head, tail = '{"traceEvents":[', "]}"
    event = '{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":2}'
    yield "nested", lambda: b"[" * size
    yield "nested-args", lambda: b'{"traceEvents":[{"ph":"X","args":' + b'{"a":' * (size // 5)
    yield "empty-events", lambda: repeated(b"{},", size, head.encode())
    yield "no-events", lambda: repeated(b"0,", size, head.encode())
    yield "long-text", lambda: b'{"traceEvents":[{"ph":"X","name":"' + b"x" * size + b'"}]}'
    yield "long-number", lambda: b'{"traceEvents":[{"ph":"X","ts":' + b"9" * size + b"}]}"
    yield "quotes", lambda: b'"' * size
    yield "backslashes", lambda: b'{"traceEvents":["' + b"\\" * size
    yield "names", lambda: numbered(event.replace('"a"', '"a#"') + ",", size, head, tail)
    yield "threads", lambda: numbered(event.replace('"tid":1', '"tid":#') + ",", size, head, tail)
    yield "processes", lambda: numbered(event.replace('"pid":1', '"pid":"p#"') + ",", size, head, tail)
    yield "streams", lambda: numbered(_EVENT.decode().replace("7", "#"), size, head, tail)
    yield "categories", lambda: numbered(event.replace("cpu_op", "c#") + ",", size, head, tail)
    yield (
        "deep-calls",
        lambda: numbered(
            '{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":#,"dur":99999999},', size, head, tail
        ),
    )
    yield (
        "steps",
        lambda: numbered(event.replace('"a"', '"ProfilerStep##"').replace('"ts":1', '"ts":#') + ",", size, head, tail),
    )
    yield "begins", lambda: numbered('{"ph":"B","name":"n#","pid":1,"tid":1,"ts":#},', size, head, tail)
    yield (
        "flows",
        lambda: numbered('{"ph":"s","id":#,"name":"ac2g","cat":"ac2g","pid":1,"tid":1,"ts":1},', size, head, tail),
    )
    yield (
        "metadata",
        lambda: numbered('{"ph":"M","name":"process_name","pid":#,"tid":0,"args":{"name":"n#"}},', size, head, tail),
    )
    yield "header", lambda: numbered('"k#":[#],', size, "{", '"traceEvents":[]}')
    yield "shapes", lambda: numbered(event[:-1] + ',"args":{"Input Dims":[[#,#],[#]]}},', size, head, tail)
    yield (
        "far-apart",
        lambda: numbered(
            '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":#00000000.5,"dur":1},', size, head, tail
        ),
    )
    yield (
        "unended-collectives",
        lambda: numbered(
            '{"ph":"X","cat":"user_annotation","name":"nccl:all_reduce","pid":1,"tid":1,"ts":#,"dur":99999999},',
            size,
            head,
            tail,
        ),
    )
    step = event.replace('"a"', '"ProfilerStep##"').replace('"cat":"cpu_op"', '"cat":"user_annotation"')
    kernel = _EVENT.decode()[:-1].replace("7", "#")
    yield "steps-streams", lambda: numbered(step.replace('"ts":1', '"ts":#') + "," + kernel + ",", size, head, tail)
    call = '{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":#,"dur":1,"args":{"correlation":1}}'
    same = _EVENT.decode()[:-1].replace('"stream":7', '"stream":7,"correlation":1')
    yield "one-correlation", lambda: numbered(call + "," + same + ",", size, head, tail)
    yield (
        "one-flow",
        lambda: numbered('{"ph":"s","id":1,"name":"ac2g","cat":"ac2g","pid":1,"tid":1,"ts":#},', size, head, tail),
    )
    yield (
        "devices",
        lambda: numbered(kernel.replace('"pid":0', '"pid":#').replace("stream", "device") + ",", size, head, tail),
    )
    yield (
        "groups",
        lambda: numbered(
            '{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":7,"ts":#,"dur":1,"args":{"stream":7,'
            '"Collective name":"allreduce","Process Group Name":"#","Process Group Ranks":"[#, 9#]","Group size":#9}},',
            size,
            head,
            tail,
        ),
    )
    yield (
        "ranks",
        lambda: numbered(
            '{"pg_name":"#","ranks":[#,1#]},',
            size,
            '{"distributedInfo":{"backend":"nccl","rank":999999999,"world_size":1000000000,"pg_config":[',
            '{}]},"traceEvents":[' + _EVENT.decode() + "{}]}",
        ),
    )
    frame = '{"ph":"X","cat":"python_function","name":"a.py(#): f","pid":1,"tid":1,"ts":#,"dur":9999999,'
    yield "stacks", lambda: numbered(frame + '"args":{"Python id":#,"Python parent id":#}},', size, head, tail)
    alloc = '{"ph":"i","s":"t","name":"[memory]","pid":1,"tid":1,"ts":#,"args":{"Addr":#,"Bytes":512,"Device Type":1,'
    yield "allocations", lambda: numbered(alloc + '"Device Id":#,"Total Allocated":#}},', size, head, tail)
    yield (
        "deep-shapes",
        lambda: repeated(
            event[:-1].encode() + b',"args":{"Input Dims":' + b"[" * 60 + b"]" * 60 + b"}},", size, head.encode()
        ),
    )
    yield (
        "endless",
        lambda: numbered(_EVENT.decode().replace('"ts":1.5,"dur":1', '"ts":#,"dur":9e11'), size, head, tail),
    )


_CALL = (
    '{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":#,"dur":1,"args":{"correlation":#}},'
)
_OP = '{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":#,"dur":1},'
_RAN = _EVENT.decode().replace("1.5", "#")
_MORE = '"stream":7,"correlation":#,"bytes":9,"grid":[1,1,1],"block":[1,1,1],"registers per thread":9,"shared memory":9'
DENSE = (
    ("kernels", _EVENT.decode(), 276),
    ("ops", _OP, 260),
    ("deep", _OP.replace('"dur":1', '"dur":99999999'), 260),
    ("frames", _OP.replace("cpu_op", "python_function").replace("aten::mm", "a.py(1): f"), 260),
    ("begins", '{"ph":"B","name":"a","pid":1,"tid":1,"ts":#},{"ph":"E","pid":1,"tid":1,"ts":#},', 520),
    ("metadata", '{"ph":"M"},', 260),
    ("arguments", _RAN.replace('"stream":7', _MORE), 380),
    ("names", _OP.replace("aten::mm", "a#"), 2660),
    ("kernel-names", _RAN.replace('"k"', '"k#"'), 2676),
    ("threads", _OP.replace('"tid":1', '"tid":#'), 8660),
    ("launches", _CALL + _RAN.replace('"stream":7', '"stream":7,"correlation":#'), 568),
)
"""Events that take much memory for what they take in a file, and how many bytes a file has to have room for of each."""


def packed(size: int) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Files that are small only as they are stored."""
    for name, begin, piece in (("blanks", b"", b" "), ("events", b"", _EVENT), ("text", b'{"name":"', b"x")):
        yield f"{name}.json.gz", partial(_filled, begin, piece, size)
    for name, event, cost in DENSE:
        yield f"dense-{name}.json.gz", partial(_dense, event, cost, size)
    yield "members.json.gz", lambda: gzip.compress(b"[") + gzip.compress(b"") * (size // 20)
    yield "blanks.json.zst", lambda: _blanks(size)
    yield (
        "events.zip",
        lambda: _zipped(
            [("trace.json", b'{"traceEvents":[' + _EVENT * (50 * size // len(_EVENT)))], zipfile.ZIP_DEFLATED
        ),
    )
    yield "million-files.zip", lambda: _zipped((f"{number}.json", b"[]") for number in range(size // 120))
    text = b'{"distributedInfo":{"rank":%d,"world_size":99999},"traceEvents":[%s]}'
    yield (
        "ranks.zip",
        lambda: _zipped((f"{rank}.pt.trace.json", text % (rank, _EVENT[:-1])) for rank in range(size // 320)),
    )


def _filled(begin: bytes, piece: bytes, size: int) -> bytes:
    """A piece, as often as a thousand times so large a text has room for it."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=9) as file:
        file.write(b'{"traceEvents":[' + begin)
        block = piece * ((1 << 20) // len(piece))
        while buffer.tell() < size and file.tell() < size * 1000:
            file.write(block)
    return buffer.getvalue()


def _dense(piece: str, cost: int, size: int) -> bytes:
    """As many events as so large a file may hold, and hardly more, behind what only makes it large."""
    most = int(0.99 * (_ROOM + _PER_PACKED_BYTE * size) / cost)
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=6) as file:
        file.write(b'{"traceEvents":[')
        while buffer.tell() < size - 40_000:
            file.write(b'{"noise":"%s"},' % os.urandom(7000).hex().encode())
        for begin in range(0, most, 5000):
            file.write("".join(piece.replace("#", str(i)) for i in range(begin, min(begin + 5000, most))).encode())
        file.write(b"{}]}")
    return buffer.getvalue()


def _blanks(size: int) -> bytes:
    packer = zstd.ZstdCompressor()
    return b"".join(packer.compress(b" " * (1 << 20)) for _ in range(size * 1000 >> 20)) + packer.flush()


def _zipped(files: Iterable[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return buffer.getvalue()


def snapshots(size: int) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Allocator snapshots, and what else is a pickle."""
    yield "nested.json", lambda: b'{"segments":' + b"[" * size
    yield "objects.json", lambda: repeated(b'{"a":{}},', size, b'{"segments":[', b"{}]}")
    yield "lists.json", lambda: repeated(b"[],", size, b'{"device_traces":[[', b"[]]]}")
    yield "texts.json", lambda: numbered('{"k#":"v#"},', size, '{"segments":[', "{}]}")
    yield "numbers.json", lambda: b'{"segments":[{"address":' + b"9" * size + b"}]}"
    yield "blocks.json", lambda: repeated(b"{},", size, b'{"segments":[{"blocks":[', b"{}]}]}")
    yield "frames.json", lambda: repeated(b'{"frames":[{}]},', size, b'{"device_traces":[[', b"{}]]}")
    yield "nested.pickle", lambda: b"\x80\x04" + b"]" * size
    yield "closed.pickle", lambda: b"\x80\x04" + b"]" * (size // 2) + b"a" * (size // 2 - 1) + b"."
    yield "dicts.pickle", lambda: b"\x80\x04](" + b"}" * size + b"e."
    yield "tuples.pickle", lambda: b"\x80\x04)" + b"\x85" * size + b"."
    yield "doubled.pickle", lambda: b"\x80\x04]\x94" + b"(" + b"h\x00" * (size // 2 - 8) + b"e."
    yield (
        "powers.pickle",
        lambda: (
            b"\x80\x02]q\x00"
            + b"".join(b"](" + b"h" + bytes([i]) + b"h" + bytes([i]) + b"eq" + bytes([i + 1]) for i in range(200))
            + b"."
        ),
    )
    yield "integer.pickle", lambda: b"\x80\x04\x8b" + (size).to_bytes(4, "little") + b"\x7f" * size + b"."
    yield "decimal.pickle", lambda: b"\x80\x02I" + b"9" * size + b"\n."
    yield "claims.pickle", lambda: b"\x80\x04\x8e" + (1 << 40).to_bytes(8, "little") + b"x" * 100
    yield (
        "memo.pickle",
        lambda: (
            b"\x80\x04N"
            + b"".join(b"r" + i.to_bytes(4, "little") for i in range(0, 1 << 31, (1 << 31) // (size // 5)))
            + b"."
        ),
    )
    yield (
        "devices.json",
        lambda: repeated(
            b"[],", size, b'{"segments":[],"device_traces":[', b'[{"action":"alloc","addr":7,"size":512,"stream":0}]]}'
        ),
    )
    segment = '{"device":0,"address":#,"total_size":9,"stream":#,"segment_pool_id":[#,0],"segment_type":"small","blocks":[{"size":9,"requested_size":9,"state":"active_allocated","address":#}]},'
    yield (
        "segments.json",
        lambda: numbered(segment, size, '{"device_traces":[],"segments":[', segment.replace("#", "0")[:-1] + "]}"),
    )
    yield "owners.json", lambda: numbered(segment.replace('"device":0', '"device":#'), size, '{"segments":[', "{}]}")
    row = '{"action":"alloc","addr":7,"size":512,"stream":#},'
    yield (
        "one-address.json",
        lambda: numbered(row, size, '{"segments":[],"device_traces":[[', row.replace("#", "0")[:-1] + "]]}"),
    )
    yield "stacks.pickle", lambda: _stacks(size // 60)


def _stacks(count: int) -> bytes:
    rows = [
        {
            "action": "alloc",
            "addr": i,
            "size": 512,
            "stream": 0,
            "frames": [{"filename": f"f{i}", "name": f"n{i}", "line": i}],
        }
        for i in range(count)
    ]
    return pickle.dumps({"segments": [], "device_traces": [rows]}, 4)[: 120 * count]


def logs(size: int) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """What a dead job leaves."""
    yield "line.log", lambda: b"Traceback (most recent call last): " + b"x" * size
    yield "lines.log", lambda: b"\n" * size
    yield "tracebacks.log", lambda: repeated(b'Traceback (most recent call last):\n  File "a", line 1\nE: x\n', size)
    yield "ranks.log", lambda: numbered("[rank#]: RuntimeError: NCCL error # in: /a.cpp:#\n", size)
    yield "steps.log", lambda: numbered("step # loss: nan lr 0.1 grad_norm inf\n", size)
    yield (
        "watchdog.log",
        lambda: numbered(
            "[rank#]:[E1 12:00:00.000 ProcessGroupNCCL.cpp:616] [Rank #] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=#, OpType=ALLREDUCE, NumelIn=#, NumelOut=#, Timeout(ms)=600000) ran for 600001 milliseconds before timing out.\n",
            size,
        ),
    )
    yield (
        "recorder_0.json",
        lambda: numbered(
            '{"record_id":#,"pg_id":#,"process_group":["#","d"],"collective_seq_id":#,"profiling_name":"nccl:all_reduce","input_sizes":[[#]],"state":"completed"},',
            size,
            '{"version":"2.4","entries":[',
            "{}]}",
        ),
    )

    yield "recorder_1", lambda: _recorder(size // 110)
    yield "objects.log", lambda: b'{"a":' * (size // 5)
    yield "smi.log", lambda: numbered("gpu#,", size, "timestamp, name\n", "\n")


def _recorder(count: int) -> bytes:
    entry = {"profiling_name": "nccl:all_reduce", "process_group": ("0", "default_pg"), "state": "completed"}
    entries = [entry | {"record_id": i, "collective_seq_id": i, "input_sizes": [[i]]} for i in range(count)]
    return pickle.dumps({"version": "2.9", "entries": entries, "pg_config": {}}, 2)


def csv_tables(size: int) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Tables of an Ascend profile."""
    header = b"Type,Accelerator Core,Start Time(us),Duration(us),Name\n"
    row = b"MatMul,AI_CORE,1736408883686740.710\t,1.5,m\n"
    yield "quotes", lambda: header + b'"' * size
    yield "commas", lambda: header + b"," * size
    yield "columns", lambda: b"Type," * (size // 5) + b"\n" + row
    yield "rows", lambda: header + row * (size // len(row))
    yield "cell", lambda: header + b"x" * size
    yield "open-quotes", lambda: header + b'a"b,c\n' * (size // 6)
    yield "digits", lambda: header + b"MatMul,AI_CORE," + b"9" * size + b",1,m\n"
    yield "distinct", lambda: header + numbered("T#,C#,#.5,#,n#\n", size)
    yield "empty-lines", lambda: header + b"\n" * size


def communications(size: int) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """What Ascend says of its collectives."""
    yield "nested", lambda: b'{"a":' * (size // 5)
    yield "lists", lambda: b"[" + b"[]," * (size // 3) + b"[]]"
    yield (
        "entries",
        lambda: numbered(
            '"step#":{"collective":{"hcom_allReduce__#_0_1@1":{"Communication Time Info":{"Elapse Time(ms)":#}}}},',
            size,
            "{",
            '"x":1}',
        ),
    )
    yield "digits", lambda: b'{"step1":' + b"9" * size + b"}"


def databases(size: int) -> Iterator[tuple[str, list[str]]]:
    """SQL that makes a small file which answers with a lot."""
    fill = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {size // 12})"
    names = "CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT)"
    api = "CREATE TABLE PYTORCH_API (startNs INTEGER, endNs INTEGER, globalTid INTEGER, connectionId INTEGER, name INTEGER, type INTEGER)"
    connections = "CREATE TABLE CONNECTION_IDS (id INTEGER, connectionId INTEGER)"
    task = "CREATE TABLE TASK (startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER, taskType INTEGER, streamId INTEGER)"
    yield "blob", [names, api, f"INSERT INTO STRING_IDS VALUES (1, zeroblob({size}))"]
    yield (
        "default",
        [
            "CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY)",
            f"{fill} INSERT INTO STRING_IDS SELECT i FROM n",
            f"ALTER TABLE STRING_IDS ADD COLUMN value TEXT DEFAULT '{'x' * 900_000}'",
            api,
        ],
    )
    yield (
        "generated",
        [
            "CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT AS (hex(zeroblob(30000000 + id))))",
            "INSERT INTO STRING_IDS (id) VALUES " + ",".join(f"({i})" for i in range(400)),
            api,
        ],
    )
    yield "rows", [names, api, f"{fill} INSERT INTO PYTORCH_API SELECT i, i + 5, 1, i, i, 1 FROM n"]
    yield (
        "view",
        [
            names,
            "CREATE VIEW PYTORCH_API AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS startNs, i AS endNs, i AS globalTid, i AS connectionId, i AS name, i AS type FROM n",
            connections,
        ],
    )
    yield (
        "pairs",
        [
            names,
            "INSERT INTO STRING_IDS VALUES (1, 'a')",
            api,
            connections,
            task,
            f"{fill} INSERT INTO CONNECTION_IDS SELECT 1, 1 FROM n WHERE i % 4 = 0",
            f"{fill} INSERT INTO PYTORCH_API SELECT i, i + 5, 1, 1, 1, 50001 FROM n WHERE i % 4 = 0",
            f"{fill} INSERT INTO TASK SELECT i, i + 5, 0, 1, i, 1, 1 FROM n WHERE i % 4 = 0",
        ],
    )
    views = [f"CREATE VIEW v{i} AS SELECT 1" for i in range(min(size // 80, 1000))]
    yield "views", [names, *views]
    wide = ",".join(f"c{i} INTEGER" for i in range(1900))
    yield "columns", [names, *(f"CREATE TABLE w{i} ({wide})" for i in range(min(size // 30_000, 50))), api]
    yield "tables", [names, *(f"CREATE TABLE t{i} (a)" for i in range(min(size // 4200, 2000)))]


_JSON = ("--format", "json")
COMMANDS = {
    "analyze": ("PATH", *_JSON),
    "compare": ("compare", "PATH", "PATH", *_JSON),
    "convert": ("convert", "PATH", "--annotate", "PATH.annotated.json"),
    "gate": ("gate", "PATH", "--baseline", "PATH", *_JSON),
    "memory": ("memory", "PATH", *_JSON),
    "postmortem": ("postmortem", "PATH", *_JSON),
    "query": ("query", "PATH", "SELECT count(*) FROM events", *_JSON),
    "whatif": ("whatif", "PATH", "--without", "data_loading", *_JSON),
}
"""What follows the name of the tool."""


def written(names: tuple[str, ...], size: int) -> Iterator[tuple[str, Path, tuple[str, ...]]]:
    """Name, path and commands of every bomb that is named, made when it is asked for and removed after that."""
    for kind, bombs, commands in (
        ("trace", traces, ("analyze", "compare")),
        ("packed", packed, ("analyze",)),
        ("snapshot", snapshots, ("memory", "analyze")),
        ("log", logs, ("postmortem",)),
        ("csv", csv_tables, ("analyze",)),
        ("communication", communications, ("analyze",)),
        ("db", databases, ("analyze",)),
    ):
        for name, content in bombs(size):
            if f"{kind}-{name}".startswith(names):
                with tempfile.TemporaryDirectory() as home:
                    yield f"{kind}-{name}", _placed(Path(home), kind, name, content), commands


def _placed(home: Path, kind: str, name: str, content: list[str] | Callable[[], bytes]) -> Path:
    """Write a bomb where its kind is read; the path to give."""
    if isinstance(content, list):
        output = home / "r0_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        with closing(sqlite3.connect(output / "ascend_pytorch_profiler_0.db")) as database, database:
            for statement in content:
                database.execute(statement)
        return output.parent
    if kind in {"csv", "communication"}:
        # Beside events of devices, without which tables are not asked for.
        profile = write_ascend(home / "r0_ascend_pt", simulate(TWO_NPUS)[0])
        file = "kernel_details.csv" if kind == "csv" else "communication.json"
        (profile / "ASCEND_PROFILER_OUTPUT" / file).write_bytes(content())
        return profile
    path = home / (name if "." in name or kind == "log" else f"{name}.pt.trace.json")
    path.write_bytes(content())
    return path


def measured(command: list[str]) -> tuple[int, float, int, str]:
    """Exit status, CPU seconds and peak bytes of a program and all that it starts, and what it says to stderr."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (3 * MOST_SECONDS, 3 * MOST_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=limited)  # noqa: PLW1509
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read().decode("utf-8", "replace")
    return process.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss << 10, said


def main() -> int:
    """Explode all, or those named; how many hurt."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=10_000_000)
    parser.add_argument("--command", choices=COMMANDS, action="append", help="instead of those of the kind; repeatable")
    parser.add_argument("names", nargs="*", default=[""])
    options = parser.parse_args()
    wrong = 0
    for name, path, commands in written(tuple(options.names), options.bytes):
        for command in options.command or commands:
            words = [word.replace("PATH", str(path)) for word in COMMANDS[command]]
            code, seconds, peak, said = measured([sys.executable, "-P", "-m", "traceanalyze", *words])
            bad = code not in {0, 1, 2} or seconds > MOST_SECONDS or peak > MOST_BYTES or "Traceback" in said
            bad |= code == 2 and len(said.strip().splitlines()) != 1
            wrong += bad
            print(
                f"{'WRONG' if bad else 'ok':5} {name:28} {command:10} exit {code:3} {seconds:6.1f} s {peak >> 20:5} MB  {said.strip()[-150:]!r}",
                flush=True,
            )
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
