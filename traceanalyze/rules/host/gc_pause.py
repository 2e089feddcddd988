from dataclasses import replace

import numpy as np

from traceanalyze.model.intervals import Intervals, merge
from traceanalyze.replay.replay import Change
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, intervals_of, rule


@rule(
    "HST104",
    "gc-pause",
    title="pauses of the garbage collector",
    sentence={
        "": (
            "Python's garbage collector ran {count} time(s) for 1 ms or more, {longest} at most; the device is idle "
            "for {idle} {per} meanwhile."
        ),
        "host": (
            "Python's garbage collector ran {count} time(s) for 1 ms or more, {longest} at most; it takes {time} {per}."
        ),
        "suspected": (
            "Every launching thread stands still {count} time(s), {longest} at most, as if Python collected garbage; "
            "the device is idle for {idle} {per} meanwhile."
        ),
    },
    confidence=Confidence.MEDIUM,
    needs="DLO",
    host="O",
    advice_texts={
        "freeze_gc": "gc.freeze() once after the set-up, and higher thresholds: gc.set_threshold(100_000, 50, 100).",
        "collect_together": "Or gc.disable() and gc.collect() every N steps, in the same step on all ranks.",
    },
    options={
        "least": (2.0, "own: suspected pauses recur"),
        "busy": (0.05, "own: of the step; a device that is hardly used waits for the program as a whole"),
    },
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Python's garbage collector stops the program.

    What it finds
        Recorded collections of 1 ms or more; where the collector is not recorded, two or more stretches of 10 ms or
        more in which every launching thread stands still and the device is idle for no reason that the trace shows, not
        at the same place of every step, and never much shorter than one before; or three or more of 2 ms or more in as
        many steps, at as many places that the program mostly passes without a pause, all about equally long.
    Why it costs time
        A collection holds the interpreter, so nothing is launched. With several ranks each collects at another time,
        and all wait for the slowest one in every collective.
    How it is measured
        Idle time of the device inside the pauses, and until the host is ahead again. Writing a checkpoint or an
        evaluation outside of operators looks like a suspected pause; so does a program that hardly uses the device,
        which is left out. Where the host computes: the length of recorded collections of 1 ms or more.
    What to do
        `gc.freeze()` after the set-up, higher thresholds; or disable the automatic collection and collect every N
        steps, on all ranks together.

    References
        Python `gc`; msprof-analyze advisor.
    """
    host = facts.host_computes
    pauses = [
        one
        for one in facts.analysis.records("gc_pauses")
        if (host or one.idle_ns) and facts.inside(np.array([one.start_ns]))[0]
    ]
    recorded = any(one.evidence == "gc_recorded" for one in pauses)
    # What happens once may be a checkpoint, or the end of the set-up.
    if not pauses or (not recorded and (len(pauses) < options.number("least") or not facts.marked)):
        return
    if not recorded and facts.window.share(facts.window.sum(facts.analysis.partitions[0].busy)) < options.number(
        "busy"
    ):
        return
    start = np.array([one.start_ns for one in pauses], np.int64)
    stop = start + np.array([one.length_ns for one in pauses], np.int64)
    pause = merge(start, stop)
    longest = max(pauses, key=lambda one: one.length_ns)
    time = facts.length(intervals_of(*pause)) if host else facts.mean(sum(one.idle_ns for one in pauses))
    found = Finding(
        saving=time,
        bound=time,
        draws="host" if host else "idle",
        intervals=intervals_of(*pause),
        sentence="host" if host else "" if recorded else "suspected",
        evidence=(
            Evidence("count", len(pauses), "COUNT"),
            Evidence("longest", longest.length_ns, "DURATION", longest.start_ns, longest.start_ns + longest.length_ns),
            Evidence("time", time, "DURATION") if host else Evidence("idle", time, "DURATION"),
        ),
        count=len(pauses),
        confidence=Confidence.HIGH if recorded else Confidence.MEDIUM,
    )
    yield found if host else _of_device(found, facts, pause, facts.per_step(stop - start))


def _of_device(found: Finding, facts: Facts, pause: Intervals, length: int) -> Finding:
    """With what the device gains without the pauses."""
    return replace(
        found, saving=None, cost=found.saving, bound=length, change=Change(pause), intervals=facts.overlap(pause)
    )
