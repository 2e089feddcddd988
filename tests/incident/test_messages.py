"""Every message text that the tables know, as its source prints it, gives its event with its numbers."""

# ruff: noqa: E501, ISC004  messages as they are printed

from __future__ import annotations

import time

import pytest

from traceanalyze.incident import read_evidence
from traceanalyze.incident.evidence import What
from traceanalyze.incident.hardware import KERNEL
from traceanalyze.incident.process_log import ROWS
from traceanalyze.incident.text import needle_of

GIB = 1 << 30


def events(folder, text, name="job.log"):
    path = folder / name
    path.write_text(text if text.endswith("\n") else f"{text}\n", encoding="utf-8")
    return read_evidence([str(path)]).events


HEAD = "[rank5]:[E131 03:12:44.420441120 ProcessGroupNCCL.cpp:757] "
WATCHDOG = (
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=18230, OpType=ALLREDUCE, NumelIn=8388608, "
    "NumelOut=8388608, Timeout(ms)=600000) ran for 600077 milliseconds before timing out."
)
SAID = {"seq": 18230, "op": "ALLREDUCE", "numel_in": 8388608, "timeout_ms": 600000, "ran_ms": 600077, "group_rank": 1}
CASES = [
    (f"{HEAD}[Rank 1] {WATCHDOG}", What.TIMEOUT, SAID),
    (
        f"{HEAD}[PG ID 2 PG GUID 4(mesh_dp) Rank 1] {WATCHDOG}",
        What.TIMEOUT,
        {**SAID, "group": "4", "group_desc": "mesh_dp"},
    ),
    (
        "[E ProcessGroupNCCL.cpp:455] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=6, "
        "OpType=BROADCAST, TensorShape=[3, 4], Timeout(ms)=1800000) ran for 1802346 milliseconds before timing out.",
        What.TIMEOUT,
        {"seq": 6, "op": "BROADCAST", "ran_ms": 1802346},
    ),
    (f"{HEAD}[Rank 1] {WATCHDOG.replace('NCCL', 'HCCL')}", What.TIMEOUT, {**SAID, "lib": "HCCL"}),
    (
        f"{HEAD}[PG ID 2 PG GUID 4(mesh_dp) Rank 1]  failure detected by watchdog at work sequence id: 18230 PG status: "
        "last enqueued work: 18232, last completed work: 18229",
        What.GROUP_STATUS,
        {"group": "4", "group_desc": "mesh_dp", "group_rank": 1, "seq": 18230, "enqueued": 18232, "completed": 18229},
    ),
    (
        f"{HEAD}[PG ID 11 PG GUID 119 Rank 1] Exception (either an error or timeout) detected by watchdog at work: 216, "
        "last enqueued NCCL work: 220, last completed NCCL work: -1.",
        What.GROUP_STATUS,
        {"group": "119", "seq": 216, "enqueued": 220, "completed": -1},
    ),
    (
        f"{HEAD}[PG 3 Rank 1] Timeout at NCCL work: 216, last enqueued NCCL work: 220, last completed NCCL work: 215.",
        What.GROUP_STATUS,
        {"group_id": 3, "seq": 216, "enqueued": 220, "completed": 215},
    ),
    (
        f"{HEAD}[PG ID 0 PG GUID 0(default_pg) Rank 5] First PG on this rank to signal dumping.",
        What.DUMP_SIGNAL,
        {"group_desc": "default_pg"},
    ),
    (f"{HEAD}Observed flight recorder dump signal from another rank via TCPStore.", What.DUMP_SIGNAL, {}),
    (
        f"{HEAD}Received a dump signal due to a collective timeout from this local rank and we will try our best to dump "
        "the debug info. Last enqueued NCCL work: 18232, last completed NCCL work: 18229.This is most likely caused by",
        What.DUMP_SIGNAL,
        {"enqueued": 18232, "completed": 18229},
    ),
    (
        f"{HEAD}Received a dump signal due to a collective timeout from  rank 3 and we will try our best",
        What.DUMP_SIGNAL,
        {"from_rank": 3},
    ),
    (
        "Received a global dump signal from rank 3, and will start to dump the debug info.",
        What.DUMP_SIGNAL,
        {"from_rank": 3},
    ),
    (
        f"{HEAD}ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued "
        "collectives.",
        What.WATCHDOG_STUCK,
        {"seconds": 480},
    ),
    (f"{HEAD}Could not acquire GIL within 300 ms on exit, possible GIL induced hang", What.WATCHDOG_STUCK, {}),
    (
        f'{HEAD}Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with '
        "error: Connection reset by peer",
        What.STORE_ERROR,
        {},
    ),
    (
        "recvValue failed on SocketImpl(fd=3, addr=[a3-17]:4, remote=[a3-18]:29500): Connection reset by peer",
        What.STORE_ERROR,
        {},
    ),
    (f"{HEAD}[Rank 0] NCCL watchdog thread terminated with exception: NCCL error", What.MARK, {}),
    (
        f"{HEAD}Terminating the process after attempting to dump debug info, due to collective timeout or exception.",
        What.MARK,
        {},
    ),
    (
        "\t - To our best knowledge, ranks [3] are the lagging ranks that caused this timeout. They never joined any "
        "collectives",
        What.DESYNC,
        {"group_ranks": 3},
    ),
    (
        "\t  [3] finished collective #18229, but didn't join collective #18230 (count from 1)",
        What.DESYNC,
        {"group_ranks": 3, "seq": 18230},
    ),
    ("\t  [3] joined but didn't finish collective #7 (count from 1)", What.DESYNC, {"group_ranks": 3, "seq": 7}),
    (
        "Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint("
        "SequenceNumber=0, OpType=ALLREDUCE, TensorShape=[4], TensorDtypes=Float, TensorDeviceTypes=x), but Rank 1 is "
        "running collective: CollectiveFingerPrint(SequenceNumber=0, OpType=BROADCAST, TensorShape=[5], x).",
        What.DESYNC,
        {"group_rank": 0, "other_rank": 1, "op": "ALLREDUCE", "other_op": "BROADCAST", "seq": 0},
    ),
    (
        "torch.distributed.DistBackendError: NCCL error in: /pt/NCCLUtils.cpp:94, remote process exited or there was a "
        "network error, NCCL version 2.28.8",
        What.COMM_ERROR,
        {"code": "remote process exited or there was a network error", "version": "2.28.8"},
    ),
    (
        "[rank3]: ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        What.COMM_ERROR,
        {"code": "ncclRemoteError"},
    ),
    (
        "a3-17:183006:183220 [1] misc/socket.cc:538 NCCL WARN Net : Connection closed by remote peer a3-18<47861>",
        What.COMM_ERROR,
        {"peer": "a3-18", "pid": 183006},
    ),
    (
        "[2026-01-31 03:12:44] a3-17:183006:183220 [1] misc/socket.cc:538 (f) NCCL WARN Net : Call to recv from "
        "10.0.0.18<58355> failed : Broken pipe",
        What.COMM_ERROR,
        {"peer": "10.0.0.18"},
    ),
    (
        "a3-17:1:2 [1] p2p.cc:5 NCCL WARN NET/IB : Got completion from peer 10.0.0.18<39138> with error 12, opcode 0, len 0, "
        "vendor err 129",
        What.LINK_ERROR,
        {"peer": "10.0.0.18", "status": 12},
    ),
    (
        "a3-17:1:2 [1] p2p.cc:5 NCCL WARN NET/IB : Got completion from peer 10.0.0.18<39138> with status=12 opcode=0 len=0 "
        "vendor err 129 (Send) localGid x remoteGid y hca mlx5_0",
        What.LINK_ERROR,
        {"status": 12, "nic": "mlx5_0"},
    ),
    (
        "a3-17:1:2 [1] p2p.cc:5 (f) NCCL WARN NET/IB: Got completion from peer 10.0.0.18<39138> with "
        "status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RDMA_WRITE(1) vendor_err=129  localGid x remoteGids y hca mlx5_3",
        What.LINK_ERROR,
        {"status": 12, "nic": "mlx5_3"},
    ),
    (
        "a3-17:1:2 [1] net.cc:5 NCCL WARN NET/IB : mlx5_0:1 Got non-fatal async event: port error(10)",
        What.LINK_ERROR,
        {"nic": "mlx5_0:1", "code": "port error(10)"},
    ),
    (
        "a3-17:1:2 [1] c.cc:5 NCCL WARN Cuda failure 'uncorrectable ECC error encountered'",
        What.DEVICE_ERROR,
        {"hardware": 1},
    ),
    (
        "RuntimeError: [/b/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 5000ms for recv operation to complete",
        What.TIMEOUT,
        {"timeout_ms": 5000, "op": "recv", "lib": "gloo"},
    ),
    (
        "RuntimeError: [/b/gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:12709: Connection reset by peer. This is",
        What.COMM_ERROR,
        {"peer": "127.0.0.1", "port": 12709, "code": "Connection reset by peer"},
    ),
    ("x: Application timeout caused pair closure", What.COMM_ERROR, {"lib": "gloo"}),
    # Ascend.
    (
        "[ERROR] HCCL(4711,python):2025-07-23-03:49:57.177.194 [hccl_socket_manager.cc:778] [4712][Wait][LinkEstablish]wait "
        "socket establish timeout, role[1] rank[12] timeout[120]",
        What.COMM_ERROR,
        {"pid": 4711, "remote": 12, "lib": "HCCL"},
    ),
    (
        "EI0006: [PID: 1292363] 2025-04-08-18:07:20.444.436 Getting socket times out. Reason: Remote Rank did not send the "
        "data in time.",
        What.COMM_ERROR,
        {"code": "EI0006"},
    ),
    (
        "[PID: 7] 2025-04-08-18:07:20.444.436 Execution_Error_ROCE_CQE(EI0013): An error CQE occurred during operator "
        "execution.",
        What.LINK_ERROR,
        {"code": "EI0013"},
    ),
    (
        "EI0005: The arguments for collective communication are inconsistent between ranks: tag [a], parameter [count], "
        "local [4], remote [8]",
        What.DESYNC,
        {"parameter": "count", "local": 4, "remote": 8},
    ),
    (
        "EI0002: The wait execution of the Notify register times out. Reason: x. remote rank: [3]. base information",
        What.TIMEOUT,
        {"code": "EI0002", "remote": 3},
    ),
    ("EI0011: Failed to allocate [2147483648] bytes of NPU memory.", What.OOM, {"asked": 2147483648}),
    (
        "[ERROR] 2025-04-08-18:07:20 (PID:77, Device:6, RankID:14) ERR02200 DIST call hccl api failed.",
        What.COMM_ERROR,
        {"code": "ERR02200"},
    ),
    (
        "[ERROR] 2025-04-08-18:07:20 (PID:77, Device:6, RankID:14) ERR01100 OPS call acl api failed",
        What.DEVICE_ERROR,
        {"code": "ERR01100", "pid": 77},
    ),
    ("... HBM MULTI BIT ECC ERROR ...", What.ECC, {"where": "device"}),
    ("AclrtSynchronize failed, error code is 507011", What.DEVICE_ERROR, {"code": 507011, "vendor": "ascend"}),
    # CUDA.
    ("RuntimeError: CUDA error: an illegal memory access was encountered", What.DEVICE_ERROR, {"vendor": "CUDA"}),
    ("torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered", What.DEVICE_ERROR, {"hardware": 1}),
    (
        "/pt/IndexKernel.cu:92: operator(): block: [3,0,0], thread: [17,0,0] Assertion `index out of bounds` failed.",
        What.DEVICE_ASSERT,
        {"file": "/pt/IndexKernel.cu", "line": 92, "expression": "index out of bounds"},
    ),
    ("RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx`", What.DEVICE_ERROR, {}),
    # Memory.
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 6 has a total capacity of 79.10 GiB of "
        "which 1.18 GiB is free. Process 2109 has 344.00 MiB memory in use. Including non-PyTorch memory, this process has "
        "77.90 GiB memory in use. Of the allocated memory 70.10 GiB is allocated by PyTorch, with 104.00 MiB allocated in "
        "private pools (e.g., CUDA Graphs), and 6.20 GiB is reserved by PyTorch but unallocated. If reserved but",
        What.OOM,
        {
            "asked": 2 * GIB,
            "free": int(1.18 * GIB),
            "others": 344 << 20,
            "in_use": int(77.90 * GIB),
            "allocated": int(70.10 * GIB),
            "pools": 104 << 20,
            "unallocated": int(6.20 * GIB),
        },
    ),
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 15.90 GiB of "
        "which 0 bytes is free. Including non-PyTorch memory, this process has 15.00 GiB memory in use. Of the allocated "
        "memory 14.00 GiB is allocated by PyTorch, and 512.00 KiB is reserved by PyTorch but unallocated.",
        What.OOM,
        {"asked": 20 << 20, "free": 0, "allocated": 14 * GIB, "unallocated": 512 << 10},
    ),
    (
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.90 GiB total capacity; 14.92 GiB already "
        "allocated; 15.75 MiB free; 15.01 GiB reserved in total by PyTorch) If reserved memory is",
        What.OOM,
        {"asked": 20 << 20, "total": int(15.90 * GIB), "reserved": int(15.01 * GIB)},
    ),
    (
        "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 6; 60.97 GiB total capacity; 55.10 GiB already "
        "allocated; 55.20 GiB current active; 1.01 GiB free; 58.20 GiB reserved in total by PyTorch).If reserved memory is",
        What.OOM,
        {"asked": 2 * GIB, "allocated": int(55.10 * GIB), "free": int(1.01 * GIB)},
    ),
    (
        "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried "
        "to allocate 4503599627370496 bytes. Error code 12 (Cannot allocate memory)",
        What.HOST_OOM,
        {"asked": 4503599627370496},
    ),
    (
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.28 TiB for an array with shape (1000,)",
        What.HOST_OOM,
        {"asked": int(7.28 * (1 << 40))},
    ),
    ("OSError: [Errno 12] Cannot allocate memory", What.HOST_OOM, {}),
    (
        "RuntimeError: DataLoader worker (pid 812) is killed by signal: Killed. ",
        What.LOADER,
        {"pid": 812, "signal": "Killed"},
    ),
    (
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        What.LOADER,
        {},
    ),
    # Launchers.
    (
        "W1122 15:22:41.664000 741 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 744 closing signal "
        "SIGTERM",
        What.SIGNAL,
        {"pid": 744, "signal": "SIGTERM"},
    ),
    (
        "E1122 15:22:41.862000 741 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -9) local_rank: "
        "1 (pid: 745) of binary: /usr/bin/python",
        What.EXIT,
        {"exitcode": -9, "local_rank": 1, "pid": 745},
    ),
    (
        "[2024-01-31 03:12:44,100] torch.distributed.elastic.agent: [INFO] [default] Worker group FAILED. 2/3 attempts left; "
        "will restart worker group",
        What.RESTART,
        {"left": 2},
    ),
    ("srun: error: node12: task 3: Killed", What.EXIT, {"task": "3", "reason": "Killed"}),
    ("srun: error: node12: tasks 0-7: Exited with exit code 1", What.EXIT, {"task": "0-7", "exitcode": 1}),
    ("srun: error: node12: task 3: Segmentation fault (core dumped)", What.EXIT, {"reason": "Segmentation fault"}),
    ("srun: error: node12: task 3: Out Of Memory", What.HOST_OOM, {"task": "3"}),
    (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=123456.0. Some of the step tasks have been OOM Killed.",
        What.HOST_OOM,
        {"cgroup": "StepId=123456.0", "oom_kill": 1},
    ),
    (
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=123456.0. Some of your processes may have been killed by",
        What.HOST_OOM,
        {"oom_kill": 1},
    ),
    (
        "slurmstepd: error: *** STEP 123456.0 ON node12 CANCELLED AT 2026-01-31T03:12:44 DUE TO TIME LIMIT ***",
        What.CANCELLED,
        {"reason": "TIME LIMIT"},
    ),
    ("run.sh: line 12:  4711 Killed                  python train.py", What.EXIT, {"exitcode": -9, "pid": 4711}),
    (
        "terminate called after throwing an instance of 'c10::DistBackendError'",
        What.EXCEPTION,
        {"type": "c10::DistBackendError"},
    ),
    # Numbers and checkpoints.
    (
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
        What.OVERFLOW,
        {"scale": 65536},
    ),
    (
        "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
        What.OVERFLOW,
        {"exhausted": 1},
    ),
    (
        "[titan] 2026-01-31 03:12:44,1 - root - INFO - Saving the checkpoint (or staging if async is enabled).",
        What.CHECKPOINT_BEGIN,
        {},
    ),
    (
        "[titan] 2026-01-31 03:12:44,1 - root - INFO - Finished saving the checkpoint (or staging if async is enabled) in "
        "12.34 seconds.",
        What.CHECKPOINT_END,
        {"seconds": 12.34},
    ),
    ("saving checkpoint at iteration     500 to /ckpt in torch_dist format", What.CHECKPOINT_BEGIN, {"step": 500}),
    ("  successfully saved checkpoint from iteration     500 to /ckpt", What.CHECKPOINT_END, {"step": 500}),
    ("Saving model checkpoint to /out/checkpoint-500", What.CHECKPOINT_BEGIN, {"step": 500}),
    # Kernel.
    (
        "[171263.1] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        What.XID,
        {"code": 79, "meaning": "GPU has fallen off the bus", "hardware": 1},
    ),
    (
        "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel (0x9). RST: No, D-RST: No",
        What.XID,
        {"code": 94},
    ),
    (
        "NVRM: Xid (PCI:0000:01:00): 95, pid=7062, Uncontained: LTC TAG (0x2, 0x1). RST: Yes, D-RST: No",
        What.XID,
        {"code": 95},
    ),
    (
        "NVRM: Xid (0000:01:00): 31, pid=77, name=python, Ch 0000000b, MMU Fault",
        What.XID,
        {"code": 31, "pid": 77, "hardware": 0},
    ),
    (
        "NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)",
        What.XID,
        {"code": 154},
    ),
    ("NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.", What.XID, {"code": 79}),
    (
        "nvidia-nvswitch0: SXid (PCI:0000:00:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
        What.SXID,
        {"code": 20034, "fatal": "Fatal"},
    ),
    (
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0-1,oom_memcg=/slurm/job_7,"
        "task_memcg=/slurm/job_7/step_0,task=python,pid=23793,uid=1000",
        What.HOST_OOM,
        {"pid": 23793, "cgroup": "/slurm/job_7/step_0", "process": "python"},
    ),
    (
        "Memory cgroup out of memory: Killed process 23793 (python) total-vm:2623712kB, anon-rss:506500kB, file-rss:1268kB",
        What.HOST_OOM,
        {"pid": 23793, "anon_rss": 506500 * 1024},
    ),
    ("Out of memory: Kill process 1 (x) score 900 or sacrifice child", What.HOST_OOM, {"pid": 1}),
    ("EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0", What.ECC, {"corrected": 1, "where": "host"}),
    ("EDAC MC0: 0 UE memory read error on CPU_SrcID#0", What.ECC, {"uncorrected": 0}),
    ("mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 4: e600000000020408", What.HOST_FAULT, {"part": "machine"}),
    (
        "CPU4: Package temperature above threshold, cpu clock throttled (total events = 12)",
        What.HOST_FAULT,
        {"part": "processor", "events": 12},
    ),
    ("INFO: task python:1277 blocked for more than 120 seconds.", What.HOST_FAULT, {"pid": 1277, "seconds": 120}),
    ("watchdog: BUG: soft lockup - CPU#18 stuck for 27s! [python3:2254956]", What.HOST_FAULT, {"pid": 2254956}),
    (
        "pt_main_thread[2536443]: segfault at 7f79 ip 00007f sp 00007f error 4 in libnccl.so.2[7f]",
        What.SEGFAULT,
        {"pid": 2536443, "library": "libnccl.so.2"},
    ),
    ("mlx5_core 0000:5c:00.0: Port module event[error]: module 0, Cable error, High Temperature", What.LINK_ERROR, {}),
    ("nvme nvme0: I/O 12 QID 3 timeout, reset controller", What.HOST_FAULT, {"part": "storage"}),
    ("nfs: server X not responding, still trying", What.HOST_FAULT, {"part": "storage"}),
    (
        "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring comp_1.1.0 timeout, signaled seq=813605, emitted seq=813607",
        What.DEVICE_LOST,
        {"ring": "comp_1.1.0"},
    ),
    ("amdgpu 0000:87:00.0: amdgpu: GPU reset begin!", What.DEVICE_LOST, {}),
]


