import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.idle.idle import idle_gaps
from traceanalyze.model import intervals
from traceanalyze.model.columns import median, taken
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.replay.parts import last_part
from traceanalyze.rules.common.host_ops import calls_and_work, host_ops, ranges
from traceanalyze.rules.common.op_chains import names_under
from traceanalyze.rules.common.replay import into_few
from traceanalyze.rules.facts import RANGES
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Facts,
    Finding,
    Findings,
    Options,
    Scope,
    intervals_of,
    measured,
    merged,
    rule,
)

_LOOP_FRAME = regex(r"_single_tensor_\w+")
_FUSED_WORK = {"Adam": 7 / 20, "AdamW": 7 / 20, "Adagrad": 5 / 11, "SGD": 5 / 8}
"""Optimizers that have a fused form on the host → its passes over tensors in memory, over those of one by one; of SGD
with momentum: without it there is but one operator."""
_FORMS = {"Adam": 7 / 15, "AdamW": 7 / 15, "Adagrad": 5 / 11, "SGD": 5 / 8}
"""Those of torch that have a fused form → passes over the tensors in memory of its kernel, over those of the kernels of
a loop: of Adam 7 (4 read, 3 written) and 15."""
_STEP = regex(r"^Optimizer\.step#(\w+)\.step")
_LEFT_OF_LOOP = 0.06
"""Of the host's time in a loop over parameters, each launched by five operators: to collect and group them, once."""
_FUSED, _FOREACH, _MOMENTUM = (regex(each) for each in (r"_fused_", r"_foreach_", r"aten::(_foreach_)?mul_?$"))


