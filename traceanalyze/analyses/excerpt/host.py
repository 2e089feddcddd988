"""The host's part of a picture of the trace: step markers, operators by depth, runtime calls."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.excerpt.boxes import Lane, LaneKind, Spans, boxes
from traceanalyze.analyses.host.nesting import nest_rows
from traceanalyze.analyses.idle.host_state import is_sync_call
from traceanalyze.model.classify import is_data_loading, is_peer_wait, is_step_marker
from traceanalyze.model.columns import distinct
from traceanalyze.model.vocabulary import ApiClass, EventKind

Window = tuple[int, int]

LEVELS = 4
"""Levels of operators drawn of the step thread."""
_OTHER_LEVELS = 1
_OPS = ("host_op", "annotation", "data_loading", "peer_wait")
_CALLS = tuple(f"api_{klass.name.lower()}" for klass in ApiClass)


def host_lanes(context: Context, window: Window) -> tuple[list[Lane], int]:
    """Lanes of the step thread and of the busiest other launching thread, and how many threads are not drawn."""
    ops, calls = _ops(context, window), _calls(context, window)
    track = context.trace.events.track
    active = distinct(np.concatenate((track[ops], context.calls.track[calls]))).tolist()
    step = context.step_track
    others = [each for each in context.threads if each in active and each != step]
    other = sorted(others, key=lambda one: -_time(context, calls, one, window))[:1]
    drawn = {step: LEVELS} if step in active else {}
    drawn |= dict.fromkeys(other, _OTHER_LEVELS)
    lanes = _step_lane(context, window)
    for each, levels in drawn.items():
        lanes += _thread(
            context, window, each, ops[track[ops] == each], calls[context.calls.track[calls] == each], levels
        )
    return lanes, len(set(active) - set(drawn))


def _ops(context: Context, window: Window) -> NDArray[np.int64]:
    """Rows of operators and annotations in the window, without step markers."""
    events, strings = context.trace.events, context.trace.strings
    rows = context.host_rows
    start = events.ts[rows]
    rows = rows[(start < window[1]) & (start + events.dur[rows] > window[0])]
    return rows[~strings.matches(events.name[rows], lambda text: is_step_marker(text, context.options.classify))]


def _calls(context: Context, window: Window) -> NDArray[np.int64]:
    """Positions of outermost runtime calls in the window."""
    calls = context.calls
    return np.flatnonzero((calls.start < window[1]) & (calls.end > window[0]) & calls.outermost)


def _time(context: Context, calls: NDArray[np.int64], track: int, window: Window) -> int:
    """Time that a thread spends in runtime calls."""
    own = calls[context.calls.track[calls] == track]
    start, end = context.calls.start[own], context.calls.end[own]
    return int((np.minimum(end, window[1]) - np.maximum(start, window[0])).sum())


def _step_lane(context: Context, window: Window) -> list[Lane]:
    markers = context.markers
    if markers is None:
        return []
    inside = np.flatnonzero((markers.start < window[1]) & (markers.end > window[0]))
    if not len(inside):
        return []
    names = markers.name
    spans = Spans(markers.start[inside], markers.end[inside], inside, np.zeros(len(inside), np.uint8))
    return [Lane(LaneKind.STEPS, "", boxes(spans, window, ("step",), names.__getitem__))]


def _thread(
    context: Context, window: Window, track: int, ops: NDArray[np.int64], calls: NDArray[np.int64], levels: int
) -> list[Lane]:
    """Levels of operators, outermost first, and the runtime calls below them."""
    text, name = context.trace.strings.text, _thread_name(context, track)
    tree = nest_rows(context.trace, ops, context.kind)
    depth = tree.depth
    spans = Spans(tree.start, tree.end, context.trace.events.name[tree.row], _op_kinds(context, tree.row))
    lanes = []
    for level in range(levels):
        drawn = boxes(spans.taken(depth == level), window, _OPS, text)
        if drawn:
            lanes.append(Lane(LaneKind.OPS, name, drawn, track, level))
    if lanes:
        last = lanes.pop()
        hidden = int(((depth >= levels) & (tree.start < window[1]) & (tree.end > window[0])).sum())
        lanes.append(Lane(last.kind, name, last.boxes, track, last.depth, hidden))
    every = context.calls
    klass = np.where(context.once(is_sync_call)[calls], np.uint8(ApiClass.SYNC), every.klass[calls])
    drawn = boxes(Spans(every.start[calls], every.end[calls], every.name[calls], klass), window, _CALLS, text)
    return [*lanes, Lane(LaneKind.CALLS, name, drawn, track)] if drawn else lanes


def _op_kinds(context: Context, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Index into `_OPS` of each event."""
    names, classify = context.trace.events.name[rows], context.options.classify

    def special(text: str) -> int:
        return 2 if is_data_loading(text, classify) else 3 if is_peer_wait(text) else 0

    named = context.trace.strings.lookup(names, special)
    return np.where(named > 0, named, context.kind[rows] == EventKind.ANNOTATION).astype(np.uint8)


def _thread_name(context: Context, track: int) -> str:
    key = context.trace.track_text(track)
    return context.trace.thread_names.get(key) or key[1]
