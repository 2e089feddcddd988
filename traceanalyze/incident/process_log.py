"""What processes of a job and their launchers print: one row a message, with where its text is from.

pt is pytorch/pytorch (`torch/csrc/distributed/c10d`, 2.0 to 2.13), nccl NVIDIA/nccl 2.30, gloo facebookincubator/gloo,
npu Ascend/pytorch and HCCL's table of errors, slurm SchedMD/slurm. Numbers of source lines change with every release.
"""

from __future__ import annotations

from typing import Final

from traceanalyze.incident.evidence import What
from traceanalyze.incident.text import Loop, Pattern, Row
from traceanalyze.model.patterns import regex

_GROUP: Final = (
    rb"\[PG (?:ID )?(?P<group_id>\d+)(?: PG GUID (?P<group>[^\s(\]]+)(?:\((?P<group_desc>[^)]*)\))?)? "
    rb"Rank (?P<group_rank>\d+)\]\s+"
)
_WATCHDOG: Final = (
    rb"Watchdog caught collective operation timeout: Work(?P<lib>NCCL|HCCL)\(SeqNum=(?P<seq>\d+), "
    rb"OpType=(?P<op>\w+)(?:, TensorShape=\[[^\]]*\])?(?:, NumelIn=(?P<numel_in>\d+), NumelOut=(?P<numel_out>\d+))?, "
    rb"Timeout\(ms\)=(?P<timeout_ms>\d+)\) ran for (?P<ran_ms>\d+) milliseconds"
)
_LAST: Final = rb"[Ll]ast enqueued (?:NCCL |HCCL )?work: (?P<enqueued>-?\d+), last completed (?:NCCL |HCCL )?work: "
_DONE: Final = rb"(?P<completed>-?\d+)"
_PT: Final = "pt: ProcessGroupNCCL.cpp"
_HARDWARE: Final = {"hardware": 1}

