"""The layouts in which the profiler has written its traces over the years, and for which vendor."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tests.simulate.streams import COMM, COMPUTE, SIDE_STREAM

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOW = {
    "op": "cpu_op",
    "annotation": "user_annotation",
    "call": "cuda_runtime",
    "kernel": "kernel",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
}
_CAPITALS = {
    "op": "Operator",
    "annotation": "Operator",
    "call": "Runtime",
    "kernel": "Kernel",
    "memcpy": "Memcpy",
    "memset": "Memset",
}
_HIP = {"cudaLaunchKernelExC": "hipExtLaunchKernel"}
_UR = {
    "cudaLaunchKernel": "urEnqueueKernelLaunch",
    "cudaLaunchKernelExC": "urEnqueueKernelLaunchCustomExp",
    "cudaMemcpyAsync": "urEnqueueUSMMemcpy",
    "cudaMemsetAsync": "urEnqueueUSMFill",
    "cudaDeviceSynchronize": "urQueueFinish",
    "cudaStreamSynchronize": "urEventWait",
    "cudaEventRecordWithFlags": "urEnqueueEventsWaitWithBarrier",
    "cudaStreamWaitEvent": "urEnqueueEventsWait",
    "cudaMalloc": "urUSMDeviceAlloc",
    "cudaFree": "urUSMFree",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """How one generation of the profiler writes."""

    name: str
    categories: Mapping[str, str] = field(default_factory=lambda: _NOW)
    relative: bool = True
    """Times count from `baseTimeNanoseconds`, else from 1970."""
    since: int = 0
    """So many ns after the former the recording begins; weeks in reality."""
    whole_us: bool = False
    """Times are whole microseconds; the schedule must be on that grid."""
    text_tids: bool = False
    """Threads are written "4242" and "stream 7"."""
    header_first: bool = True
    flow: tuple[str, str] = ("ac2g", "ac2g")
    """Category and name of the arrows from launch to work."""
    external: str = "External id"
    external_is_correlation: bool = False
    """Device events and calls repeat the correlation where the operator's id belongs."""
    python: bool = True
    """Python functions are events; else operators carry their call stack."""
    collective_args: bool = True
    sync_events: bool = True
    """Synchronisations and annotations appear on the device's rows."""
    driver_families: frozenset[str] = frozenset()
    """Families of kernels that are launched through the driver, without a runtime call."""
    hip: bool = False
    device: int = 0
    streams: Mapping[int, int] = field(default_factory=lambda: {COMPUTE: COMPUTE, COMM: COMM, SIDE_STREAM: SIDE_STREAM})
    with_device: bool = True
    """False: recorded with the CPU activity only."""
    xpu: bool = False
    """As PTI records an Intel device."""
    pairs: bool = False
    """Operators are a begin and an end (`B`, `E`)."""
    world: int = 0
    """So many ranks are said to be there; torch writes the first 30 of a longer list."""
    nodes: bool = False
    """Kernels of graphs tell their node and module (torch ≥ 2.12)."""

    def call_name(self, name: str) -> str:
        """A runtime call in the vendor's words."""
        if self.xpu:
            return _UR.get(name, name)
        return _HIP.get(name, name.replace("cuda", "hip", 1)) if self.hip else name

    def copy_name(self, name: str) -> str:
        """A copy in the vendor's words."""
        if self.xpu:
            return "Memcpy M2D" if "HtoD" in name else "Memcpy D2M" if "DtoH" in name else name
        if not self.hip:
            return name
        return "CopyHostToDevice" if "HtoD" in name else "CopyDeviceToHost" if "DtoH" in name else name


TODAY = Layout("today", driver_families=frozenset({"matmul"}))
YEAR_2022 = Layout(
    "2022",
    relative=False,
    flow=("async_cpu_to_gpu", "async_gpu"),
    external_is_correlation=True,
    python=False,
    collective_args=False,
    sync_events=False,
)
YEAR_2021 = replace(
    YEAR_2022,
    name="2021",
    categories=_CAPITALS,
    whole_us=True,
    text_tids=True,
    header_first=False,
    flow=("async", "launch"),
    external="external id",
    external_is_correlation=False,
)
AMD = replace(Layout("amd"), hip=True, device=2, streams={COMPUTE: 0, COMM: 1, SIDE_STREAM: 2}, sync_events=False)
XPU = replace(Layout("xpu", categories=_NOW | {"call": "xpu_runtime"}), xpu=True, sync_events=False)
PAIRS = replace(TODAY, name="pairs", pairs=True)
GRAPHS = replace(TODAY, name="graphs", nodes=True)
CPU_ONLY = replace(TODAY, name="cpu", with_device=False)
LAYOUTS = (TODAY, YEAR_2022, YEAR_2021, AMD, XPU, PAIRS)
"""Those with the device."""