@pytest.mark.parametrize(("text", "what", "data"), CASES, ids=[case[0][:60] for case in CASES])
def test_a_message_gives_its_event(tmp_path, text, what, data):
    found = events(tmp_path, text)
    assert [one.what for one in found] == [what]
    assert {key: found[0].data.get(key) for key in data} == data


@pytest.mark.parametrize(("text", "what", "data"), CASES[::7], ids=[case[0][:60] for case in CASES[::7]])
@pytest.mark.parametrize("head", ["[default3]:", "3: ", "2026-01-31T03:12:44.5Z stderr F ", "\x1b[31m", "[rank9]: "])
def test_what_launchers_put_in_front_changes_nothing(tmp_path, text, what, data, head):
    found = events(tmp_path, head + text)
    assert [one.what for one in found] == [what]
    assert {key: found[0].data.get(key) for key in data} == data


def test_fields_of_an_event(tmp_path):
    (one,) = events(tmp_path, CASES[0][0])
    assert (one.rank, one.source.line, one.clock) == (5, 1, "local")
    (one,) = events(tmp_path, "srun: error: node12: task 3: Killed")
    assert one.host == "node12"
    (one,) = events(tmp_path, "[ERROR] 2025-04-08-18:07:20 (PID:77, Device:6, RankID:14) ERR02200 DIST call failed.")
    assert (one.rank, one.device) == (14, "NPU 6")
    (one,) = events(tmp_path, "NVRM: Xid (PCI:0000:3B:00): 48, pid=1, name=x, DBE")
    assert one.device == "0000:3b:00"


@pytest.mark.parametrize("fill", [b"x", b"1", b" ", b"a.", b"a:", b"A_", b"[", b"=1,"])
def test_no_expression_takes_time_by_the_square_of_a_line(fill):
    """The worst took 2.4 s for each of these lines."""
    for row in (*ROWS, *KERNEL):
        line = fill * (8000 // len(fill)) + (row.needle or needle_of(row.expression)) + fill * (8000 // len(fill))
        begun = time.process_time()
        row.regex.search(line)
        assert time.process_time() - begun < 0.5, row.expression


def test_a_line_without_end_is_read_at_once(tmp_path):
    """It took minutes: every expression was tried on every line, whether what it needs stood there or not."""
    begun = time.process_time()
    found = events(tmp_path, "RuntimeError: CUDA error: unspecified launch failure " + "x" * 10_000_000)
    assert time.process_time() - begun < 5
    assert [event.what for event in found] == [What.DEVICE_ERROR]
