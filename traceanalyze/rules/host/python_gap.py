"""HST107: the host does something that the trace does not show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.model.vocabulary import Cause
from traceanalyze.rules.finding import Confidence, Evidence, Finding, Scope
from traceanalyze.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.rules.facts import Facts
    from traceanalyze.rules.rule import Options


@rule(
    "HST107",
    "python-gap",
    confidence=Confidence.MEDIUM,
    needs="DLO",
    advice=("move_python", "record_stacks"),
    options={"share": (0.10, "rules specification, own: untraced idle time from 10 % of the step on")},
    order=2,
)
def find(facts: Facts, options: Options) -> Iterator[Finding]:
    """The device waits while the host does something that the trace does not show.

    What it finds
        Idle time of the device in which no thread that launches is in an operator or a runtime call: pre-processing,
        tokenising, logging and other Python code, or a process that was not running.
    Why it costs time
        Nothing is launched meanwhile.
    How it is measured
        Idle time with the cause *untraced* (definitions §5), less what other findings explain. With Python functions
        recorded, the lines of the program around most of it are named.
    What to do
        Move the work to the data loader or to another thread. Without stacks: record them (`with_stack=True`).

    References
        None.
    """
    spans = facts.idle(Cause.UNTRACED)
    saving = facts.idle_mean(Cause.UNTRACED)
    if facts.share(saving) < options.number("share"):
        return
    longest = spans[np.argmax(spans[:, 1] - spans[:, 0])].tolist()
    work = facts.analysis.host_work
    lines = () if isinstance(work, NotMeasured) or isinstance(work.lines, NotMeasured) else work.lines
    busy = sorted((one for one in lines if one.idle), key=lambda one: -one.idle)[:3]
    yield Finding(
        saving=saving,
        bound=saving,
        draws="idle.untraced",
        intervals=spans,
        sentence="" if not busy else "lines",
        evidence=(
            Evidence("idle", saving, "DURATION"),
            Evidence("longest", longest[1] - longest[0], "DURATION", longest[0], longest[1]),
            *(Evidence("line", one.name, "NAME", line=one.name) for one in busy[:1]),
        ),
        advice=("move_python",) if busy else ("move_python", "record_stacks"),
        scope=Scope(ops=tuple(one.name for one in busy)),
        count=len(spans),
    )