COLLECTIVES: tuple[Row, ...] = (
    Pattern(
        What.MARK,
        b"Init COMPLETE",
        regex(
            rb"(?P<host>[\w.-]+):(?P<pid>\d+):\d+ \[(?P<device>\d+)\] .*?\bcomm \S+ rank (?P<rank>\d+) "
            rb"nranks (?P<world>\d+)(?:.*?\bbusId (?P<bus>[0-9a-fA-F]+))?.*? - Init COMPLETE"
        ),
        "nccl: init.cc",
    ),
    # The forms with the group's name in front come before those without.
    Pattern(
        What.TIMEOUT, b"Watchdog caught collective", regex(_GROUP + _WATCHDOG), f"{_PT}, npu: ProcessGroupHCCL.cpp"
    ),
    Pattern(
        What.TIMEOUT,
        b"Watchdog caught collective",
        regex(rb"\[Rank (?P<group_rank>\d+)\] " + _WATCHDOG),
        f"{_PT}, 1.12 and later",
    ),
    Pattern(
        What.GROUP_STATUS,
        b"failure detected by watchdog at work sequence id",
        regex(_GROUP + rb"failure detected by watchdog at work sequence id: (?P<seq>\d+) PG status: " + _LAST + _DONE),
        f"{_PT}, 2.6 and later",
    ),
    Pattern(
        What.GROUP_STATUS,
        b"detected by watchdog at work: ",
        regex(
            _GROUP
            + rb"Exception \(either an error or timeout\) detected by watchdog at work: (?P<seq>\d+), "
            + _LAST
            + _DONE
        ),
        f"{_PT}, 2.4 and 2.5",
    ),
    Pattern(
        What.GROUP_STATUS,
        b"Timeout at NCCL work: ",
        regex(_GROUP + rb"Timeout at NCCL work: (?P<seq>\d+), " + _LAST + _DONE),
        f"{_PT}, 2.3 and 2.4",
    ),
    Pattern(
        What.DUMP_SIGNAL,
        b"Received a dump signal",
        regex(
            rb"Received a dump signal due to a collective timeout from\s+(?:this local rank|rank (?P<from_rank>\d+))"
            rb"(?:.*?" + _LAST + _DONE + rb")?"
        ),
        _PT,
    ),
    Pattern(
        What.DUMP_SIGNAL,
        b"global dump signal from rank",
        regex(rb"Received a global dump signal from rank (?P<from_rank>\d+)"),
        "npu: ProcessGroupHCCL.cpp",
    ),
    Pattern(
        What.DUMP_SIGNAL,
        b"flight recorder dump signal from another rank",
        regex(rb"Observed flight recorder dump signal from another rank"),
        _PT,
    ),
    Pattern(
        What.DUMP_SIGNAL,
        b"to signal dumping",
        regex(rb"(?:" + _GROUP + rb")?First PG on this rank to signal dumping"),
        _PT,
    ),
    Pattern(
        What.WATCHDOG_STUCK,
        b"watchdog got stuck for",
        regex(rb"watchdog got stuck for (?P<seconds>\d+) seconds without making progress"),
        _PT,
    ),
    Pattern(What.WATCHDOG_STUCK, b"Could not acquire GIL", regex(rb"Could not acquire GIL within \d+ ms on exit"), _PT),
    Pattern(What.WATCHDOG_STUCK, b"watchdog hang", regex(rb"ProcessGroup(?:NCCL|HCCL) watchdog hang"), _PT),
    Pattern(
        What.MARK,
        b"watchdog thread terminated with exception",
        regex(rb"(?:Process group|NCCL|HCCL) watchdog thread terminated with exception"),
        _PT,
    ),
    Pattern(
        What.MARK,
        b"after attempting to dump debug info",
        regex(rb"Terminating the process after attempting to dump debug info"),
        _PT,
    ),
    Pattern(What.MARK, b"taking the entire process down", regex(rb"we are taking the entire process down"), _PT),
    Pattern(
        What.DESYNC,
        b"Detected mismatch between collectives",
        regex(
            rb"Detected mismatch between collectives on ranks\. Rank (?P<group_rank>\d+) is running collective: "
            rb"CollectiveFingerPrint\(SequenceNumber=(?P<seq>\d+), OpType=(?P<op>\w+).*?but Rank (?P<other_rank>\d+) "
            rb"is running collective: CollectiveFingerPrint\(SequenceNumber=\d+, ?OpType=(?P<other_op>\w+)"
        ),
        "pt: ProcessGroupWrapper.cpp, produced with TORCH_DISTRIBUTED_DEBUG=DETAIL",
    ),
    Pattern(
        What.DESYNC,
        b"are the lagging ranks",
        regex(rb"ranks \[(?P<group_ranks>[\d, ]+)\] are the lagging ranks that caused this timeout"),
        "pt: TraceUtils.h",
    ),
    Pattern(
        What.DESYNC,
        b"joined but didn't finish collective",
        regex(rb"\[(?P<group_ranks>\d+)\] joined but didn't finish collective #(?P<seq>\d+)"),
        "pt: TraceUtils.h",
    ),
    Pattern(
        What.DESYNC,
        b"but didn't join collective",
        regex(rb"\[(?P<group_ranks>\d+)\] finished collective #\d+, but didn't join collective #(?P<seq>\d+)"),
        "pt: TraceUtils.h",
    ),
    Pattern(
        What.MARK,
        b"Timeout at collective",
        regex(rb"\[(?P<group_rank>\d+)\] Timeout at collective: \w+, #\d+"),
        "pt: TraceUtils.h",
    ),
    Pattern(
        What.STORE_ERROR,
        b"TCPStore",
        regex(rb"(?:Failed to check the .should dump. flag on TCPStore|TCPStore server has shut down too early)"),
        _PT,
    ),
    Pattern(What.STORE_ERROR, b"recvValue failed on", regex(rb"recvValue failed on SocketImpl"), "pt: TCPStore.cpp"),
    Pattern(
        What.STORE_ERROR,
        b"store->get(",
        regex(rb"store->get\('.*?'\)"),
        "pt: ProcessGroupNCCL.cpp, making a communicator",
    ),
    Pattern(
        What.COMM_ERROR,
        b"NCCL error in",
        regex(rb"NCCL error in: \S+?:\d+, (?P<code>[^,]+)(?:, NCCL version (?P<version>[\d.]+))?"),
        "pt: NCCLUtils.hpp",
        {"lib": "NCCL"},
    ),
    Pattern(
        What.COMM_ERROR,
        b"nccl",
        regex(rb"^\S*?(?P<code>nccl(?:System|Remote|Internal|UnhandledCuda)Error|ncclInvalid(?:Usage|Argument)): "),
        "pt: NCCLUtils.cpp",
        {"lib": "NCCL"},
    ),
    Pattern(
        What.LINK_ERROR,
        b"Got completion from peer",
        regex(
            rb"(?:(?P<host>[\w.-]+):(?P<pid>\d+):\d+ \[(?P<device>\d+)\] .*?)?Got completion from peer "
            rb"(?P<peer>[^\s<]+)<\d+> with (?:error |status=(?:\w+\()?)(?P<status>\d+)(?:.*?\bhca (?P<nic>\S+))?"
        ),
        "nccl: net_ib/p2p.cc, 2.14 to 2.30",
        {"lib": "NCCL"},
    ),
    Pattern(
        What.LINK_ERROR,
        b"non-fatal async event",
        regex(
            rb"(?:(?P<host>[\w.-]+):(?P<pid>\d+):\d+ \[(?P<device>\d+)\] .*?)?(?P<nic>[\w:]+) Got non-fatal "
            rb"async event: (?P<code>.*)"
        ),
        "nccl: net_ib",
        {"lib": "NCCL"},
    ),
    Pattern(
        What.DEVICE_ERROR,
        b"Cuda failure",
        regex(
            rb"(?:(?P<host>[\w.-]+):(?P<pid>\d+):\d+ \[(?P<device>\d+)\] .*?)?Cuda failure (?:\d+ )?"
            rb"'(?P<code>uncorrectable[^']*)'"
        ),
        "nccl: checks.h",
        {"vendor": "nvidia", "hardware": 1},
    ),
    Pattern(
        What.COMM_ERROR,
        b"NCCL WARN",
        regex(
            rb"(?P<host>[\w.-]+):(?P<pid>\d+):\d+ \[(?P<device>\d+)\] .*?NCCL WARN "
            rb"(?:.*?(?:remote peer|recv from|send to|connect to|from peer) (?P<peer>[^\s<]+)<\d+>)?"
        ),
        "nccl: debug.cc",
        {"lib": "NCCL"},
    ),
    Pattern(
        What.TIMEOUT,
        b"operation to complete",
        regex(rb"Timed out waiting (?P<timeout_ms>\d+)ms for (?P<op>recv|send) operation to complete"),
        "gloo: tcp/unbound_buffer.cc, produced",
        {"lib": "gloo"},
    ),
    Pattern(
        What.DESYNC,
        b"Received data size doesn't match",
        regex(rb"Received data size doesn't match expected size"),
        "gloo: tcp/pair.cc, produced",
        {"lib": "gloo"},
    ),
    Pattern(
        What.COMM_ERROR,
        b"Read error [",
        regex(rb"pair\.cc:\d+\] Read error \[(?P<peer>[^\]]+)\]:(?P<port>\d+): (?P<code>[^.]+)"),
        "gloo: tcp/pair.cc, produced",
        {"lib": "gloo"},
    ),
    Pattern(
        What.COMM_ERROR,
        b"Connection closed by peer [",
        regex(rb"Connection closed by peer \[(?P<peer>[^\]]+)\]:(?P<port>\d+)"),
        "gloo: tcp/pair.cc, produced",
        {"lib": "gloo"},
    ),
    Pattern(
        What.COMM_ERROR,
        b"Application timeout caused pair closure",
        regex(rb"(?P<code>Application timeout caused pair closure)"),
        "gloo: tcp/pair.cc",
        {"lib": "gloo"},
    ),
)

