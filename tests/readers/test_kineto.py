"""Files of the PyTorch profiler as traces and runs, and the one line a user reads when that cannot be."""

from __future__ import annotations

import gzip
import json
import os
import platform
import random
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.benchmarks import child
from tests.readers.text import document, kernel
from traceanalyze.analyses.analyze import analyze_trace
from traceanalyze.errors import InputError
from traceanalyze.model.trace import Device, Trace
from traceanalyze.readers import kineto
from traceanalyze.readers.kineto import read_text, read_trace
from traceanalyze.readers.runs import explicit_rank, group_runs, host_and_pid, numbered_ranks, run_folder
from traceanalyze.readers.sources import expand
from traceanalyze.readers.streams import Stream

SAMPLES = Path(__file__).parents[2] / "sample_traces"


def load(path: Path) -> Trace:
    (source,) = expand([str(path)]).sources
    return read_trace(source)


def runs(*paths: Path) -> list[tuple[list[int | None], tuple[str, ...]]]:
    """Ranks and notes of each run."""
    sources = expand([str(path) for path in paths]).sources
    return [(list(run.ranks), run.notes) for run in group_runs([read_trace(source) for source in sources])]


def refusal(path: Path) -> str:
    """The line a user reads; it begins with the file."""
    with pytest.raises(InputError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def trace(*, at: int = 1000, header: dict[str, Any] | None = None, events: list[dict[str, Any]] | None = None) -> bytes:
    event = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": at, "dur": 50, "args": {"stream": 7}}
    return json.dumps({**(header or {}), "traceEvents": [event, *(events or [])]}).encode()


def rank(number: int, world: int = 2, **more: Any) -> dict[str, Any]:
    return {"distributedInfo": {"backend": "nccl", "rank": number, "world_size": world, **more}}


# --- one recording ------------------------------------------------------------------------------------------------


def test_what_a_trace_says_of_itself():
    named = [
        {"ph": "M", "name": "process_name", "pid": 81, "tid": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "process_labels", "pid": 81, "tid": 0, "args": {"labels": "CPU"}},
        {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}},
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7 "}},
    ]
    header = {
        "schemaVersion": 1,
        "deviceProperties": [
            {"id": 0, "name": "H100", "totalGlobalMem": 85, "computeMajor": 9, "computeMinor": 0, "numSms": 132}
        ],
        "cuda_runtime_version": 12060,
        **rank(1, pg_config=[{"pg_name": "0", "ranks": [0, 1]}], nccl_version="2.28.9"),
        "with_stack": 1,
        "record_shapes": "0",
        "baseTimeNanoseconds": 1759300074000000000,
        "traceName": "/tmp/host-a_81.1759300074000000000.pt.trace.json",
    }
    found = read_text(trace(header=header, events=named))
    assert found.base_ns == 1_759_300_074_000_000_000
    assert found.events.ts.tolist() == [1_000_000]
    assert found.resolution_ns == 1000
    assert found.devices == (Device(0, "H100", 85, 132, "9.0"),)
    assert found.groups == {"0": (0, 1)}
    assert found.options == {"with_stack": True, "record_shapes": False}
    assert found.versions == {"schema": "1", "cuda_runtime": "12060", "nccl": "2.28.9"}
    assert found.process_names == {"81": "python [CPU]", "0": "[GPU 0]"}
    assert found.thread_names == {("0", "7"): "stream 7"}
    origin = found.origin
    assert (origin.rank, origin.rank_source, origin.world_size) == (1, "distributedInfo", 2)
    assert (origin.host, origin.pid, origin.backend) == ("host-a", 81, "nccl")


def test_columns_no_event_has_are_absent():
    assert list(read_text(trace()).events.fields) == ["stream"]


def test_absolute_times_beside_a_base_are_not_shifted_twice():
    found = read_text(trace(at=1_759_300_074_000_000, header={"baseTimeNanoseconds": 1_759_300_000_000_000_000}))
    assert found.base_ns == 0


@pytest.mark.parametrize(
    "member",
    [
        '"deviceProperties": [{"id": 0,}]',
        '"distributedInfo": {"rank": 01}',
        '"baseTimeNanoseconds": NaNa',
    ],
)
def test_a_damaged_header_member_becomes_a_note(member):
    found = read_text(b"{" + member.encode() + b', "traceEvents": [' + kernel(1).encode() + b"]}")
    name = member.split('"')[1]
    assert found.read.notes == (f'header member "{name}" is damaged and was left out',)
    assert len(found.events) == 1


