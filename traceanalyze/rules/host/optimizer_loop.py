import re
from collections.abc import Iterator

import numpy as np

from traceanalyze.analyses.idle.idle import idle_gaps
from traceanalyze.analyses.steps.phases import event_phases
from traceanalyze.model import intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import EventKind, Phase
from traceanalyze.rules.common.host_ops import calls_and_work, host_ops, matching, ranges
from traceanalyze.rules.common.op_chains import names_under
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
    rule,
)

_LOOP_FRAME = regex(r"_single_tensor_\w+")
_FUSED_WORK = {"Adam": 7 / 20, "AdamW": 7 / 20, "Adagrad": 5 / 11, "SGD": 5 / 8}
"""Optimizers that have a fused form on the host → its passes over tensors in memory, over those of one by one; of SGD
with momentum: without it there is but one operator."""
_FUSED, _FOREACH, _MOMENTUM = (regex(each) for each in (r"_fused_", r"_foreach_", r"aten::(_foreach_)?mul_?$"))


@rule(
    "HST111",
    "optimizer-loop",
    title="optimizer that is not fused",
    sentence={
        "": "The optimizer runs {kernels} kernels one by one, {time} {per}.",
        "foreach": "The optimizer runs in {kernels} kernels over lists of tensors, {time} {per}.",
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
        "kernels": (100.0, "own: kernels a step in the optimizer"),
        "lists": (4.0, "own: kernels a step over lists of tensors; a fused optimizer needs one or two, too"),
        "short_us": (10.0, "own: their median"),
        "fused_share": (
            0.47,
            "Adam: 7 passes over the tensors (4 read, 3 written) in one kernel, 15 in the five kernels of a loop",
        ),
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
        Device events launched in the optimizer's phase (definitions §10): from 100 kernels a step on with a median
        below 10 µs, or Python functions `_single_tensor_*`. The saving is the idle time before them, and their device
        time less what one fused kernel needs.
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
    context = facts.context
    device = context.device
    phase = context.once(event_phases)
    optimizing = (phase == Phase.OPTIMIZER) & (device.device == context.devices[0]) & facts.inside(device.start)
    rows = np.flatnonzero(optimizing & (device.kind == EventKind.KERNEL))
    if not len(rows):
        return
    op = context.event_op[rows]
    if names_under(facts, op, r"_fused_|Fused").any():
        return
    listed = bool(names_under(facts, op, r"_foreach_").any())
    each = len(rows) / facts.window.count
    short = float(np.median((device.end - device.start)[rows])) < options.number("short_us") * 1e3
    looped = each >= options.number("kernels") and short
    if listed and each < options.number("lists"):
        return
    if not (listed or looped or len(facts.rows(EventKind.PYTHON, _LOOP_FRAME))):
        return
    busy = intervals.merge(device.start[rows], device.end[rows])
    gaps = context.once(idle_gaps)
    before = (gaps.event >= 0) & optimizing[gaps.event]
    free = facts.clip(intervals_of(gaps.start[before], gaps.end[before]))
    work, idle = facts.clip(intervals_of(*busy)), intervals.total(free)
    time = intervals.total(work)
    yield Finding(
        saving=facts.mean(idle + round(time * (1 - options.number("fused_share")))),
        bound=facts.mean(idle + time),
        draws="",
        intervals=intervals_of(*intervals.union(work, free)),
        sentence="foreach" if listed else "",
        evidence=measured(kernels=round(each), time=facts.mean(idle + time)),
        count=len(rows),
    )


def _on_host(facts: Facts, options: Options) -> Iterator[Finding]:
    """The same of operators on the host."""
    ops = facts.once(host_ops)
    fused, listed, momentum = (matching(facts, ops, each) for each in (_FUSED, _FOREACH, _MOMENTUM))
    for name, share in _FUSED_WORK.items():
        inside = ranges(facts, re.compile(rf"^Optimizer\.step#{name}\.step$"))
        within = ops.inside(inside)
        each = int(within.sum()) / max(len(inside.start), 1)
        if each < options.number("operators") or (within & fused).any():
            continue
        if name == "SGD" and not (within & momentum).any():
            continue
        foreach = bool((within & listed).any())
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
            count=int(within.sum()),
        )
