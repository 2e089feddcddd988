"""Whole folders: whose file is whose, launchers' documents, and whatever is torn, hostile or unreadable."""

# ruff: noqa: E501  messages as they are printed

from __future__ import annotations

import gzip
import json
import os
import random
from zipfile import ZipFile

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from tests.incident import test_tensorboard as events
from tests.plugin_site import installed
from traceanalyze import plugins
from traceanalyze.incident import read_evidence, text
from traceanalyze.incident.evidence import What


def put(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_evidence([str(folder)])


TABLE = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-22_15:22:41
  host      : a3-17
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 744)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 744
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-22_15:22:39
  host      : a3-17
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 745)
  error_file: /tmp/error.json
  traceback : Traceback (most recent call last):
    File "train.py", line 3, in main
      raise ValueError("bad batch 17")
  ValueError: bad batch 17

============================================================
"""
ERROR = {
    "message": {
        "message": "ValueError: bad batch 17",
        "extraInfo": {
            "py_callstack": 'Traceback (most recent call last):\n  File "/app/train.py", line 3, in main\n    x\nValueError: bad batch 17\n',
            "timestamp": "1795360959",
        },
    }
}


def test_the_table_of_the_launcher(tmp_path):
    found = put(tmp_path, {"job.log": TABLE})
    one, other = found.of(What.EXIT)
    assert (one.rank, one.host, one.data["exitcode"], one.data["root_cause"]) == (1, "a3-17", 1, 1)
    assert one.data["reason"] == "ValueError: bad batch 17"
    assert (other.rank, other.data["exitcode"], "root_cause" in other.data) == (0, -15, False)
    assert (found.files[0].notable, len(found.events)) == (0, 2)
    assert {(each.rank, each.pid) for each in found.processes} == {(0, 744), (1, 745)}


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (ERROR, What.EXCEPTION),
        ({"message": "ValueError: bad batch 17", "timestamp": 1795360959}, What.EXCEPTION),
        ({"message": {"message": "Signal 9 (SIGKILL) received by PID 745", "timestamp": "1795360959"}}, What.EXIT),
    ],
)
def test_error_files_of_every_version(tmp_path, value, what):
    found = put(tmp_path, {"none_x1/attempt_0/1/error.json": json.dumps(value)})
    (event,) = found.events
    assert (event.what, event.rank, event.time_ns) == (what, 1, 1_795_360_959 * 10**9)
    assert found.files[0].kind == "launcher_error"


@pytest.mark.parametrize("seconds", [17698290000, 99_999_999_999, 10**400])
def test_times_of_which_no_program_dies_are_none(tmp_path, seconds):
    stamps = f"timestamp,gpu,DCGM_FI_DEV_XID_ERRORS\n{seconds * 10**9},6,79\n{seconds * 10**9},6,0\n"
    files = {"error.json": json.dumps({"message": "ValueError: bad", "timestamp": seconds}), "smi.csv": stamps}
    if seconds < 10**12:
        files["events.out.tfevents.1.a3-17.7.0"] = events.event(seconds, 1, events.scalar("loss", 2))
    found = put(tmp_path, files)
    assert {event.stamp_ns for event in found.events} == {None}
    assert not [one for one in found.series if one.name == "loss"]
    traceanalyze.postmortem(tmp_path)


def test_the_zone_by_the_failure_in_both(tmp_path):
    found = put(tmp_path, {"job.log": TABLE, "none_x1/attempt_0/1/error.json": json.dumps(ERROR)})
    # 2026-11-22 15:22:39 is 1795360959 in UTC.
    assert (found.zone.offset_ns, found.zone.known) == (0, True)


def test_trees_of_two_nodes_by_the_ranks_that_lines_tell(tmp_path):
    loss = "iter 1: loss 2.5, time 10.00ms, mfu 1.00%\n"
    files = {f"node{node}/none_a/attempt_0/{local}/stdout.log": loss for node in range(2) for local in range(2)}
    files["node1/none_a/attempt_0/1/stderr.log"] = (
        '[rank3]: Traceback (most recent call last):\n[rank3]:   File "a.py", line 1, in f\n[rank3]: ValueError: x\n'
    )
    found = put(tmp_path, files)
    ranks = {(one.source.path.split("/")[-5:-4][0], one.source.path.split("/")[-2]): one.rank for one in found.series}
    assert ranks == {("node1", "0"): 2, ("node1", "1"): 3, ("node0", "0"): None, ("node0", "1"): None}


def test_hosts_by_what_lines_name_and_by_names_of_files(tmp_path):
    found = put(
        tmp_path,
        {
            "a3-17/kern.log": "Jan 31 03:12:44 a3-17 kernel: [ 12.5] NVRM: Xid (PCI:0000:3b:00): 48, pid=1, name=x, DBE\n",
            "a3-17/nvidia-smi.csv": "index, pci.bus_id, temperature.gpu\n6, 00000000:3B:00.0, 88\n",
            "dmesg-node12.txt": "[171263.1] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has x\n",
        },
    )
    assert {one.data["code"]: one.host for one in found.of(What.XID)} == {48: "a3-17", 79: "node12"}
    assert {one.host for one in found.series} == {"a3-17"}
    boot = next(one for one in found.events if one.data["code"] == 79)
    assert (boot.time_ns, boot.clock, boot.stamp_ns) == (None, "boot", 171_263_100_000_000)


def test_pods_of_kubernetes(tmp_path):
    state = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-01-31T03:12:44Z"}}
    pod = {
        "kind": "Pod",
        "spec": {"nodeName": "n1"},
        "status": {"containerStatuses": [{"lastState": state, "state": {}}]},
    }
    described = "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n      Started:      x\n"
    found = put(tmp_path, {"pod.json": json.dumps({"items": [pod]}), "pod.txt": f"Name: x\n{described}"})
    one, other = found.of(What.HOST_OOM)
    assert (one.host, one.data["exitcode"], one.time_ns) == ("n1", -9, 1_769_829_164 * 10**9)
    assert (other.data["exitcode"], other.data["reason"]) == (-9, "OOMKilled")


def test_the_year_of_logs_without_one(tmp_path):
    found = put(
        tmp_path,
        {
            "a.log": "[rank0]:[E1231 23:59:58.000000000 ProcessGroupNCCL.cpp:7] Could not acquire GIL within 300 ms on exit\n"
            "[rank0]:[E101 00:00:01.000000000 ProcessGroupNCCL.cpp:7] ProcessGroupNCCL watchdog hang\n",
            "b.log": "[titan] 2026-01-01 00:00:02,000 - root - INFO - Saving the checkpoint x\n",
        },
    )
    seconds = [one.stamp_ns // 10**9 for one in found.events]
    assert seconds == [1_767_225_598, 1_767_225_601, 1_767_225_602]


def test_what_nobody_understands_is_counted_and_shown(tmp_path):
    text = "".join(f"12:0{at % 9} frobnicator {at}: fatal mismatch of cogs\n" for at in range(900))
    found = put(tmp_path, {"job.log": f"step 1\n{text}warning: nothing\nanother error: spline\n"})
    assert found.files[0].notable == 901
    assert found.files[0].examples[0] == "12:00 frobnicator 0: fatal mismatch of cogs"
    assert len(found.files[0].examples) == 3


def test_programs_and_traces_and_settings_are_no_logs(tmp_path):
    trace = TraceBuilder()
    trace.launch(0, 5, 10, 20, name="own")
    trace.write(tmp_path / "rank0.pt.trace.json")
    found = put(
        tmp_path,
        {
            "train.py": 'raise RuntimeError("CUDA out of memory. Tried to allocate 1.00 GiB")\n',
            "a.bin": os.urandom(5000),
        },
    )
    assert {one.kind for one in found.files} == {"other"}
    assert len(found.files) == 3
    assert not found.events


XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=x, GPU has fallen off the bus.\n"


def test_holes_of_zeros_and_a_line_without_end(tmp_path):
    found = put(
        tmp_path,
        {"job.log": XID.encode() + b"\0" * 3_000_000 + b"x" * 3_000_000 + b"\n" + XID.replace("79", "48").encode()},
    )
    assert [one.data["code"] for one in found.of(What.XID)] == [79, 48]
    assert [one.source.line for one in found.events] == [1, 3]


def test_packed_logs_are_read_and_bombs_are_not(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "_TEXT_ROOM", 4 << 20)
    files = {
        "bomb.log.gz": gzip.compress((XID + "0" * 10_000 + "\n").encode() * 2_000),
        "kern.log.gz": gzip.compress(XID.encode()),
    }
    found = put(tmp_path, files)
    assert {one.source.path.rpartition("/")[2] for one in found.of(What.XID)} == {"kern.log.gz", "bomb.log.gz"}
    assert "the rest is not read" in found.files[0].fault


def test_an_archive_is_read_whether_it_is_named_or_found(tmp_path):
    with ZipFile(tmp_path / "logs.zip", "w") as archive:
        archive.writestr("node/kern.log", XID)
    for path in (tmp_path, tmp_path / "logs.zip", tmp_path / "*.zip"):
        (file,) = read_evidence([str(path)]).files
        assert (file.path, file.understood) == (f"{tmp_path / 'logs.zip'}!node/kern.log", 1)


FILL = b'{"loss": [' + b"0.5, " * 40_000 + b"]}"


@pytest.mark.parametrize("place", [100, 8_000, 8_190, 20_000, 60_000, 150_000])
def test_an_error_is_found_wherever_in_a_long_line_it_stands(tmp_path, place):
    head = b"[rank3]: 2026-11-22 15:22:41 "
    error = b" RuntimeError: CUDA error: an illegal memory access was encountered "
    line = head + FILL[:place] + error + FILL[place:]
    found = put(tmp_path, {"job.log": b"first\n" + line + b"\n" + XID.encode()})
    short = put(tmp_path / "short", {"job.log": b"first\n" + head + error + b"\n" + XID.encode()})
    assert [(one.what, one.rank, one.source.line, one.stamp_ns) for one in found.events] == [
        (one.what, one.rank, one.source.line, one.stamp_ns) for one in short.events
    ]
    (file,) = found.files
    assert (file.lines, file.fault) == (3, "")
    message = next(one.message for one in found.events if one.rank == 3)
    assert "illegal memory access" in message


def test_of_a_dense_long_line_every_error_is_counted(tmp_path):
    errors = b"".join(b"%05d Error: something odd happened here; " % number for number in range(1_000))
    found = put(tmp_path, {"job.log": errors + b"\nNVRM: done\n"})
    assert found.files[0].notable >= len(errors) // 8192


def test_lines_that_are_cut_are_counted(tmp_path):
    lines = [XID.encode() + b"x" * 1_500_000, b"y" * 10, b"z" * 2_500_000, XID.replace("79", "48").encode()]
    (file,) = put(tmp_path, {"job.log": b"\n".join(lines)}).files
    assert file.fault == "lines of more than 64 KiB, of which the rest is not read: 2"
    (file,) = put(tmp_path / "short", {"job.log": b"\n".join(line[:60_000] for line in lines)}).files
    assert not file.fault


def test_a_torn_packed_log_keeps_its_beginning(tmp_path):
    packed = gzip.compress(XID.encode() + os.urandom(300_000).hex().encode())
    found = put(tmp_path, {"kern.log.gz": packed[:150_000]})
    assert len(found.of(What.XID)) == 1
    assert found.files[0].fault


@pytest.mark.parametrize("seed", range(12))
def test_damage_never_raises(tmp_path, seed):
    chosen = random.Random(seed)
    content = bytearray(
        (TABLE + XID + json.dumps(ERROR)).encode() * 3
        if seed % 3
        else json.dumps(ERROR).encode()
        if seed % 2
        else b"\x80\x02}q\x00(X\x09\x00\x00\x00pg_statusq\x01}q\x02X\x07\x00\x00\x00entriesq\x03]q\x04u."
    )
    for _ in range(1 + seed):
        content[chosen.randrange(len(content))] = chosen.randrange(256)
    found = put(tmp_path, {"some.json": bytes(content[: chosen.randrange(len(content)) + 1]), "kern.log": XID})
    assert len(found.files) == 2
    assert found.of(What.XID)


def test_unreadable_files_and_no_files(tmp_path):
    assert not read_evidence([str(tmp_path / "missing")]).files
    (tmp_path / "gone.log").symlink_to(tmp_path / "nowhere")
    (tmp_path / "fifo.log")
    os.mkfifo(tmp_path / "pipe.log")
    found = put(tmp_path, {"kern.log": XID})
    assert len(found.of(What.XID)) == 1


ROWS = """
from traceanalyze.incident import Format
from traceanalyze.incident.evidence import Event, Evidence, Source, What
from traceanalyze.incident.text import said
import re