@rule(
    "HST111",
    "optimizer-loop",
    title="optimizer that is not fused",
    sentence={
        "": "The optimizer runs {kernels} kernels {per} one by one: {time} of the device, {host} of the host.",
        "foreach": (
            "The optimizer runs in {kernels} kernels {per} over lists of tensors: {time} of the device, {host} of the "
            "host."
        ),
        "host": "The optimizer runs {operators} operators one by one, {time} {per}.",
        "host_foreach": "The optimizer runs {operators} operators for lists of tensors, {time} {per}.",
    },
    evidence={"operators": "operators a step"},
    confidence=Confidence.HIGH,
    needs="DLO",
    host="O",
    advice=("fused_optimizer",),
    advice_texts={
        "fused_optimizer.cuda": "Give the optimizer fused=True; where it has none, foreach=True.",
        "fused_optimizer.ascend": "Use the fused optimizers of torch_npu.optim (NpuFusedAdamW, NpuFusedSGD, …).",
        "fused_optimizer_host": (
            "Give the optimizer fused=True (CPU: torch 2.4 or newer); foreach=True is hardly faster."
        ),
    },
    options={
        "kernels": (50.0, "own: kernels a step in the optimizer; one over lists of tensors needs about ten"),
        "lists": (4.0, "own: kernels a step over lists of tensors; a fused optimizer needs one or two, too"),
        "short_us": (10.0, "own: their median"),
        "operators": (100.0, "as kernels, where the host computes"),
        "fused_calls": (0.2, "own measurement, torch 2.13 on the host: what is left of the time around the work"),
        "fused_calls_foreach": (0.35, "the same of foreach"),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """The optimizer updates parameters one by one, or list by list, instead of in fused kernels.

    What it finds
        Optimizer steps of many short kernels without `_foreach_*` or `_fused_*` operators; and those of `_foreach_*`
        operators, which gain less.
    Why it costs time
        Each elementary operation reads and writes all its tensors again, and each is a launch of its own.
    How it is measured
        Kernels launched in the steps of an optimizer that has a fused form (`Optimizer.step#…` or the Python function;
        Adam, AdamW, Adagrad, SGD), and in no other optimizer inside it: from 50 kernels a step on with a median below
        10 µs, or Python functions `_single_tensor_*`. The saving is the idle time before them while the host is in
        these steps, and their device time less what one fused kernel needs.
        Where the host computes: ranges `Optimizer.step#…` of optimizers that have a fused form there, with 100
        operators each or more. What operators take beyond 2 µs is their work, of which a fused one leaves what its
        passes over the tensors are of theirs; of the rest, less 0.6 µs an operator for the profiler, a fifth stays.
    What to do
        `fused=True`, else `foreach=True`; on Ascend the optimizers of `torch_npu.optim`. The lists of `foreach` cost
        memory for one more copy of the parameters; on the host they are a loop, too.

    References
        torch.optim; torch_npu.optim; PyTorch pattern matcher.
    """
    if facts.host_computes:
        yield from _on_host(facts, options)
        return
    for name, fused in _FORMS.items():
        one = _on_device(facts, name, fused, options)
        if one is not None:
            yield one


def _on_device(facts: Facts, name: str, fused: float, options: Options) -> Finding | None:
    """One optimizer of which a fused kernel does this part of the work over tensors in memory."""
    context = facts.context
    device, calls = context.device, context.calls
    inside = _own_time(facts, name)
    if not len(inside.start):
        return None
    asked = np.flatnonzero((context.issued_by >= 0) & facts.inside(device.start))
    asked = asked[facts.own_device[asked]]
    rows = asked[intervals.contains(inside, taken(calls.start, context.issued_by[asked]))]
    rows = rows[device.kind[rows] == EventKind.KERNEL]
    if not len(rows):
        return None
    op = context.event_op[rows]
    if names_under(facts, op, r"_fused_|Fused").any():
        return None
    listed = bool(names_under(facts, op, r"_foreach_").any())
    each = len(rows) / max(facts.window.count, len(inside.start))
    if each < options.number("lists" if listed else "kernels"):
        short = False
    else:
        short = listed or median((device.end - device.start)[rows]) < options.number("short_us") * 1e3
    if not (short or (not listed and len(facts.rows(EventKind.PYTHON, _LOOP_FRAME)))):
        return None
    if name == "SGD" and not names_under(facts, op, _MOMENTUM.pattern).any():
        fused = 1.0
    busy = intervals.merge(device.start[rows], device.end[rows])
    gaps, own = context.once(idle_gaps), np.zeros(len(device) + 1, np.bool_)
    own[rows] = True
    before = np.flatnonzero(own[gaps.event])  # None is -1, the place after the last one.
    # What the host did before the optimizer, in others that it calls or for other work is none of its launches.
    within = intervals.intersect(inside, facts.windows)
    free = intervals.intersect(Intervals(gaps.start[before], gaps.end[before]), within)
    work, idle = facts.clip(intervals_of(*busy)), intervals.total(free)
    time = intervals.total(work)
    left = options.number("fused_calls_foreach") if listed else _LEFT_OF_LOOP
    return Finding(
        saving=facts.mean(idle + round(time * (1 - fused))),
        change=into_few(facts, rows, 1 - fused)._replace(host=last_part(inside, 1 - left)),
        bound=facts.mean(idle + time),
        draws="",
        intervals=intervals_of(*intervals.union(work, free)),
        sentence="foreach" if listed else "",
        evidence=measured(
            kernels=round(len(rows) / facts.window.count),
            time=facts.mean(time),
            host=facts.mean(intervals.total(within)),
        ),
        count=len(rows),
    )


def _own_time(facts: Facts, name: str) -> Intervals:
    """When the host is in the steps of an optimizer, and in none of another one that it calls."""
    steps = facts.once(_steps)
    if not len(steps):
        frames = regex(rf"optim/{name.lower()}\.py\(\d+\): step$")
        return merged(facts.spans(facts.rows(EventKind.PYTHON, frames)))
    trace = facts.context.trace
    ours = trace.strings.matches(trace.events.name[steps], regex(rf"^Optimizer\.step#{name}\.step").search)
    mine, others = merged(facts.spans(steps[ours])), facts.spans(steps[~ours])
    # Others around it do not take it away.
    inner = intervals.coverage(mine, others[:, 0], others[:, 1]) >= others[:, 1] - others[:, 0]
    return intervals.subtract(mine, merged(others[inner]))


def _steps(facts: Facts) -> NDArray[np.int64]:
    """Steps of whatever optimizer."""
    return facts.rows(RANGES, _STEP)


def _on_host(facts: Facts, options: Options) -> Iterator[Finding]:
    """The same of operators on the host."""
    ops, strings = facts.once(host_ops), facts.context.trace.strings
    for name, share in _FUSED_WORK.items():
        inside = ranges(facts, re.compile(rf"^Optimizer\.step#{name}\.step$"))
        if not len(inside.start):
            continue
        called = ops.name[ops.inside(inside)]
        each = len(called) / len(inside.start)
        fused, foreach, momentum = (
            bool(strings.matches(called, known.search).any()) for known in (_FUSED, _FOREACH, _MOMENTUM)
        )
        if each < options.number("operators") or fused or (name == "SGD" and not momentum):
            continue
        calls, work = calls_and_work(facts, ops, inside)
        left = options.number("fused_calls_foreach" if foreach else "fused_calls")
        time = facts.length(intervals_of(*inside))
        yield Finding(
            saving=round(calls * (1 - left) + work * (1 - share)),
            bound=time,
            draws="host",
            intervals=intervals_of(*inside),
            sentence="host_foreach" if foreach else "host",
            evidence=(Evidence("operators", round(each), "COUNT"), Evidence("time", time, "DURATION")),
            advice=("fused_optimizer_host",),
            scope=Scope(ops=(f"Optimizer.step#{name}.step",)),
            count=len(called),
        )
