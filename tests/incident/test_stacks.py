"""Stacks of threads and tracebacks, as py-spy, faulthandler and Python print them."""

from __future__ import annotations

import faulthandler
import json
import subprocess
import sys

import pytest

from traceanalyze.incident import read_evidence
from traceanalyze.incident.evidence import What


def read(folder, text, name="job.log"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_evidence([str(path)])


SPY = """\
Process 1215: python train.py --config a
Python v3.11.7 (/usr/bin/python3.11)

Thread 1215 (active+gil): "MainThread"
    step (train.py:7)
    <module> (train.py:90)
Thread 1300 (idle): "pt_nccl_watchdg"
    wait (threading.py:331)
    run (threading.py:982)
    f (libc.so.6)
"""


def test_py_spy(tmp_path):
    found = read(tmp_path, SPY, "pyspy_rank3.txt")
    own, other = found.stacks
    assert (own.rank, own.pid, own.thread, own.main, own.holds_gil, own.state) == (
        3,
        1215,
        "MainThread",
        True,
        True,
        "own",
    )
    assert own.frames == ("step (train.py:7)", "<module> (train.py:90)")
    assert (other.holds_gil, other.frames[-1]) == (False, "f (libc.so.6)")
    assert found.files[0].kind == "stacks"


def test_py_spy_json(tmp_path):
    frames = [
        {
            "name": "all_reduce",
            "filename": "/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py",
            "line": 9,
        },
        {"name": "step", "filename": "/app/train.py", "line": 7},
    ]
    thread = {
        "pid": 7,
        "thread_id": 1,
        "thread_name": "MainThread",
        "os_thread_id": 7,
        "active": True,
        "owns_gil": False,
    }
    found = read(tmp_path, json.dumps([{**thread, "frames": frames}]), "spy_rank2.json")
    (stack,) = found.stacks
    assert (stack.rank, stack.state, stack.main) == (2, "waiting", True)
    assert stack.frames[0] == "all_reduce (torch/distributed/distributed_c10d.py:9)"


@pytest.mark.parametrize(
    ("frame", "state"),
    [
        ("synchronize (/v/site-packages/torch/cuda/__init__.py:9)", "waiting"),
        ("_try_get_data (/v/site-packages/torch/utils/data/dataloader.py:9)", "starved"),
        ("_save (/v/site-packages/torch/serialization.py:9)", "checkpoint"),
        ("step (/app/train.py:9)", "own"),
        ("run (/usr/lib/python3.11/threading.py:9)", "unknown"),
    ],
)
def test_what_a_thread_waits_for(tmp_path, frame, state):
    text = f'Process 1: x\nPython v3.11.7 (x)\n\nThread 1 (idle): "MainThread"\n    {frame}\n'
    assert read(tmp_path, text).stacks[0].state == state


def test_faulthandler_as_python_prints_it(tmp_path):
    path = tmp_path / "rank_4.err"
    with path.open("w") as file:
        faulthandler.dump_traceback(file, all_threads=False)
    (stack,) = read_evidence([str(path)]).stacks
    assert stack.rank == 4
    assert stack.frames[0].startswith("test_faulthandler_as_python_prints_it (")
    # Another line of the same place is another stack only in its innermost frame.
    assert stack.key[0] == stack.frames[0]
    assert not stack.key[-1][-1].isdigit()


def test_a_crash_of_the_interpreter(tmp_path):
    program = "import faulthandler, ctypes; faulthandler.enable(); ctypes.string_at(0)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    path = tmp_path / "stderr.log"
    path.write_bytes(done.stderr)
    found = read_evidence([str(path)])
    (event,) = found.of(What.EXCEPTION)
    assert (event.data["type"], event.data["fatal"]) == ("Segmentation fault", 1)
    assert len(found.stacks) == 1


PROGRAM = """
def load():
    raise KeyError("shard 17")
def train():
    try:
        load()
    except KeyError as error:
        raise RuntimeError("no batch") from error
try:
    train()
except RuntimeError:
    raise ValueError("given up")
"""


def crash(folder, program):
    path = folder / "train_it.py"
    path.write_text(program)
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False).stderr