@pytest.mark.parametrize(
    "header",
    [
        {"deviceProperties": {"id": 0}, "distributedInfo": [1], "baseTimeNanoseconds": "soon", "traceName": 5},
        {"deviceProperties": [None, 3, {"id": "x", "name": None, "numSms": 1e400}]},
        {
            "distributedInfo": {"rank": 10**17, "world_size": 10**18},
            "traceName": f"a_{'7' * 5000}.1700000000.pt.trace.json",
        },
        {"distributedInfo": {"rank": -1, "world_size": "many", "pg_config": [{"pg_name": 1, "ranks": "[0]"}, 7]}},
    ],
)
def test_header_members_of_the_wrong_shape_say_nothing(header):
    found = read_text(trace(header=header))
    assert (found.base_ns, found.origin.rank, found.origin.world_size) == (0, None, None)


def test_names_that_are_not_utf8_are_readable():
    text = trace(header={"traceName": "x"}).replace(b'"k"', b'"\xff\xfe"').replace(b'"x"', b'"\xe9"')
    found = read_text(text)
    assert found.strings.text(int(found.events.name[0])) == "\ufffd\ufffd"
    assert found.origin.trace_name == "\ufffd"


# --- faulty files -------------------------------------------------------------------------------------------------

GOOD = document([kernel(index) for index in range(30)]).encode()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "trace.json"


def test_a_trace_cut_anywhere_is_read_up_to_the_cut_or_refused_with_the_reason(file):
    first = GOOD.index(b'{"ph"') + len(kernel(0))
    for cut in range(1, len(GOOD), 97):
        file.write_bytes(GOOD[:cut])
        if cut < first:
            assert "broken at" in refusal(file)
        else:
            found = load(file)
            assert found.read.truncated
            assert len(found.events) == GOOD[:cut].count(b"}}")


