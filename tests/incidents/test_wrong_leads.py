"""Directories in which something looks like the cause that is none: what the first sentence must, and must not, say."""

# ruff: noqa: E501  lines of logs as they are printed

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

import traceanalyze

SNAPSHOT = Path(__file__).parents[3] / "shared" / "snapshots" / "cuda-2.10-training.pickle"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.10 GiB of "
    "which 1.18 GiB is free. Including non-PyTorch memory, this process has 77.90 GiB memory in use. Of the allocated "
    "memory 70.10 GiB is allocated by PyTorch, and 6.20 GiB is reserved by PyTorch but unallocated.\n"
)
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
TRACEBACK = 'Traceback (most recent call last):\n  File "/app/train.py", line 91, in <module>\n    main()\n  File "/app/data.py", line 12, in load\n    return d[k]\n'
HANDLED = 'Traceback (most recent call last):\n  File "/app/data.py", line 12, in load\n    return d[k]\n'


def steps(first, last, hour=4, loss="2.5", norm="0.8"):
    return "".join(
        f"2026-01-31 {hour:02}:{at // 60 % 60:02}:{at % 60:02},000 - root - INFO - step: {at}  loss:  {loss}  "
        f"grad_norm:  {norm}  memory: 41.20GiB(52.10%)  tps: 7,412  tflops: 398.21  mfu: 40.26%\n"
        for at in range(first, last)
    )


def watchdog(rank, time="03:22:44"):
    return (
        f"[rank{rank}]:[E131 {time}.420441120 ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=1823, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for "
        "600077 milliseconds before timing out.\n"
    )


