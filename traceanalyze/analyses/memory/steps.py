"""The steps of the training loop in the history, their peaks and floors, and what every one of them leaves behind.

Steps begin where annotations say, else where something repeats outside the model.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.memory import EVENT, STEP
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.lifetimes import BEFORE, Curve
from traceanalyze.analyses.memory.sites import Site
from traceanalyze.model.classify import PROFILER_STEP
from traceanalyze.model.columns import distinct, median
from traceanalyze.model.phases import OPTIMIZER_STEP
from traceanalyze.model.snapshot import Action, History, Snapshot
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, declare

_MARKERS = (PROFILER_STEP, OPTIMIZER_STEP)
LEAST_STEPS = 3
"""Fewer repetitions are no loop (own; so are the other limits here)."""
REGULAR = 0.25
"""Coefficient of variation of the distances between repetitions."""
COVERAGE = 0.6
"""Share of the history between the first and the last repetition."""
LEAST_ANCHORS = 2
AGREEMENT = 0.2
"""How far the survivors' growth may be from the rise of the floor."""
LIKELY_STEPS = 5
TRIMMED_FROM = 4
"""With at least this many steps the first and the last are left out: they are often cut, or warm up."""
_STEPS = declare(
    "memory_steps",
    "Memory by step",
    STEP,
    EVENT,
    Column("peak_requested_bytes", Kind.MEMORY, "most requested bytes of live blocks during the step"),
    Column(
        "floor_bytes",
        Kind.MEMORY,
        "least requested bytes of live blocks during the step; it rises when memory leaks",
        heading="least requested",
    ),
    Column("reserved_bytes", Kind.MEMORY, "most bytes taken from the device during the step"),
    Column("allocations", Kind.COUNT, "blocks allocated during the step"),
    worst="peak_requested_bytes",
    detail=True,
)


class StepStarts(NamedTuple):
    """Event at which each step begins, ascending; the last one lasts until the dump."""

    first: NDArray[np.int64]
    name: tuple[str, ...]

    def at(self, event: int) -> str | None:
        """Name of the step that an event is in; None before the first."""
        step = int(np.searchsorted(self.first, event, "right")) - 1
        return self.name[step] if step >= 0 else None


def step_starts(device: Device) -> StepStarts:
    """Begin of every step."""
    return _by_annotation(device.snapshot, device.history) or _by_anchors(device.history, device.sites)


def step_marks(snapshot: Snapshot) -> tuple[tuple[str, int], ...]:
    """Begins of the profiler's steps: name and ns since 1970; they are in a trace of the same run, too."""
    notes = snapshot.annotations
    if notes is None:
        return ()
    return tuple(
        (name, time)
        for name, time, start in zip(notes.name, notes.time.tolist(), notes.start.tolist(), strict=True)
        if start and _MARKERS[0].match(name)
    )


def _by_annotation(snapshot: Snapshot, history: History) -> StepStarts | None:
    notes, time = snapshot.annotations, history.clock
    if notes is None or time is None or len(history) == 0:
        return None
    for marker in _MARKERS:
        marked = np.array([marker.match(name) is not None for name in notes.name], np.bool_) & notes.start
        rows = np.flatnonzero(marked & (notes.time >= time[0]) & (notes.time <= time[-1]))
        if len(rows) >= LEAST_STEPS:
            first = np.searchsorted(time, notes.time[rows], "left").astype(np.int64)
            return StepStarts(first, tuple(notes.name[row] for row in rows.tolist()))
    return None