def test_a_cut_gzip_is_read_up_to_the_cut_and_says_so(tmp_path):
    file = tmp_path / "trace.json.gz"
    text = document([kernel(index * 7919) for index in range(3000)]).encode()
    packed = gzip.compress(text)
    file.write_bytes(packed[: len(packed) // 2])
    found = load(file)
    assert found.read.stream_fault is not None
    assert found.read.stream_fault.startswith("the gzip stream ends early, after ")
    assert 1000 < len(found.events) < 2000
    assert found.read.truncated
    file.write_bytes(packed[:5])
    assert refusal(file).startswith("the gzip stream ends early, after 0 bytes of text: ")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"traceEvents": []}', "the trace has no events"),
        (b"[]", "the trace has no events"),
        (b'{"deviceProperties": []}', "the trace has no events"),
        (b'{"loss": 3, "lr": 1}', 'JSON without "traceEvents", not a trace (its members: loss, lr)'),
        (b'[{"ph": "M", "name": "process_name"}]', "nothing was recorded, only metadata or counters"),
        (b'[{"ph": "X", "name": "k"}]', "no event could be used: 1 events without a timestamp"),
        (b"[1, 2, 3]", "a list of 3 values that are no events"),
        (b"[[1, 2], [3, 4]]", "this is a memory timeline"),
        (b'{"traceEvents": [{', "broken at byte 17"),
        (b'{"traceEvents"', "broken at byte 1"),
        (b"{", "broken at its end"),
        (b" " * 100_000, "nothing but white space"),
        (b" " * 100_000 + b"hello", "this is text, but not a trace"),
        (b"\0" * 100_000, "binary data"),
        (b"a,b\n1,2\n", "this is a table (CSV)"),
        (b"\x80\x04\x95\x00}\x8c\x08segments", "this is a memory snapshot"),
        (b"\x0a\x04\x40\x01\x50\x01" * 9, "this is a Perfetto protobuf trace"),
        (gzip.compress(gzip.compress(GOOD, mtime=0), mtime=0), "compressed with gzip more than once"),
        (gzip.compress(b"<html>", mtime=0), "this is an HTML or XML page"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_in_one_line(file, content, reason):
    file.write_bytes(content)
    assert reason in refusal(file)


def test_random_bytes_give_a_reason_or_a_trace_but_never_a_crash(file):
    source = random.Random(3)
    for prefix in (b"", b"{", b"[", b'{"traceEvents": [', b"\x1f\x8b\x08\0" + b"\0" * 6, b"PK\x03\x04"):
        for length in (5, 100, 70_000):
            file.write_bytes(prefix + source.randbytes(length))
            with pytest.raises(InputError, match=r"^[^\n]+$"):
                load(file)


def test_gigabytes_of_nothing_are_refused_soon(file):
    with file.open("wb") as out:
        for _ in range(64):
            out.write(b" \n\t " * (1 << 20))
    began = time.monotonic()
    assert "nothing but white space" in refusal(file)
    with file.open("r+b") as out:
        out.truncate(0)
        os.ftruncate(out.fileno(), 2 << 30)
    assert "binary data" in refusal(file)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("room", ["_TEXT_ROOM", "_ROOM"])
def test_a_text_that_no_recording_is_packed_so_small_is_refused(room, tmp_path, monkeypatch):
    monkeypatch.setattr(kineto, room, 1 << 20)
    text = b'{"traceEvents":[' + b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1.5,"dur":1},' * 100_000
    with zipfile.ZipFile(tmp_path / "trace.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("trace.json", text)
    (tmp_path / "trace.json.gz").write_bytes(gzip.compress(text))
    for path in (tmp_path / "trace.json.gz", tmp_path / "trace.zip"):
        with pytest.raises(InputError, match=r"[\d,]+ bytes of text in .* of the file hold far more"):
            load(path)
    # Who unpacks it means it, and has the room.
    (tmp_path / "trace.json").write_bytes(text)
    assert len(load(tmp_path / "trace.json").events) == 100_000


@pytest.mark.parametrize("name", ["gpu_healthy", "gpu_sync", "gpu_2021_layout", "cpu_training", "memory/with_trace"])
def test_recordings_need_less_than_is_refused_whatever_their_size(name, monkeypatch):
    path = SAMPLES / name / "trace.json.gz"
    packed, needed = path.stat().st_size, list[int]()
    monkeypatch.setattr(Stream, "swells", lambda _, amount, *__: needed.append(amount))
    for room in ("_ROOM", "_TEXT_ROOM"):
        monkeypatch.setattr(f"traceanalyze.readers.kineto.{room}", 0)
    assert len(load(path).events)
    text, memory = needed[-2:]
    assert (text > 10 * packed, text < 50 * packed, memory > 5 * packed, memory < 70 * packed) == (True,) * 4


def test_faulty_events_are_counted_and_the_others_kept():
    events = [
        kernel(1),
        '{"ph": "X", "name": "no ts", "dur": 1}',
        '{"ph": "X", "cat": "kernel", "name": "at zero", "pid": 0, "tid": 7, "ts": 0, "dur": 1}',
        '{"ph": "X", "cat": "kernel", "name": "of zero length", "pid": 0, "tid": 7, "ts": 5, "dur": 0}',
        '{"ph": "X", "name": "text", "pid": "a", "tid": "b", "ts": "7.5", "dur": "0.25"}',
        '{"ph": "X", "name": "backwards", "pid": 1, "ts": 1, "dur": -3}',
        '{"ph": "X", "name": "endless", "pid": 1, "ts": 1, "dur": Infinity}',
        '{"ph": "X", "name": "no pid", "ts": 1, "dur": 3}',
        kernel(1),
    ]
    found = read_text(document(events).encode())
    names = [found.strings.text(int(code)) for code in found.events.name]
    assert names == ["k1", "at zero", "of zero length", "text", "no pid", "k1"]
    assert found.events.fields["correlation"].value.tolist() == [1, 1]
    left_out = {reason: count for reason, count in found.read.counts.items() if count}
    assert left_out == {"no_ts": 1, "negative_dur": 1, "bad_dur": 1, "no_pid": 1}


# --- runs ---------------------------------------------------------------------------------------------------------


def test_ranks_of_one_run_are_put_in_order(tmp_path):
    for number in (1, 0):
        (tmp_path / f"x{number}.json").write_bytes(trace(at=1000 + number, header=rank(number)))
    assert runs(tmp_path) == [([0, 1], ())]


def test_missing_ranks_are_told(tmp_path):
    for number in (0, 2, 3, 7):
        (tmp_path / f"rank{number}.json").write_bytes(trace(header=rank(number, 8)))
    assert runs(tmp_path) == [([0, 2, 3, 7], ("no recording of 4 of 8 ranks: 1, 4–6",))]


def test_two_runs_in_one_folder_are_told_apart(tmp_path):
    for number in (0, 1):
        for start in (1000, 900_000):
            (tmp_path / f"w{number}.{start}.json").write_bytes(trace(at=start + number, header=rank(number)))
    note = f"{tmp_path} holds several recordings, analysed apart; this is number "
    assert runs(tmp_path) == [([0, 1], (note + "1",)), ([0, 1], (note + "2",))]


def test_the_same_content_twice_is_left_out(tmp_path):
    (tmp_path / "a.json").write_bytes(trace(header=rank(0, 1)))
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(trace(header=rank(0, 1))))
    note = f"{tmp_path / 'a.json.gz'} has the same content as {tmp_path / 'a.json'} and was left out"
    assert runs(tmp_path) == [([0], (note,))]


def _called(*names: str, at: int = 1000) -> bytes:
    calls = [
        {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 9, "tid": 1, "ts": at + place, "dur": 1}
        for place, name in enumerate(names)
    ]
    return trace(at=at, header=rank(0, 1), events=calls)


CAPTURE, REPLAY = "hipStreamBeginCapture", "hipGraphLaunch"


@pytest.mark.parametrize("folder", ["", "capture_traces"])
def test_where_a_rank_captured_graphs_its_run_is_the_recording_of_their_replay(tmp_path, folder):
    capture = tmp_path / folder / "a_capture_rank_0.json"
    capture.parent.mkdir(exist_ok=True)
    capture.write_bytes(_called(CAPTURE, REPLAY))
    assert runs(tmp_path) == [([0], ())]
    (tmp_path / "b_run.json").write_bytes(_called(REPLAY, REPLAY, at=900_000))
    note = f"{capture} records how graphs were captured, not how they run: left out, read it alone"
    assert runs(tmp_path) == [([0], (note,))]


@pytest.mark.parametrize("other", [(CAPTURE, REPLAY, REPLAY), ("cudaLaunchKernel",)])
def test_a_recording_that_runs_what_it_captures_is_one_of_its_own(tmp_path, other):
    (tmp_path / "a.json").write_bytes(_called(*other))
    (tmp_path / "b.json").write_bytes(_called(REPLAY, at=900_000))
    assert [ranks for ranks, _ in runs(tmp_path)] == [[0], [0]]


def test_ranks_whose_clocks_differ_stay_together(tmp_path):
    for number in (0, 1):
        (tmp_path / f"{number}.json").write_bytes(trace(at=1000 + number * 10**6, header=rank(number)))
    note = "some ranks do not overlap in time with the others: different recordings, or clocks that differ"
    assert runs(tmp_path) == [([0, 1], (note,))]


def test_ranks_from_file_names_folders_and_processes(tmp_path):
    for number in (0, 1):
        (tmp_path / f"n{number}").mkdir()
        (tmp_path / "named" / f"rank_{number}").mkdir(parents=True)
        (tmp_path / "named" / f"rank_{number}" / "trace.json").write_bytes(trace(at=1000 + number))
        for place, name in (
            ("numbered", f"t_{number}.json"),
            ("hosts", f"node_{40 + number}.170000000000.pt.trace.json"),
        ):
            (tmp_path / place).mkdir(exist_ok=True)
            (tmp_path / place / name).write_bytes(trace(at=1000 + number))
    assert runs(tmp_path / "named") == [([0, 1], ())]
    assert runs(tmp_path / "numbered") == [([0, 1], ())]
    note = "the files do not tell their ranks: they are numbered in the order of host and process"
    assert runs(tmp_path / "hosts") == [([0, 1], (note,))]


def test_nothing_is_put_together_without_evidence(tmp_path):
    for name, start in (("before.json", 1000), ("after.json", 1001), ("step_0.json", 1002), ("step_1.json", 90_000)):
        (tmp_path / name).write_bytes(trace(at=start))
    assert [found for found, _ in runs(tmp_path)] == [[None]] * 4


def test_a_single_file_needs_no_notes(tmp_path):
    (tmp_path / "trace.json").write_bytes(trace())
    assert runs(tmp_path / "trace.json") == [([None], ())]


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("inference_rank_1.json.gz", 1),
        ("0aae58_Baseline-rank6-chrome-trace.json.gz", 6),
        ("worker3.1694128201557.pt.trace.json", 3),
        ("logs/rank12/trace.json", 12),
        ("run.zip!rank_2/trace.json", 2),
        ("Rank-0.json", 0),
        ("frank3.json", None),
        ("prank_3.json", None),
        ("rank1234567.json", None),
        ("host_85867.1698107929568240321.pt.trace.json", None),
        ("trace.json", None),
    ],
)
def test_ranks_in_names(path, number):
    assert explicit_rank(path) == number


