"""What processes of a job and their launchers print: one row a message, with where its text is from.

pt is pytorch/pytorch (`torch/csrc/distributed/c10d`, 2.0 to 2.13), nccl NVIDIA/nccl 2.30, gloo facebookincubator/gloo,
npu Ascend/pytorch and HCCL's table of errors, slurm SchedMD/slurm. Numbers of source lines change with every release.
"""

from __future__ import annotations

from typing import Final

from traceanalyze.incident.evidence import What
from traceanalyze.incident.text import Row, loop, said

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

COLLECTIVES: tuple[Row, ...] = (
    # nccl: init.cc
    said(
        What.MARK,
        rb"(?<![\w.-])(?P<host>[\w.-]+):(?P<pid>\d+):\d+ \[(?P<device>\d+)\] .*?\bcomm \S+ rank (?P<rank>\d+) "
        rb"nranks (?P<world>\d+)(?:.*?\bbusId (?P<bus>[0-9a-fA-F]+))?.*? - Init COMPLETE",
    ),
    # The forms with the group's name in front come before those without.
    # pt: ProcessGroupNCCL.cpp, npu: ProcessGroupHCCL.cpp
    said(What.TIMEOUT, _GROUP + _WATCHDOG),
    # pt: ProcessGroupNCCL.cpp, 1.12 and later
    said(What.TIMEOUT, rb"\[Rank (?P<group_rank>\d+)\] " + _WATCHDOG),
    # pt: ProcessGroupNCCL.cpp, 2.6 and later
    said(
        What.GROUP_STATUS,
        _GROUP + rb"failure detected by watchdog at work sequence id: (?P<seq>\d+) PG status: " + _LAST + _DONE,
    ),
    # pt: ProcessGroupNCCL.cpp, 2.4 and 2.5
    said(
        What.GROUP_STATUS,
        _GROUP
        + rb"Exception \(either an error or timeout\) detected by watchdog at work: (?P<seq>\d+), "
        + _LAST
        + _DONE,
    ),
    # pt: ProcessGroupNCCL.cpp, 2.3 and 2.4
    said(What.GROUP_STATUS, _GROUP + rb"Timeout at NCCL work: (?P<seq>\d+), " + _LAST + _DONE),
    # pt: ProcessGroupNCCL.cpp
    said(
        What.DUMP_SIGNAL,
        rb"Received a dump signal due to a collective timeout from\s+(?:this local rank|rank (?P<from_rank>\d+))"
        rb"(?:.*?" + _LAST + _DONE + rb")?",
    ),
    # npu: ProcessGroupHCCL.cpp
    said(What.DUMP_SIGNAL, rb"Received a global dump signal from rank (?P<from_rank>\d+)"),
    # pt: ProcessGroupNCCL.cpp
    said(What.DUMP_SIGNAL, rb"Observed flight recorder dump signal from another rank"),
    said(What.DUMP_SIGNAL, rb"(?:" + _GROUP + rb")?First PG on this rank to signal dumping"),
    said(What.WATCHDOG_STUCK, rb"watchdog got stuck for (?P<seconds>\d+) seconds without making progress"),
    said(What.WATCHDOG_STUCK, rb"Could not acquire GIL within \d+ ms on exit"),
    said(What.WATCHDOG_STUCK, rb"ProcessGroup(?:NCCL|HCCL) watchdog hang"),
    said(What.MARK, rb"(?:Process group|NCCL|HCCL) watchdog thread terminated with exception"),
    said(What.MARK, rb"Terminating the process after attempting to dump debug info"),
    said(What.MARK, rb"we are taking the entire process down"),
    # pt: ProcessGroupWrapper.cpp, produced with TORCH_DISTRIBUTED_DEBUG=DETAIL
    said(
        What.DESYNC,
        rb"Detected mismatch between collectives on ranks\. Rank (?P<group_rank>\d+) is running collective: "
        rb"CollectiveFingerPrint\(SequenceNumber=(?P<seq>\d+), OpType=(?P<op>\w+).*?but Rank (?P<other_rank>\d+) "
        rb"is running collective: CollectiveFingerPrint\(SequenceNumber=\d+, ?OpType=(?P<other_op>\w+)",
    ),
    # pt: TraceUtils.h
    said(What.DESYNC, rb"ranks \[(?P<group_ranks>[\d, ]+)\] are the lagging ranks that caused this timeout"),
    said(What.DESYNC, rb"\[(?P<group_ranks>\d+)\] joined but didn't finish collective #(?P<seq>\d+)"),
    said(What.DESYNC, rb"\[(?P<group_ranks>\d+)\] finished collective #\d+, but didn't join collective #(?P<seq>\d+)"),
    said(What.MARK, rb"\[(?P<group_rank>\d+)\] Timeout at collective: \w+, #\d+"),
    # pt: ProcessGroupNCCL.cpp
    said(
        What.STORE_ERROR,
        rb"(?:Failed to check the .should dump. flag on TCPStore|TCPStore server has shut down too early)",
        needle=b"TCPStore",
    ),
    # pt: TCPStore.cpp
    said(What.STORE_ERROR, rb"recvValue failed on SocketImpl"),
    # pt: ProcessGroupNCCL.cpp, making a communicator
    said(What.STORE_ERROR, rb"store->get\('.*?'\)"),
    # pt: NCCLUtils.hpp
    said(
        What.COMM_ERROR, rb"NCCL error in: \S+?:\d+, (?P<code>[^,]+)(?:, NCCL version (?P<version>[\d.]+))?", lib="NCCL"
    ),
    # pt: NCCLUtils.cpp
    said(
        What.COMM_ERROR,
        rb"^\S*?(?P<code>nccl(?:System|Remote|Internal|UnhandledCuda)Error|ncclInvalid(?:Usage|Argument)): ",
        needle=b"nccl",
        lib="NCCL",
    ),
    # nccl: net_ib/p2p.cc, 2.14 to 2.30
    said(
        What.LINK_ERROR,
        rb"(?:(?<![\w.-])(?P<host>[\w.-]+):(?P<pid>\d+):\d+ \[(?P<device>\d+)\] .*?)?Got completion from peer "
        rb"(?P<peer>[^\s<]+)<\d+> with (?:error |status=(?:\w+\()?)(?P<status>\d+)(?:.*?\bhca (?P<nic>\S+))?",
        lib="NCCL",
    ),
    # nccl: net_ib
    said(
        What.LINK_ERROR,
        rb"(?:(?<![\w.-])(?P<host>[\w.-]+):(?P<pid>\d+):\d+ \[(?P<device>\d+)\] .*?)?(?<![\w:])"
        rb"(?P<nic>[\w:]+) Got non-fatal "
        rb"async event: (?P<code>.*)",
        lib="NCCL",
    ),
    # nccl: checks.h
    said(
        What.DEVICE_ERROR,
        rb"(?:(?<![\w.-])(?P<host>[\w.-]+):(?P<pid>\d+):\d+ \[(?P<device>\d+)\] .*?)?Cuda failure (?:\d+ )?"
        rb"'(?P<code>uncorrectable[^']*)'",
        vendor="nvidia",
        hardware=1,
    ),
    # nccl: debug.cc
    said(
        What.COMM_ERROR,
        rb"(?<![\w.-])(?P<host>[\w.-]+):(?P<pid>\d+):\d+ \[(?P<device>\d+)\] .*?NCCL WARN "
        rb"(?:.*?(?:remote peer|recv from|send to|connect to|from peer) (?P<peer>[^\s<]+)<\d+>)?",
        lib="NCCL",
    ),
    # gloo: tcp/unbound_buffer.cc, produced
    said(
        What.TIMEOUT,
        rb"Timed out waiting (?P<timeout_ms>\d+)ms for (?P<op>recv|send) operation to complete",
        lib="gloo",
    ),
    # gloo: tcp/pair.cc, produced
    said(What.DESYNC, rb"Received data size doesn't match expected size", lib="gloo"),
    said(
        What.COMM_ERROR, rb"pair\.cc:\d+\] Read error \[(?P<peer>[^\]]+)\]:(?P<port>\d+): (?P<code>[^.]+)", lib="gloo"
    ),
    said(What.COMM_ERROR, rb"Connection closed by peer \[(?P<peer>[^\]]+)\]:(?P<port>\d+)", lib="gloo"),
    # gloo: tcp/pair.cc
    said(
        What.COMM_ERROR,
        rb"(?P<code>Application timeout caused pair closure)",
        needle=b"Application timeout caused pair closure",
        lib="gloo",
    ),
)


