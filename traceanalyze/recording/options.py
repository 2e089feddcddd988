"""What is recorded: the schedule, what is noted beside times, and `run.json`, which says so beside the traces."""

import importlib.util
import json
import os
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Self

from traceanalyze.errors import UsageError
from traceanalyze.model.patterns import regex
from traceanalyze.version import __version__
from traceanalyze.whole_file import whole_file


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
    """Raise in one line what to install where torch is missing."""
    if not installed("torch"):
        raise UsageError(
            "recording needs torch, and {python} has none: pip install 'traceanalyze[torch]' into it", sys.executable
        )


def require_this_package(python: str) -> None:
    """Raise in one line where a Python is another one than this and cannot import this package.

    So it is where the command is called by its path, without activating its environment.
    """
    if python == sys.executable:
        return
    looks = "import importlib.util as u, sys; sys.exit(u.find_spec('traceanalyze') is None)"
    if subprocess.run([python, "-c", looks], stderr=subprocess.DEVNULL, check=False).returncode == 1:  # noqa: S603
        raise UsageError(
            "record: {python} does not have traceanalyze: install it there, or write {python2} in its place",
            python,
            sys.executable,
        )


CUDA, HIP, NPU, CPU = "cuda", "hip", "npu", "cpu"


@dataclass(frozen=True, slots=True)
class Device:
    """Kind of the devices, their names, and versions of what drives them."""

    kind: str
    names: tuple[str, ...]
    versions: dict[str, str]


SCHEMA = "traceanalyze.run/1"


def run_file(rank: int) -> str:
    """The name: one for the job from its first rank, one more for every other rank."""
    return "run.json" if rank == 0 else f"run_rank{rank}.json"


def write_run(
    folder: Path, options: RecordOptions, device: Device, rank: tuple[int, int | None], steps: int, files: Sequence[str]
) -> None:
    """Write versions, devices, options, rank, size of the job, steps the script made, and the files recorded."""
    content = {
        "schema": SCHEMA,
        "rank": rank[0],
        "world_size": rank[1],
        "host": platform.node(),
        "device": device.kind,
        "device_names": list(device.names),
        "versions": {"traceanalyze": __version__, "python": platform.python_version(), **device.versions},
        "options": asdict(options),
        "steps_seen": steps,
        "files": list(files),
    }
    path = folder / run_file(rank[0])
    with whole_file(path) as file:
        file.write(f"{json.dumps(content, indent=1)}\n".encode())


TRACES = "*.pt.trace.json.gz"
_ASCEND = "*_ascend_pt"
_UNSAFE = regex(r"[^A-Za-z0-9.-]")


def rank_and_world(environment: Mapping[str, str] = os.environ) -> tuple[int, int | None]:
    """Rank and size of the job, from torch.distributed where it is in use, else from RANK and WORLD_SIZE; rank 0 else.

    The size is None where nothing states it.
    """
    import torch.distributed as job

    if job.is_available() and job.is_initialized():
        return job.get_rank(), job.get_world_size()
    rank, world = environment.get("RANK", ""), environment.get("WORLD_SIZE", "")
    return int(rank) if rank.isdecimal() else 0, int(world) if world.isdecimal() else None


def worker_name(rank: int) -> str:
    """`rank0_host_pid`."""
    return f"rank{rank}_{_UNSAFE.sub('-', socket.gethostname())}_{os.getpid()}"


def trace_name(rank: int) -> str:
    """`rank0_host_pid.time.pt.trace.json.gz`: the name TensorBoard's plugin knows, with the rank."""
    return f"{worker_name(rank)}.{time.time_ns()}.pt.trace.json.gz"


def refuse_recorded(folder: Path, rank: int | None = None) -> None:
    """Two recordings of a rank (None: of any) in one folder would be taken for one run."""
    start = "" if rank is None else f"rank{rank}_"
    if folder.exists() and not folder.is_dir():
        raise UsageError("{folder}: this is a file; give a folder for the recording", folder)
    if any(folder.glob(f"{start}{TRACES}")) or any(folder.glob(f"{start}{_ASCEND}")):
        raise UsageError("{folder}: holds a recording already; give another folder", folder)