def test_hosts_in_names():
    assert host_and_pid("a/node-1.example.com_77.1698107929568240321.pt.trace.json.gz") == ("node-1.example.com", 77)
    assert host_and_pid("worker0.1623143089861.pt.trace.json") == (None, None)
    assert host_and_pid("trace_1.json") == (None, None)


def test_numbers_at_the_end_of_names_count_only_without_a_gap():
    assert numbered_ranks(["t_1.json", "t_0.json.gz"]) == [1, 0]
    assert numbered_ranks(["t_1.json", "t_2.json"]) is None
    assert numbered_ranks(["t_0.json"]) is None


def test_the_folder_of_a_run_is_above_those_of_its_ranks():
    assert run_folder("logs/rank_0/trace.json") == "logs"
    assert run_folder("logs/run.zip!rank_0/trace.json") == "logs/run.zip"


# --- real traces --------------------------------------------------------------------------------------------------


def test_real_runs(shared_traces):
    kineto = shared_traces / "kineto"
    assert runs(kineto / "param" / "dlrm_8rank") == [(list(range(8)), ())]
    assert runs(shared_traces / "pairs" / "torchrec_ladder" / "resnet18") == [([0, 1], ())]
    found = load(next((kineto / "hta" / "amd_trace").glob("*.json.gz")))
    assert (found.devices[0].name, found.resolution_ns) == ("AMD Radeon Graphics", 1)


