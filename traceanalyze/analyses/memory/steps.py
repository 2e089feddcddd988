"""Where the steps of the training loop begin in the history: by annotations, else by what repeats outside the model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.frozen import frozen
from traceanalyze.model.snapshot import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.analyses.memory.sites import Site
    from traceanalyze.model.snapshot import History, Snapshot

_MARKERS = (re.compile(r"ProfilerStep#"), re.compile(r"Optimizer\.step#"))
LEAST_STEPS = 3
"""Fewer repetitions are no loop (memory-snapshot specification, D6; so are the other limits here)."""
REGULAR = 0.25
"""Coefficient of variation of the distances between repetitions."""
COVERAGE = 0.6
"""Share of the history between the first and the last repetition."""
LEAST_ANCHORS = 2


@frozen
class StepStarts:
    """Event at which each step begins, ascending; the last one lasts until the dump."""

    first: NDArray[np.int64]
    name: tuple[str, ...]
    source: str
    """annotations, anchors, or empty when there are no steps."""


def step_starts(snapshot: Snapshot, history: History, sites: Sequence[Site]) -> StepStarts:
    """Begin of every step."""
    found = _by_annotation(snapshot, history)
    return found if found is not None else _by_anchors(history, sites)


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
    notes = snapshot.annotations
    if notes is None or history.time is None or len(history) == 0:
        return None
    for marker in _MARKERS:
        rows = [row for row, name in enumerate(notes.name) if notes.start[row] and marker.match(name)]
        time = notes.time[rows]
        inside = (time >= history.time[0]) & (time <= history.time[-1])
        if int(inside.sum()) >= LEAST_STEPS:
            chosen = [row for row, ok in zip(rows, inside.tolist(), strict=True) if ok]
            first = np.searchsorted(history.time, notes.time[chosen], "left").astype(np.int64)
            return StepStarts(first, tuple(notes.name[row] for row in chosen), "annotations")
    return None


def _by_anchors(history: History, sites: Sequence[Site]) -> StepStarts:
    """Allocations of one line and size that come back at regular distances, outside any module of the model.

    The layers of a model repeat just as regularly, hence nothing under a module call may be an anchor.
    """
    none = StepStarts(np.zeros(0, np.int64), (), "")
    allocs = np.flatnonzero(history.action == Action.ALLOC)
    outside = np.array([not site.in_module and not site.backward and site.path is not None for site in sites])
    allocs = allocs[outside[history.stack[allocs]]] if len(allocs) else allocs
    if len(allocs) < LEAST_STEPS:
        return none
    key = np.stack((history.stack[allocs].astype(np.int64), history.size[allocs]))
    _, of, counts = np.unique(key, axis=1, return_inverse=True, return_counts=True)
    anchors: dict[int, list[NDArray[np.int64]]] = {}
    for group in np.flatnonzero(counts >= LEAST_STEPS).tolist():
        events = allocs[of.reshape(-1) == group]
        if _is_regular(events, len(history)):
            anchors.setdefault(len(events), []).append(events)
    agreed = {count: group for count, group in anchors.items() if len(group) >= LEAST_ANCHORS}
    if not agreed:
        return none
    chosen = max(agreed, key=lambda count: (len(agreed[count]), -count))
    first = min(agreed[chosen], key=lambda events: int(events[0]))
    return StepStarts(first, tuple(str(index) for index in range(len(first))), "anchors")


def _is_regular(events: NDArray[np.int64], count: int) -> bool:
    distance = np.diff(events)
    covered = (int(events[-1]) - int(events[0])) * len(events) / (len(events) - 1)
    return bool(distance.std() < REGULAR * distance.mean() and covered >= COVERAGE * count)
