"""Step windows: from the marker's start to the last device event the step launched (definitions §3)."""

import re
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.kernels.events import DeviceEvents
from traceanalyze.analyses.steps.window import Steps
from traceanalyze.model import intervals
from traceanalyze.model.classify import ClassifyOptions, marks_step
from traceanalyze.model.columns import Rows, median, occurs, rows_of
from traceanalyze.model.phases import (
    STYLES,
    WORDS,
    InferencePhase,
    Iteration,
    iteration_style,
    read_iteration,
    served_by,
)
from traceanalyze.model.trace import Trace
from traceanalyze.model.vocabulary import EventKind

COMPLETE_SHARE = 0.8
"""A step with fewer device events than this share of the median is incomplete (definitions §3)."""
_HOST_KINDS = (EventKind.ANNOTATION, EventKind.HOST_OP)


class Markers(NamedTuple):
    """Step markers sorted by time, and the thread they are on (-1 when they are device annotations)."""

    name: tuple[str, ...]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    track: int
    iterations: tuple[Iteration, ...] | None = None
    """What an inference server says of each; None where they mark steps of another program."""


def find_markers(
    trace: Trace, kind: NDArray[np.uint8], host: tuple[Rows, NDArray[np.int32]], options: ClassifyOptions
) -> Markers | None:
    """Markers on the thread that has most of them; equal-named nested ones count once, the outer. None without any.

    Without any, and without an expression of the user, iterations of an inference server are steps. `host`: rows of
    operators and annotations, and the codes of their names.
    """
    ranges, names = host
    # Of a trace of the device alone its own annotations are the only steps there are.
    alone = not len(ranges) and not occurs(kind, (EventKind.API, EventKind.PYTHON)).any()
    if alone:
        ranges = rows_of(kind, EventKind.DEVICE_ANNOTATION)
        names = trace.events.name[ranges]
    rows = ranges[trace.strings.matches(names, marks_step(options))]
    if len(rows):
        return outermost_markers(trace, rows, on_device=alone)
    return None if options.step_marker is not None else _iterations(trace, kind, ranges, on_device=alone)


def _iterations(trace: Trace, kind: NDArray[np.uint8], ranges: Rows, *, on_device: bool) -> Markers | None:
    """Iterations of an inference server by its annotations, without any by the function that its loop calls."""
    names = trace.events.name
    style = trace.strings.lookup(names[ranges], iteration_style)
    # What other programs call prefill and decode may be any part of their work.
    style[style == WORDS] = len(STYLES)
    rows = ranges[(style == style.min()) & (style < len(STYLES))] if len(ranges) else ranges
    if not len(rows):
        functions = np.flatnonzero(kind == EventKind.PYTHON)
        rows = functions[trace.strings.matches(names[functions], served_by)]
    if not len(rows):
        return None
    found = outermost_markers(trace, rows, on_device=on_device)
    said = tuple(read_iteration(name) or Iteration(InferencePhase.OTHER) for name in found.name)
    # All ranks of a server call the same iteration the same.
    return found._replace(name=tuple(f"iteration {number}" for number in range(len(said))), iterations=said)


def outermost_markers(trace: Trace, rows: Rows, *, on_device: bool) -> Markers:
    """Some events as markers: those of the thread that has most of them, of ones inside each other the outer."""
    track = int(np.bincount(trace.events.track[rows]).argmax())
    rows = rows[trace.events.track[rows] == track]
    start, end = trace.events.ts[rows], trace.events.ts[rows] + trace.events.dur[rows]
    order = np.lexsort((-end, start))
    rows, start, end = rows[order], start[order], end[order]
    # One that is mostly over when those before it end is inside; a begin a tick too early is what times are rounded to.
    reach = np.maximum.accumulate(end)
    outer = np.concatenate(([True], start[1:] + end[1:] >= 2 * reach[:-1]))
    names = tuple(trace.strings.texts(trace.events.name[rows[outer]]))
    return Markers(names, start[outer], end[outer], -1 if on_device else track)


