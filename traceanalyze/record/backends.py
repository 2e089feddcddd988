"""The device at hand and its profiler: CUDA and HIP, Ascend NPUs, or the host alone."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traceanalyze.record.identity import trace_name, worker_name
from traceanalyze.record.requirements import installed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from traceanalyze.record.options import RecordOptions

CUDA, HIP, NPU, CPU = "cuda", "hip", "npu", "cpu"


@dataclass(frozen=True, slots=True)
class Device:
    """Kind of the devices, their names, and versions of what drives them."""

    kind: str
    names: tuple[str, ...]
    versions: dict[str, str]


def find_device() -> Device:
    """The devices torch can use now. Asks the driver: the script must have had its chance to choose devices."""
    import torch

    versions = {"torch": str(torch.__version__)}
    if torch.cuda.is_available():
        names = tuple(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))
        hip = getattr(torch.version, "hip", None)
        return Device(HIP if hip else CUDA, names, versions | {HIP if hip else CUDA: str(hip or torch.version.cuda)})
    if installed("torch_npu"):
        import torch_npu

        if torch_npu.npu.is_available():
            names = tuple(torch_npu.npu.get_device_name(index) for index in range(torch_npu.npu.device_count()))
            return Device(NPU, names, versions | {"torch_npu": str(torch_npu.__version__)})
    return Device(CPU, (), versions)


def make_profiler(
    device: Device, options: RecordOptions, folder: Path, rank: Callable[[], int], written: Callable[[str], None]
) -> Any:
    """The profiler, not started; `written` is told the name of what it has written into the folder."""
    if device.kind == NPU:
        return _npu_profiler(options, folder, rank, written)
    from torch import profiler

    def export(profile: Any) -> None:
        name = trace_name(rank())
        hidden = folder / f".{name}"
        profile.export_chrome_trace(str(hidden))
        os.replace(hidden, folder / name)  # noqa: PTH105
        written(name)

    plan = profiler.schedule(wait=options.wait, warmup=options.warmup, active=options.active, repeat=1)
    common = {"schedule": plan, "on_trace_ready": export, "record_shapes": options.with_shapes}
    common |= {"with_stack": options.stacks, "profile_memory": options.memory}
    host, cuda = profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA
    devices = [] if device.kind == CPU else [cuda]
    if options.light and devices:
        # A torch that cannot leave operators out records them: without the step marks there would be no steps.
        with suppress(TypeError, ValueError, RuntimeError, AttributeError):
            return profiler.profile(activities=[{host: ["USER_ANNOTATION"]}, *devices], **common)
    return profiler.profile(activities=[host, *devices], **common)


def _npu_profiler(options: RecordOptions, folder: Path, rank: Callable[[], int], written: Callable[[str], None]) -> Any:
    from torch_npu import profiler

    def export(profile: Any) -> None:
        worker = worker_name(rank())
        profiler.tensorboard_trace_handler(str(folder), worker_name=worker)(profile)
        for path in sorted(folder.glob(f"{worker}_*_ascend_pt")):
            written(path.name)

    return profiler.profile(
        activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU],
        schedule=profiler.schedule(wait=options.wait, warmup=options.warmup, active=options.active, repeat=1),
        on_trace_ready=export,
        record_shapes=options.with_shapes,
        with_stack=options.stacks,
        profile_memory=options.memory,
    )
