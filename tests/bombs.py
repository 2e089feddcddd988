"""Files made to hurt, of 10 MB each: `python -m tests.bombs [--bytes N] [NAME …]`.

Each is given to the commands that would read it; a NAME is the begin of theirs: `csv`, `snapshot-memo`. None takes more than 1 GB or 60 s of CPU, none ends in a traceback,
and what cannot be read is refused in one line.
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
from collections.abc import Iterator
from contextlib import closing
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


def traces(size: int) -> Iterator[tuple[str, bytes]]:
    """Timelines."""
    head, tail = '{"traceEvents":[', "]}"
    event = '{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":2}'
    yield "nested", b"[" * size
    yield "nested-args", b'{"traceEvents":[{"ph":"X","args":' + b'{"a":' * (size // 5)
    yield "empty-events", repeated(b"{},", size, head.encode())
    yield "no-events", repeated(b"0,", size, head.encode())
    yield "long-text", b'{"traceEvents":[{"ph":"X","name":"' + b"x" * size + b'"}]}'
    yield "long-number", b'{"traceEvents":[{"ph":"X","ts":' + b"9" * size + b"}]}"
    yield "quotes", b'"' * size
    yield "backslashes", b'{"traceEvents":["' + b"\\" * size
    yield "names", numbered(event.replace('"a"', '"a#"') + ",", size, head, tail)
    yield "threads", numbered(event.replace('"tid":1', '"tid":#') + ",", size, head, tail)
    yield "processes", numbered(event.replace('"pid":1', '"pid":"p#"') + ",", size, head, tail)
    yield "streams", numbered(_EVENT.decode().replace("7", "#"), size, head, tail)
    yield "categories", numbered(event.replace("cpu_op", "c#") + ",", size, head, tail)
    yield (
        "deep-calls",
        numbered('{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":#,"dur":99999999},', size, head, tail),
    )
    yield (
        "steps",
        numbered(event.replace('"a"', '"ProfilerStep##"').replace('"ts":1', '"ts":#') + ",", size, head, tail),
    )
    yield "begins", numbered('{"ph":"B","name":"n#","pid":1,"tid":1,"ts":#},', size, head, tail)
    yield "flows", numbered('{"ph":"s","id":#,"name":"ac2g","cat":"ac2g","pid":1,"tid":1,"ts":1},', size, head, tail)
    yield (
        "metadata",
        numbered('{"ph":"M","name":"process_name","pid":#,"tid":0,"args":{"name":"n#"}},', size, head, tail),
    )
    yield "header", numbered('"k#":[#],', size, "{", '"traceEvents":[]}')
    yield "shapes", numbered(event[:-1] + ',"args":{"Input Dims":[[#,#],[#]]}},', size, head, tail)
    yield (
        "far-apart",
        numbered('{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":#00000000.5,"dur":1},', size, head, tail),
    )
    yield (
        "unended-collectives",
        numbered(
            '{"ph":"X","cat":"user_annotation","name":"nccl:all_reduce","pid":1,"tid":1,"ts":#,"dur":99999999},',
            size,
            head,
            tail,
        ),
    )
    step = event.replace('"a"', '"ProfilerStep##"').replace('"cat":"cpu_op"', '"cat":"user_annotation"')
    kernel = _EVENT.decode()[:-1].replace("7", "#")
    yield "steps-streams", numbered(step.replace('"ts":1', '"ts":#') + "," + kernel + ",", size, head, tail)
    call = '{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":#,"dur":1,"args":{"correlation":1}}'
    same = _EVENT.decode()[:-1].replace('"stream":7', '"stream":7,"correlation":1')
    yield "one-correlation", numbered(call + "," + same + ",", size, head, tail)
    yield "one-flow", numbered('{"ph":"s","id":1,"name":"ac2g","cat":"ac2g","pid":1,"tid":1,"ts":#},', size, head, tail)
    yield "devices", numbered(kernel.replace('"pid":0', '"pid":#').replace("stream", "device") + ",", size, head, tail)
    yield (
        "groups",
        numbered(
            '{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":7,"ts":#,"dur":1,"args":{"stream":7,'
            '"Collective name":"allreduce","Process Group Name":"#","Process Group Ranks":"[#, 9#]","Group size":#9}},',
            size,
            head,
            tail,
        ),
    )
    yield (
        "ranks",
        numbered(
            '{"pg_name":"#","ranks":[#,1#]},',
            size,
            '{"distributedInfo":{"backend":"nccl","rank":999999999,"world_size":1000000000,"pg_config":[',
            '{}]},"traceEvents":[' + _EVENT.decode() + "{}]}",
        ),
    )
    frame = '{"ph":"X","cat":"python_function","name":"a.py(#): f","pid":1,"tid":1,"ts":#,"dur":9999999,'
    yield "stacks", numbered(frame + '"args":{"Python id":#,"Python parent id":#}},', size, head, tail)
    alloc = '{"ph":"i","s":"t","name":"[memory]","pid":1,"tid":1,"ts":#,"args":{"Addr":#,"Bytes":512,"Device Type":1,'
    yield "allocations", numbered(alloc + '"Device Id":#,"Total Allocated":#}},', size, head, tail)
    yield (
        "deep-shapes",
        repeated(event[:-1].encode() + b',"args":{"Input Dims":' + b"[" * 60 + b"]" * 60 + b"}},", size, head.encode()),
    )
    yield "endless", numbered(_EVENT.decode().replace('"ts":1.5,"dur":1', '"ts":#,"dur":9e11'), size, head, tail)


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


def packed(size: int) -> Iterator[tuple[str, bytes]]:
    """Files that are small only as they are stored."""
    room = size * 1000
    for name, piece in (("blanks", b" "), ("events", _EVENT), ("text", b"x")):
        buffer = io.BytesIO()
        with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=9) as file:
            file.write(b'{"traceEvents":[' + (b'{"name":"' if name == "text" else b""))
            block = piece * ((1 << 20) // len(piece))
            while buffer.tell() < size and file.tell() < room:
                file.write(block)
        yield f"{name}.json.gz", buffer.getvalue()
    for name, piece, cost in DENSE:
        # As many events as so large a file may hold, and hardly more, behind what only makes it large.
        most = int(0.99 * (_ROOM + _PER_PACKED_BYTE * size) / cost)
        buffer = io.BytesIO()
        with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=6) as file:
            file.write(b'{"traceEvents":[')
            while buffer.tell() < size - 40_000:
                file.write(b'{"noise":"%s"},' % os.urandom(7000).hex().encode())
            for begin in range(0, most, 5000):
                file.write("".join(piece.replace("#", str(i)) for i in range(begin, min(begin + 5000, most))).encode())
            file.write(b"{}]}")
        yield f"dense-{name}.json.gz", buffer.getvalue()
    yield "members.json.gz", gzip.compress(b"[") + gzip.compress(b"") * (size // 20)
    packer = zstd.ZstdCompressor()
    block, made = b" " * (1 << 20), b""
    for _ in range(room >> 20):
        made += packer.compress(block)
    yield "blanks.json.zst", made + packer.flush()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("trace.json", b'{"traceEvents":[' + _EVENT * (50 * size // len(_EVENT)))
    yield "events.zip", buffer.getvalue()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number in range(size // 120):
            archive.writestr(f"{number}.json", b"[]")
    yield "million-files.zip", buffer.getvalue()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for rank in range(size // 320):
            text = b'{"distributedInfo":{"rank":%d,"world_size":99999},"traceEvents":[%s]}' % (rank, _EVENT[:-1])
            archive.writestr(f"{rank}.pt.trace.json", text)
    yield "ranks.zip", buffer.getvalue()


def snapshots(size: int) -> Iterator[tuple[str, bytes]]:
    """Allocator snapshots, and what else is a pickle."""
    yield "nested.json", b'{"segments":' + b"[" * size
    yield "objects.json", repeated(b'{"a":{}},', size, b'{"segments":[', b"{}]}")
    yield "lists.json", repeated(b"[],", size, b'{"device_traces":[[', b"[]]]}")
    yield "texts.json", numbered('{"k#":"v#"},', size, '{"segments":[', "{}]}")
    yield "numbers.json", b'{"segments":[{"address":' + b"9" * size + b"}]}"
    yield "blocks.json", repeated(b"{},", size, b'{"segments":[{"blocks":[', b"{}]}]}")
    yield "frames.json", repeated(b'{"frames":[{}]},', size, b'{"device_traces":[[', b"{}]]}")
    yield "nested.pickle", b"\x80\x04" + b"]" * size
    yield "closed.pickle", b"\x80\x04" + b"]" * (size // 2) + b"a" * (size // 2 - 1) + b"."
    yield "dicts.pickle", b"\x80\x04](" + b"}" * size + b"e."
    yield "tuples.pickle", b"\x80\x04)" + b"\x85" * size + b"."
    yield "doubled.pickle", b"\x80\x04]\x94" + b"(" + b"h\x00" * (size // 2 - 8) + b"e."
    yield (
        "powers.pickle",
        b"\x80\x02]q\x00"
        + b"".join(b"](" + b"h" + bytes([i]) + b"h" + bytes([i]) + b"eq" + bytes([i + 1]) for i in range(200))
        + b".",
    )
    yield "integer.pickle", b"\x80\x04\x8b" + (size).to_bytes(4, "little") + b"\x7f" * size + b"."
    yield "decimal.pickle", b"\x80\x02I" + b"9" * size + b"\n."
    yield "claims.pickle", b"\x80\x04\x8e" + (1 << 40).to_bytes(8, "little") + b"x" * 100
    yield (
        "memo.pickle",
        b"\x80\x04N"
        + b"".join(b"r" + i.to_bytes(4, "little") for i in range(0, 1 << 31, (1 << 31) // (size // 5)))
        + b".",
    )
    rows = [
        {
            "action": "alloc",
            "addr": i,
            "size": 512,
            "stream": 0,
            "frames": [{"filename": f"f{i}", "name": f"n{i}", "line": i}],
        }
        for i in range(size // 60)
    ]
    yield (
        "devices.json",
        repeated(
            b"[],", size, b'{"segments":[],"device_traces":[', b'[{"action":"alloc","addr":7,"size":512,"stream":0}]]}'
        ),
    )
    segment = '{"device":0,"address":#,"total_size":9,"stream":#,"segment_pool_id":[#,0],"segment_type":"small","blocks":[{"size":9,"requested_size":9,"state":"active_allocated","address":#}]},'
    yield (
        "segments.json",
        numbered(segment, size, '{"device_traces":[],"segments":[', segment.replace("#", "0")[:-1] + "]}"),
    )
    yield "owners.json", numbered(segment.replace('"device":0', '"device":#'), size, '{"segments":[', "{}]}")
    row = '{"action":"alloc","addr":7,"size":512,"stream":#},'
    yield (
        "one-address.json",
        numbered(row, size, '{"segments":[],"device_traces":[[', row.replace("#", "0")[:-1] + "]]}"),
    )
    yield "stacks.pickle", pickle.dumps({"segments": [], "device_traces": [rows]}, 4)[: 2 * size]


def logs(size: int) -> Iterator[tuple[str, bytes]]:
    """What a dead job leaves."""
    yield "line.log", b"Traceback (most recent call last): " + b"x" * size
    yield "lines.log", b"\n" * size
    yield "tracebacks.log", repeated(b'Traceback (most recent call last):\n  File "a", line 1\nE: x\n', size)
    yield "ranks.log", numbered("[rank#]: RuntimeError: NCCL error # in: /a.cpp:#\n", size)
    yield "steps.log", numbered("step # loss: nan lr 0.1 grad_norm inf\n", size)
    yield (
        "watchdog.log",
        numbered(
            "[rank#]:[E1 12:00:00.000 ProcessGroupNCCL.cpp:616] [Rank #] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=#, OpType=ALLREDUCE, NumelIn=#, NumelOut=#, Timeout(ms)=600000) ran for 600001 milliseconds before timing out.\n",
            size,
        ),
    )
    yield (
        "recorder_0.json",
        numbered(
            '{"record_id":#,"pg_id":#,"process_group":["#","d"],"collective_seq_id":#,"profiling_name":"nccl:all_reduce","input_sizes":[[#]],"state":"completed"},',
            size,
            '{"version":"2.4","entries":[',
            "{}]}",
        ),
    )

    entry = {"profiling_name": "nccl:all_reduce", "process_group": ("0", "default_pg"), "state": "completed"}
    entries = [entry | {"record_id": i, "collective_seq_id": i, "input_sizes": [[i]]} for i in range(size // 110)]
    yield "recorder_1", pickle.dumps({"version": "2.9", "entries": entries, "pg_config": {}}, 2)
    yield "objects.log", b'{"a":' * (size // 5)
    yield "smi.log", numbered("gpu#,", size, "timestamp, name\n", "\n")


def csv_folder(size: int) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Ascend profiles of text."""
    header = b"Type,Accelerator Core,Start Time(us),Duration(us),Name\n"
    row = b"MatMul,AI_CORE,1736408883686740.710\t,1.5,m\n"
    tables = {
        "quotes": header + b'"' * size,
        "commas": header + b"," * size,
        "columns": b"Type," * (size // 5) + b"\n" + row,
        "rows": header + row * (size // len(row)),
        "cell": header + b"x" * size,
        "open-quotes": header + b'a"b,c\n' * (size // 6),
        "digits": header + b"MatMul,AI_CORE," + b"9" * size + b",1,m\n",
        "distinct": header + numbered("T#,C#,#.5,#,n#\n", size),
        "empty-lines": header + b"\n" * size,
    }
    for name, text in tables.items():
        yield f"csv-{name}", {"kernel_details.csv": text}
    deep = {
        "nested": b'{"a":' * (size // 5),
        "lists": b"[" + b"[]," * (size // 3) + b"[]]",
        "entries": numbered(
            '"step#":{"collective":{"hcom_allReduce__#_0_1@1":{"Communication Time Info":{"Elapse Time(ms)":#}}}},',
            size,
            "{",
            '"x":1}',
        ),
        "digits": b'{"step1":' + b"9" * size + b"}",
    }
    for name, text in deep.items():
        yield f"communication-{name}", {"communication.json": text}


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


def written(folder: Path, size: int, names: list[str]) -> Iterator[tuple[str, Path, tuple[str, ...]]]:
    """Name, path and commands of every bomb of the kinds that are named, made as it is asked for."""

    def wanted(kind: str) -> bool:
        return not names or any(name.startswith(kind) or kind.startswith(name) for name in names)

    for kind, makers, commands in (
        ("trace", traces, ("analyze", "compare")),
        ("packed", packed, ("analyze",)),
        ("snapshot", snapshots, ("memory", "analyze")),
        ("log", logs, ("postmortem",)),
    ):
        for name, content in makers(size) if wanted(kind) else ():
            home = folder / f"{kind}-{name}"
            home.mkdir()
            path = home / (name if "." in name else f"{name}.pt.trace.json")
            path.write_bytes(content)
            yield f"{kind}-{name}", path, commands
    for name, texts in csv_folder(size) if wanted("csv") or wanted("communication") else ():
        # Beside events of devices, without which tables are not asked for.
        output = write_ascend(folder / name / "r0_ascend_pt", simulate(TWO_NPUS)[0]) / "ASCEND_PROFILER_OUTPUT"
        for file, text in texts.items():
            (output / file).write_bytes(text)
        yield name, output.parent, ("analyze",)
    for name, statements in databases(size) if wanted("db") else ():
        output = folder / f"db-{name}" / "r0_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        path = output / "ascend_pytorch_profiler_0.db"
        with closing(sqlite3.connect(path)) as database, database:
            for statement in statements:
                database.execute(statement)
        yield f"db-{name}", output.parent, ("analyze",)


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
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, path, commands in written(Path(folder), options.bytes, options.names):
            if options.names and not name.startswith(tuple(options.names)):
                continue
            for command in commands:
                words = [
                    sys.executable,
                    "-P",
                    "-m",
                    "traceanalyze",
                    *([] if command == "analyze" else [command]),
                    *[str(path)] * (1 + (command == "compare")),
                    "--format",
                    "json",
                ]
                code, seconds, peak, said = measured(words)
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
