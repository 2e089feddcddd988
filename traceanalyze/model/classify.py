"""Names and categories of every vendor mapped to one vocabulary (definitions §2).

The category decides first, the name second; never the presence of a stream, never process or thread ids.
Everything here works on one text at a time and is applied once a distinct name.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from traceanalyze.model.classifier import Names, classifier_of_kernel, classifier_of_range
from traceanalyze.model.kernel_classes import KernelGroup
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import ApiClass, DeviceClass, EventKind, SyncKind


class ClassifyOptions(NamedTuple):
    """What a user may add to the built-in rules."""

    categories: Mapping[str, EventKind] = {}
    """Category (lower case) → kind, for categories the tool does not know."""
    comm: re.Pattern[str] | None = None
    not_comm: re.Pattern[str] | None = None
    data: re.Pattern[str] | None = None
    """Annotations or operators that are data loading, beside torch's own loader ranges."""
    step_marker: re.Pattern[str] | None = None
    plugins: tuple[Names, ...] = ()
    """What plug-ins say of names: after the expressions above, before the built-in rules."""


OVERLAY_CATEGORY = "traceanalyze_overlay"
"""Of events that this tool added to a trace (`report/perfetto`): never part of a recording."""
NO_CATEGORY = "(none)"
"""What the category of events without one is called."""
WAITS_OF_XPU = "xpu_sync"
"""Calls that wait, once more beside those of the runtime, on tracks of their own; and barriers between kernels."""
_KINDS = {
    "kernel": EventKind.KERNEL,
    **dict.fromkeys(("gpu_memcpy", "memcpy"), EventKind.MEMCPY),
    **dict.fromkeys(("gpu_memset", "memset"), EventKind.MEMSET),
    "gpu_user_annotation": EventKind.DEVICE_ANNOTATION,
    **dict.fromkeys(("cuda_sync", "cuda_event", "cuda_profiler_range"), EventKind.DEVICE_CONTROL),
    **dict.fromkeys(("hccl_task", "npu_control", "overlap_analysis", "collective_comm"), EventKind.DEVICE_CONTROL),
    **dict.fromkeys(("hardware_counters", "xpu_scope_profiler", "graph_event_node"), EventKind.DEVICE_CONTROL),
    **dict.fromkeys(("cpu_op", "operator"), EventKind.HOST_OP),
    "user_annotation": EventKind.ANNOTATION,
    "python_function": EventKind.PYTHON,
    **dict.fromkeys(("overhead", "trace", "gc", OVERLAY_CATEGORY), EventKind.OVERHEAD),
}
KIND_NAMES = {
    "kernel": EventKind.KERNEL,
    "memcpy": EventKind.MEMCPY,
    "memset": EventKind.MEMSET,
    "control": EventKind.DEVICE_CONTROL,
    "op": EventKind.HOST_OP,
    "annotation": EventKind.ANNOTATION,
    "python": EventKind.PYTHON,
    "api": EventKind.API,
    "overhead": EventKind.OVERHEAD,
}
"""What `--category NAME=class` accepts."""

_NAMES = 4096
"""Names that are known, once looked at: those of many ranks are the same."""
_ANNOTATION_OPS = regex(
    r"ProfilerStep|Optimizer\.step#|Optimizer\.zero_grad#|enumerate\(DataLoader\)#|enumerate\(DataPipe\)#"
)


def event_kind(category: str, options: ClassifyOptions) -> EventKind:
    """Kind of an event by its category."""
    lower = category.lower() or NO_CATEGORY
    if lower in options.categories:
        return options.categories[lower]
    if lower in _KINDS:
        return _KINDS[lower]
    if lower.endswith("_ccp_events"):
        return EventKind.KERNEL
    if lower in {"runtime", "driver"} or lower.endswith(("_runtime", "_driver")):
        return EventKind.API
    return EventKind.API if lower == WAITS_OF_XPU else EventKind.UNKNOWN


@lru_cache(_NAMES)
def is_annotation_op(name: str) -> bool:
    """A user annotation that old files store as an operator."""
    return _ANNOTATION_OPS.match(name) is not None


def is_metrics_of_kernel(name: str) -> bool:
    """Counters of a kernel, which the profiler of XPU draws around it as one more kernel."""
    return name.startswith("metrics: ")


def rocm_copy_kind(name: str) -> EventKind | None:
    """ROCm runtime kernels that implement copies and fills, else None."""
    if name.startswith("__amd_rocclr_copyBuffer"):
        return EventKind.MEMCPY
    if name.startswith("__amd_rocclr_fillBuffer"):
        return EventKind.MEMSET
    return None