def test_the_first_of_a_chain_is_the_cause(tmp_path):
    (event,) = read(tmp_path, crash(tmp_path, PROGRAM)).of(What.EXCEPTION)
    assert event.message == "KeyError: 'shard 17'"
    assert (event.data["chained"], event.data["last"], event.data["own_function"]) == (
        2,
        "ValueError: given up",
        "load",
    )
    assert event.data["own"].endswith("train_it.py:3")


def test_tracebacks_of_ranks_that_write_in_turns(tmp_path):
    lines = crash(tmp_path, PROGRAM).splitlines()
    mixed = "".join(f"[rank{rank}]: {line}\n" for line in lines for rank in (0, 3, 7))
    found = read(tmp_path, mixed)
    assert [(one.rank, one.message) for one in found.events] == [(rank, "KeyError: 'shard 17'") for rank in (0, 3, 7)]
    assert (found.files[0].notable, found.files[0].lines) == (0, 3 * len(lines))


@pytest.mark.parametrize("padding", range(0, 1200, 61))
def test_a_traceback_across_the_end_of_a_chunk(tmp_path, padding):
    line = "x" * 99 + "\n"
    filler = line * ((1 << 20) // 100 - 8) + "y" * padding + "\n"
    found = read(tmp_path, filler + crash_text() + line * 50)
    assert [one.message for one in found.events] == ["ValueError: bad batch 17"]
    assert found.events[0].source.line == filler.count("\n") + 1


def crash_text():
    return (
        "Traceback (most recent call last):\n"
        '  File "/app/train.py", line 7, in step\n    x\n    ^^^\n'
        '  File "/v/site-packages/torch/nn/m.py", line 9, in f\n    y\nValueError: bad batch 17\n'
    )


def test_the_innermost_frame_of_the_program_is_named(tmp_path):
    (event,) = read(tmp_path, crash_text()).events
    assert (event.data["own"], event.data["at"]) == ("/app/train.py:7", "f (torch/nn/m.py:9)")


def test_a_traceback_without_an_end_is_none(tmp_path):
    text = crash_text().rsplit("ValueError", 1)[0]
    assert not read(tmp_path, text).events


def test_the_stack_of_a_collective_that_timed_out(tmp_path):
    head = "[rank5]:[E131 03:12:44.420561120 ProcessGroupNCCL.cpp:801] Stack trace of the failed collective: "
    frames = (
        "#0 all_reduce from /v/site-packages/torch/distributed/distributed_c10d.py:3174",
        "#1 step from /app/train.py:7",
    )
    for text in (f"{head}\\n{frames[0]}\\n{frames[1]}\\n", f"{head}\n{frames[0]}\n{frames[1]}\n"):
        (stack,) = read(tmp_path, f"{text}\n").stacks
        assert stack.frames == ("all_reduce (torch/distributed/distributed_c10d.py:3174)", "step (/app/train.py:7)")
        assert (stack.rank, stack.state) == (5, "waiting")


def test_stacks_beside_a_dump_of_torch_npu(tmp_path):
    text = (
        'pid: 7\nthread <_MainThread(MainThread, started 14)>:\n  File "/app/train.py", line 90, in <module>\n    x\n'
    )
    found = read(tmp_path, f'{text}  File "/app/train.py", line 7, in step\n    y\n', "hccl_trace_rank_3_py_traceback")
    (stack,) = found.stacks
    assert (stack.rank, stack.main, stack.frames[0]) == (3, True, "step (/app/train.py:7)")


def test_threads_of_a_json_on_one_line_are_counted_one_by_one(tmp_path):
    thread = {
        "pid": 1,
        "thread_id": 2,
        "thread_name": "MainThread",
        "frames": [{"name": "f", "filename": "a.py", "line": 1}],
    }
    found = read(tmp_path, json.dumps([thread, {**thread, "frames": None}, thread]), "spy_rank2.json")
    assert (found.files[0].lines, found.files[0].understood) == (3, 2)