ASCEND: tuple[Row, ...] = (
    # npu: HCCL's table of errors
    said(
        What.DESYNC,
        rb"\b(?P<code>EI0005)\)?: .*?(?:tag \[(?P<tag>[^\]]*)\], )?parameter \[(?P<parameter>[^\]]*)\], "
        rb"local \[(?P<local>[^\]]*)\], remote \[(?P<remote>[^\]]*)\]",
        lib="HCCL",
    ),
    said(What.DESYNC, rb"\b(?P<code>EI0005)\)?: ", needle=b"EI00", lib="HCCL"),
    said(
        What.TIMEOUT,
        rb"\b(?P<code>EI0002)\)?: (?:.*?remote rank: ?\[(?P<remote>[^\]]*)\])?",
        needle=b"EI00",
        lib="HCCL",
    ),
    said(
        What.OOM,
        rb"\b(?P<code>EI0011|EI0007)\)?: (?:.*?allocate \[(?P<asked>\d+)\] bytes)?",
        needle=b"EI00",
        lib="HCCL",
    ),
    said(
        What.LINK_ERROR,
        rb"\b(?P<code>EI0013|EI0012|EI0010)\)?: (?:.*?Remote [Rr]ank: ?\[?(?P<remote>\d+))?",
        needle=b"EI00",
        lib="HCCL",
    ),
    *(
        said(What.COMM_ERROR, rb"(?:^|[\s(])(?P<code>E[IJ]\d{4})\)?: ", needle, lib="HCCL")
        for needle in (b"EI00", b"EJ00")
    ),
    # npu: plog
    said(What.LINK_ERROR, rb"HCCL\((?P<pid>\d+),[^)]*\):.*?error cqe status: ?(?P<status>\w+)", lib="HCCL"),
    said(
        What.COMM_ERROR,
        rb"\[ERROR\] HCCL\((?P<pid>\d+),(?P<process>[^)]*)\):(?P<stamp>\S+) \[[^\]]*\] ?\[\d+\]"
        rb"(?:.*?\brank\[(?P<remote>\d+)\])?",
        lib="HCCL",
    ),
    *(
        said(What.ECC, rb"(?:\w\((?P<pid>\d+),.*?)?(?P<code>" + text + rb")", text, where="device", uncorrected=sure)
        for text, sure in ((b"HBM MULTI BIT ECC ERROR", 1), (b"UCE ERROR", 1), (b"SUSPECT MEM ERROR", 0))
    ),
    # npu: NPUException
    said(What.LINK_ERROR, rb"reason=\[(?P<code>link error|hccl op retry failed|suspect remote error)\]", lib="HCCL"),
    said(What.COMM_ERROR, rb"Device:(?P<device>-?\d+), RankID:(?P<rank>-?\d+)\) (?P<code>ERR02\d{3}) \w+ ", lib="HCCL"),
    said(
        What.DEVICE_ERROR,
        rb"\(PID:(?P<pid>\d+), Device:(?P<device>-?\d+), RankID:(?P<rank>-?\d+)\) (?P<code>ERR\d{5}) "
        rb"(?P<module>\w+) ",
        vendor="ascend",
    ),
    said(What.DEVICE_ERROR, rb"error code is (?P<code>\d+)", vendor="ascend"),
    # npu: run plog
    said(
        What.MARK,
        rb"HCCL\((?P<pid>\d+),.*?ranks\[(?P<ranks>\d+)\], rank\[(?P<group_rank>\d+)\].*?"
        rb"identifier\[(?P<group>[^\]]*)\]"
        rb"(?:, deviceLogicId\[(?P<device>\d+)\])?",
    ),
)

