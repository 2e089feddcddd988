from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.host.frames import locate, user_frames
from traceanalyze.analyses.idle.pauses import pause_places
from traceanalyze.model import intervals
from traceanalyze.model.classify import is_peer_wait, is_step_marker
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import Cause, EventKind
from traceanalyze.rules.common.launching import LATE_HOST, excerpt, launching
from traceanalyze.rules.common.one_off import one_off
from traceanalyze.rules.evaluate import MOST
from traceanalyze.rules.facts import RANGES
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Facts,
    Finding,
    Findings,
    Options,
    Scope,
    Severity,
    intervals_of,
    merged,
    rule,
)

_WAITS = regex(
    r"(^|/)(queue|threading|selectors|socket|ssl|connection|queues|synchronize)\.py\(\d+\): "
    r"(get|wait|acquire|join|_wait_for_tstate_lock|select|poll|_poll|accept|recv\w*|_recv\w*|readinto|read|__enter__)$"
    r"|^<built-in (method|function) (sleep|select|poll|acquire|recv\w*|accept|wait|epoll_wait|kqueue)\b"
)
"""Functions of Python in which a thread waits for another one, for the network or for the clock."""
_LATE = float(LATE_HOST["late"][0])
_ADVICE = {False: ("move_python", "record_stacks"), True: ("move_python", "host_light_run")}
"""By whether Python functions were recorded."""


@rule(
    "HST107",
    "python-gap",
    title="host work outside of operators",
    sentence={
        "": (
            "The device waits {idle} {per} for host work that the trace does not show; the longest stretch is "
            "{longest}."
        ),
        "place": (
            "The device waits {idle} {per} for host work that the trace does not show; the longest stretch, {longest}, "
            "is at {what}."
        ),
        "lines": (
            "The device waits {idle} {per} for host work outside of operators, most of it around {line}; the longest "
            "stretch is {longest}."
        ),
        "some_lines": (
            "The device waits {idle} {per} for host work outside of operators, above all around {what}; the longest "
            "stretch is {longest}."
        ),
        "unmarked": (
            "The device has nothing to do for {time} {per}, in stretches of 1 ms or more, up to {longest}: nothing was "
            "asked of it, or the host did work that the trace does not show. No step is marked that would tell."
        ),
        "host_unmarked": (
            "For {time} {per}, in stretches of 1 ms or more, up to {longest}, the host does nothing that the trace "
            "shows: it waited, or did work that was not recorded. No step is marked that would tell."
        ),
        "waits": "The program itself waits for work, {time} {per}, up to {longest} at a time ({what}).",
        "host": (
            "The host spends {time} {per} on work that the trace does not show, in stretches of 1 ms or more; the "
            "longest is {longest}."
        ),
        "host_place": (
            "The host spends {time} {per} on work that the trace does not show, in stretches of 1 ms or more; the "
            "longest, {longest}, is at {what}."
        ),
        "host_lines": (
            "The host spends {time} {per} outside of operators, in stretches of 1 ms or more, most of it around "
            "{line}; the longest is {longest}."
        ),
        "host_some_lines": (
            "The host spends {time} {per} outside of operators, in stretches of 1 ms or more, above all around {what}; "
            "the longest is {longest}."
        ),
    },
    confidence=Confidence.MEDIUM,
    needs="DLO",
    host="O",
    advice=("move_python", "record_stacks"),
    advice_texts={
        "move_python": (
            "Do this work less often, or in another thread meanwhile; what prepares data in the data loader's workers."
        ),
        "record_stacks": "Record with_stack=True once to see which lines they are.",
    },
    options={
        "share": (0.10, "own: untraced idle time from 10 % of the step on"),
        "stretch_ms": (1.0, "own: Python needs less than this between two operators"),
    },
    order=2,
)
def find(facts: Facts, options: Options) -> Findings:
    """The device waits while the host does something that the trace does not show.

    What it finds
        Idle time of the device in which no thread that launches is in an operator or a runtime call: pre-processing,
        tokenising, logging and other Python code, or a process that was not running.
    Why it costs time
        Nothing is launched meanwhile.
    How it is measured
        Idle time with the cause *untraced* (definitions §5), less what other findings explain, and without what is
        done once (CGR106); where the host launches too slowly (HST101), without the Python between operators. With
        Python functions recorded, the lines of the program around most of it are named: "most" is half or more at one
        of them. Recording Python functions makes them slower, so the saving is less without. Else named are the
        operators around the longest stretch, and the innermost range of the program that it lies in. Where the host
        computes: stretches of its untraced time of 1 ms or more, outside of collectives on other threads; what is
        shorter is Python on its way from one operator to the next. Without step markers nothing tells whether work was
        wanted in stretches of 1 ms or more: the saving is anything from 0 on, and they are a note where functions that
        wait (`queue.get`, `select`, `sleep`) take most of them; other functions are work.
    What to do
        Move the work to the data loader or to another thread. Without stacks: record them (`with_stack=True`).

    References
        None.
    """
    if facts.host_computes:
        yield from _on_host(facts, options)
        return
    if facts.once(excerpt):
        return
    host, told = facts.once(launching), facts.once(one_off).every
    if host.bound(options.number("share"), _LATE):
        told = intervals.union(told, merged(host.spans))
    spans = facts.idle(Cause.UNTRACED)
    if len(told.start):
        spans = intervals_of(*intervals.subtract(merged(spans), told))
    unasked, spans = _unasked(facts, spans, options)
    yield from unasked
    saving = facts.length(spans)
    if not saving or facts.share(saving) < options.number("share"):
        return
    start, end = spans[np.argmax(spans[:, 1] - spans[:, 0])].tolist()
    lines = [one for one in facts.analysis.records("source_lines") if one.device_idle_ns]
    busy = {one.line: one.device_idle_ns for one in sorted(lines, key=lambda one: -one.device_idle_ns)}
    whole = max(sum(busy.values()), saving * facts.window.count)
    sentence, named, scope = _named(facts, busy, whole, (start, end))
    yield Finding(
        saving=saving,
        bound=saving,
        draws="idle.untraced",
        intervals=spans,
        sentence=sentence,
        evidence=(
            Evidence("idle", saving, "DURATION"),
            Evidence("longest", end - start, "DURATION", start, end),
            *named,
        ),
        advice=_ADVICE[bool(busy)],
        scope=scope,
        count=len(spans),
    )


