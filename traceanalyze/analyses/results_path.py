"""What the critical path of the analysed steps is returned as. Times int64 ns."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class PathKind(IntEnum):
    """What a segment of the critical path is spent on; the order is the order of reports."""

    COMPUTE = 0
    COMM = 1
    MEM = 2
    """Copies and fills."""
    DEVICE_GAP = 3
    """Between the event that was waited for and the next, at most τ."""
    DEVICE_DEPENDENCY = 4
    """The same, longer: the device waited for something that the trace does not show."""
    LAUNCH_LATENCY = 5
    """From the return of a launch call to the start of its event, at most τ."""
    DATA_LOADING = 6
    PEER_WAIT = 7
    RUNTIME_CALL = 8
    """Launches and other runtime calls, and the return from a call that waited for the device; never the wait."""
    HOST_OP = 9
    UNTRACED = 10


@frozen
class PathSegments:
    """Segments of the path in order of time; those of a step tile its window exactly."""

    step: NDArray[np.int64]
    """Row of `Steps`."""
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    kind: NDArray[np.uint8]
    """`PathKind`"""
    name: NDArray[np.int32]
    """String code of the device event, runtime call or innermost operator; -1 for the other kinds."""

    def __len__(self) -> int:
        return len(self.start)


@frozen
class PathPlace:
    """All segments of one kind and name, over the analysed steps."""

    kind: PathKind
    name: str | None
    """None where nothing has a name: latency, gaps, data loading, untraced time."""
    count: int
    """Segments."""
    time: int
    longest: int


@frozen
class CriticalPath:
    """The chain of work, on host and device, that the end of each step waited for."""

    by_step: NDArray[np.int64]
    """(steps, len(PathKind)); rows sum to the step times."""
    segments: PathSegments
    places: tuple[PathPlace, ...]
    """Most time first."""
