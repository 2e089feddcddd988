"""What a file is, told from its first bytes, and the sentence a user reads when it is not a trace."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import random
import sqlite3
import struct
import tarfile
import zipfile

import pytest

from traceanalyze.readers.detect import Kind, explain, sniff


def perfetto(packets: int) -> bytes:
    """A protobuf of TracePackets: field 1, each with a timestamp (field 8) and a sequence id (field 10)."""
    body = b"\x40" + b"\x80\x01" + b"\x50\x01" + b"\x00" * 200
    return (b"\x0a" + b"\xcd\x01" + body) * packets


def tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("trace.json"))
    return buffer.getvalue()


def archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("a.json", "[]")
    return buffer.getvalue()


RECORDED = {
    "version": "2.10",
    "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
    "pg_status": {"0": {"last_completed_collective": 3}},
    "entries": [{"collective_seq_id": 4, "profiling_name": "nccl:all_reduce", "state": "scheduled"}],
}
"""As torch writes it, cut down."""


def database(table: str) -> bytes:
    with sqlite3.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE {table} (start INTEGER)")
        return connection.serialize()


def test_binary_files_of_nsight_are_told_by_their_names():
    assert sniff(b"\x01\x00\x7f\x00", "run.nsys-rep") is Kind.NSIGHT


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b'{"schemaVersion": 1, "deviceProperties": [', Kind.TRACE),
        (b'\xef\xbb\xbf \n{"traceEvents": []}', Kind.TRACE),
        (b'[{"ph": "X"}]', Kind.TRACE),
        (b"[\n,{", Kind.TRACE),
        (b"[", Kind.TRACE),
        (b"[]", Kind.TRACE),
        (b'{"loss": [1, 2]}', Kind.JSON),
        (b"[1, 2, 3]", Kind.JSON),
        (b'["a"]', Kind.JSON),
        (b"[[1712799239577510, 1712799239577511], [[0, 1]]]", Kind.MEMORY_TIMELINE),
        (b"[[-1, 1, 37888, 7], [-1, 1, 512, 7]]", Kind.MEMORY_TIMELINE),
        (pickle.dumps({"segments": [], "device_traces": [[]]}, protocol=4), Kind.SNAPSHOT),
        (pickle.dumps({"weights": [1]}, protocol=4), Kind.PICKLE),
        (perfetto(5), Kind.PERFETTO),
        (perfetto(1), Kind.PERFETTO),
        (perfetto(500)[:65536], Kind.PERFETTO),
        (gzip.compress(b"[]", mtime=0), Kind.GZIP),
        (bz2.compress(b"[]"), Kind.BZIP2),
        (lzma.compress(b"[]"), Kind.XZ),
        (b"\x28\xb5\x2f\xfd\x04\x00", Kind.ZSTD),
        (archive(), Kind.ZIP),
        (tar(), Kind.TAR),
        ('{"traceEvents": []}'.encode("utf-16"), Kind.UTF16),
        (b"<!DOCTYPE html><html>", Kind.HTML),
        (b"\n<svg>", Kind.HTML),
        (b"Name,Duration(us)\nMatMul,3\n", Kind.TABLE),
        (b'title = "GPU, and NPU"\n', Kind.TEXT),
        (b"Traceback (most recent call last):\n  File", Kind.TEXT),
        (b"\n{ hello", Kind.JSON),
        (b"\x7fELF\x02\x01\x01\x00\x00", Kind.BINARY),
        (b"\0" * 4096, Kind.BINARY),
        (b"", Kind.EMPTY),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", Kind.LFS_POINTER),
        (pickle.dumps(RECORDED, protocol=2), Kind.FLIGHT_RECORDER),
        (json.dumps(RECORDED).encode(), Kind.FLIGHT_RECORDER),
        (b'{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "now", "nodes": [{"id": 1}', Kind.EXECUTION_TRACE),
        (b'{\n  "schema": "1.0.1", "pid": 7, "time": "now",\n "nodes": [', Kind.EXECUTION_TRACE),
        (b'{"rocprofiler-sdk-tool": [{"metadata": {"pid": 1}}]}', Kind.ROCPROF),
        (b'{"traceEvents": [{"ph": "X", "name": "k", "ts": 1, "dur": 2, "args": {"BeginNs": "1"}}]}', Kind.ROCPROF),
        (b'"Kind","Agent_Id","Queue_Id","Kernel_Name"\n"KERNEL_DISPATCH",1,2,"k"\n', Kind.ROCPROF),
        (b"Index,KernelName,gpu-id,queue-id\n0,k,1,2\n", Kind.ROCPROF),
        (database("rocpd_kernel_dispatch"), Kind.ROCPROF),
        (database("other"), Kind.SQLITE),
        (b" \t\r\n" * 1000, Kind.BLANK),
        (b"\xef\xbb\xbf", Kind.BLANK),
    ],
)
def test_the_content_decides(head, kind):
    assert sniff(head, "trace.json") is kind


def test_databases_are_told_apart(tmp_path):
    for name, table, kind in (
        ("ascend_pytorch_profiler_0.db", "TASK", Kind.ASCEND_DB),
        ("x.db", "STRING_IDS", Kind.ASCEND_DB),
        ("nsys.sqlite", "CUPTI_ACTIVITY_KIND_KERNEL", Kind.NSIGHT),
    ):
        with sqlite3.connect(tmp_path / name) as database:
            database.execute(f"create table {table} (id integer)")
        database.close()
        assert sniff((tmp_path / name).read_bytes(), name) is kind


def test_random_bytes_are_something_but_never_a_crash():
    source = random.Random(7)
    for length in (1, 2, 3, 17, 300, 65536):
        for _ in range(40):
            head = source.randbytes(length)
            assert isinstance(sniff(head), Kind)
            assert isinstance(sniff(b"\n" + head), Kind)
            assert isinstance(sniff(b"[" + head), Kind)


def test_a_line_feed_and_text_are_not_a_protobuf():
    assert sniff(b'\n{"traceEvents": [' + b" " * 121 + b"\n") is Kind.TRACE
    assert sniff(b"\n" + struct.pack("<I", 5) + b"x") is Kind.BINARY


def test_every_sentence_is_one_line_that_says_what_it_is():
    for kind in Kind:
        if kind is not Kind.TRACE:
            message = str(explain(kind, "a.json"))
            assert message.startswith("a.json: th")
            assert "\n" not in message


def test_real_files(shared_traces):
    snapshots = sorted((shared_traces.parent / "snapshots").glob("*.pickle"))
    databases = sorted(shared_traces.rglob("*.db"))
    assert {sniff(path.read_bytes()[:65536], str(path)) for path in snapshots} == {Kind.SNAPSHOT}
    assert {sniff(path.read_bytes()[:65536], str(path)) for path in databases} == {Kind.ASCEND_DB}