def _named(
    facts: Facts, taken: Mapping[str, int], whole: int, longest: tuple[int, int]
) -> tuple[str, tuple[Evidence, ...], Scope]:
    """Sentence, evidence and scope by the time at lines of the program, most first, of the whole; else by the place."""
    if taken:
        lines = tuple(taken)[:3]
        named = (Evidence("line", lines[0], "NAME", line=lines[0]), Evidence("what", "; ".join(lines), "TEXT"))
        most = 2 * taken[lines[0]] >= whole
        return ("lines", named[:1], Scope(ops=lines)) if most else ("some_lines", named, Scope(ops=lines))
    place = _place(facts, *longest)
    return ("place", (Evidence("what", place, "NAME"),), Scope(ops=(place,))) if place else ("", (), Scope())


def _place(facts: Facts, start: int, end: int) -> str:
    """Operators around a stretch, and the innermost range of the program that it lies in."""
    context = facts.context
    (operators,) = pause_places(context, Intervals(np.array([start]), np.array([end])), context.step_track)
    own = facts.rows(EventKind.ANNOTATION, lambda text: not is_step_marker(text, context.options.classify))
    begun, ended = context.trace.events.ts[own], context.trace.events.ts[own] + context.trace.events.dur[own]
    here = own[(begun <= start) & (end <= ended) & (context.trace.events.track[own] == context.step_track)]
    ranges = [context.trace.strings.text(int(context.trace.events.name[row])) for row in here[-1:]]
    return ": ".join(filter(None, (*ranges, operators)))


