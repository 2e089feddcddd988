import re
from collections.abc import Iterator

import numpy as np

from traceanalyze.analyses.idle.idle import idle_gaps
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import DeviceClass, EventKind
from traceanalyze.rules.common.host_ops import host_ops, ranges
from traceanalyze.rules.common.op_chains import inside_ranges
from traceanalyze.rules.common.replay import into_few
from traceanalyze.rules.facts import RANGES
from traceanalyze.rules.rule import (
    Confidence,
    Facts,
    Finding,
    Findings,
    Options,
    intervals_of,
    measured,
    merged,
    picked,
    rule,
)

_FILL, _LIST = regex(r"^aten::zero_$"), regex(r"^aten::_foreach_zero_$")
"""Of one tensor, and of a list, which on the host calls the other for each of them."""
_ZERO_GRAD = r"^Optimizer\.zero_grad#|optim.*: zero_grad|module\.py.*: zero_grad"


@rule(
    "HST112",
    "zero-grad-fill",
    title="gradients filled with zeros",
    sentence="zero_grad fills gradients with zeros, {count} time(s) in all: {time} {per}.",
    confidence=Confidence.HIGH,
    needs="DLO",
    host="O",
    advice=("set_to_none",),
)
def find(facts: Facts, options: Options) -> Findings:
    """Gradients are filled with zeros instead of dropped.

    What it finds
        Fills launched inside `zero_grad`.
    Why it costs time
        Each gradient is written once more, and the next backward pass adds to it instead of storing it.
    How it is measured
        Device time of the fills launched inside `Optimizer.zero_grad` ranges in which nothing else runs, and the idle
        time before each of them; where the host computes, the time of the fills.
    What to do
        `zero_grad(set_to_none=True)`, the default since torch 2.0.

    References
        PyTorch Performance Tuning Guide.
    """
    if facts.host_computes:
        yield from _on_host(facts)
        return
    context = facts.context
    device, calls = context.device, context.calls
    rows = np.flatnonzero((context.link >= 0) & facts.inside(device.start))
    call = context.issued_by[rows].astype(np.intp)
    rows = rows[inside_ranges(facts, calls.track[call], calls.start[call], _ZERO_GRAD)]
    fills = rows[device.kind[rows] != EventKind.MEMCPY]
    if len(fills) < facts.window.count:
        return
    chosen = np.zeros(len(device), np.bool_)
    chosen[fills] = True
    gaps = context.once(idle_gaps)
    before = (gaps.event >= 0) & chosen[gaps.event]
    starts = np.concatenate((device.start[fills], gaps.start[before]))
    spans = intervals_of(*facts.clip(intervals_of(starts, np.concatenate((device.end[fills], gaps.end[before])))))
    work, time = facts.length(picked(device.start, device.end, fills)), facts.length(spans)
    loops = facts.rows((*RANGES, EventKind.PYTHON), regex(_ZERO_GRAD))
    memset = bool((device.klass[fills] == DeviceClass.MEM).mean() > 0.5)
    yield Finding(
        saving=time,
        bound=time,
        change=into_few(facts, fills, 1.0)._replace(host=merged(facts.spans(loops))),
        draws="" if time > work else "mem_exposed" if memset else "compute",
        intervals=spans,
        evidence=measured(count=len(fills), time=time),
        count=len(fills),
    )


def _on_host(facts: Facts) -> Iterator[Finding]:
    """The same of operators on the host."""
    ops, matches = facts.once(host_ops), facts.context.trace.strings.matches
    inside = ops.inside(ranges(facts, re.compile(_ZERO_GRAD)))
    fills = matches(ops.name[inside], _FILL.search)
    count = int(fills.sum())
    if count < facts.window.count:
        return
    spans = ops.spans(inside[fills | matches(ops.name[inside], _LIST.search)])
    time = facts.length(spans)
    yield Finding(
        saving=time,
        bound=time,
        draws="host.ops",
        intervals=spans,
        evidence=measured(count=count, time=time),
        count=count,
    )