ROWS = (said(What.MARK, rb"frobnicator (?P<cogs>[0-9]+) stuck"),)

def read(path):
    return Evidence((Event(What.MARK, "from acme", Source(str(path))),))

FORMAT = Format(lambda head: head.startswith(bytes([1, 2, 3, 4])), read)
BROKEN = Format(lambda head: 1 / 0, read)
"""


def test_plug_ins_bring_rows_and_formats(tmp_path):
    names = {"rows": "acme_evidence:ROWS", "format": "acme_evidence:FORMAT", "broken": "acme_evidence:BROKEN"}
    with installed(tmp_path / "site", {plugins.EVIDENCE: names}, {"acme_evidence": ROWS}):
        found = put(tmp_path / "run", {"job.log": "frobnicator 17 stuck\n", "state.acme": b"\1\2\3\4"})
    assert [(one.what, one.data.get("cogs")) for one in found.events] == [(What.MARK, 17), (What.MARK, None)]
    assert {one.kind for one in found.files} == {"process_log", "format"}
    assert any("ZeroDivisionError" in note for note in found.notes)


def test_a_large_text_that_is_no_log_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "_UNTOLD", 1 << 20)
    found = put(tmp_path, {"words.txt": "the quick brown fox\n" * 200_000, "job.log": f"{XID}{'x' * 99}\n" * 30_000})
    assert [one.kind for one in found.files] == ["kernel_log", "other"]
    assert "nothing of a log" in found.files[1].fault
    assert found.files[0].lines == 60_000
