"""Pauses of Python's garbage collector: recorded ones, else stretches in which the whole host stands still.

A collection holds the interpreter, so no thread of Python gets on: no operator, runtime call or Python function begins.
Suspected pauses are just such stretches, in which moreover the device is idle for no reason the trace shows; writing a
checkpoint or an evaluation outside of operators looks the same, hence the word.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.host.frames import user_frames
from traceanalyze.analyses.idle import idle
from traceanalyze.analyses.idle.host_state import host_states
from traceanalyze.analyses.idle.idle import analysed_time, idle_gaps, idle_pieces
from traceanalyze.analyses.results_host_more import GcPause, GcPauses
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Cause, EventKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context

GC_CATEGORY = "gc"
_FRAME = re.compile(r"(.*/)?gc\.py\(\d+\): |<built-in (function|method) collect\b|gc\.collect\b")
_ANNOTATION = re.compile(r"(python[ _.:-]*)?(gc|garbage[ _-]?collect(ion|or)?)([ _.:(\[#-].*)?", re.IGNORECASE)


def is_gc_category(category: str) -> bool:
    """A category of which every event is a run of the collector."""
    return category.lower() == GC_CATEGORY


def is_gc_frame(name: str) -> bool:
    """A Python function that collects garbage."""
    return _FRAME.match(name) is not None


def is_gc_annotation(name: str) -> bool:
    """A user annotation around a run of the collector."""
    return _ANNOTATION.fullmatch(name) is not None


RECORDED_NS = 1_000_000
"""Recorded collections from here on are pauses."""
SUSPECTED_NS = 10_000_000
STRONGLY_SUSPECTED_NS = 200_000_000


def gc_pauses(context: Context) -> GcPauses | NotMeasured:
    """Recorded pauses; where the collector was not recorded, suspected ones."""
    rows = _collector_rows(context)
    if len(rows):
        return _recorded(context, rows)
    source = "python" if context.once(user_frames).recorded else "nothing"
    if len(context.device) == 0 or len(context.op_nest) == 0:
        return NotMeasured("no_gc_events")
    return GcPauses(_suspected(context), source, 0, 0)


def _collector_rows(context: Context) -> NDArray[np.int64]:
    """Events of the collector."""
    events, strings, kind = context.trace.events, context.trace.strings, context.kind
    found = strings.lookup(events.cat, is_gc_category).astype(np.bool_)
    for which, test in ((EventKind.PYTHON, is_gc_frame), (EventKind.ANNOTATION, is_gc_annotation)):
        rows = np.flatnonzero(kind == which)
        found[rows] |= strings.lookup(events.name[rows], test).astype(np.bool_)
    return np.flatnonzero(found)


def _recorded(context: Context, rows: NDArray[np.int64]) -> GcPauses:
    """Collections of each thread that begin in the analysed windows; functions inside each other are one."""
    events = context.trace.events
    free = _idle(context)
    pauses, short, short_time = [], 0, 0
    for track in distinct(events.track[rows]).tolist():
        mine = rows[events.track[rows] == track]
        runs = intervals.merge(events.ts[mine], events.ts[mine] + events.dur[mine])
        counted = intervals.contains(context.host_windows, runs.start)
        start, end = runs.start[counted], runs.end[counted]
        long = end - start >= RECORDED_NS
        short += int((~long).sum())
        short_time += int((end - start)[~long].sum())
        count = int(long.sum())
        covered = [None] * count if free is None else intervals.coverage(free, start[long], end[long]).tolist()
        thread = _thread(context, track)
        pauses += [
            GcPause(begin, stop - begin, _step(context, begin), thread, inside, "recorded")
            for begin, stop, inside in zip(start[long].tolist(), end[long].tolist(), covered, strict=True)
        ]
    return GcPauses(tuple(sorted(pauses, key=lambda pause: pause.start)), "events", short, short_time)


def _idle(context: Context) -> Intervals | None:
    """Idle time of the headline device in the analysed steps."""
    if len(context.device) == 0:
        return None
    gaps = context.once(idle_gaps)
    return intervals.intersect(Intervals(gaps.start, gaps.end), context.once(analysed_time))


def _suspected(context: Context) -> tuple[GcPause, ...]:
    """Untraced idle time in which no launching thread does or begins anything."""
    pieces, _ = idle.clipped(context.once(idle_pieces), *context.once(analysed_time))
    unknown = pieces.cause == Cause.UNTRACED
    silent = _silence(context)
    hit = intervals.overlaps(silent, intervals.merge(pieces.start[unknown], pieces.end[unknown]))
    long = np.flatnonzero(hit.end - hit.start >= SUSPECTED_NS)
    found: dict[int, tuple[int, int]] = {}
    for stretch, begin, time in zip(
        hit.first[long].tolist(), hit.start[long].tolist(), (hit.end - hit.start)[long].tolist(), strict=True
    ):
        first, before = found.get(stretch, (begin, 0))
        found[stretch] = first, before + time
    thread = _thread(context, context.step_track)
    return tuple(
        _suspicion(context, int(silent.start[stretch]), int(silent.end[stretch]), thread, *seen)
        for stretch, seen in found.items()
    )


def _suspicion(context: Context, start: int, end: int, thread: str, begin: int, time: int) -> GcPause:
    evidence = "strongly_suspected" if time >= STRONGLY_SUSPECTED_NS else "suspected"
    return GcPause(start, end - start, _step(context, begin), thread, time, evidence)


def _silence(context: Context) -> Intervals:
    """Stretches in which no launching thread is in an operator or call, nor begins or ends anything at all."""
    every, events, kind = context.all_steps, context.trace.events, context.kind
    begin, end = int(every.start.min()), int(every.end.max())
    tracks = list(dict.fromkeys([context.step_track, *context.threads]))
    awake = intervals.union(*(context.once(host_states, track, True).spans for track in tracks))
    here = np.isin(events.track, [*tracks, context.once(user_frames).track(context.step_track)])
    rows = np.flatnonzero(here & ((kind == EventKind.PYTHON) | (kind == EventKind.ANNOTATION)))
    own = np.flatnonzero(here & (kind == EventKind.OVERHEAD))
    awake = intervals.union(awake, intervals.merge(events.ts[own], events.ts[own] + events.dur[own]))
    free = intervals.gaps(awake, begin, end)
    long = free.end - free.start >= SUSPECTED_NS
    free = Intervals(free.start[long], free.end[long])
    # Each edge cuts the stretch that it lies in: somebody was awake then.
    edges = distinct(np.concatenate((events.ts[rows], events.ts[rows] + events.dur[rows])))
    at = np.searchsorted(free.start, edges, "right") - 1
    inside = (at >= 0) & (edges > free.start[at]) & (edges < free.end[at]) if len(free.start) else at >= 0
    cuts = edges[inside]
    return Intervals(np.sort(np.concatenate((free.start, cuts))), np.sort(np.concatenate((free.end, cuts))))


def _step(context: Context, t: int) -> int | None:
    """Row of the step around an instant."""
    inside = np.flatnonzero((context.steps.start <= t) & (t < context.steps.end))
    return int(inside[0]) if len(inside) else None


def _thread(context: Context, track: int) -> str:
    """A thread by its name, else by process and thread id."""
    pid, tid = context.trace.track_text(track)
    return context.trace.thread_names.get((pid, tid)) or f"{pid}/{tid}"
