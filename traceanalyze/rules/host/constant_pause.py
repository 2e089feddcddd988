import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.idle.pauses import pauses
from traceanalyze.model import intervals
from traceanalyze.model.columns import median
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.vocabulary import Cause, EventKind
from traceanalyze.replay.replay import Change
from traceanalyze.rules.common.host_ops import range_around
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Facts,
    Finding,
    Findings,
    Options,
    Scope,
    intervals_of,
    merged,
    rule,
)


@rule(
    "HST113",
    "constant-pause",
    title="a pause of the program",
    sentence={
        "": (
            "For {typical} at the same place of every step ({what}) the program launches nothing; the device is idle "
            "for {idle} {per} meanwhile."
        ),
        "busy": (
            "For {typical} at the same place of every step ({what}) the program launches nothing; the device has other "
            "work then, and what is launched after it comes later."
        ),
        "thread": (
            "For {typical} at the same place of every step ({what}) the program launches nothing, while another thread "
            "of it is in {other}; the device is idle for {idle} {per} meanwhile."
        ),
        "host": ("For {typical} at the same place of every step ({what}) the program is in no operator: {time} {per}."),
    },
    evidence={"typical": "typical length"},
    confidence=Confidence.MEDIUM,
    needs="DLO",
    host="O",
    advice=("find_pause",),
    advice_texts={
        "find_pause": (
            "Look for what happens there: a sleep, a poll, a lock, a file, a network, or work of the host; do it on "
            "another thread or not in every step."
        ),
        "split_thread": (
            "Have that thread begin earlier, or let what is launched next not wait for it; make its work faster."
        ),
    },
    options={"share": (0.01, "own: of the step; in less the program waits for nothing")},
)
def find(facts: Facts, options: Options) -> Findings:
    """The program launches nothing for the same time at the same place of every step.

    What it finds
        Stretches of 2 ms or more in which no launching thread does anything that is recorded, at the same place of
        every step and for the same time, between operators or inside a function that calls some: it waits, or works.
    Why it costs time
        Nothing is launched meanwhile, and with several ranks all others wait in the next collective.
    How it is measured
        The place is the line of the program where Python functions are recorded, else the operators before and after,
        and the innermost range of the program around it. Operators of another thread that take half of it are named.
        In every recorded step there is one, three at least, and their lengths lie within 2 % of their median. Its cost
        is the idle time of the device meanwhile; the saving is what a replay without the pause gains, also where the
        device has other work until then: a collective that begins later is waited for. A collection of garbage is no
        such pause: it comes when a counter is full, wherever the program is by then.
    What to do
        Look for what waits there: a sleep, a poll, a lock, a file or a network; record Python functions
        (`with_stack=True`) to see the line.

    References
        None.
    """
    if not facts.marked:
        return  # Nothing tells where a step begins, nor that work was wanted meanwhile (HST107).
    found, host = facts.context.once(pauses), facts.host_computes
    chosen = np.flatnonzero(found.constant & facts.inside(found.start))
    places = list(dict.fromkeys(found.place[at] for at in chosen.tolist()))
    each = group(np.array([places.index(found.place[at]) for at in chosen.tolist()], np.int64))
    for number, place in enumerate(places):
        member = chosen[each.of == number]
        pause = intervals.merge(found.start[member], found.end[member])
        spans = intervals_of(*facts.clip(intervals_of(*pause)))
        if not host:
            quiet = facts.clip(facts.idle(Cause.UNTRACED, Cause.HOST_OP))
            spans = intervals_of(*intervals.intersect(quiet, pause))
        time, length = facts.length(spans), found.end[member] - found.start[member]
        hidden = facts.share(time) < options.number("share")
        if hidden and (host or facts.share(facts.mean(int(length.sum()))) < options.number("share")):
            continue
        first = int(member[0])
        look = (int(found.start[first]), int(found.end[first]))
        name = ": ".join(filter(None, (range_around(facts, *look), place)))
        other = "" if host or hidden else _elsewhere(facts, pause)
        yield Finding(
            saving=time if host else None,
            change=None if host else Change(pause),
            cost=time,
            bound=facts.mean(int(length.sum())),
            draws="host.untraced" if host else "idle",
            intervals=spans,
            sentence="host" if host else "busy" if hidden else "thread" if other else "",
            evidence=(
                Evidence("typical", int(median(length)), "DURATION", *look),
                Evidence("what", name, "NAME"),
                Evidence("time", time, "DURATION") if host else Evidence("idle", time, "DURATION"),
                *((Evidence("other", other, "NAME"),) if other else ()),
            ),
            scope=Scope(ops=(name,)),
            count=len(member),
            advice=("split_thread",) if other else (),
        )


def _elsewhere(facts: Facts, pause: Intervals) -> str:
    """The operator that threads which launch nothing are longest in, where operators of theirs take half of a pause."""
    context = facts.context
    rows = facts.rows(EventKind.HOST_OP, lambda _: True, anywhere=True)
    rows = rows[~np.isin(context.trace.events.track[rows], [context.step_track, *context.threads])]
    inside = intervals.coverage(pause, *facts.spans(rows).T)
    busy = intervals.intersect(pause, merged(facts.spans(rows)))
    if 2 * intervals.total(busy) < intervals.total(pause):
        return ""
    each = group(context.trace.events.name[rows])
    return context.trace.strings.text(int(context.trace.events.name[rows[each.of == each.sum(inside).argmax()][0]]))
