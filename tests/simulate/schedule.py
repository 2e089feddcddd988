"""What happened, as the simulation knows it: every record points at its cause, no ids and no searching."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulate.model import Argument
    from tests.simulate.workload import Workload

MAIN, AUTOGRAD, SIDE, DEQUEUE = "main", "autograd", "side", "dequeue"


@dataclass(slots=True, eq=False)
class State:
    """What a thread was doing in `[start, end)`: the simulation's own account, one record a stretch of time."""

    start: int
    end: int
    loading: bool
    peer: bool
    call: Call | None
    op: bool
    """Inside an operator."""


@dataclass(slots=True, eq=False)
class Range:
    """An annotation or a Python frame."""

    name: str
    thread: str
    start: int
    end: int = 0
    user: bool = False
    """A line of the user's own code."""


@dataclass(slots=True, eq=False)
class OpCall:
    """One run of an operator."""

    name: str
    thread: str
    start: int
    parent: OpCall | None
    inputs: tuple[Argument, ...]
    module: tuple[str, ...]
    phase: str
    frames: tuple[str, ...]
    """Python frames around it, innermost first."""
    sequence: int | None = None
    forward_of: OpCall | None = None
    """The forward operator that this backward node belongs to."""
    collective: Collective | None = None
    end: int = 0


@dataclass(slots=True, eq=False)
class Call:
    """One runtime call."""

    name: str
    klass: str
    """sync, launch, copy, alloc or other"""
    thread: str
    start: int
    op: OpCall | None
    frame: str | None
    """Innermost line of the user's code."""
    end: int = 0
    stream: int | None = None
    """Stream that is made to wait, or waited for."""
    waits_for: int | None = None
    """Stream that it is made to wait for."""
    own_copy: Work | None = None
    parent: Call | None = None
    """Call of the same thread that it is part of."""
    queued: Call | None = None
    """Of what a task queue's thread takes out: the call that put it in."""

    @property
    def outermost(self) -> Call:
        """The call that this one is part of in the end."""
        return self if self.parent is None else self.parent.outermost

    @property
    def asked(self) -> int:
        """When the program asked for it: into a task queue, or by this call itself."""
        queued = self.outermost.queued
        return self.start if queued is None else queued.start


@dataclass(frozen=True, slots=True)
class Collective:
    """What a rank asks its group for."""

    type: str
    elements_in: int
    elements_out: int
    dtype: str
    index: int
    """How many collectives the rank asked for before."""

    @property
    def bytes(self) -> int:
        """As bandwidths count it: the larger side."""
        return max(self.elements_in, self.elements_out) * {"c10::BFloat16": 2, "float": 4}[self.dtype]


@dataclass(frozen=True, slots=True)
class Task:
    """One part of a collective on one of its planes (NPU)."""

    name: str
    """Notify_Record, Notify_Wait, Memcpy or Reduce_Inline"""
    plane: int
    start: int
    end: int
    peer: int
    bytes: int = 0

    @property
    def moves(self) -> bool:
        """Whether it transfers data."""
        return self.name in {"Memcpy", "Reduce_Inline"}


@dataclass(frozen=True, slots=True)
class Control:
    """What occupies a stream without being work (NPU): an event recorded or waited for."""

    name: str
    stream: int
    start: int
    end: int
    call: Call


@dataclass(slots=True, eq=False)
class Work:
    """One thing that the device did."""

    kind: str
    """compute, comm, memcpy or memset"""
    family: str
    """Key of `kernels.NAMES`; of copies the direction."""
    name: str
    stream: int
    start: int
    end: int
    call: Call | None
    """None: launched before recording."""
    op: OpCall | None
    phase: str
    blocks: int = 1
    threads: int = 128
    bytes: int = 0
    flops: int = 0
    linked: bool = True
    collective: Collective | None = None
    tasks: tuple[Task, ...] = ()
    """Parts of a collective."""

    @property
    def launch(self) -> Call | None:
        """Its launch as far as the recording tells."""
        return self.call if self.linked else None


@dataclass(frozen=True, slots=True)
class Memory:
    """One record of the caching allocator."""

    time: int
    thread: str
    address: int
    bytes: int
    allocated: int
    reserved: int


@dataclass(frozen=True, slots=True)
class Step:
    """A step marker on the main thread."""

    number: int
    start: int
    end: int


@dataclass(slots=True)
class Schedule:
    """Everything one rank did."""

    workload: Workload
    rank: int
    begin: int = 0
    """When recording began."""
    states: dict[str, list[State]] = field(default_factory=lambda: {MAIN: [], AUTOGRAD: [], SIDE: [], DEQUEUE: []})
    ops: list[OpCall] = field(default_factory=list)
    annotations: list[Range] = field(default_factory=list)
    frames: list[Range] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    @property
    def recorded(self) -> list[Work]:
        """Works with a launch record."""
        return [work for work in self.works if work.linked and work.call is not None]
