from collections.abc import Iterator
from functools import partial

import numpy as np

from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.vocabulary import DISPATCH, ApiClass, Cause
from traceanalyze.rules.common.computing import fits
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
    intervals_of,
    measured,
    rule,
)

VIEWS = 0.05
"""Of the step, as in HST114: from here on slow views of tensors are named."""
UNIT, REPEATS = 32, 10
"""A loop over the parts of a batch calls so few operators for each, and does so often."""
_PART, _LAYER = r"^aten::(select|index|unbind|item)$", r"linear|mm$|matmul|einsum|conv|attention|lstm|gru|_rnn"
"""What picks a part of a tensor, and what layers of a model do, which come again as well."""
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
        outermost operator around most of them is named. Where calls that wait were not recorded, what follows them may
        be theirs: the saving is then not certain. Where half of it is in loops over parts of a tensor (the same few
        operators ten times or more, none of them a layer's), these come first. Where the device is hardly idle,
        collectives that begin when the host launches them, beside no compute, from a fifth of the step on, while the
        host dispatches for as long before: what a faster host gains there depends on what else they wait for, which is
        not recorded.

    What to do
        Fewer and larger kernels: one operator in place of a loop, fusion, `torch.compile`, a fused optimizer; CUDA
        graphs; a larger batch; less Python in the loop. Python stacks and shapes make the host slower while recording:
        confirm with a light recording.

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
    looped = 2 * facts.length(intervals_of(*intervals.intersect(facts.clip(host.spans), _loops(facts)))) >= saving
    yield Finding(
        saving=saving,
        # Where waits were not recorded, what follows them may be theirs.
        low=None if facts.context.waits_lost is None else 0,
        at_least=partial(at_least, facts, host.spans) if facts.context.waits_lost is None else None,
        confidence=None if facts.context.waits_lost is None else Confidence.LOW,
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
        advice=(*(() if views is None else ("plain_tensors",)), *(("vectorise",) if looped else ()), *_ADVICE),
        scope=Scope(ops=() if views is None else (views.what,)),
        count=len(host.spans),
    )


def _loops(facts: Facts) -> Intervals:
    """When the steps' thread calls a few operators on a part of a tensor, and the same on the next, again and again."""
    context, nest = facts.context, facts.context.op_nest
    own = nest.of(context.step_track)
    top = own.start + np.flatnonzero(nest.parent[own] < 0)
    names = context.trace.events.name[nest.row[top]]
    part, layer = (np.append(0, np.cumsum(fits(facts, names, each))) for each in (_PART, _LAYER))
    if not part[-1]:
        return intervals.EMPTY
    # Of those that launch nothing a coarse clock does not tell the order.
    asked = context.call_op[(context.calls.track == context.step_track) & (context.calls.klass == ApiClass.LAUNCH)]
    at = np.searchsorted(top, distinct(asked[asked >= 0]), "right") - 1
    at = distinct(at[at >= 0])
    name, found = names[at], intervals.EMPTY
    for unit in range(1, UNIT + 1):
        same = np.flatnonzero(np.diff(np.concatenate(([0], name[unit:] == name[:-unit], [0]))))
        first, last = same[::2], same[1::2] + unit - 1
        times = (last - first + 1) // unit
        first, last = at[first], at[last]
        loop = (times >= REPEATS) & (part[last + 1] - part[first] >= times) & (layer[last + 1] == layer[first])
        found = intervals.union(found, intervals.merge(nest.start[top[first[loop]]], nest.end[top[last[loop]]]))
    return found


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
