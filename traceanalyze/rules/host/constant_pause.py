import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.idle.pauses import pauses
from traceanalyze.model import intervals
from traceanalyze.model.vocabulary import Cause
from traceanalyze.replay.replay import Change
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, Scope, intervals_of, rule


@rule(
    "HST113",
    "constant-pause",
    title="a pause of the program",
    sentence={
        "": (
            "The program stands still for {typical} at the same place of every step ({what}); the device is idle for "
            "{idle} {per} meanwhile."
        ),
        "busy": (
            "The program stands still for {typical} at the same place of every step ({what}); the device is idle for "
            "{idle} {per} meanwhile, and what is launched after it comes later."
        ),
        "host": "The program stands still for {typical} at the same place of every step ({what}): {time} {per}.",
    },
    evidence={"typical": "typical length"},
    confidence=Confidence.MEDIUM,
    needs="DLO",
    host="O",
    advice_texts={
        "find_pause": (
            "Look for what waits there: a sleep, a poll, a lock, a file or a network; do it on another thread or not "
            "in every step."
        )
    },
    options={"share": (0.01, "own: of the step; in less the program waits for nothing")},
)
def find(facts: Facts, options: Options) -> Findings:
    """The program stands still for the same time at the same place of every step.

    What it finds
        Stretches of 2 ms or more in which every launching thread stands still, at the same place of every step and for
        the same time, between operators or inside a function that calls some.
    Why it costs time
        Nothing is launched meanwhile, and with several ranks all others wait in the next collective.
    How it is measured
        The place is the line of the program where Python functions are recorded, else the operators before and after.
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
        yield Finding(
            saving=time if host else None,
            change=None if host else Change(pause),
            cost=time,
            bound=facts.mean(int(length.sum())),
            draws="host.untraced" if host else "idle",
            intervals=spans,
            sentence="host" if host else "busy" if hidden else "",
            evidence=(
                Evidence("typical", int(np.median(length)), "DURATION", *look),
                Evidence("what", place, "NAME"),
                Evidence("time", time, "DURATION") if host else Evidence("idle", time, "DURATION"),
            ),
            scope=Scope(ops=(place,)),
            count=len(member),
        )