MEMORY: tuple[Row, ...] = (
    # pt: CUDACachingAllocator.cpp, 2.1 and later
    said(
        What.OOM,
        rb"(?:CUDA|HIP|XPU|MUSA) out of memory\. Tried to allocate (?P<asked_size>[\d.]+ \w+)\. "
        rb"(?P<device>GPU \d+) has a total capacity of (?P<total_size>[\d.]+ \w+) of which "
        rb"(?P<free_size>[\d.]+ \w+) is free\.(?: Process \d+ has (?P<others_size>[\d.]+ \w+) memory in use\.)?"
        rb"(?:.*?this process has (?P<in_use_size>[\d.]+ \w+) memory in use\.)?"
        rb"(?:.*?Of the allocated memory (?P<allocated_size>[\d.]+ \w+) is allocated by PyTorch,?)?"
        rb"(?: with (?P<pools_size>[\d.]+ \w+) allocated in private pools[^,]*(?:, CUDA Graphs\))?,?)?"
        rb"(?:.*? and (?P<unallocated_size>[\d.]+ \w+) is reserved by PyTorch but unallocated)?",
    ),
    # pt: CUDACachingAllocator.cpp, 1.x and 2.0; npu: NPUCachingAllocator.cpp
    said(
        What.OOM,
        rb"(?:CUDA|HIP|NPU|MUSA) out of memory\. Tried to allocate (?P<asked_size>[\d.]+ \w+) "
        rb"\((?P<device>[GN]PU \d+); (?P<total_size>[\d.]+ \w+) total capacity; "
        rb"(?P<allocated_size>[\d.]+ \w+) already allocated; (?:[\d.]+ \w+ current active; )?"
        rb"(?P<free_size>[\d.]+ \w+) free; (?:[\d.]+ \w+ allowed; )?"
        rb"(?P<reserved_size>[\d.]+ \w+) reserved in total by PyTorch\)",
    ),
    # pt: CUDACachingAllocator.cpp
    said(What.OOM, rb"(?:CUDA|HIP|NPU|XPU|MUSA) out of memory(?:\. Tried to allocate (?P<asked_size>[\d.]+ \w+))?"),
    # pt: CUDAException.cpp: the driver
    said(What.OOM, rb"(?:CUDA|HIP) error: out of memory"),
    # pt: alloc_cpu.cpp, produced
    said(What.HOST_OOM, rb"can't allocate memory: you tried to allocate (?P<asked>\d+) bytes"),
    # numpy: _exceptions.py, produced
    said(What.HOST_OOM, rb"MemoryError: Unable to allocate (?P<asked_size>[\d.]+ \w+)"),
    # the system
    said(What.HOST_OOM, rb"\[Errno 12\] Cannot allocate memory"),
    # Python
    said(What.HOST_OOM, rb"^MemoryError\b"),
    # pt: DataLoader.cpp
    said(
        What.LOADER,
        rb"DataLoader worker \(pid(?:\(s\))? (?P<pid>\d+)[^)]*\) "
        rb"(?:is killed by signal: (?P<signal>[A-Za-z ]+)|exited)",
    ),
    said(What.LOADER, rb"insufficient shared memory \(shm\)"),
    # pt
    said(What.LOADER, rb"DataLoader timed out after (?P<seconds>[\d.]+) seconds"),
)

