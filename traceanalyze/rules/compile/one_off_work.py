from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from traceanalyze.rules.common.one_off import one_off
from traceanalyze.rules.pricing import LEAST_SHARE
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, Severity, measured, rule


@rule(
    "CGR106",
    "one-off-work",
    title={
        "": "work that is done once",
        "compile": "compilation, done once",
        "capture": "capture of graphs, done once",
        "end": "nothing recorded at the end",
        "start_compile": "compilation, done once",
        "start_capture": "capture of graphs, done once",
    },
    sentence={
        "compile": "Compilation keeps the device waiting for {idle} {per} ({share} of it); compiled code is kept.",
        "capture": (
            "The capture of graphs keeps the device waiting for {idle} {per} ({share} of it); captured graphs are kept."
        ),
        "": (
            "The device waits {idle} {per} ({share} of the time), up to {longest} at a time, for work of the host that "
            "does not come back, as when libraries are loaded, memory is taken or kernels compiled for the first time."
        ),
        "end": (
            "After the last work of the last step nothing is recorded for {longest}, while the device waits: {idle} "
            "{per} ({share} of it)."
        ),
        "start_compile": (
            "In the {count} step(s) at the start, which no mean contains, compilation keeps the device waiting for "
            "{idle} a step; compiled code is kept."
        ),
        "start_capture": (
            "In the {count} step(s) at the start, which no mean contains, the capture of graphs keeps the device "
            "waiting for {idle} a step; captured graphs are kept."
        ),
        "start_first_use": (
            "In the {count} step(s) at the start, which no mean contains, the device waits {idle} a step for work of "
            "the host that does not come back, as when libraries are loaded."
        ),
    },
    confidence=Confidence.MEDIUM,
    needs="DO",
    advice=("record_later",),
    advice_texts={
        "one_step_less": "Leave the last step out (--steps), or record longer.",
        "record_later": "Record later steps: schedule(wait=…, warmup=…), or run the code a few times before recording.",
    },
    options={"least": (LEAST_SHARE, "as of every finding: of the step")},
    rare=True,
    order=-2,
)
def find(facts: Facts, options: Options) -> Findings:
    """The recording shows work that later steps do without.

    What it finds
        Compilation and the capture of graphs in the first recorded steps; libraries that are loaded, memory that is
        taken and kernels that are chosen when they are first used; the end of the recording.
    Why it costs time
        The device waits meanwhile. Steps after that are faster, so that this time is no measure of the program.
    How it is measured
        Idle time of the device during ranges and Python functions of the compiler, and between the calls that begin and
        end a capture, in fewer than three steps that follow each other. Besides, gaps of 10 ms or more that are a
        hundred times as long as the median gap, mostly dispatch and host operators, and do not come back; idle time
        during launches of 50 µs or more that are ten times as long as the median launch, each the first one of its
        kernel, and calls as long that ask what a kernel needs: they load its code; and idle time during calls that take
        memory, in one or two steps and no more than half of them, while none is given back later. So is what follows
        the last work of the last step, if nothing is recorded there for 10 ms and twice as long as anywhere else. Its
        cost is told, without a saving: a step, or, where the means leave the first steps out, in each of those.
    What to do
        Nothing in the program: record later steps.

    References
        torch.compiler documentation; torch.profiler, schedule.
    """
    for name, spans in facts.once(one_off)._asdict().items():
        idle = facts.length(spans)
        if not len(spans) or facts.share(idle) < options.number("least"):
            continue
        start, end = spans[np.argmax(spans[:, 1] - spans[:, 0])].tolist()
        yield Finding(
            cost=idle,
            once=True,
            sentence="" if name == "first_use" else name,
            intervals=spans,
            evidence=(
                *measured(idle=idle, share=facts.share(idle)),
                Evidence("longest", end - start, "DURATION", start, end),
            ),
            count=len(spans),
            severity=Severity.INFO,
            advice=("one_step_less",) if name == "end" else (),
        )
    yield from _of_the_start(facts, options.number("least"))


def _of_the_start(facts: Facts, least: float) -> Iterator[Finding]:
    """The same of the first steps where the means leave them out."""
    steps = facts.analysis.steps
    if steps.starting is None or not (steps.starting & steps.complete).any():
        return
    start = Facts(facts.analysis._replace(steps=replace(steps, starting=~steps.starting)), facts.context)
    for name, spans in start.once(one_off)._asdict().items():
        idle = start.length(spans)
        if name == "end" or not len(spans) or start.share(idle) < least:
            continue
        longest = spans[np.argmax(spans[:, 1] - spans[:, 0])].tolist()
        yield Finding(
            cost=idle,
            once=True,
            sentence=f"start_{name}",
            evidence=(Evidence("idle", idle, "DURATION", *longest), *measured(count=start.window.count)),
            count=len(spans),
            severity=Severity.INFO,
        )