def test_every_small_real_file_is_read_or_refused_with_a_reason(shared_traces):
    refused = {}
    for path in sorted(path for path in shared_traces.rglob("*.gz") if path.stat().st_size < 70_000):
        try:
            assert len(load(path).events)
        except InputError as error:
            refused[path.name] = str(error)
    assert list(refused) == ["memory_timeline.raw.gz"]
    assert "this is a memory timeline" in refused["memory_timeline.raw.gz"]


def test_ascend_traces_are_known_by_their_content(shared_traces, tmp_path):
    path = next(shared_traces.rglob("trace_view.json"))
    copied = tmp_path / "some.json"
    copied.write_bytes(path.read_bytes())
    assert load(copied).origin.format == "ascend"


def test_events_written_as_two_are_one_and_what_is_unbalanced_ends_with_its_parent():
    """`d` is open when `c` around it ends, `e` when the complete event does, `g` when the thread does."""
    begun = [(10, "a"), (12, "b"), (40, "c"), (45, "d"), (70, "e"), (150, "g")]
    ended = [(20, "b"), (30, ""), (60, "c"), (65, "z")]
    complete = [(0, "parent", 100), (160, "last", 10)]
    events = [
        *({"ph": "B", "name": name, "ts": at, "args": {"External id": at}} for at, name in begun),
        *({"ph": "E", "name": name, "ts": at} for at, name in ended),
        *({"ph": "X", "name": name, "ts": at, "dur": length} for at, name, length in complete),
        {"ph": "C", "name": "counter", "ts": 3, "args": {"value": 1}},
    ]
    events = [{"cat": "cpu_op", "pid": 1, "tid": 1, **event} for event in events]
    found = read_text(json.dumps({"traceEvents": events}).encode())
    names = [found.strings.text(code) for code in found.events.name.tolist()]
    spans = dict(zip(names, (found.events.dur // 1000).tolist(), strict=True))
    assert spans == {"a": 20, "b": 8, "c": 20, "d": 15, "e": 30, "g": 20, "parent": 100, "last": 10}
    assert found.events.numbers("external_id", np.arange(8)).tolist()[:6] == [at for at, _ in begun]
    told = {check.message: dict(check.values) for check in analyze_trace(found).checks}
    assert told["no_end"] == {"count": 3}
    assert told["skipped_no_begin"] == {"count": 1}
    assert told["other_kinds"] == {"count": 1, "phases": "C × 1"}
    assert sum(found.read.phases.values()) == len(events) == len(found.events) + 3 + 1 + 1


_FAULTS = """
import resource, sys
from traceanalyze.readers.kineto import read_trace
from traceanalyze.readers.sources import expand

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

source = expand(sys.argv[1:]).sources[0]
for _ in range(4):
    read_trace(source, brief=True)
before = faults()
for _ in range(10):
    read_trace(source, brief=True)
print((faults() - before) / 10)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to keep what is freed")
def test_of_many_recordings_each_is_read_into_the_pages_of_the_one_before(tmp_path):
    path = tmp_path / "trace.json.gz"
    child.tiled(SAMPLES / "gpu_two_ranks" / "rank0.json.gz", 12.0, path)
    ran = subprocess.run([sys.executable, "-c", _FAULTS, str(path)], capture_output=True, text=True, check=True)
    assert float(ran.stdout) < 100  # 500 and more where freed memory goes back to the system
