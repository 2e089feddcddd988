"""The words every vendor's names are mapped to; the order of each enumeration is the order of reports."""

from __future__ import annotations

from enum import IntEnum


class EventKind(IntEnum):
    """What an event is (definitions: README, "What the words mean")."""

    UNKNOWN = 0
    KERNEL = 1
    MEMCPY = 2
    MEMSET = 3
    DEVICE_CONTROL = 4
    """On the device's rows but not work: synchronisation records, counters."""
    DEVICE_ANNOTATION = 5
    HOST_OP = 6
    ANNOTATION = 7
    PYTHON = 8
    API = 9
    """Runtime or driver call."""
    OVERHEAD = 10
    """The profiler's own, or of Python's garbage collector."""


class DeviceClass(IntEnum):
    """What a device event counts as in the partition of a step."""

    COMPUTE = 0
    COMM = 1
    MEM = 2


class ApiClass(IntEnum):
    """What a runtime call does."""

    LAUNCH = 0
    COPY = 1
    ALLOC = 2
    OTHER = 3
    SYNC = 4


class SyncKind(IntEnum):
    """Why a call blocks the host."""

    NONE = 0
    EXPLICIT = 1
    BLOCKING_COPY = 2
    BLOCKING_IN_EFFECT = 3
    """An asynchronous copy that did not return before its copy had begun (pageable memory, full drain)."""
    IMPLICIT = 4
    """Allocation calls that synchronise: cudaFree, cudaHostAlloc … (class alloc, listed apart)."""
    SUSPECTED = 5
    """No call was recorded; the operator needs a value from the device."""


class Cause(IntEnum):
    """Why the device is idle. The parts of an idle interval sum to it exactly."""

    DATA_LOADING = 0
    SYNC = 1
    PEER_WAIT = 2
    DISPATCH_LAUNCH = 3
    DISPATCH_COPY = 4
    DISPATCH_ALLOC = 5
    DISPATCH_OTHER = 6
    DISPATCH_LATENCY = 7
    HOST_OP = 8
    DEVICE_GAP = 9
    DEVICE_DEPENDENCY = 10
    UNTRACED = 11


class Phase(IntEnum):
    """Part of a training step (definitions §10)."""

    DATA_LOADING = 0
    FORWARD = 1
    BACKWARD = 2
    """With recomputation."""
    RECOMPUTE = 3
    """Part of BACKWARD: forward operators run again by activation checkpointing."""
    OPTIMIZER = 4
    """With zero_grad."""
    ZERO_GRAD = 5
    """Part of OPTIMIZER."""
    OTHER = 6
    UNKNOWN = 7
    """Device events without a launch record."""


class Mode(IntEnum):
    """What the analysed windows are."""

    STEPS = 0
    WHOLE_TRACE = 1
    """No step marker: one window from the first to the last device event."""
    HOST_ONLY = 2
    """No device events: host time only."""
    EMPTY = 3
    """Nothing with a duration."""
    MEMORY = 4
    """An allocator snapshot: a history of events, no windows."""


class Level(IntEnum):
    """How far a quality check touches the numbers."""

    INFO = 0
    WARN = 1
    ERROR = 2