def _by_anchors(history: History, sites: Sequence[Site]) -> StepStarts:
    """Allocations of one line and size that come back at regular distances, outside any module of the model.

    The layers of a model repeat just as regularly, hence nothing under a module call may be an anchor.
    """
    none = StepStarts(np.zeros(0, np.int64), ())
    allocs = np.flatnonzero(history.action == Action.ALLOC)
    outside = np.array([not site.in_module and not site.backward and site.path is not None for site in sites])
    allocs = allocs[outside[history.stack[allocs]]] if len(allocs) else allocs
    if len(allocs) < LEAST_STEPS:
        return none
    alike = group(history.stack[allocs], history.size[allocs])
    anchors: dict[int, list[NDArray[np.int64]]] = {}
    for number in np.flatnonzero(alike.count() >= LEAST_STEPS).tolist():
        events = allocs[alike.of == number]
        if _is_regular(events, len(history)):
            anchors.setdefault(len(events), []).append(events)
    agreed = {count: several for count, several in anchors.items() if len(several) >= LEAST_ANCHORS}
    if not agreed:
        return none
    chosen = max(agreed, key=lambda count: (len(agreed[count]), -count))
    first = min(agreed[chosen], key=lambda events: int(events[0]))
    return StepStarts(first, tuple(str(index) for index in range(len(first))))


def _is_regular(events: NDArray[np.int64], count: int) -> bool:
    distance = np.diff(events)
    covered = (int(events[-1]) - int(events[0])) * len(events) / (len(events) - 1)
    return bool(distance.std() < REGULAR * distance.mean() and covered >= COVERAGE * count)


class Leak(NamedTuple):
    """Blocks of one line that every step leaves behind."""

    line: str
    per_step: int
    """Median requested bytes that a step leaves."""
    steps: int
    confidence: str
    """likely (at least five steps) or suspected"""


def step_label(name: str | None) -> str | None:
    """The number of `ProfilerStep#5`, else the name."""
    found = PROFILER_STEP.fullmatch(name) if name else None
    return found[1] if found else name


def step_memory(device: Device) -> Table:
    """Peak and floor of every step."""
    starts = device.once(step_starts)
    if len(starts.first) == 0:
        return _STEPS.missing("no_memory_steps")
    allocations = np.append(0, np.cumsum(device.history.action == Action.ALLOC))
    return _STEPS.fill(
        step=[step_label(name) for name in starts.name],
        event=starts.first,
        peak_requested_bytes=_extremes(starts, device.active, np.max),
        floor_bytes=_extremes(starts, device.active, np.min),
        reserved_bytes=_extremes(starts, device.reserved, np.max),
        allocations=np.diff(allocations[np.append(starts.first, device.events)]),
    )


def _extremes(starts: StepStarts, curve: Curve, extreme: Callable[[NDArray[np.int64]], np.int64]) -> NDArray[np.int64]:
    """Lowest or highest value of a curve in each step; of a step without events the value before it."""
    bounds = [*starts.first.tolist(), len(curve.after)]
    return np.array(
        [int(extreme(curve.after[a:b])) if b > a else curve.at(a - 1) for a, b in pairwise(bounds)], np.int64
    )


def leaks(device: Device) -> tuple[Leak, ...] | NotMeasured:
    """Lines whose blocks survive from every step, most bytes first; together they must explain the floor's rise."""
    starts, lives = device.once(step_starts), device.lives
    steps = len(starts.first)
    if steps < LEAST_STEPS:
        return NotMeasured("no_memory_steps")
    trimmed = steps >= TRIMMED_FROM
    kept = range(1, steps - 1) if trimmed else range(steps)
    alive = np.flatnonzero((lives.end == device.events) & (lives.begin != BEFORE))
    step = np.searchsorted(starts.first, lives.begin[alive], "right") - 1
    alive, step = alive[step >= 0], step[step >= 0]
    found = []
    for stack in distinct(lives.stack[alive]).tolist():
        own = lives.stack[alive] == stack
        left = np.bincount(step[own], lives.requested[alive[own]], minlength=steps)[list(kept)]
        if stack >= 0 and (left > 0).all():
            found.append((stack, left.astype(np.int64)))
    # The first step also makes what stays for good, such as the optimizer's state.
    rises = np.diff(_extremes(starts, device.active, np.min)[1:])
    rise = median(rises) if len(rises) else 0.0
    growth = sum(median(left) for _, left in found)
    if rise <= 0 or abs(growth - rise) > AGREEMENT * rise:
        return ()
    confidence = "likely" if steps >= LIKELY_STEPS else "suspected"
    rows = [Leak(device.sites[stack].line, int(median(left)), len(left), confidence) for stack, left in found]
    return tuple(sorted(rows, key=lambda leak: -leak.per_step))