PROFILER_STEP = regex(r"ProfilerStep#(\d+)")
_DATA = regex(r"enumerate\(DataLoader\)#.*__next__|enumerate\(DataPipe\)#")
_PEER = regex(
    r"gloo[:_]|mpi[:_]|c10d::(barrier|monitored_barrier)|.*monitored_barrier|TCPStore|.*store[_:]*wait|c10d::.*Store",
    re.IGNORECASE,
)


def marks_step(options: ClassifyOptions) -> Callable[[str], object]:
    """What tells of a name whether it is that of a host range that marks a training step."""
    return PROFILER_STEP.fullmatch if options.step_marker is None else options.step_marker.search


def is_step_marker(name: str, options: ClassifyOptions) -> bool:
    """A host range that marks a training step."""
    return marks_step(options)(name) is not None


def is_data_loading(name: str, options: ClassifyOptions) -> bool:
    """A host range in which the program waits for its data loader."""
    if _DATA.match(name) is not None or (options.data is not None and options.data.search(name) is not None):
        return True
    return bool(options.plugins) and classifier_of_range(name, options.plugins) >= 0


@lru_cache(_NAMES)
def is_peer_wait(name: str) -> bool:
    """A collective or rendezvous that runs on the host (gloo, MPI, barrier, store)."""
    return _PEER.match(name) is not None


_FUSED_COMM = regex(
    r"AllGatherMatmul|MatmulReduceScatter|MatmulAllReduce|userbuffers?.*gemm|gemm.*userbuffers?", re.IGNORECASE
)
_COMM = regex(
    r"nccl|rccl|hccl|hcom_|msccl|oneccl|xccl|nvshmem"
    r"|::ep::internode::|::ep::intranode::|::ep::internode_ll::"
    r"|cross_device_reduce|one_?shot_?all_?reduce|two_?shot_?all_?reduce|multimem_|quick_?reduce|symm_mem"
    r"|custom_?all_?reduce|userbuffers|allreduce_fusion_kernel",
    re.IGNORECASE,
)
_DEEP_EP = regex(r"deep_?ep", re.IGNORECASE)
_DEEP_EP_COMM = regex(r"dispatch|combine|notify", re.IGNORECASE)


def kernel_class(name: str, *, has_collective_args: bool, options: ClassifyOptions) -> tuple[DeviceClass, str]:
    """Compute or communication, and the rule that said so (definitions §2.3, first match)."""
    found = _user_class(name, options)
    if found is not None:
        return found
    if name.startswith("triton_") or _is_fused(name):
        return DeviceClass.COMPUTE, "triton" if name.startswith("triton_") else "fused_comm"
    if has_collective_args:
        return DeviceClass.COMM, "collective args"
    if _is_comm_name(name):
        return DeviceClass.COMM, "name"
    return DeviceClass.COMPUTE, "kernel"


def _user_class(name: str, options: ClassifyOptions) -> tuple[DeviceClass, str] | None:
    """What the user says, then what plug-ins say."""
    if options.comm is not None and options.comm.search(name):
        return DeviceClass.COMM, "comm-regex"
    if options.not_comm is not None and options.not_comm.search(name):
        return DeviceClass.COMPUTE, "not-comm-regex"
    found = classifier_of_kernel(name, options.plugins)
    if found is None:
        return None
    plugin, kind = found
    klass = DeviceClass.COMM if kind == KernelGroup.COMMUNICATION else DeviceClass.COMPUTE
    return klass, f"plug-in {options.plugins[plugin].plugin}"


@lru_cache(_NAMES)
def _is_fused(name: str) -> bool:
    return _FUSED_COMM.search(name) is not None


@lru_cache(_NAMES)
def _is_comm_name(name: str) -> bool:
    if _DEEP_EP.search(name):
        return _DEEP_EP_COMM.search(name) is not None and "layout" not in name.lower()
    if _COMM.search(name):
        return True
    lower = name.lower()
    return "lamport" in lower and "reduce" in lower