def step_windows(
    markers: Markers, device: DeviceEvents, launch_start: NDArray[np.int64], linked: NDArray[np.bool_]
) -> Steps:
    """Windows of marked steps. `launch_start` is each device event's launch time (meaningful where `linked`)."""
    count = len(markers.start)
    owner = owners(markers, device.start, launch_start, linked)
    own = np.flatnonzero(owner >= 0)
    by = owner[own]
    owned, last_end = np.bincount(by, minlength=count), np.full(count, np.iinfo(np.int64).min)
    np.maximum.at(last_end, by, device.end[own])
    end = np.maximum(np.maximum(markers.start, markers.end), last_end)
    end[0] = max(end[0], lead_in := _leftover_end(markers, device, owner))
    end = np.maximum.accumulate(end)
    previous = np.concatenate(([lead_in], end[:-1]))
    start = np.maximum(markers.start, previous)
    between = int(np.maximum(markers.start - previous, 0)[1:].sum())
    marks, late = (markers.start, markers.end), int(start[0] - markers.start[0])
    early = np.bincount(by[device.start[own] >= start[by]], minlength=count) < COMPLETE_SHARE * owned
    # Batches differ as they may, and what is recorded of an iteration was recorded from its start to its end.
    whole = complete(owned) if markers.iterations is None else (owned > 0) | ~(owned > 0).any()
    found = Steps(markers.name, start, end, *marks, owned, whole, between, lead_in=late, early=early)
    return replace(found, iterations=markers.iterations)


def owners(
    markers: Markers, start: NDArray[np.int64], launch_start: NDArray[np.int64], linked: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Step that owns each of some device events, -1 for none."""
    if markers.track < 0:
        launch_start, linked = start, np.ones(len(start), np.bool_)
    owner = intervals.passed(markers.start, launch_start) - 1
    outside = (owner == len(markers.start) - 1) & (launch_start > markers.end[-1])
    owner[outside | ~linked] = -1
    return owner


def _leftover_end(markers: Markers, device: DeviceEvents, owner: NDArray[np.int64]) -> int:
    """E0: when work launched before recording ended, if that was before the first step's own work began."""
    first_owned = device.start[owner == 0]
    begin = int(markers.start[0])
    if len(first_owned) == 0:
        return begin
    before = (owner < 0) & (device.end <= first_owned.min())
    return max(begin, int(device.end[before].max())) if before.any() else begin


def complete(owned: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether a step has its events, of the device where there is one.

    A cut trace has many empty steps, so the median is that of the others.
    """
    some = owned[owned > 0]
    if len(owned) < 2 or len(some) == 0:
        return np.ones(len(owned), np.bool_)
    reference = median(some) if len(some) > 2 else some.max()
    return owned >= COMPLETE_SHARE * reference


def whole_window(start: int, end: int, *, owned: int) -> Steps:
    """The one pseudo-step of a trace without markers."""
    edge = np.array([start]), np.array([end])
    return Steps(("whole trace",), *edge, *edge, np.array([owned]), np.ones(1, np.bool_), between_steps=0, lead_in=0)


def ownership(
    trace: Trace, markers: Markers | None, device: DeviceEvents, time: NDArray[np.int64], known: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """When the program asked for each device event, also where only the step is known (Ascend): when that began.

    The step that the kernel table names, else the first one whose device window the event begins in. That window is
    the vendor's: from the first device event of the step to the last, or to the end of the marker.
    """
    if markers is None:
        return time, known
    time, known = _by_step(trace, markers, device, time, known)
    return (time, known) if known.all() else _by_window(markers, device, time, known)


def _by_step(
    trace: Trace, markers: Markers, device: DeviceEvents, time: NDArray[np.int64], known: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    step, known = trace.events.numbers("step", device.row), known.copy()
    for name, start in zip(markers.name, markers.start.tolist(), strict=True):
        number = re.search(r"(?<!\d)(\d{1,18})$", name)
        own = ~known & (step == int(number[1])) if number else np.zeros(len(known), np.bool_)
        time[own] = start
        known |= own
    return time, known


def _by_window(
    markers: Markers, device: DeviceEvents, time: NDArray[np.int64], known: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    known = known.copy()
    owner = np.where(known, np.searchsorted(markers.start, time, "right") - 1, -1)
    for index, (start, end) in enumerate(zip(markers.start.tolist(), markers.end.tolist(), strict=True)):
        own = owner == index
        if not own.any():
            continue
        begins = (device.start >= device.start[own].min()) & (device.start < max(int(device.end[own].max()), end))
        time[begins & ~known] = start
        known |= begins
    return time, known
