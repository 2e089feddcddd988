"""What is recorded: the profiler's schedule and what it notes beside times."""

from __future__ import annotations

import json
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