DEVICES: tuple[Row, ...] = (
    # CUDA: cudaGetErrorString
    said(
        What.DEVICE_ERROR,
        rb"CUDA error: (?P<code>uncorrectable (?:ECC|NVLink) error[^\n]*)",
        vendor="nvidia",
        hardware=1,
    ),
    # pt: CUDAException.cpp
    said(What.DEVICE_ERROR, rb"(?P<vendor>CUDA|HIP|XPU) error: (?P<code>[^\n]{3,120})"),
    # CUDA's libraries
    said(
        What.DEVICE_ERROR,
        rb"(?P<code>(?:CUBLAS|CUDNN|CUSOLVER|CUSPARSE|HIPBLAS|ROCBLAS)_STATUS_(?!SUCCESS)\w+)",
        needle=b"_STATUS_",
        vendor="nvidia",
    ),
    # CUDA: device assertions
    said(
        What.DEVICE_ASSERT,
        rb"(?<!\S)(?P<file>\S+\.(?:cuh?|hip)):(?P<line>\d+): .*?block: \[[\d,]+\], thread: \[[\d,]+\] "
        rb"Assertion `(?P<expression>.*?)` failed",
    ),
    # NVML
    said(What.DEVICE_LOST, rb"GPU is lost"),
)

_SIGNALLED: Final = rb"(?P<reason>Killed|Terminated|Aborted|Segmentation fault|Bus error|Out Of Memory|Exited)"