_NPU: Final = "npu: HCCL's table of errors"

ASCEND: tuple[Row, ...] = (
    Pattern(
        What.DESYNC,
        b"EI00",
        regex(
            rb"\b(?P<code>EI0005)\)?: .*?(?:tag \[(?P<tag>[^\]]*)\], )?parameter \[(?P<parameter>[^\]]*)\], "
            rb"local \[(?P<local>[^\]]*)\], remote \[(?P<remote>[^\]]*)\]"
        ),
        _NPU,
        {"lib": "HCCL"},
    ),
    Pattern(What.DESYNC, b"EI00", regex(rb"\b(?P<code>EI0005)\)?: "), _NPU, {"lib": "HCCL"}),
    Pattern(
        What.TIMEOUT,
        b"EI00",
        regex(rb"\b(?P<code>EI0002)\)?: (?:.*?remote rank: ?\[(?P<remote>[^\]]*)\])?"),
        _NPU,
        {"lib": "HCCL"},
    ),
    Pattern(
        What.OOM,
        b"EI00",
        regex(rb"\b(?P<code>EI0011|EI0007)\)?: (?:.*?allocate \[(?P<asked>\d+)\] bytes)?"),
        _NPU,
        {"lib": "HCCL"},
    ),
    Pattern(
        What.LINK_ERROR,
        b"EI00",
        regex(rb"\b(?P<code>EI0013|EI0012|EI0010)\)?: (?:.*?Remote [Rr]ank: ?\[?(?P<remote>\d+))?"),
        _NPU,
        {"lib": "HCCL"},
    ),
    *(
        Pattern(What.COMM_ERROR, needle, regex(rb"(?:^|[\s(])(?P<code>E[IJ]\d{4})\)?: "), _NPU, {"lib": "HCCL"})
        for needle in (b"EI00", b"EJ00")
    ),
    Pattern(
        What.LINK_ERROR,
        b"error cqe status",
        regex(rb"HCCL\((?P<pid>\d+),[^)]*\):.*?error cqe status: ?(?P<status>\w+)"),
        "npu: plog",
        {"lib": "HCCL"},
    ),
    Pattern(
        What.COMM_ERROR,
        b"[ERROR] HCCL(",
        regex(
            rb"\[ERROR\] HCCL\((?P<pid>\d+),(?P<process>[^)]*)\):(?P<stamp>\S+) \[[^\]]*\] ?\[\d+\]"
            rb"(?:.*?\brank\[(?P<remote>\d+)\])?"
        ),
        "npu: plog",
        {"lib": "HCCL"},
    ),
    *(
        Pattern(
            What.ECC,
            text,
            regex(rb"(?:\w\((?P<pid>\d+),.*?)?(?P<code>" + text + rb")"),
            "npu: NPUException",
            {"where": "device", **told},
        )
        for text, told in (
            (b"HBM MULTI BIT ECC ERROR", {"uncorrected": 1}),
            (b"UCE ERROR", {"uncorrected": 1}),
            (b"SUSPECT MEM ERROR", dict[str, int]()),
        )
    ),
    Pattern(
        What.LINK_ERROR,
        b"reason=[",
        regex(rb"reason=\[(?P<code>link error|hccl op retry failed|suspect remote error)\]"),
        "npu: NPUException",
        {"lib": "HCCL"},
    ),
    Pattern(
        What.COMM_ERROR,
        b"RankID:",
        regex(rb"Device:(?P<device>-?\d+), RankID:(?P<rank>-?\d+)\) (?P<code>ERR02\d{3}) \w+ "),
        "npu: NPUException",
        {"lib": "HCCL"},
    ),
    Pattern(
        What.DEVICE_ERROR,
        b"RankID:",
        regex(
            rb"\(PID:(?P<pid>\d+), Device:(?P<device>-?\d+), RankID:(?P<rank>-?\d+)\) (?P<code>ERR\d{5}) "
            rb"(?P<module>\w+) "
        ),
        "npu: NPUException",
        {"vendor": "ascend"},
    ),
    Pattern(
        What.DEVICE_ERROR,
        b"error code is",
        regex(rb"error code is (?P<code>\d+)"),
        "npu: NPUException",
        {"vendor": "ascend"},
    ),
    Pattern(
        What.MARK,
        b"Entry-HcclCommInitRootInfo",
        regex(
            rb"HCCL\((?P<pid>\d+),.*?ranks\[(?P<ranks>\d+)\], rank\[(?P<group_rank>\d+)\].*?"
            rb"identifier\[(?P<group>[^\]]*)\]"
            rb"(?:, deviceLogicId\[(?P<device>\d+)\])?"
        ),
        "npu: run plog",
    ),
)

