"""HST111: the optimizer updates parameters one by one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.analyses.phase_ranges import PhaseRanges
from traceanalyze.analyses.phases import event_phases
from traceanalyze.model.vocabulary import EventKind, Phase
from traceanalyze.rules.common.ops import names_under
from traceanalyze.rules.finding import Confidence, Evidence, Finding, intervals_of
from traceanalyze.rules.rule import rule

_LOOP_FRAME = re.compile(r"_single_tensor_\w+")

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.rules.facts import Facts
    from traceanalyze.rules.rule import Options


@rule(
    "HST111",
    "optimizer-loop",
    confidence=Confidence.HIGH,
    needs="DLO",
    advice=("fused_optimizer",),
    options={
        "kernels": (100.0, "rules specification, own: kernels a step in the optimizer"),
        "lists": (4.0, "own: kernels a step over lists of tensors; a fused optimizer needs one or two, too"),
        "short_us": (10.0, "rules specification, own: their median"),
        "fused_share": (
            0.47,
            "Adam: 7 passes over the tensors (4 read, 3 written) in one kernel, 15 in the five kernels of a loop",
        ),
    },
)
def find(facts: Facts, options: Options) -> Iterator[Finding]:
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
    What to do
        `fused=True`, else `foreach=True`; on Ascend the optimizers of `torch_npu.optim`. The lists of `foreach` cost
        memory for one more copy of the parameters.

    References
        torch.optim; torch_npu.optim; PyTorch pattern matcher.
    """
    context = facts.context
    device = context.device
    phase = event_phases(context, PhaseRanges(context))
    mine = (phase == Phase.OPTIMIZER) & (device.device == context.devices[0]) & facts.inside(device.start)
    rows = np.flatnonzero(mine & (device.kind == EventKind.KERNEL))
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
    gaps = context.gaps
    before = (gaps.event >= 0) & mine[gaps.event]
    free = facts.clip(intervals_of(gaps.start[before], gaps.end[before]))
    work, idle = facts.clip(intervals_of(*busy)), intervals.total(free)
    time = intervals.total(work)
    yield Finding(
        saving=facts.mean(idle + round(time * (1 - options.number("fused_share")))),
        bound=facts.mean(idle + time),
        draws="",
        intervals=intervals_of(*intervals.union(work, free)),
        sentence="foreach" if listed else "",
        evidence=(
            Evidence("kernels", round(each), "COUNT"),
            Evidence("time", facts.mean(idle + time), "DURATION"),
        ),
        count=len(rows),
    )
