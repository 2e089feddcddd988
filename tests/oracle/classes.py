"""Event classes as definitions §2 words them."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.oracle.raw import Event

_DEVICE = {"kernel": "kernel", "gpu_memcpy": "mem", "memcpy": "mem", "gpu_memset": "mem", "memset": "mem"}
_STORED_AS_OP = (
    "ProfilerStep",
    "Optimizer.step#",
    "Optimizer.zero_grad#",
    "enumerate(DataLoader)#",
    "enumerate(DataPipe)#",
)


def kind(event: Event) -> str:
    """`device`, `op`, `annotation`, `api`, `device annotation` or `other`: by category, then by name."""
    cat = event.cat
    if cat in _DEVICE or cat.endswith("_ccp_events"):
        return "device"
    if cat in {"cpu_op", "operator"}:
        return "annotation" if event.name.startswith(_STORED_AS_OP) else "op"
    if cat == "user_annotation":
        return "annotation"
    if cat in {"runtime", "driver"} or cat.endswith(("_runtime", "_driver")):
        return "api"
    return "device annotation" if cat == "gpu_user_annotation" else "other"


def device_class(event: Event) -> str:
    """`compute`, `comm` or `mem` of a device event."""
    if _DEVICE.get(event.cat) == "mem" or event.name.startswith(("__amd_rocclr_copyBuffer", "__amd_rocclr_fillBuffer")):
        return "mem"
    return "comm" if is_comm(event) else "compute"


def is_comm(event: Event) -> bool:
    name = event.name
    lower = name.lower()
    if name.startswith("triton_"):
        return False
    if any(part in name for part in ("AllGatherMatmul", "MatmulReduceScatter", "MatmulAllReduce")):
        return False
    if "userbuffers" in lower and "gemm" in lower:
        return False
    if "Collective name" in event.args or "Process Group Name" in event.args:
        return True
    return _is_comm_name(lower)


@cache
def _is_comm_name(lower: str) -> bool:
    if re.search("deep_?ep", lower) and re.search("dispatch|combine|notify", lower) and "layout" not in lower:
        return True
    return bool(_COMM_NAME.search(lower)) or ("lamport" in lower and "reduce" in lower)


_COMM_NAME = re.compile(
    "nccl|rccl|hccl|hcom_|msccl|nvshmem|::ep::internode::|::ep::intranode::|::ep::internode_ll::|cross_device_reduce"
    "|one_?shot_?all_?reduce|two_?shot_?all_?reduce|multimem_|quick_?reduce|symm_mem|custom_?all_?reduce|userbuffers"
    "|allreduce_fusion_kernel"
)


def count_class(event: Event) -> str:
    """`compute`, `comm`, `memcpy` or `memset`: the four counts of the device span."""
    if event.cat in {"gpu_memset", "memset"} or event.name.startswith("__amd_rocclr_fillBuffer"):
        return "memset"
    found = device_class(event)
    return "memcpy" if found == "mem" else found


def is_step_marker(event: Event) -> bool:
    return re.fullmatch(r"ProfilerStep#\d+", event.name) is not None


ITERATIONS = (
    re.compile(r"execute_(\d+_)?context_\d+(\([^()]*\))?_generation_\d+(\([^()]*\))?"),
    re.compile(r"execute_new_\d+_cached_\d+"),
    re.compile(r"step\[\w+( [^\]]*)?\]"),
    re.compile(r"(.*[.:/ ])?execute_model(_?\d+)?"),
)
"""Ranges of inference servers (§3), each style where those before it are not there."""


def is_loader(event: Event) -> bool:
    name = event.name
    return name.startswith("enumerate(DataPipe)#") or (name.startswith("enumerate(DataLoader)#") and "__next__" in name)


def is_peer_wait(event: Event) -> bool:
    return _PEER.match(event.name) is not None


_PEER = re.compile(r"gloo[:_]|mpi[:_]|c10d::barrier|.*monitored_barrier|.*store.*wait", re.IGNORECASE)

_EXPLICIT_SYNC = re.compile(
    r"(cuda|hip)(Device|Stream|Event|Ctx)Synchronize|cu(Ctx|Stream|Event)Synchronize"
    r"|aclrtSynchronize(Device|Stream|Event)(WithTimeout)?|SynchronizeStream"
)
_BLOCKING_COPY = re.compile(
    r"cudaMemcpy|cudaMemcpy[23]D|cudaMemcpy(To|From)Symbol|hipMemcpy|hipMemcpyWithStream|cuMemcpy(DtoH|HtoD)(_v2)?"
    r"|aclrtMemcpy"
)
_ALLOC = re.compile(
    r"cuda(Malloc|Free|HostAlloc|FreeHost).*|cuMem(Create|Map|Unmap|Release|AddressReserve|SetAccess).*"
    r"|hip(Malloc|Free).*|aclrt(Malloc|Free).*|aclMallocMemInner|aclrt(MapMem|UnmapMem|ReserveMemAddress)"
)
_LAUNCH = re.compile(
    r".*LaunchKernel.*|.*LaunchCooperativeKernel.*|hipModuleLaunchKernel|hipExt.*Launch.*|.*GraphLaunch.*"
)
_COPY = re.compile(r".*Memcpy.*Async.*|.*Memset.*")


@cache
def api_class(name: str) -> str:
    """`sync`, `alloc`, `launch`, `copy` or `other`, by the name alone."""
    if _EXPLICIT_SYNC.fullmatch(name) or _BLOCKING_COPY.fullmatch(name):
        return "sync"
    for label, pattern in (("alloc", _ALLOC), ("launch", _LAUNCH), ("copy", _COPY)):
        if pattern.fullmatch(name):
            return label
    return "other"


def is_async_copy(name: str) -> bool:
    return re.fullmatch(r".*Memcpy.*Async.*", name) is not None
