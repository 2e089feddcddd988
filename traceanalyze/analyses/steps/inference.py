"""Prefill and decode of a language model's inference, and its steady state, by annotations that name iterations.

An iteration is a step in the sense of definitions §3 with its annotation as the marker: it lasts until the device is
done with what was launched before the next one, wherever that was launched. See `model/inference.py` for the names.
"""

from __future__ import annotations

from bisect import insort
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.results_host_more import Distribution, Inference, PhaseIterations, SteadyState
from traceanalyze.analyses.steps.steps import Markers, step_windows
from traceanalyze.frozen import frozen
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct
from traceanalyze.model.inference import STYLES, WORDS, InferencePhase, Iteration, iteration_style
from traceanalyze.model.phases import Role, op_role
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import EventKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context

TOLERANCE_PERCENT = 20


def longest_steady(values: Sequence[int]) -> tuple[int, int]:
    """Bounds `[first, stop)` of the longest run of positive values all within ±20 % of the run's median.

    Of several the first. Where no value of a run is more than 1.5 times another it may still not be steady, but where
    one is it never is, so few runs are looked at.
    """
    low, high = 100 - TOLERANCE_PERCENT, 100 + TOLERANCE_PERCENT
    best = (0, 0)
    for first in range(len(values)):
        if len(values) - first <= best[1] - best[0]:
            break
        ordered: list[int] = []
        for stop in range(first + 1, len(values) + 1):
            insort(ordered, values[stop - 1])
            if low * ordered[-1] > high * ordered[0]:
                break
            twice = ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]
            steady = 200 * ordered[0] >= low * twice and 200 * ordered[-1] <= high * twice
            if steady and stop - first > best[1] - best[0]:
                best = (first, stop)
    return best


FEWEST_ITERATIONS = 3
"""A run of fewer is no steady state."""


@frozen
class _Iterations:
    """Iterations in order of time."""

    told: tuple[Iteration, ...]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    host: NDArray[np.int64] | None
    busy: NDArray[np.int64] | None

    @property
    def time(self) -> NDArray[np.int64]:
        return self.end - self.start


def inference(context: Context) -> Inference | NotMeasured:
    """Iterations by phase, and the longest run of like ones; host annotations before those of the device."""
    for kind in (EventKind.ANNOTATION, EventKind.DEVICE_ANNOTATION):
        rows, style = _named(context, kind)
        if len(rows):
            markers = _markers(context, rows, style, on_device=kind == EventKind.DEVICE_ANNOTATION)
            found = _iterations(context, markers, STYLES[int(style.min())])
            return Inference(_phases(found), _steady(found), len(rows) - len(markers.start))
    return NotMeasured("no_inference_annotations")


def _named(context: Context, kind: EventKind) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Annotations named like iterations that begin in the analysed windows, and how they are named."""
    events = context.trace.events
    rows = np.flatnonzero(context.kind == kind)
    style = context.trace.strings.lookup(events.name[rows], iteration_style)
    known = (style < len(STYLES)) & intervals.contains(context.host_windows, events.ts[rows])
    if (known & (style == WORDS)).any() and _trains(context):
        known &= style != WORDS
    return rows[known], style[known]


def _trains(context: Context) -> bool:
    """Whether the recording has a backward pass."""
    ops = np.flatnonzero(context.kind == EventKind.HOST_OP)
    names = context.trace.events.name[ops]
    return bool(context.trace.strings.lookup(names, lambda text: op_role(text) & Role.BACKWARD).any())


def _markers(context: Context, rows: NDArray[np.int64], style: NDArray[np.int32], *, on_device: bool) -> Markers:
    """Outermost annotations of the style that tells most, on the thread that has most of them."""
    events = context.trace.events
    rows = rows[style == style.min()]
    tracks = distinct(events.track[rows])
    counts = [int((events.track[rows] == track).sum()) for track in tracks.tolist()]
    track = int(tracks[counts.index(max(counts))])
    rows = rows[events.track[rows] == track]
    start = events.ts[rows]
    end = start + events.dur[rows]
    order = np.lexsort((-end, start))
    rows, start, end = rows[order], start[order], end[order]
    outer = np.concatenate(([True], start[1:] >= np.maximum.accumulate(end)[:-1]))
    names = tuple(context.trace.strings.text(code) for code in events.name[rows[outer]].tolist())
    return Markers(names, start[outer], end[outer], -1 if on_device else track)


def _iterations(context: Context, markers: Markers, read: Callable[[str], Iteration | None]) -> _Iterations:
    """Windows of the iterations, and how long the device was busy in each."""
    windows = step_windows(markers, context.device, *context.ownership)
    device, busy = context.device, None
    if len(device):
        mine = device.device == context.devices[0]
        active = intervals.merge(device.start[mine], device.end[mine])
        busy = intervals.coverage(active, windows.start, windows.end)
    told = tuple(found for found in map(read, markers.name) if found is not None)
    host = None if markers.track < 0 else markers.end - markers.start
    return _Iterations(told, windows.start, windows.end, host, busy)


def _phases(found: _Iterations) -> tuple[PhaseIterations, ...]:
    phase = np.array([each.phase for each in found.told])
    return tuple(
        PhaseIterations(
            each,
            int((phase == each).sum()),
            _distribution(found.time[phase == each]),
            NotMeasured("no_annotations") if found.host is None else _distribution(found.host[phase == each]),
            NotMeasured("no_device_events") if found.busy is None else _distribution(found.busy[phase == each]),
        )
        for each in InferencePhase
        if (phase == each).any()
    )


def _distribution(time: NDArray[np.int64]) -> Distribution:
    p50, p90 = np.percentile(time, (50, 90)).round().astype(np.int64).tolist()
    total = int(time.sum())
    return Distribution(total, (2 * total + len(time)) // (2 * len(time)), p50, p90)


def _steady(found: _Iterations) -> SteadyState | NotMeasured:
    """Longest run of decode or of mixed iterations of one batch size and nearly one length."""
    best, at = (0, 0), 0
    time = found.time.tolist()
    for (phase, _), group in groupby(found.told, key=lambda each: (each.phase, each.requests)):
        size = len(list(group))
        if phase in {InferencePhase.DECODE, InferencePhase.MIXED} and size > best[1] - best[0]:
            first, stop = longest_steady(time[at : at + size])
            if stop - first > best[1] - best[0]:
                best = at + first, at + stop
        at += size
    first, stop = best
    if stop - first < FEWEST_ITERATIONS:
        return NotMeasured("no_steady_state")
    run = found.told[first:stop]
    tokens = [each.tokens for each in run if each.tokens is not None]
    requests = run[0].requests
    return SteadyState(
        phase=run[0].phase,
        start=int(found.start[first]),
        end=int(found.end[stop - 1]),
        iterations=stop - first,
        time=sum(time[first:stop]),
        requests=NotMeasured("not_in_name") if requests is None else requests,
        tokens=sum(tokens) if len(tokens) == len(run) else NotMeasured("not_in_name"),
    )
