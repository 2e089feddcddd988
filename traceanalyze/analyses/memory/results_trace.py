"""What a snapshot and a trace of the same run tell together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from traceanalyze.model.vocabulary import Phase


@frozen
class Spot:
    """A place in the program."""

    phase: Phase | None
    """None where nothing was recorded that tells phases."""
    op: str | None
    module: str | None


@frozen
class Placed:
    """A moment of the allocator, or its calls to the device of one kind at one place. Bytes and ns."""

    kind: str
    """peak, reserved_peak or oom; of calls: growth, or `ReleaseRun.kind`."""
    spot: Spot | None
    """None where the moment lies outside of what the trace recorded."""
    steps: tuple[str, ...]
    """Names of the steps, in order; empty between steps, and in a trace without steps."""
    count: int
    request: int | None
    """What the program asked for at that moment, of calls the most; None where nothing tells."""
    requested: int | None
    """In use just after the moment; None of calls."""
    grown: int
    """Taken from the device; 0 of moments."""
    released: int
    """Given back to it; 0 of moments."""
    idle: int | None
    """Idle time of the device that the calls caused; None of moments, and in a trace without device work."""


@frozen
class InTrace:
    """Moments and calls of one device's allocator, placed in the trace of its rank."""

    clock: str
    """absolute (the times of both files) or marks (the steps that both have marked)"""
    shift: int
    """ns added to the snapshot's times to get those of the trace."""
    moments: tuple[Placed, ...]
    """As in `AllocatorAnalysis.moments`, without the dump and what was before the history."""
    calls: tuple[Placed, ...]
    """Calls inside the trace, most idle time first."""
    outside: int
    """Calls before or after what the trace recorded; together with the counts of `calls` they are `all_calls`."""
    all_calls: int