LAUNCHERS: tuple[Row, ...] = (
    # pt: distributed/elastic, produced
    said(What.SIGNAL, rb"Sending process (?P<pid>\d+) closing signal (?P<signal>\w+)"),
    said(
        What.EXIT,
        rb"failed \(exitcode: (?P<exitcode>-?\d+)\) local_rank: (?P<local_rank>\d+) \(pid: (?P<pid>\d+)\) of binary",
    ),
    said(What.RESTART, rb"Worker group FAILED\. (?P<left>\d+)/(?P<attempts>\d+) attempts left; will restart"),
    said(What.SIGNAL, rb"Received (?P<signal>SIG\w+|\d+) death signal"),
    said(What.SIGNAL, rb"Unable to shutdown process (?P<pid>\d+) via \w+, forcefully exiting via (?P<signal>\w+)"),
    said(What.HOST_FAULT, rb"Process (?P<pid>\d+) did not exit after SIGKILL within (?P<seconds>\d+)s", part="driver"),
    # slurm: task_state.c
    said(What.HOST_OOM, rb"srun: error: (?P<host>[^\s:]+): tasks? (?P<task>[\d,-]+): Out Of Memory", oom_kill=1),
    said(
        What.EXIT,
        rb"srun: error: (?P<host>[^\s:]+): tasks? (?P<task>[\d,-]+): "
        + _SIGNALLED
        + rb"(?: with exit code (?P<exitcode>\d+))?",
    ),
    # slurm: cgroup
    said(
        What.HOST_OOM,
        rb"slurmstepd: error: Detected (?P<count>\d+) oom[_-]kill event(?:\(s\))? in (?P<cgroup>StepId=\S+?)\. ",
        scope="cgroup",
        oom_kill=1,
    ),
    # slurm: slurmstepd
    said(
        What.CANCELLED,
        rb"\*\*\* (?:STEP|JOB) \S+ ON (?P<host>\S+) CANCELLED AT (?P<stamp>[\dT:-]+)"
        rb"(?: (?:DUE TO|DUE to) (?P<reason>.*?))? \*\*\*",
    ),
    # slurm: srun
    said(What.MARK, rb"srun: Job step aborted"),
    said(What.MARK, rb"srun: Force Terminated (?P<step>\S+)"),
    # bash
    said(
        What.EXIT,
        rb"(?:line \d+: +(?P<pid>\d+) )?(?P<reason>Segmentation fault|Bus error|Aborted|Killed) +\(core dumped\)",
    ),
    said(What.EXIT, rb"(?:^|line \d+: +(?P<pid>\d+) )(?P<reason>Killed)(?: .*)?$", needle=b"Killed", exitcode=-9),
    # libstdc++
    said(What.EXCEPTION, rb"terminate called after throwing an instance of '(?P<type>[^']+)'", fatal=1),
)

