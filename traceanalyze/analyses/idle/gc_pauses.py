"""Pauses of Python's garbage collector: recorded ones, else stretches in which the whole host stands still.

A collection holds the interpreter, so no thread of Python gets on: no operator, runtime call or Python function begins.
Suspected pauses are just such stretches, in which moreover the device is idle for no reason the trace shows. What comes
at the same place in every step is a habit of the program (`pauses`), and none; writing a checkpoint or an evaluation
outside of operators looks the same, hence the word.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.frames import python_rows, user_frames
from traceanalyze.analyses.idle import idle
from traceanalyze.analyses.idle.idle import analysed_time, idle_gaps, idle_pieces
from traceanalyze.analyses.idle.launches import step_of
from traceanalyze.analyses.idle.pauses import SHRINKS, Pauses, pauses
from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct, rows_of
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, Value, declare, sentences
from traceanalyze.model.vocabulary import Cause, EventKind

_SAY = sentences(
    gc_recorded_sum=(
        "{count} pause(s) of 1 ms or more, {total} in all, the longest {longest}; the device is idle for {idle} of it."
    ),
    gc_suspected_sum=(
        "{count} suspected pause(s), {total} in all, the longest {longest}: every launching thread stands still, and "
        "the device is idle for {idle} of it. Any other work that the trace does not show looks the same."
    ),
    gc_source_nothing="Garbage collection itself was not recorded: no events of it and no Python functions.",
    gc_source_python=(
        "No call of the garbage collector is among the Python functions; collections that Python starts by itself "
        "never are."
    ),
    gc_host_sum="{count} pause(s) of 1 ms or more, {total} in all, the longest {longest}.",
    gc_short="Collections shorter than 1 ms: {count}, {total} in all.",
)

_PAUSES = declare(
    "gc_pauses",
    "Garbage collection: recorded or suspected pauses",
    Column("step", Kind.TEXT, "step in which the device fell idle; empty outside of the steps"),
    Column("start_ns", Kind.DURATION, "start, counted from the time base of the file", scale="at"),
    Column("length_ns", Kind.DURATION, "how long nothing else happened on the launching threads"),
    Column("idle_ns", Kind.DURATION, "of it, time the device was idle"),
    Column("evidence", Kind.TERM, "recorded, or suspected because the whole host stood still; strongly from 200 ms on"),
    Column("thread", Kind.NAME, "thread by its name, else process and thread id", minor=True),
    worst="length_ns",
)

GC_CATEGORY = "gc"
_FRAME = regex(r"(.*/)?gc\.py\(\d+\): |<built-in (function|method) collect\b|gc\.collect\b")
_ANNOTATION = regex(r"(python[ _.:-]*)?(gc|garbage[ _-]?collect(ion|or)?)([ _.:(\[#-].*)?", re.IGNORECASE)


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


def gc_pauses(context: Context) -> Table:
    """Recorded pauses; where the collector was not recorded, suspected ones.

    What was looked at is said even where there are none: events of the collector; Python functions, none of them of the
    collector; or nothing, where only suspicion is left.
    """
    recorded = context.once(recorded_pauses)
    if recorded is not None:
        return recorded
    if not may_pause(context):
        return _PAUSES.missing("no_gc_events", detail=True)
    source = Message(_SAY["gc_source_python"] if context.once(user_frames).recorded else _SAY["gc_source_nothing"])
    found = _filled(list(_suspected(context)))
    return replace(found, notes=(source, *_sums(found, _SAY["gc_suspected_sum"])))


def may_pause(context: Context) -> bool:
    """Whether there is what pauses would be told from where the collector was not recorded."""
    return len(context.device) > 0 and len(context.op_nest) > 0


_Pause: TypeAlias = dict[str, Value]
"""Cells of a row."""


def _pause(
    context: Context, start: int, end: int, idle: Value, evidence: str, *, track: int, at: int | None = None
) -> _Pause:
    """`at`: an instant of the step that the pause is counted in, its start if None."""
    step = int(step_of(context.steps, np.array([start if at is None else at]))[0])
    return {
        "step": context.once(_labels)[step] if step >= 0 else None,
        "start_ns": start,
        "length_ns": end - start,
        "idle_ns": idle,
        "evidence": evidence,
        "thread": _thread(context, track),
    }


def _labels(context: Context) -> tuple[str, ...]:
    """Of the steps."""
    return step_labels(context.steps.name)


def _filled(pauses: Sequence[_Pause]) -> Table:
    """Pauses in order of time."""
    return replace(_PAUSES.fill_records(pauses).sort("start_ns"), detail=not pauses)


def _sums(found: Table, key: str) -> list[Message]:
    """How many pauses there are and how long they are, if there are any."""
    lengths = [pause.length_ns for pause in found.records()]
    idle = [pause.idle_ns for pause in found.records() if not isinstance(pause.idle_ns, NotMeasured)]
    if not lengths:
        return []
    values = (
        ("count", Kind.COUNT, len(lengths)),
        ("total", Kind.DURATION, sum(lengths)),
        ("longest", Kind.DURATION, max(lengths)),
        ("idle", Kind.DURATION, sum(idle)),
    )
    return [Message(key if idle else _SAY["gc_host_sum"], values)]


def _collector_rows(context: Context) -> NDArray[np.int64]:
    """Events of the collector."""
    strings, rows = context.trace.strings, rows_of(context.kind, EventKind.ANNOTATION)
    named = rows[strings.matches(context.trace.events.name[rows], is_gc_annotation)]
    own = np.flatnonzero(strings.matches(context.trace.events.cat, is_gc_category))
    return distinct(np.concatenate((own, python_rows(context, is_gc_frame), named)))


def recorded_pauses(context: Context) -> Table | None:
    """Collections of each thread that begin in the analysed windows; functions inside each other are one.

    None where the collector was not recorded.
    """
    events, rows = context.trace.events, _collector_rows(context)
    if not len(rows):
        return None
    free = _idle(context)
    pauses: list[_Pause] = []
    short, short_time = 0, 0
    for track in distinct(events.track[rows]).tolist():
        own = rows[events.track[rows] == track]
        runs = events.active(own)
        counted = intervals.contains(context.host_windows, runs.start)
        start, end = runs.start[counted], runs.end[counted]
        long = end - start >= RECORDED_NS
        short += int((~long).sum())
        short_time += int((end - start)[~long].sum())
        start, end = start[long], end[long]
        covered = [None] * len(start) if free is None else intervals.coverage(free, start, end).tolist()
        for begin, stop, inside in zip(start.tolist(), end.tolist(), covered, strict=True):
            idle = NotMeasured("no_device_events") if inside is None else inside
            pauses.append(_pause(context, begin, stop, idle, "gc_recorded", track=track))
    found = _filled(pauses)
    notes = _sums(found, _SAY["gc_recorded_sum"])
    if short:
        notes.append(Message(_SAY["gc_short"], (("count", Kind.COUNT, short), ("total", Kind.DURATION, short_time))))
    return replace(found, notes=tuple(notes))


def _idle(context: Context) -> Intervals | None:
    """Idle time of the headline device in the analysed steps."""
    if len(context.device) == 0:
        return None
    gaps = context.once(idle_gaps)
    return intervals.intersect(Intervals(gaps.start, gaps.end), context.once(analysed_time))


def _habitual(context: Context, every: Pauses) -> NDArray[np.bool_]:
    """Stretches at a place that has more than a third of those that do not come back in every step, in several."""
    step = np.searchsorted(context.all_steps.host_start, every.start, "right").tolist()
    seen = dict.fromkeys(compress(zip(every.place, step, strict=True), (~every.recurs).tolist()))
    count = Counter(place for place, _ in seen)
    most = max(1.0, sum(count.values()) / 3)
    return np.array([count[place] > most for place in every.place], np.bool_)


def _suspected(context: Context) -> Iterator[_Pause]:
    """Untraced idle time in which no launching thread does or begins anything, neither at the same place in every step.

    Long ones, or shorter ones where the program mostly does not pause. None where long ones become shorter: the more
    objects there are, the longer a collection takes. None at a place of several: the program stops there every so many
    steps, to log or to save.
    """
    pieces, _ = idle.clipped(context.once(idle_pieces), *context.once(analysed_time))
    unknown = pieces.cause == Cause.UNTRACED
    every = context.once(pauses)
    scattered = bool(every.irregular.any())
    chosen = every.irregular if scattered else ~every.recurs & ~_habitual(context, every)
    start, end = every.start[chosen], every.end[chosen]
    hit = intervals.overlaps(Intervals(start, end), intervals.merge(pieces.start[unknown], pieces.end[unknown]))
    long = np.flatnonzero(hit.end - hit.start >= (1 if scattered else SUSPECTED_NS))
    found: dict[int, tuple[int, int]] = {}
    for stretch, begin, time in zip(
        hit.first[long].tolist(), hit.start[long].tolist(), (hit.end - hit.start)[long].tolist(), strict=True
    ):
        first, before = found.get(stretch, (begin, 0))
        found[stretch] = first, before + time
    length = (end - start)[list(found)]
    if not scattered and (length < SHRINKS * np.maximum.accumulate(length)).any():
        return
    for stretch, (begin, time) in found.items():
        evidence = "gc_strongly_suspected" if time >= STRONGLY_SUSPECTED_NS else "gc_suspected"
        yield _pause(
            context, int(start[stretch]), int(end[stretch]), time, evidence, track=context.step_track, at=begin
        )


def _thread(context: Context, track: int) -> str:
    """A thread by its name, else by process and thread id."""
    pid, tid = context.trace.track_text(track)
    return context.trace.thread_names.get((pid, tid)) or f"{pid}/{tid}"