_EXPLICIT_SYNC = regex(
    r"(cuda|hip)(Device|Stream|Event|Ctx)Synchronize|cu(Ctx|Stream|Event)Synchronize"
    r"|hip(Ctx|Stream|Event)Synchronize|aclrtSynchronize(Device|Stream|Event)(WithTimeout)?|SynchronizeStream"
    r"|(ur|pi)(Queue|Event|Events)(Finish|Wait)|ze(\w+)Synchronize"
    r"|\w*(Device|Stream|Event|Queue|Context)Synchronize(WithTimeout)?"
)
_BLOCKING_COPY = regex(
    r"(cuda|hip)Memcpy([23]D)?(_v\d+)?|(cuda|hip)Memcpy(To|From)Symbol|hipMemcpyWithStream|cuMemcpy(DtoH|HtoD)(_v\d+)?|aclrtMemcpy"
)
_ALLOC = regex(
    r"cuda(Malloc|Free|HostAlloc|FreeHost)|cuMem(Create|Map|Unmap|Release|AddressReserve|AddressFree|SetAccess|Alloc|Free)"
    r"|hip(Malloc|Free|HostMalloc|HostFree|MemCreate|MemMap|MemUnmap|MemRelease|MemAddressReserve|MemSetAccess)"
    r"|aclrt(Malloc|Free|MapMem|UnmapMem|ReserveMemAddress)|aclMallocMemInner"
    r"|(ur|pi|piext)USM\w*(Alloc|Free)|zeMem(Alloc|Free)|drvMem(Alloc|Free)"
)
_IMPLICIT_SYNC = regex(r"(cuda|hip)Free(Host)?|cudaHostAlloc|hipHostMalloc|hipHostFree|aclrtFree.*")
_LAUNCH = regex(
    r".*LaunchKernel|.*LaunchCooperativeKernel|hipModuleLaunchKernel|hipExt.*Launch|.*GraphLaunch|drvLaunch"
    r"|(ur|pi|piext)Enqueue(Cooperative)?KernelLaunch|urEnqueueCommandBuffer|zeCommandQueueExecuteCommandLists"
    r"|Node@launch|Runtime@KernelLaunch|AscendCL@(acl(nn|opExecute|opCompileAndExecute)|hcom_|Hccl)"
    r"|(Hccl|Communication)@|Enqueue|Dequeue@"
)
_PREPARES = regex(r"AscendCL@aclnn\w+GetWorkspaceSize")
_CANN_LAYER = regex(r"(AscendCL|Runtime|Node|Model|Hccl|Communication)@")
"""What CANN puts before the name of a call."""
_XPU_COPY = (
    r"(ur|pi|piext)Enqueue(USM|Mem)\w*(Memcpy|Copy|Read|Write)|(ur|pi|piext)USMEnqueue(Memcpy|Copy)"
    r"|zeCommandListAppendMemoryCopy"
)
_XPU_FILL = r"(ur|pi|piext)(Enqueue(USM|Mem)|USMEnqueue)\w*Fill|zeCommandListAppendMemoryFill"
_COPY = regex(rf".*Memcpy|.*Memset|{_XPU_COPY}|{_XPU_FILL}")
_ASYNC_COPY = regex(rf".*Memcpy.*Async|{_XPU_COPY}")


@lru_cache(_NAMES)
def api_class(name: str) -> tuple[ApiClass, SyncKind]:
    """What a runtime call does, and whether it is a sync point by its name (definitions §2.4, §7)."""
    bare = _CANN_LAYER.sub("", name, count=1)
    if _EXPLICIT_SYNC.fullmatch(bare):
        return ApiClass.SYNC, SyncKind.EXPLICIT
    if _BLOCKING_COPY.fullmatch(bare):
        return ApiClass.SYNC, SyncKind.BLOCKING_COPY
    if _ALLOC.match(bare):
        implicit = _IMPLICIT_SYNC.fullmatch(bare) is not None
        return ApiClass.ALLOC, SyncKind.IMPLICIT if implicit else SyncKind.NONE
    if _LAUNCH.match(name):
        return ApiClass.OTHER if _PREPARES.fullmatch(name) else ApiClass.LAUNCH, SyncKind.NONE
    return ApiClass.COPY if _COPY.match(name) else ApiClass.OTHER, SyncKind.NONE


_KNOWN_RUNTIME = regex(r"cuda|cu[A-Z]|hip|acl|INVALID|\w+@|Enqueue|Dequeue|(ur|pi|piext|ze)[A-Z]")


def is_known_runtime(name: str) -> bool:
    """Whether a call is one of a runtime whose calls `api_class` knows by name; of others nobody knows which wait."""
    return _KNOWN_RUNTIME.match(name) is not None


_XPU_RUNTIME = regex(r"(ur|pi|piext|ze)[A-Z]")


def is_of_xpu(name: str) -> bool:
    """Whether a call is one of Intel's runtimes."""
    return _XPU_RUNTIME.match(name) is not None


def is_async_copy(name: str) -> bool:
    """An asynchronous copy call, which can still block in effect."""
    return _ASYNC_COPY.match(name) is not None


_DATA_DEPENDENT = regex(
    r"aten::(item|_local_scalar_dense|nonzero|nonzero_numpy|masked_select|unique\w*|_unique\w*|is_nonzero|equal|repeat_interleave)"
)


def is_data_dependent(op: str) -> bool:
    """An operator whose result's shape or Python value depends on device data, so that it must synchronise."""
    return _DATA_DEPENDENT.fullmatch(op) is not None