MEMORY: tuple[Row, ...] = (
    Pattern(
        What.OOM,
        b"out of memory. Tried to allocate",
        regex(
            rb"(?:CUDA|HIP|XPU|MUSA) out of memory\. Tried to allocate (?P<asked_size>[\d.]+ \w+)\. "
            rb"(?P<device>GPU \d+) has a total capacity of (?P<total_size>[\d.]+ \w+) of which "
            rb"(?P<free_size>[\d.]+ \w+) is free\.(?: Process \d+ has (?P<others_size>[\d.]+ \w+) memory in use\.)?"
            rb"(?:.*?this process has (?P<in_use_size>[\d.]+ \w+) memory in use\.)?"
            rb"(?:.*?Of the allocated memory (?P<allocated_size>[\d.]+ \w+) is allocated by PyTorch,?)?"
            rb"(?: with (?P<pools_size>[\d.]+ \w+) allocated in private pools[^,]*(?:, CUDA Graphs\))?,?)?"
            rb"(?:.*? and (?P<unallocated_size>[\d.]+ \w+) is reserved by PyTorch but unallocated)?"
        ),
        "pt: CUDACachingAllocator.cpp, 2.1 and later",
    ),
    Pattern(
        What.OOM,
        b"out of memory. Tried to allocate",
        regex(
            rb"(?:CUDA|HIP|NPU|MUSA) out of memory\. Tried to allocate (?P<asked_size>[\d.]+ \w+) "
            rb"\((?P<device>[GN]PU \d+); (?P<total_size>[\d.]+ \w+) total capacity; "
            rb"(?P<allocated_size>[\d.]+ \w+) already allocated; (?:[\d.]+ \w+ current active; )?"
            rb"(?P<free_size>[\d.]+ \w+) free; (?:[\d.]+ \w+ allowed; )?"
            rb"(?P<reserved_size>[\d.]+ \w+) reserved in total by PyTorch\)"
        ),
        "pt: CUDACachingAllocator.cpp, 1.x and 2.0; npu: NPUCachingAllocator.cpp",
    ),
    Pattern(
        What.OOM,
        b"out of memory",
        regex(rb"(?:CUDA|HIP|NPU|XPU|MUSA) out of memory(?:\. Tried to allocate (?P<asked_size>[\d.]+ \w+))?"),
        "pt: CUDACachingAllocator.cpp",
    ),
    Pattern(
        What.OOM, b"out of memory", regex(rb"(?:CUDA|HIP) error: out of memory"), "pt: CUDAException.cpp: the driver"
    ),
    Pattern(
        What.HOST_OOM,
        b"can't allocate memory: you tried to allocate",
        regex(rb"can't allocate memory: you tried to allocate (?P<asked>\d+) bytes"),
        "pt: alloc_cpu.cpp, produced",
    ),
    Pattern(
        What.HOST_OOM,
        b"Unable to allocate",
        regex(rb"MemoryError: Unable to allocate (?P<asked_size>[\d.]+ \w+)"),
        "numpy: _exceptions.py, produced",
    ),
    Pattern(What.HOST_OOM, b"Cannot allocate memory", regex(rb"\[Errno 12\] Cannot allocate memory"), "the system"),
    Pattern(What.HOST_OOM, b"MemoryError", regex(rb"^MemoryError\b"), "Python"),
    Pattern(
        What.LOADER,
        b"DataLoader worker",
        regex(
            rb"DataLoader worker \(pid(?:\(s\))? (?P<pid>\d+)[^)]*\) "
            rb"(?:is killed by signal: (?P<signal>[A-Za-z ]+)|exited)"
        ),
        "pt: DataLoader.cpp",
    ),
    Pattern(
        What.LOADER, b"insufficient shared memory", regex(rb"insufficient shared memory \(shm\)"), "pt: DataLoader.cpp"
    ),
    Pattern(
        What.LOADER, b"DataLoader timed out", regex(rb"DataLoader timed out after (?P<seconds>[\d.]+) seconds"), "pt"
    ),
)

