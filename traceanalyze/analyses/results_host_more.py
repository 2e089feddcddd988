"""Results of the analyses of garbage collection, of inference and of call paths.

Times are int64 ns over the analysed windows. Host events count by their start; device events as long as they run
inside the windows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from traceanalyze.model.inference import InferencePhase
    from traceanalyze.model.table import NotMeasured

OTHER_PROCESSES = "<other processes>"
"""In place of a call path: device events that another process of the recording launched."""


@frozen
class GcPause:
    """Time in which Python's garbage collector ran, or may have run."""

    start: int
    length: int
    step: int | None
    """Row of `Steps`; None outside of them."""
    thread: str
    idle: int | None
    """Of it, time the device was idle; None without a device."""
    evidence: str
    """`recorded`; `suspected`, or `strongly_suspected` from 200 ms on."""


@frozen
class GcPauses:
    """Pauses in order of time, all recorded or all suspected."""

    pauses: tuple[GcPause, ...]
    source: str
    """What was looked at: `events` of the collector; `python` functions, none of them of the collector; or `nothing`,
    where only suspicion is left."""
    short: int
    """Recorded runs too short for a row."""
    short_time: int


@frozen
class Distribution:
    """Total, mean, median and 90th percentile of some times."""

    total: int
    mean: int
    p50: int
    p90: int


@frozen
class PhaseIterations:
    """All iterations of one phase of inference."""

    phase: InferencePhase
    count: int
    time: Distribution
    """From the iteration's start to the end of its last device work (definitions §3, with iterations as markers)."""
    host: Distribution | NotMeasured
    """Of the annotation itself."""
    busy: Distribution | NotMeasured
    """As long as the headline device was busy during the iteration."""


@frozen
class SteadyState:
    """The longest run of like iterations."""

    phase: InferencePhase
    start: int
    end: int
    iterations: int
    time: int
    """Sum of the iterations; what lies between them belongs to none."""
    requests: int | NotMeasured
    """In each iteration."""
    tokens: int | NotMeasured
    """Into the model, in all iterations."""


@frozen
class Inference:
    """What annotations tell about inference."""

    phases: tuple[PhaseIterations, ...]
    steady: SteadyState | NotMeasured
    left_out: int
    """Ranges named like iterations that lie inside others, or on other threads."""


@frozen
class CallPath:
    """All runs of one call path: an operator or module by everything around it."""

    path: str
    """Names from the outermost inwards, with a semicolon between; in names it becomes a comma."""
    calls: int
    host_self: int
    """In none of the calls inside that are listed."""
    host_total: int
    device_self: int
    """Of the device events launched in it and in no listed call inside."""
    device_total: int
    launched: int
    """Device events behind `device_self`."""


@frozen
class HostMore:
    """All of these of a rank."""

    gc: GcPauses | NotMeasured
    inference: Inference | NotMeasured
    paths: tuple[CallPath, ...] | NotMeasured
    """Most device time first, then host time. The `device_self` add up to all device time."""
