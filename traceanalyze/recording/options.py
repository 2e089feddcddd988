"""What is recorded: the profiler's schedule and what it notes beside times."""

import importlib.util
import json
import subprocess
import sys
from dataclasses import asdict, dataclass, fields
from typing import Self

from traceanalyze.errors import UsageError


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