DEVICES: tuple[Row, ...] = (
    Pattern(
        What.DEVICE_ERROR,
        b"uncorrectable",
        regex(rb"CUDA error: (?P<code>uncorrectable (?:ECC|NVLink) error[^\n]*)"),
        "CUDA: cudaGetErrorString",
        {"vendor": "nvidia", "hardware": 1},
    ),
    Pattern(
        What.DEVICE_ERROR,
        b"error: ",
        regex(rb"(?P<vendor>CUDA|HIP|XPU) error: (?P<code>[^\n]{3,120})"),
        "pt: CUDAException.cpp",
    ),
    Pattern(
        What.DEVICE_ERROR,
        b"_STATUS_",
        regex(rb"(?P<code>(?:CUBLAS|CUDNN|CUSOLVER|CUSPARSE|HIPBLAS|ROCBLAS)_STATUS_(?!SUCCESS)\w+)"),
        "CUDA's libraries",
        {"vendor": "nvidia"},
    ),
    Pattern(
        What.DEVICE_ASSERT,
        b"Assertion `",
        regex(
            rb"(?P<file>\S+\.(?:cuh?|hip)):(?P<line>\d+): .*?block: \[[\d,]+\], thread: \[[\d,]+\] "
            rb"Assertion `(?P<expression>.*?)` failed"
        ),
        "CUDA: device assertions",
    ),
    Pattern(What.DEVICE_LOST, b"GPU is lost", regex(rb"GPU is lost"), "NVML"),
)