def _unasked(facts: Facts, spans: NDArray[np.int64], options: Options) -> tuple[list[Finding], NDArray[np.int64]]:
    """Of a recording without steps what may be no work kept back, and the other stretches."""
    context, long = facts.context, spans[:, 1] - spans[:, 0] >= options.number("stretch_ms") * 1e6
    if facts.marked or not long.any():
        return [], spans
    frames = context.once(user_frames)
    rows = facts.rows(EventKind.PYTHON, _WAITS, anywhere=True)
    rows = rows[context.trace.events.track[rows] == frames.track(context.step_track)]
    functions = facts.spans(rows)
    waits = long & (2 * intervals.coverage(merged(functions), *spans.T) >= spans[:, 1] - spans[:, 0])
    unknown = long & ~waits & (not frames.recorded)
    what = facts.names(rows[intervals.contains(merged(spans[waits]), functions.mean(axis=1).astype(np.int64))])[:1]
    found = []
    for own, name in (
        (spans[unknown], "host_unmarked" if facts.host_computes else "unmarked"),
        (spans[waits], "waits"),
    ):
        time = facts.length(own)
        if not time or facts.share(time) < options.number("share"):
            continue
        start, end = own[np.argmax(own[:, 1] - own[:, 0])].tolist()
        one = Finding(
            cost=time,
            intervals=own,
            sentence=name,
            evidence=(
                Evidence("time", time, "DURATION"),
                Evidence("longest", end - start, "DURATION", start, end),
            ),
            count=len(own),
        )
        if name == "waits":
            proof = tuple(Evidence("what", each, "NAME") for each in what)
            one = replace(one, evidence=one.evidence + proof, scope=Scope(ops=what), severity=Severity.INFO)
        else:
            draws = "host.untraced" if facts.host_computes else "idle.untraced"
            unsure = Confidence.LOW
            one = replace(one, saving=time, low=0, draws=draws, advice=("record_stacks",), confidence=unsure)
        found.append(one)
    return found, spans[~unknown & ~waits]


def _on_host(facts: Facts, options: Options) -> Iterator[Finding]:
    """The same of a host that computes."""
    context = facts.context
    others = facts.spans(facts.rows(RANGES, is_peer_wait))
    spans = intervals_of(*intervals.subtract(facts.clip(facts.host(Cause.UNTRACED)), intervals.merge(*others.T)))
    spans = spans[spans[:, 1] - spans[:, 0] >= options.number("stretch_ms") * 1e6]
    unasked, spans = _unasked(facts, spans, options)
    yield from unasked
    time = facts.length(spans)
    if not len(spans) or facts.share(time) < options.number("share"):
        return
    spans = spans[np.argsort(spans[:, 0] - spans[:, 1], kind="stable")]
    taken: dict[str, int] = {}
    for line, length in zip(
        locate(context, context.step_track, spans[:MOST].mean(axis=1).astype(np.int64))[2],
        (spans[:MOST, 1] - spans[:MOST, 0]).tolist(),
        strict=True,
    ):
        if line is not None:
            taken[line] = taken.get(line, 0) + length
    taken = dict(sorted(taken.items(), key=itemgetter(1), reverse=True))
    start, end = spans[0].tolist()
    whole = int((spans[:MOST, 1] - spans[:MOST, 0]).sum())
    sentence, named, scope = _named(facts, taken, whole, (start, end))
    yield Finding(
        saving=time,
        bound=time,
        draws="host.untraced",
        intervals=spans,
        sentence=f"host_{sentence}".removesuffix("_"),
        evidence=(
            Evidence("time", time, "DURATION"),
            Evidence("longest", end - start, "DURATION", start, end),
            *named,
        ),
        advice=_ADVICE[bool(taken)],
        scope=scope,
        count=len(spans),
    )