_NUMBER: Final = rb"[^\s,|]+"
_LOSS: Final = ("loss", "", 1.0)
_NORM: Final = ("grad_norm", "", 1.0)
_SECONDS: Final = ("step_time", "s", 1.0)
_MS: Final = ("step_time", "s", 1e-3)

LOOPS: tuple[Row, ...] = (
    # pytorch/torchtitan: metrics.py
    loop(
        rb"step:\s*(?P<step>\d+)\s+loss:\s*(?P<loss>\S+)\s+grad_norm:\s*(?P<norm>\S+)\s+memory:\s*(?P<memory>[\d.]+)GiB"
        rb"\([\d.]+%\)\s+tps:\s*(?P<tps>[\d,]+)",
        {
            "loss": _LOSS,
            "norm": _NORM,
            "tps": ("throughput", "tokens/s", 1.0),
            "memory": ("memory_used", "bytes", 2.0**30),
        },
    ),
    # NVIDIA/Megatron-LM: training.py
    loop(
        rb"iteration\s+(?P<step>\d+)/\s*\d+ \|.*?elapsed time per iteration \(ms\): (?P<ms>[\d.]+)"
        rb"(?:.*?\| lm loss: (?P<loss>\S+))?(?:.*?\| loss scale: (?P<scale>[\d.]+))?"
        rb"(?:.*?\| grad norm: (?P<norm>\S+))?(?:.*?\| number of nan iterations:\s*(?P<nans>\d+))?",
        {
            "ms": _MS,
            "loss": _LOSS,
            "norm": _NORM,
            "scale": ("loss_scale", "", 1.0),
            "nans": ("nan_iterations", "", 1.0),
        },
        derived="mean over the interval of the log",
    ),
    # deepspeedai/DeepSpeed: pipe/engine.py
    loop(
        rb"steps: (?P<step>\d+) loss: (?P<loss>\S+) .*?iter time \(s\): (?P<s>[\d.]+) samples/sec: (?P<rate>[\d.]+)",
        {"loss": _LOSS, "s": _SECONDS, "rate": ("samples", "samples/s", 1.0)},
    ),
    # deepspeedai/DeepSpeed: timer.py
    loop(
        rb"global_step=(?P<step>\d+), RunningAvgSamplesPerSec=[\d.]+, CurrSamplesPerSec=(?P<rate>[\d.]+)",
        {"rate": ("samples", "samples/s", 1.0)},
    ),
    # karpathy/nanoGPT: train.py
    loop(rb"iter (?P<step>\d+): loss (?P<loss>" + _NUMBER + rb"), time (?P<ms>[\d.]+)ms", {"loss": _LOSS, "ms": _MS}),
    # NVIDIA-NeMo/NeMo: logger
    loop(
        rb"iteration (?P<iteration>\d+)/\d+ \|.*?global_step: (?P<step>\d+) \|.*?reduced_train_loss: (?P<loss>\S+)"
        rb"(?: \|(?:.*?train_step_timing in s: (?P<s>[\d.]+))?)?",
        {"loss": _LOSS, "s": _SECONDS},
    ),
    # huggingface/transformers: trainer_callback.py
    loop(
        rb"\{(?=[^}]*'epoch': )(?:[^}]*, )?'loss': '?(?P<loss>[^,'}]+)'?"
        rb"(?:[^}]*?'grad_norm': '?(?P<norm>[^,'}]+)'?)?",
        {"loss": _LOSS, "norm": _NORM},
    ),
    # Lightning-AI/pytorch-lightning: tqdm_progress.py
    loop(
        rb"Epoch (?P<epoch>\d+):\s+\d+%\|[^|]*\|\s*(?P<step>\d+)/\d+ \[[\d:]+<[\d:?]+,\s*(?:(?P<s>[\d.]+)s/it|"
        rb"(?P<rate>[\d.]+)it/s)(?:[^\]]*?\b(?:train_)?loss(?:_step)?=(?P<loss>[^,\s\]]+))?",
        {"loss": _LOSS, "s": _SECONDS, "rate": ("iterations", "1/s", 1.0)},
        derived="smoothed",
    ),
    # any line with a step and a loss
    loop(
        rb"(?i:\b(?:global_?step|step|iter(?:ation)?s?|batch)\b)[\s:=\[(#]{1,4}(?P<step>\d+).{0,200}?"
        rb"(?<![\w-])(?:train_|train |lm |total_|total )?loss[\"']?[\s:=]{1,4}"
        rb"(?P<loss>[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|nan|inf)\b)"
        rb"(?:.{0,120}?(?<![\w-])(?:step_|iter_)?time[\"']?[\s:=]{1,4}(?:(?P<ms>[\d.]+) ?ms|(?P<s>[\d.]+) ?s)\b)?",
        {"loss": _LOSS, "ms": _MS, "s": _SECONDS},
        needle=b"loss",
    ),
)