_ELASTIC: Final = "pt: distributed/elastic, produced"
_SIGNALLED: Final = rb"(?P<reason>Killed|Terminated|Aborted|Segmentation fault|Bus error|Out Of Memory|Exited)"

LAUNCHERS: tuple[Row, ...] = (
    Pattern(
        What.SIGNAL,
        b"closing signal",
        regex(rb"Sending process (?P<pid>\d+) closing signal (?P<signal>\w+)"),
        _ELASTIC,
    ),
    Pattern(
        What.EXIT,
        b"local_rank:",
        regex(
            rb"failed \(exitcode: (?P<exitcode>-?\d+)\) local_rank: (?P<local_rank>\d+) \(pid: (?P<pid>\d+)\) of binary"
        ),
        _ELASTIC,
    ),
    Pattern(
        What.RESTART,
        b"Worker group FAILED",
        regex(rb"Worker group FAILED\. (?P<left>\d+)/(?P<attempts>\d+) attempts left; will restart"),
        _ELASTIC,
    ),
    Pattern(What.SIGNAL, b"death signal", regex(rb"Received (?P<signal>SIG\w+|\d+) death signal"), _ELASTIC),
    Pattern(
        What.SIGNAL,
        b"Unable to shutdown process",
        regex(rb"Unable to shutdown process (?P<pid>\d+) via \w+, forcefully exiting via (?P<signal>\w+)"),
        _ELASTIC,
    ),
    Pattern(
        What.HOST_FAULT,
        b"did not exit after SIGKILL",
        regex(rb"Process (?P<pid>\d+) did not exit after SIGKILL within (?P<seconds>\d+)s"),
        _ELASTIC,
        {"part": "driver"},
    ),
    Pattern(
        What.HOST_OOM,
        b"Out Of Memory",
        regex(rb"srun: error: (?P<host>[^\s:]+): tasks? (?P<task>[\d,-]+): Out Of Memory"),
        "slurm: task_state.c",
        {"oom_kill": 1},
    ),
    Pattern(
        What.EXIT,
        b"srun: error",
        regex(
            rb"srun: error: (?P<host>[^\s:]+): tasks? (?P<task>[\d,-]+): "
            + _SIGNALLED
            + rb"(?: with exit code (?P<exitcode>\d+))?"
        ),
        "slurm: task_state.c",
    ),
    Pattern(
        What.HOST_OOM,
        b"Detected",
        regex(rb"slurmstepd: error: Detected (?P<count>\d+) oom[_-]kill event(?:\(s\))? in (?P<cgroup>StepId=\S+?)\. "),
        "slurm: cgroup",
        {"scope": "cgroup", "oom_kill": 1},
    ),
    Pattern(
        What.CANCELLED,
        b"CANCELLED AT",
        regex(
            rb"\*\*\* (?:STEP|JOB) \S+ ON (?P<host>\S+) CANCELLED AT (?P<stamp>[\dT:-]+)"
            rb"(?: (?:DUE TO|DUE to) (?P<reason>.*?))? \*\*\*"
        ),
        "slurm: slurmstepd",
    ),
    Pattern(What.MARK, b"Job step aborted", regex(rb"srun: Job step aborted"), "slurm: srun"),
    Pattern(What.MARK, b"Force Terminated", regex(rb"srun: Force Terminated (?P<step>\S+)"), "slurm: srun"),
    Pattern(
        What.EXIT,
        b"core dumped",
        regex(
            rb"(?:line \d+: +(?P<pid>\d+) )?(?P<reason>Segmentation fault|Bus error|Aborted|Killed) +\(core dumped\)"
        ),
        "bash",
    ),
    Pattern(
        What.EXIT,
        b"Killed",
        regex(rb"(?:^|line \d+: +(?P<pid>\d+) )(?P<reason>Killed)(?: .*)?$"),
        "bash",
        {"exitcode": -9},
    ),
    Pattern(
        What.EXCEPTION,
        b"terminate called",
        regex(rb"terminate called after throwing an instance of '(?P<type>[^']+)'"),
        "libstdc++",
        {"fatal": 1},
    ),
)

