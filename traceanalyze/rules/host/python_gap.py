from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.host.frames import lines_in, user_frames
from traceanalyze.analyses.idle.pauses import TIMES, pause_places, profiling
from traceanalyze.model import intervals
from traceanalyze.model.classify import is_peer_wait
from traceanalyze.model.columns import Rows
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import Cause, EventKind
from traceanalyze.rules.common.host_ops import NEARLY, own_ranges, range_around, waiting
from traceanalyze.rules.common.launching import LATE_HOST, at_least, excerpt, launching, recording
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

_BACKWARD = regex(r"^autograd::engine::evaluate_function")
_LATE = float(LATE_HOST["late"][0])
_ADVICE = {False: ("move_python", "record_stacks"), True: ("move_python", "host_light_run")}
"""By whether Python functions were recorded."""


@rule(
    "HST107",
    "python-gap",
    title="host work outside of operators",
    sentence={
        "": (
            "The device waits {idle} {per} while the host, outside of operators, works or waits itself; the longest "
            "stretch is {longest}."
        ),
        "place": (
            "The device waits {idle} {per} while the host, outside of operators, works or waits itself; the longest "
            "stretch, {longest}, is at {what}."
        ),
        "program_waits": (
            "The device waits {idle} {per} while the program itself waits for something ({what}), up to {longest} at a "
            "time."
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
        "unmarked_place": (
            "The device has nothing to do for {time} {per}, in stretches of 1 ms or more, up to {longest} ({what}): "
            "nothing was asked of it, or the host did work that the trace does not show. No step is marked that would "
            "tell."
        ),
        "host_unmarked": (
            "For {time} {per}, in stretches of 1 ms or more, up to {longest}, the host does nothing that the trace "
            "shows: it waited, or did work that was not recorded. No step is marked that would tell."
        ),
        "host_nothing": (
            "For {time} {per} the trace shows nothing that the host does: it waited, or worked in threads or "
            "libraries of which nothing was recorded."
        ),
        "waits": "The program itself waits for work, {time} {per}, up to {longest} at a time ({what}).",
        "host": (
            "The host spends {time} {per} outside of operators, in stretches of 1 ms or more; the longest is {longest}."
        ),
        "host_place": (
            "The host spends {time} {per} outside of operators, in stretches of 1 ms or more; the longest, "
            "{longest}, is at {what}."
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
        "wait_less": (
            "Have what it waits for done ahead, in other threads or processes that are fast enough, or do not wait for "
            "it here."
        ),
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
        tokenising, logging and other Python code, waiting, or a process that was not running.
    Why it costs time
        Nothing is launched meanwhile.
    How it is measured
        Idle time with the cause *untraced* (definitions §5), less what other findings explain, without what is done
        once (CGR106) and what the profiler recorded as its own overhead; where the host launches too slowly (HST101),
        without the Python between operators. With Python functions recorded, those that wait are named where they take
        half of it, else the lines of the program in the longest stretches, else functions of libraries: "most" is half
        or more at one of them. Recording Python functions makes them slower, so it saves at least what is gained where
        the host has no recording to do, as in HST101, and likely half of the rest. Else named are the operators around
        the longest stretch, and the innermost range of the program that it lies in. Where the host computes: stretches
        of its untraced time of 1 ms or more, outside of collectives on other threads; what is shorter is Python on its
        way from one operator to the next; where it stops now here and now there, its core may have had other work, and
        at least nothing is saved. Without step markers nothing tells whether work was wanted in stretches of 1
        ms or more: the saving is anything from 0 on, and they are a note where functions that wait (`queue.get`,
        `select`, `sleep`, `zmq_poll`) take most of them; other functions are work, and so is what lies in ranges of the
        program, unless they hold half of the recording. Between its backward passes work is wanted whatever it does.
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
        told = intervals.union(told, facts.merged(host.spans))
    spans = facts.idle(Cause.UNTRACED)
    told = intervals.union(told, facts.context.once(profiling))
    if len(told.start):
        spans = intervals_of(*intervals.subtract(merged(spans), told))
    unasked, spans = _unasked(facts, spans, options)
    yield from unasked
    saving = facts.length(spans)
    if not saving or facts.share(saving) < options.number("share"):
        return
    sentence, named, scope, (start, end) = _waits(facts, spans) or _named(facts, spans)
    # How much of it recording the Python functions in it took is not known: half of what that may be is the middle.
    least, recorded = cache(partial(at_least, facts, spans)), facts.context.once(user_frames).recorded
    yield Finding(
        saving=(saving + min(least(), saving)) // 2 if recorded else saving,
        at_least=least,
        bound=saving,
        draws="idle.untraced",
        intervals=spans,
        sentence=sentence,
        evidence=(
            Evidence("idle", saving, "DURATION"),
            Evidence("longest", end - start, "DURATION", start, end),
            *named,
        ),
        advice=("wait_less",) if sentence == "program_waits" else _ADVICE["lines" in sentence],
        scope=scope,
        count=len(spans),
    )


def _waits(facts: Facts, spans: Rows) -> tuple[str, tuple[Evidence, ...], Scope, tuple[int, int]] | None:
    """As `_named`, of stretches in half of which the program says that it waits."""
    rows = facts.once(waiting)
    functions = facts.spans(rows)
    if 2 * intervals.total(intervals.intersect(merged(functions), merged(spans))) < intervals.total(merged(spans)):
        return None
    start, end = spans[np.argmax(spans[:, 1] - spans[:, 0])].tolist()
    each = intervals.coverage(merged(spans), *functions.T)
    what = facts.names(rows[[int(each.argmax())]])
    return "program_waits", (Evidence("what", what[0], "NAME"),), Scope(ops=what), (start, end)


def _named(facts: Facts, spans: NDArray[np.int64]) -> tuple[str, tuple[Evidence, ...], Scope, tuple[int, int]]:
    """Sentence, evidence and scope of some stretches, and the longest.

    By the lines of the program in the middle of the longest ones, by functions of whatever library where it has none
    there; else by the place of the longest.
    """
    spans = spans[np.argsort(spans[:, 0] - spans[:, 1], kind="stable")][:MOST]
    start, end = spans[0].tolist()
    if taken := lines_in(facts.context, facts.context.step_track, spans):
        first = tuple(taken)[:3]
        named = (Evidence("line", first[0], "NAME", line=first[0]), Evidence("what", "; ".join(first), "TEXT"))
        most = 2 * taken[first[0]] >= int((spans[:, 1] - spans[:, 0]).sum())
        return ("lines" if most else "some_lines", named[: 2 - most], Scope(ops=first), (start, end))
    place = _place(facts, start, end)
    if not place:
        return "", (), Scope(), (start, end)
    return "place", (Evidence("what", place, "NAME"),), Scope(ops=(place,)), (start, end)


def _place(facts: Facts, start: int, end: int) -> str:
    """Operators around a stretch, and the innermost range of the program that it lies in."""
    context = facts.context
    (operators,) = pause_places(context, Intervals(np.array([start]), np.array([end])), context.step_track)
    return ": ".join(filter(None, (range_around(facts, start, end), operators)))


def _unasked(facts: Facts, spans: NDArray[np.int64], options: Options) -> tuple[list[Finding], NDArray[np.int64]]:
    """Of a recording without steps what may be no work kept back, and the other stretches.

    Inside a range of the program and between backward passes it works, unless the range or a function says that it
    waits.
    """
    context, long = facts.context, spans[:, 1] - spans[:, 0] >= options.number("stretch_ms") * 1e6
    if facts.marked or not long.any():
        return [], spans
    frames = context.once(user_frames)
    rows = facts.once(waiting)
    functions = facts.spans(rows)
    waits = long & (2 * intervals.coverage(merged(functions), *spans.T) >= spans[:, 1] - spans[:, 0])
    ranges = facts.once(own_ranges)[:, :2]
    # A range around all that a program does may hold the loop of a server.
    ranges = ranges[2 * (ranges[:, 1] - ranges[:, 0]) < intervals.total(facts.windows)]
    works = intervals.coverage(merged(ranges), *spans.T) >= NEARLY * (spans[:, 1] - spans[:, 0])
    # What is too little to be told apart stays with the others.
    works &= facts.share(facts.length(spans[works])) >= options.number("share")
    back = facts.spans(facts.rows(EventKind.HOST_OP, _BACKWARD, anywhere=True))
    if len(back):
        # Training has work to do: what it waits for there keeps it back.
        trains = (spans[:, 0] >= back[:, 0].min()) & (spans[:, 1] <= back[:, 1].max())
        works, waits = works | trains, waits & ~trains
    unknown = long & ~waits & ~works & (not frames.recorded)
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
            evidence=(Evidence("time", time, "DURATION"), Evidence("longest", end - start, "DURATION", start, end)),
            count=len(own),
        )
        if name == "waits":
            proof = tuple(Evidence("what", each, "NAME") for each in what)
            one = replace(one, evidence=one.evidence + proof, scope=Scope(ops=what), severity=Severity.INFO)
        else:
            draws = "host.untraced" if facts.host_computes else "idle.untraced"
            unsure, place = Confidence.LOW, tuple(filter(None, (_place(facts, start, end),)))
            one = replace(
                one, saving=time, low=0, bound=time, draws=draws, advice=("record_stacks",), confidence=unsure
            )
            where = tuple(Evidence("what", each, "NAME") for each in place)
            sentence = f"{name}_place" if place and name == "unmarked" else name
            one = replace(one, scope=Scope(ops=place), evidence=one.evidence + where, sentence=sentence)
        found.append(one)
    return found, spans[~unknown & ~waits]


def _on_host(facts: Facts, options: Options) -> Iterator[Finding]:
    """The same of a host that computes."""
    context = facts.context
    others = facts.spans(facts.rows(RANGES, is_peer_wait))
    not_own = intervals.union(intervals.merge(*others.T), facts.context.once(profiling))
    spans = intervals_of(*intervals.subtract(facts.clip(facts.host(Cause.UNTRACED)), not_own))
    spans = spans[spans[:, 1] - spans[:, 0] >= options.number("stretch_ms") * 1e6]
    unasked, spans = _unasked(facts, spans, options)
    yield from unasked
    time = facts.length(spans)
    if not len(spans) or facts.share(time) < options.number("share"):
        return
    recorded = facts.once(recording).threads.get(context.step_track, intervals.EMPTY)
    sentence, named, scope, (start, end) = _named(facts, spans)
    known = len(facts.host(*(cause for cause in Cause if cause != Cause.UNTRACED))) > 0
    sure = known and _comes_back(facts, spans)
    yield Finding(
        saving=time,
        low=time - facts.length(intervals_of(*intervals.intersect(recorded, merged(spans)))) if sure else 0,
        bound=time,
        confidence=None if sure else Confidence.LOW,
        draws="host.untraced",
        intervals=spans,
        sentence=f"host_{sentence}".removesuffix("_") if known else "host_nothing",
        evidence=(Evidence("time", time, "DURATION"), Evidence("longest", end - start, "DURATION", start, end), *named),
        advice=_ADVICE["lines" in sentence],
        scope=scope,
        count=len(spans),
    )


def _comes_back(facts: Facts, spans: NDArray[np.int64]) -> bool:
    """Whether half of some stretches is at places where the host stops in half of the steps; without steps three times.

    What stops it now here and now there is no line of the program: its core had other work, or garbage was collected.
    """
    places = pause_places(facts.context, Intervals(*spans.T), facts.context.step_track)
    few = facts.window.count < TIMES
    turn = np.arange(len(spans)) if few else np.searchsorted(facts.edges[0], spans[:, 0], "right")
    least = TIMES if few else max(2.0, facts.window.count / 2)
    seen: dict[str, set[int]] = {}
    for place, each in zip(places, turn.tolist(), strict=True):
        seen.setdefault(place, set()).add(each)
    length = spans[:, 1] - spans[:, 0]
    return bool(2 * length[[len(seen[place]) >= least for place in places]].sum() >= length.sum())