NUMBERS: tuple[Row, ...] = (
    # deepspeedai/DeepSpeed: loss_scaler.py
    said(
        What.OVERFLOW,
        rb"OVERFLOW! Rank (?P<rank>\d+) Skipping step\."
        rb"(?: Attempted loss scale: (?P<scale>\d+)(?:\.0)?, (?:reducing to|but hysteresis is) (?P<next>\d+))?",
    ),
    said(What.OVERFLOW, rb"Current loss scale already at minimum - cannot decrease scale anymore", exhausted=1),
    # NVIDIA/Megatron-LM: param_and_grad_buffer.py
    said(What.NAN, rb"(?:Rank (?P<rank>\d+)[:,] )?found NaN in (?:local )?(?P<series>grad norm|forward loss)"),
    *(
        said(
            What.NAN,
            rb"(?i)\b(?:loss (?:is|became|=) (?:nan|inf)\b|(?:nan|inf|non-finite) loss\b)",
            needle,
            series="loss",
        )
        for needle in (b"loss", b"Loss")
    ),
    # pt: autograd
    said(What.NAN, rb"(?P<function>'\w+Backward\d*') returned nan values"),
)

CHECKPOINTS: tuple[Row, ...] = (
    # pytorch/torchtitan: checkpoint.py
    said(What.CHECKPOINT_END, rb"Finished saving the checkpoint.*?in (?P<seconds>[\d.]+) seconds"),
    # NVIDIA/Megatron-LM: checkpointing.py
    said(What.CHECKPOINT_END, rb"successfully saved checkpoint (?:from|at) iteration\s+(?P<step>\d+)"),
    # torchtitan, Megatron-LM, transformers, nanoGPT
    said(
        What.CHECKPOINT_BEGIN,
        rb"\b[Ss]aving (?:the |a |full |model )*checkpoint"
        rb"(?:.*?(?:iteration|step|checkpoint-|global_step)\s*(?P<step>\d+))?",
    ),
    # common in training code
    said(
        What.CHECKPOINT_END,
        rb"\b(?:[Ss]aved (?:the |a |model )*checkpoint|[Cc]heckpoint (?:was )?saved)"
        rb"(?:.*?(?:iteration|step)\D{0,3}(?P<step>\d+))?",
        needle=b"heckpoint",
    ),
)

ROWS: tuple[Row, ...] = (*LOOPS, *COLLECTIVES, *ASCEND, *MEMORY, *DEVICES, *LAUNCHERS, *NUMBERS, *CHECKPOINTS)