_NUMBER: Final = rb"[^\s,|]+"
_LOSS: Final = ("loss", "", 1.0)
_NORM: Final = ("grad_norm", "", 1.0)
_SECONDS: Final = ("step_time", "s", 1.0)
_MS: Final = ("step_time", "s", 1e-3)

LOOPS: tuple[Row, ...] = (
    Loop(
        "torchtitan",
        b"grad_norm:",
        regex(
            rb"step:\s*(?P<step>\d+)\s+loss:\s*(?P<loss>\S+)\s+grad_norm:\s*(?P<norm>\S+)\s+memory:\s*(?P<memory>[\d.]+)GiB"
            rb"\([\d.]+%\)\s+tps:\s*(?P<tps>[\d,]+)"
        ),
        "pytorch/torchtitan: metrics.py",
        {
            "loss": _LOSS,
            "norm": _NORM,
            "tps": ("throughput", "tokens/s", 1.0),
            "memory": ("memory_used", "bytes", 2.0**30),
        },
    ),
    Loop(
        "Megatron-LM",
        b"elapsed time per iteration",
        regex(
            rb"iteration\s+(?P<step>\d+)/\s*\d+ \|.*?elapsed time per iteration \(ms\): (?P<ms>[\d.]+)"
            rb"(?:.*?\| lm loss: (?P<loss>\S+))?(?:.*?\| loss scale: (?P<scale>[\d.]+))?"
            rb"(?:.*?\| grad norm: (?P<norm>\S+))?(?:.*?\| number of nan iterations:\s*(?P<nans>\d+))?"
        ),
        "NVIDIA/Megatron-LM: training.py",
        {
            "ms": _MS,
            "loss": _LOSS,
            "norm": _NORM,
            "scale": ("loss_scale", "", 1.0),
            "nans": ("nan_iterations", "", 1.0),
        },
        "mean over the interval of the log",
    ),
    Loop(
        "DeepSpeed pipeline",
        b"iter time (s)",
        regex(
            rb"steps: (?P<step>\d+) loss: (?P<loss>\S+) .*?iter time \(s\): (?P<s>[\d.]+) samples/sec: (?P<rate>[\d.]+)"
        ),
        "deepspeedai/DeepSpeed: pipe/engine.py",
        {"loss": _LOSS, "s": _SECONDS, "rate": ("samples", "samples/s", 1.0)},
    ),
    Loop(
        "DeepSpeed",
        b"RunningAvgSamplesPerSec",
        regex(rb"global_step=(?P<step>\d+), RunningAvgSamplesPerSec=[\d.]+, CurrSamplesPerSec=(?P<rate>[\d.]+)"),
        "deepspeedai/DeepSpeed: timer.py",
        {"rate": ("samples", "samples/s", 1.0)},
    ),
    Loop(
        "nanoGPT",
        b"iter ",
        regex(rb"iter (?P<step>\d+): loss (?P<loss>" + _NUMBER + rb"), time (?P<ms>[\d.]+)ms"),
        "karpathy/nanoGPT: train.py",
        {"loss": _LOSS, "ms": _MS},
    ),
    Loop(
        "NeMo",
        b"reduced_train_loss",
        regex(
            rb"iteration (?P<iteration>\d+)/\d+ \|.*?global_step: (?P<step>\d+) \|.*?reduced_train_loss: (?P<loss>\S+)"
            rb"(?: \|(?:.*?train_step_timing in s: (?P<s>[\d.]+))?)?"
        ),
        "NVIDIA-NeMo/NeMo: logger",
        {"loss": _LOSS, "s": _SECONDS},
    ),
    Loop(
        "HF Trainer",
        b"'loss': ",
        regex(
            rb"\{(?=[^}]*'epoch': )(?:[^}]*, )?'loss': '?(?P<loss>[^,'}]+)'?"
            rb"(?:[^}]*?'grad_norm': '?(?P<norm>[^,'}]+)'?)?"
        ),
        "huggingface/transformers: trainer_callback.py",
        {"loss": _LOSS, "norm": _NORM},
    ),
    Loop(
        "Lightning",
        b"Epoch ",
        regex(
            rb"Epoch (?P<epoch>\d+):\s+\d+%\|[^|]*\|\s*(?P<step>\d+)/\d+ \[[\d:]+<[\d:?]+,\s*(?:(?P<s>[\d.]+)s/it|"
            rb"(?P<rate>[\d.]+)it/s)(?:[^\]]*?\b(?:train_)?loss(?:_step)?=(?P<loss>[^,\s\]]+))?"
        ),
        "Lightning-AI/pytorch-lightning: tqdm_progress.py",
        {"loss": _LOSS, "s": _SECONDS, "rate": ("iterations", "1/s", 1.0)},
        "smoothed",
    ),
    Loop(
        "a loop of its own",
        b"loss",
        regex(
            rb"(?i:\b(?:global_?step|step|iter(?:ation)?s?|batch)\b)[\s:=\[(#]{1,4}(?P<step>\d+).{0,200}?"
            rb"(?<![\w-])(?:train_|train |lm |total_|total )?loss[\"']?[\s:=]{1,4}"
            rb"(?P<loss>[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|nan|inf)\b)"
            rb"(?:.{0,120}?(?<![\w-])(?:step_|iter_)?time[\"']?[\s:=]{1,4}(?:(?P<ms>[\d.]+) ?ms|(?P<s>[\d.]+) ?s)\b)?"
        ),
        "any line with a step and a loss",
        {"loss": _LOSS, "ms": _MS, "s": _SECONDS},
    ),
)

