from collections.abc import Iterator

from traceanalyze.model import intervals
from traceanalyze.model.vocabulary import DISPATCH, Cause
from traceanalyze.rules.common.host_ops import SlowViews, slow_views
from traceanalyze.rules.common.launching import at_least, held_collectives, launching
from traceanalyze.rules.ranking import HIGH
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Facts,
    Finding,
    Findings,
    Options,
    Scope,
    Severity,
    measured,
    rule,
)

VIEWS = 0.05
"""Of the step, as in HST114: from here on slow views of tensors are named."""
_ADVICE = "fewer_kernels", "graphs", "larger_batch", "host_light_run"


@rule(
    "HST101",
    "launch-bound",
    title="the host launches too slowly",
    sentence={
        "": (
            "The device waits {idle} {per} for the host to prepare and launch work; {late} of its idle time ends with "
            "work that was launched too late."
        ),
        "views": (
            "The device waits {idle} {per} for the host to prepare and launch work; {late} of its idle time ends with "
            "work that was launched too late. For {views} {per} the host is in operators that only view tensors, most "
            "of it in {what}: {times} times as long as such operators take elsewhere, as where Python takes part in "
            "each (a tensor subclass)."
        ),
        "comm": (
            "{count} collectives begin when the host launches them, after what they could run beside: for {exposed} "
            "{per} the device computes nothing meanwhile."
        ),
    },
    evidence={
        "late": "idle time ended by late launches",
        "depth": "median queue depth",
        "views": "slow views of tensors",
        "times": "times the usual duration",
    },
    confidence=Confidence.HIGH,
    needs="DLO",
    advice=_ADVICE,
    advice_texts={
        "plain_tensors": (
            "Give that operator plain tensors: wait for an asynchronous collective before its result is split or "
            "viewed, unwrap tensor subclasses (__torch_dispatch__, __torch_function__) once before many small ones."
        ),
        "host_light_run": (
            "Stacks and shapes slow the host down while recording: confirm with a recording without them."
        ),
    },
    options={
        "share": (0.10, "own: dispatch and host operators from 10 % of the step on"),
        "late": (0.20, "HTA: a fifth ends with work that was launched too late"),
    },
    order=2,
)
def find(facts: Facts, options: Options) -> Findings:
    """The device is idle because the host launches too slowly.

    What it finds
        Steps in which the queue runs empty: the next kernel is launched only after the device has become idle.
    Why it costs time
        Each operator costs the host some microseconds in Python, in torch and in the runtime. Where kernels are shorter
        than that, the device waits for the host, and a faster device would not help.
    How it is measured
        Idle time of the device in dispatch and host operators (definitions §5) from 10 % of the step on, while a fifth
        of the idle time ends with work launched meanwhile, or the median queue depth is 1 or less. The saving is that
        idle time with the Python between operators (stretches below 1 ms), less what other findings explain, and
        without work that is done once (CGR106). Where stacks, shapes or memory were recorded, it is at least what is
        gained where the host has no recording to do: 0.6 µs an operator, 1 µs a Python function. Operators that only
        view a tensor take some microseconds; where some take ten times as long as others, and 5 % of the step, the
        outermost operator around most of them is named. Where the device is hardly idle, collectives that begin when
        the host launches them, beside no compute, from a fifth of the step on, while the host dispatches for as long
        before: what a faster host gains there depends on what else they wait for, which is not recorded.

    What to do
        Fewer and larger kernels: fusion, `torch.compile`, a fused optimizer; CUDA graphs; a larger batch; less Python
        in the loop. Python stacks and shapes make the host slower while recording: confirm with a light recording.

    References
        PyTorch Performance Tuning Guide; Holistic Trace Analysis; MindStudio general performance issues.
    """
    host = facts.once(launching)
    if not host.bound(options.number("share"), options.number("late")):
        yield from _of_collectives(facts)
        return
    saving, views = facts.length(host.spans), facts.once(slow_views)
    if views is not None and facts.share(views.time) < VIEWS:
        views = None
    yield Finding(
        saving=saving,
        low=at_least(facts, host.spans),
        bound=facts.idle_mean(*DISPATCH, Cause.UNTRACED),
        draws="idle",
        intervals=host.spans,
        evidence=(
            Evidence("idle", saving, "DURATION"),
            Evidence("late", host.late, "SHARE"),
            *(() if host.depth is None else (Evidence("depth", host.depth, "NUMBER"),)),
            *(() if views is None else _of_views(views)),
        ),
        sentence="" if views is None else "views",
        advice=() if views is None else ("plain_tensors", *_ADVICE),
        scope=Scope(ops=() if views is None else (views.what,)),
        count=len(host.spans),
    )


def _of_collectives(facts: Facts) -> Iterator[Finding]:
    """Collectives that a late host launches when compute is over: their cost."""
    held = held_collectives(facts)
    exposed, busy = facts.length(held.spans), facts.mean(intervals.total(held.before))
    if facts.share(exposed) < HIGH or 2 * busy < exposed:
        return
    yield Finding(
        cost=exposed,
        intervals=held.spans,
        sentence="comm",
        evidence=measured(exposed=exposed, count=held.number),
        confidence=Confidence.MEDIUM,
        count=held.number,
        severity=Severity.MEDIUM,
    )


def _of_views(views: SlowViews) -> tuple[Evidence, ...]:
    return (
        Evidence("views", views.time, "DURATION", views.start, views.end),
        Evidence("what", views.what, "NAME"),
        Evidence("times", views.times, "NUMBER"),
    )