@pytest.fixture
def verdict(tmp_path):
    def told(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return traceanalyze.postmortem(tmp_path).verdict

    return told


ENDED = "Nothing in "
CASES = {
    "an Xid of last month": (
        {
            "dmesg_a3-17.txt": "[Thu Jan  1 02:12:44 2026] " + XID,
            "train.log": steps(1, 9) + TRACEBACK + "KeyError: 'k'\n",
        },
        "A process ended at 04:00:08 with KeyError: 'k' (/app/data.py:12): fix this error.",
    ),
    "an Xid of an unknown boot": (
        {"dmesg.txt": "[ 812.5] " + XID, "train.log": steps(1, 9) + TRACEBACK + "KeyError: 'k'\n"},
        "A process ended at 04:00:08 with KeyError: 'k'",
    ),
    "a restart that ends well": (
        {"logs/x/attempt_0/3/stderr.log": TRACEBACK + OOM, "logs/x/attempt_1/0/stdout.log": steps(1, 99)},
        ENDED,
    ),
    "a job started anew": ({"slurm-1.out": steps(1, 9, 3) + TRACEBACK + OOM, "slurm-2.out": steps(9, 99, 5)}, ENDED),
    "a request for memory that is tried again": ({"a.log": steps(1, 9) + "retrying: " + OOM + steps(9, 99)}, ENDED),
    "an exception that is only told": (
        {"a.log": steps(1, 9) + HANDLED + "ValueError: bad image\n" + steps(9, 99)},
        ENDED,
    ),
    "steps held back in a buffer": (
        {
            "a.log": TRACEBACK
            + "KeyError: 'k'\n"
            + "".join(f"iter {at}: loss 2.5, time 184.32ms, mfu 1.00%\n" for at in range(99))
        },
        "A process ended with KeyError",
    ),
    "one step with infinite gradients": ({"a.log": steps(1, 9) + steps(9, 10, norm="inf") + steps(10, 99)}, ENDED),
    "one loss that is no number": ({"a.log": steps(1, 9) + steps(9, 10, loss="nan") + steps(10, 99)}, ENDED),
    "words on losses": ({"a.log": steps(1, 9) + "loss is nan check disabled\n" + steps(9, 99)}, ENDED),
    "a store that is gone at the end": (
        {"a.log": steps(1, 99) + "[rank1]: recvValue failed on SocketImpl(fd=72): Connection reset by peer\n"},
        ENDED,
    ),
    "gradients before the loss": (
        {"a.log": steps(1, 9) + steps(9, 10, norm="nan") + steps(10, 30, loss="nan", norm="nan")},
        "The norm of the gradients became NaN or infinite at 04:00:09, in step 9:",
    ),
    "other processes on the device": (
        {"a.log": TRACEBACK + OOM.replace("Including", "Process 7 has 30.00 GiB memory in use. Including")},
        "end the other processes on this device",
    ),
    "an NPU": (
        {
            "rank_5.log": TRACEBACK
            + "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 5; 60.97 GiB total capacity; 55.10 GiB already allocated; 55.20 GiB current active; 1.01 GiB free; 58.20 GiB reserved in total by PyTorch)\n"
        },
        "Rank 5 (NPU 5) ran out of device memory (2.00 GiB asked for, 1.01 GiB free): set PYTORCH_NPU_ALLOC_CONF",
    ),
    "memory of an NPU that fails": (
        {
            "plog-7_1.log": "[ERROR] RUNTIME(7,python):2026-01-31-03:10:44.436.111 [npu_driver.cc:100] 9 ReportError: HBM MULTI BIT ECC ERROR\n",
            "rank_2.log": "[ERROR] 2026-01-31-03:10:45 (PID:7, Device:2, RankID:2) ERR01100 OPS call acl api failed.\n",
            "rank_0.log": watchdog(0),
        },
        "Rank 2 (NPU 2) stopped answering at 03:12:44 in collective 1,823, 119.9 s after HBM MULTI BIT ECC ERROR: replace the node",
    ),
    "logs that each name one rank": (
        {
            "worker_0.log": watchdog(0),
            "worker_3.log": TRACEBACK.replace("data", "model")
            + "RuntimeError: call aclnnX failed\n[ERROR] 2026-01-31-03:10:44 (PID:8, Device:3, RankID:3) ERR01100 OPS call acl api failed\n",
        },
        "Rank 3 (NPU 3) ended at 03:10:44 with RuntimeError: call aclnnX failed (/app/model.py:12)",
    ),
    "labels of srun": (
        {"slurm-1.out": "3: [rank3]:[I131 03:00:00.000000001 a.cpp:1] init\n" + "3: " + TRACEBACK.replace("\n", "\n3: ") + OOM},
        "Rank 3 (GPU 3) ran out of device memory",
    ),
    "a rank that the launcher ended": (
        {
            "rank0.log": "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 8000ms for recv operation to complete\n",
            "rank1.log": "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 8000ms for recv operation to complete\n",
            "err.txt": "".join(
                f"[{rank}]:\n  time      : 2026-01-31_03:22:45\n  host      : a3\n  rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid: {7 + rank})\n  error_file: <N/A>\n  traceback : Signal\n"
                for rank, code in ((0, 1), (1, 1), (2, -15))
            ),
        },
        "Rank 2 (host a3) said nothing more, while 2 ranks waited",
    ),
    "an exit code of its own": (
        {
            "a.log": "".join(
                f"[rank{rank}]: RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:58600\n"
                for rank in (0, 1)
            )
            + "Root Cause (first observed failure):\n[0]:\n  time      : 2026-01-31_03:22:45\n  host      : a3\n  rank      : 2 (local_rank: 2)\n  exitcode  : 3 (pid: 9)\n  error_file: <N/A>\n  traceback : To enable traceback see: https://pytorch.org\n"
        },
        "Rank 2 (host a3) ended at 03:22:45 with exit code 3",
    ),
    "sizes that differ, told by the one that notices": (
        {"rank0.log": "[rank0]:   what():  [enforce fail at gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 8 vs 4. Received data size doesn't match expected size.\n"},
        "Ranks called different collectives (op.preamble.length",
    ),
    "an interrupt from the keyboard": (
        {"a.log": steps(1, 9) + TRACEBACK + "KeyboardInterrupt\n"},
        "The job was stopped at 04:00:08 from outside (KeyboardInterrupt)",
    ),
    "a signal to the launcher": (
        {"a.log": steps(1, 9) + "W0131 04:03:25.664000 741 torch/distributed/elastic/agent/server/api.py:719] Received 15 death signal, shutting down workers\n"},
        "The job was stopped at 04:03:25 from outside (Received 15 death signal",
    ),
    "a port in use": (
        {"a.log": TRACEBACK + "torch.distributed.DistNetworkError: failed to bind to [::]:29500 (errno: 98 - Address already in use).\n"},
        "A process ended with torch.distributed.DistNetworkError",
    ),
    "shared memory": (
        {"a.log": TRACEBACK + "RuntimeError: DataLoader worker (pid 812) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.\n"},
        "give the container more shared memory",
    ),
    "a crash in a library": (
        {"rank2.log": 'Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f68ec673b80 (most recent call first):\n  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at\n  File "/app/job.py", line 7 in evil\n'},
        "Rank 2 ended with Fatal Python error: Segmentation fault (/app/job.py:7): look at this code.",
    ),
    "an assertion in a kernel": (
        {"a.log": "../aten/src/ATen/native/cuda/Indexing.cu:1289: indexSelect: block: [213,0,0], thread: [64,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n" * 9 + TRACEBACK + "RuntimeError: CUDA error: device-side assert triggered\n"},
        "A process ended with Assertion `srcIndex < srcSelectDimSize` failed in a kernel at Indexing.cu:1289 (/app/data.py:12)",
    ),
    "a pod": (
        {"pod.json": json.dumps({"metadata": {"name": "worker-3"}, "spec": {"nodeName": "gke-a"}, "status": {"containerStatuses": [{"lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-01-31T03:12:44Z"}}}]}})},
        "A process (host gke-a) was killed at 03:12:44, as the host memory ran out (pod worker-3 terminated: OOMKilled",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_first_sentence(verdict, case):
    files, words = CASES[case]
    said = verdict(files)
    assert words in said
    assert said.startswith(words) or not words.startswith(("A ", "Rank", "Nothing"))
    assert "left no file" not in said or any(name.startswith(("rank", "worker", "logs")) for name in files)


def test_a_failure_that_was_overcome_is_told_as_one(verdict):
    said = verdict(CASES["a job started anew"][0])
    assert "Perhaps: A process ran out of device memory" in said
    assert "The run went on after it: it did not end it." in said


def test_a_year_that_no_file_tells_is_not_one_to_come(tmp_path):
    (tmp_path / "a.log").write_text(watchdog(0))
    written = datetime(2026, 11, 29, tzinfo=UTC).timestamp()
    os.utime(tmp_path / "a.log", (written, written))
    (row,) = traceanalyze.postmortem(tmp_path).tables["incident_timeline"].records()
    assert row.time.startswith("2026-01-31")


def test_the_holder_of_the_memory_is_of_the_snapshot(tmp_path):
    if not SNAPSHOT.exists():
        pytest.skip("no shared snapshots")
    (tmp_path / "snapshot_rank3.pickle").symlink_to(SNAPSHOT)
    (tmp_path / "rank3.log").write_text(TRACEBACK + OOM)
    report = traceanalyze.postmortem(tmp_path)
    assert "1.18 GiB free); model.py:39 forward held most (2.56 GiB): " in report.verdict
    assert not [row for row in report.tables["run_files"].records() if row.fate == "fate_passed_over"]


def test_lines_of_a_dump_that_could_not_be_read_are_not_0(tmp_path):
    (tmp_path / "nccl_trace_rank_0").write_text('{"pg_config": {"0": {"name": "0"')
    (tmp_path / "train.log").write_text(steps(1, 4))
    rows = traceanalyze.postmortem(tmp_path).tables["incident_files"].records()
    counted = {row.file_kind: (row.lines, row.understood) for row in rows}
    assert counted == {"file_flight_recorder": (None, None), "file_process_log": (3, 3)}


def test_a_packed_log_that_is_damaged_is_not_called_empty(tmp_path):
    (tmp_path / "rank1.log.gz").write_bytes(gzip.compress(OOM.encode())[:10] + b"\xff" * 50)
    (tmp_path / "train.log").write_text(steps(1, 4))
    rows = traceanalyze.postmortem(tmp_path).tables["run_files"].records()
    (why,) = [row.why for row in rows if row.path.endswith(".gz")]
    assert why == "the gzip stream is damaged after 0 bytes of text"


def test_events_that_no_source_gives_a_time_are_counted(tmp_path):
    """A kernel's clock counts from its start: of its two messages it is not known when they came."""
    (tmp_path / "dmesg.txt").write_text(f"[17126.3] {XID}[17126.4] {XID}")
    (tmp_path / "train.log").write_text(steps(1, 4))
    report = traceanalyze.postmortem(tmp_path)
    assert all(row.source.endswith("train.log") for row in report.tables["incident_timeline"].records())
    assert "2 events without a time are not in the timeline." in report.notes