NUMBERS: tuple[Row, ...] = (
    Pattern(
        What.OVERFLOW,
        b"OVERFLOW!",
        regex(
            rb"OVERFLOW! Rank (?P<rank>\d+) Skipping step\."
            rb"(?: Attempted loss scale: (?P<scale>\d+)(?:\.0)?, (?:reducing to|but hysteresis is) (?P<next>\d+))?"
        ),
        "deepspeedai/DeepSpeed: loss_scaler.py",
    ),
    Pattern(
        What.OVERFLOW,
        b"already at minimum",
        regex(rb"Current loss scale already at minimum - cannot decrease scale anymore"),
        "deepspeedai/DeepSpeed: loss_scaler.py",
        {"exhausted": 1},
    ),
    Pattern(
        What.NAN,
        b"found NaN in",
        regex(rb"(?:Rank (?P<rank>\d+)[:,] )?found NaN in (?:local )?(?P<series>grad norm|forward loss)"),
        "NVIDIA/Megatron-LM: param_and_grad_buffer.py",
    ),
    *(
        Pattern(
            What.NAN,
            needle,
            regex(rb"(?i)\b(?:loss (?:is|became|=) (?:nan|inf)\b|(?:nan|inf|non-finite) loss\b)"),
            "common in training code",
            {"series": "loss"},
        )
        for needle in (b"loss", b"Loss")
    ),
    Pattern(
        What.NAN, b"returned nan values", regex(rb"(?P<function>'\w+Backward\d*') returned nan values"), "pt: autograd"
    ),
)

CHECKPOINTS: tuple[Row, ...] = (
    Pattern(
        What.CHECKPOINT_END,
        b"inished saving the checkpoint",
        regex(rb"Finished saving the checkpoint.*?in (?P<seconds>[\d.]+) seconds"),
        "pytorch/torchtitan: checkpoint.py",
    ),
    Pattern(
        What.CHECKPOINT_END,
        b"successfully saved checkpoint",
        regex(rb"successfully saved checkpoint (?:from|at) iteration\s+(?P<step>\d+)"),
        "NVIDIA/Megatron-LM: checkpointing.py",
    ),
    Pattern(
        What.CHECKPOINT_BEGIN,
        b"aving",
        regex(
            rb"\b[Ss]aving (?:the |a |full |model )*checkpoint"
            rb"(?:.*?(?:iteration|step|checkpoint-|global_step)\s*(?P<step>\d+))?"
        ),
        "torchtitan, Megatron-LM, transformers, nanoGPT",
    ),
    Pattern(
        What.CHECKPOINT_END,
        b"heckpoint",
        regex(
            rb"\b(?:[Ss]aved (?:the |a |model )*checkpoint|[Cc]heckpoint (?:was )?saved)"
            rb"(?:.*?(?:iteration|step)\D{0,3}(?P<step>\d+))?"
        ),
        "common in training code",
    ),
)

ROWS: tuple[Row, ...] = (
    *LOOPS,
    *COLLECTIVES,
    *ASCEND,
    *MEMORY,
    *DEVICES,
    *LAUNCHERS,
    *NUMBERS,
    *CHECKPOINTS,
)
