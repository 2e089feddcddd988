"""The words every vendor's names are mapped to; the order of each enumeration is the order of reports."""

from enum import IntEnum
from typing import Any

ARROW = " → "
"""Between two names of which one became the other."""
AND = " + "
"""Between such a name and how many others go with it."""
SKIPPED = ("malformed", "not_object", "no_phase", "no_ts", "bad_ts", "no_dur", "bad_dur", "negative_dur", "no_begin")
"""Why events could not be read."""


def both_ends(name: str) -> list[tuple[str, str]]:
    """Names on both sides of an arrow, or the name, each with how many others go with it (` + 2`, mostly nothing)."""
    parts = ((each, *each.rpartition(AND)) for each in name.split(ARROW))
    return [(first, AND + count) if count.isdecimal() and first else (each, "") for each, first, _, count in parts]


_COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})


class Code(IntEnum):
    """Whole numbers that stand in columns.

    NumPy makes of a member of another enumeration an array of 64 bits, and of a column of bytes as well, to compare it.
    """

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **more: Any) -> Any:
        if method == "__call__" and ufunc.__name__ in _COMPARISONS:
            first, second = given
            return ufunc(self.value, second, **more) if first is self else ufunc(first, self.value, **more)
        # Imported here: what compares no columns does without.
        import numpy as np

        given = tuple(np.int64(each) if isinstance(each, Code) else each for each in given)
        return getattr(ufunc, method)(*given, **more)


class Detail(IntEnum):
    """How much a reader wants to see."""

    QUIET = 0
    """The verdict."""
    NORMAL = 1
    """What fits on a page or two."""
    VERBOSE = 2
    """All there is."""


class EventKind(Code):
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
    IMPOSSIBLE = 11
    """At a time that was never set."""
    REPEATED = 12
    """Device work that stands in the file before."""


class DeviceClass(Code):
    """What a device event counts as in the partition of a step."""

    COMPUTE = 0
    COMM = 1
    MEM = 2


class ApiClass(Code):
    """What a runtime call does."""

    LAUNCH = 0
    COPY = 1
    ALLOC = 2
    OTHER = 3
    SYNC = 4


class SyncKind(Code):
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


class Cause(Code):
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

    @property
    def key(self) -> str:
        """What reports call it."""
        return self.name.lower()


BUSY_PARTS = ("compute", "communication", "memory_ops")
"""Exclusive parts of a step in which the device works; idle time is the rest."""
DISPATCH_CALLS = tuple(cause for cause in Cause if cause.key.startswith("dispatch_"))
"""The host is inside a runtime call that is no synchronisation, or the launch has not reached the device yet."""
DISPATCH = (*DISPATCH_CALLS, Cause.HOST_OP)
"""What every command calls dispatch: the host prepares or launches work."""
DEVICE_SIDE = (Cause.DEVICE_GAP, Cause.DEVICE_DEPENDENCY)
"""Work was launched, the device did not begin it."""
IDLE_PARTS: dict[str, tuple[Cause, ...]] = {
    "data_loading": (Cause.DATA_LOADING,),
    "sync": (Cause.SYNC,),
    "peer_wait": (Cause.PEER_WAIT,),
    "dispatch": DISPATCH,
    "device_side": DEVICE_SIDE,
    "untraced": (Cause.UNTRACED,),
}
"""Idle time by part; every cause is in one of them."""
IDLE_GROUPS = {
    "data_loading": (Cause.DATA_LOADING,),
    "sync": (Cause.SYNC,),
    "peer_wait": (Cause.PEER_WAIT,),
    "allocation": (Cause.DISPATCH_ALLOC,),
    "dispatch": tuple(cause for cause in DISPATCH if cause != Cause.DISPATCH_ALLOC),
    "device_gap": (Cause.DEVICE_GAP,),
    "device_dependency": (Cause.DEVICE_DEPENDENCY,),
    "untraced": (Cause.UNTRACED,),
}
"""Causes of idle time that sentences name as one."""
HEADLINE = (*BUSY_PARTS, "data_loading", "sync", "dispatch", "idle")
"""The parts a report opens with; `idle` is the rest of the idle time."""
HOST_PARTS = ("data_loading", "sync", "peer_wait", "api", "host_op", "untraced")
"""Exclusive parts of a step of which only the host was recorded."""
NEED_HOST_OPS = (Cause.DATA_LOADING, Cause.PEER_WAIT, Cause.HOST_OP)
"""Causes that no recording without host operators shows."""
NEED_RUNTIME = (Cause.SYNC, Cause.DISPATCH_COPY, Cause.DISPATCH_ALLOC, Cause.DISPATCH_OTHER)
"""Causes that a recording shows only if it has the calls themselves, not just the queue before them."""
NEED_CALLS = (Cause.SYNC, *DISPATCH_CALLS, *DEVICE_SIDE)
"""Causes that no recording without calls shows: launches tell what was queued, so without them the device side cannot
be told apart either."""

NEED_CLOCKS = (Cause.DISPATCH_LATENCY, *DEVICE_SIDE)
"""Causes that are told by when the launch returned, so that clocks of host and device must agree."""


class Phase(Code):
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
