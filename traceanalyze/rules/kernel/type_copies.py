"""KRN110: tensors are converted to another type again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.rules.common.computing import computing, part_of_compute
from traceanalyze.rules.common.ops import names_under
from traceanalyze.rules.finding import Confidence, Evidence, Finding, Scope
from traceanalyze.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.rules.facts import Facts
    from traceanalyze.rules.rule import Options

_OPS = r"^aten::(_to_copy|to)$|^npu::npu_dtype_cast$"


@rule(
    "KRN110",
    "type-copies",
    confidence=Confidence.MEDIUM,
    needs="DO",
    advice=("right_type",),
    options={"share": (0.05, "rules specification: of compute")},
)
def find(facts: Facts, options: Options) -> Iterator[Finding]:
    """Tensors are converted to another type again and again.

    What it finds
        Kernels that `aten::_to_copy` launched: conversions between element types.
    Why it costs time
        A conversion reads and writes the whole tensor and computes nothing.
    How it is measured
        Device time of compute kernels under such operators from 5 % of compute on. Some conversions belong to mixed
        precision, so half of the time is taken as saving, all as the most.
    What to do
        Create tensors with the right `dtype=` and `device=`; keep parameters that are cast in every step in the type
        they are used in; let `torch.compile` fuse what remains.

    References
        PyTorch Performance Tuning Guide; torch.amp.
    """
    work = facts.once(computing)
    known = np.flatnonzero(work.op >= 0)
    chosen = known[names_under(facts, work.op[known], _OPS)]
    if len(chosen) == 0 or part_of_compute(facts, chosen) < options.number("share"):
        return
    time = facts.mean(int(work.time[chosen].sum()))
    yield Finding(
        saving=time // 2,
        bound=time,
        draws="compute",
        intervals=work.spans(chosen),
        evidence=(
            Evidence("time", time, "DURATION"),
            Evidence("part", part_of_compute(facts, chosen), "SHARE"),
            Evidence("count", len(chosen), "COUNT"),
        ),
        scope=Scope(ops=("aten::_to_copy",)),
        count=len(chosen),
    )
