"""What is recorded: the profiler's schedule and what it notes beside times."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from traceanalyze.errors import UsageError
from traceanalyze.recording.run_file import trace_name, worker_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """Steps to wait, to warm up and to record, and what is recorded of them."""

    wait: int = 5
    """Steps the script runs alone before the profiler is switched on."""
    warmup: int = 3
    """Steps under the profiler that are thrown away: its own start slows the first ones."""
    active: int = 5
    """Steps kept."""
    shapes: bool = True
    """Shapes of the operators' inputs."""
    stacks: bool = False
    """Python stacks of the operators; slows the host."""
    memory: bool = False
    """Every allocation as an event of the trace (`profile_memory`); slows the host."""
    snapshot: bool = True
    """History of the device's caching allocator, dumped at the end and when memory runs out."""
    light: bool = False
    """Device activities and step marks alone: the recording for timing."""

    def __post_init__(self) -> None:
        if self.wait < 0 or self.warmup < 0 or self.active < 1:
            raise UsageError("record: wait and warmup are 0 or more steps, active is 1 or more")
        if self.light and (self.stacks or self.memory):
            raise UsageError("record: light is without stacks and memory; leave one of them out")

    @property
    def steps(self) -> int:
        """Steps a script must run for all of the recording."""
        return self.wait + self.warmup + self.active

    @property
    def with_shapes(self) -> bool:
        """Whether shapes are recorded in the end."""
        return self.shapes and not self.light

    @property
    def with_snapshot(self) -> bool:
        """Whether the allocator's history is recorded in the end."""
        return self.snapshot and not self.light

    def to_json(self) -> str:
        """As text, for the process that records."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """From what `to_json` wrote."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in json.loads(text).items() if name in known})


def installed(package: str) -> bool:
    """Whether a package can be imported, without importing it."""
    return importlib.util.find_spec(package) is not None


def require_torch() -> None:
    """Raise in one line what to install where torch is missing.

    Raises:
        UsageError: torch is missing.
    """
    if not installed("torch"):
        raise UsageError(
            f"recording needs torch, and {sys.executable} has none: pip install 'traceanalyze[torch]' into it"
        )


def require_this_package(python: str) -> None:
    """Raise in one line where a Python is another one than this and cannot import this package.

    So it is where the command is called by its path, without activating its environment.

    Raises:
        UsageError: `python` does not have this package.
    """
    if python == sys.executable:
        return
    looks = "import importlib.util as u, sys; sys.exit(u.find_spec('traceanalyze') is None)"
    if subprocess.run([python, "-c", looks], stderr=subprocess.DEVNULL, check=False).returncode == 1:  # noqa: S603
        raise UsageError(
            f"record: {python} does not have traceanalyze: install it there, or write {sys.executable} in its place"
        )


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
