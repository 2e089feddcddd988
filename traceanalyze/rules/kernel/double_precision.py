from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.grouping import group
from traceanalyze.model.columns import occurs
from traceanalyze.model.patterns import regex
from traceanalyze.rules.common.computing import PRODUCTS, compute_finding, computing, listed, names_of, part_of_compute
from traceanalyze.rules.common.host_ops import CALL_NS, host_ops
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, Scope, measured, rule

_FLOATING = regex(r"(^|::)(double|float|half|bfloat16)$")


@rule(
    "KRN117",
    "double-precision",
    title="computing in float64",
    sentence={
        "": "Operators in float64 take {time} {per} ({part} of compute).",
        "host": "Operators in float64 work for {time} {per} ({share} of the time).",
    },
    confidence=Confidence.MEDIUM,
    needs="DOH",
    host="OH",
    advice_texts={
        "float32_inputs": "Cast inputs to float32 where they come into the program (numpy makes float64 by default)."
    },
    options={"share": (0.01, "own: of compute")},
)
def find(facts: Facts, options: Options) -> Findings:
    """Kernels compute in float64.

    What it finds
        Operators whose first tensor is float64, often by accident: numpy makes float64 by default.
    Why it costs time
        Twice the memory traffic of float32, and on most devices a small part of its arithmetic.
    How it is measured
        Device time of kernels of such operators from 1 % of compute on. Half of it is taken as saving, for twice the
        bytes; of products and convolutions more can be saved, up to 31/32 on devices with few float64 units.
        Where the host computes: half of what such operators take themselves beyond the 2 µs of a call.
    What to do
        Cast inputs to float32 where they come into the program. Scientific code may need float64.

    References
        NVIDIA Deep Learning Performance Guide.
    """
    if facts.host_computes:
        yield from _on_host(facts, options)
        return
    work = facts.once(computing)
    chosen = _in_double(facts, work.op_row)
    if not chosen.any() or part_of_compute(facts, chosen) < options.number("share"):
        return
    product = chosen & occurs(work.group, PRODUCTS)
    time, products = (facts.per_step(work.time[rows]) for rows in (chosen, product))
    yield compute_finding(facts, chosen, saving=time // 2, bound=(time - products) // 2 + products * 31 // 32)


def _on_host(facts: Facts, options: Options) -> Iterator[Finding]:
    """The same of operators on the host."""
    ops = facts.once(host_ops)
    work = np.maximum(ops.own - CALL_NS, 0)
    chosen = (work > 0) & _in_double(facts, ops.row)
    time, count = facts.per_step(work[chosen]), int(chosen.sum())
    share = facts.share(time)
    if not count or share < options.number("share"):
        return
    yield Finding(
        saving=time // 2,
        bound=time // 2,
        draws="host.ops",
        intervals=ops.spans(chosen),
        sentence="host",
        evidence=measured(time=time, share=share, count=count),
        scope=Scope(ops=names_of(facts, ops.name[chosen], work[chosen])),
        count=count,
    )


def _in_double(facts: Facts, row: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Operators (rows, -1 for none) whose first tensor of a floating type is float64; plain numbers are so, too."""
    dtypes, shapes = (facts.context.trace.events.numbers(name, row) for name in ("dtypes", "shapes"))
    strings, found = facts.context.trace.strings, (dtypes >= 0) & (shapes >= 0)
    found[found] = strings.matches(dtypes[found].astype(np.int32), lambda text: "double" in text.lower())
    dtypes, shapes = dtypes[found], shapes[found]
    each = group(dtypes, shapes)
    double = np.zeros(len(each), np.bool_)
    for at, first in enumerate(each.first.tolist()):
        names, sizes = (listed(strings.text(int(codes[first]))) for codes in (dtypes, shapes))
        pairs = ((str(name).lower(), size) for name, size in zip(names, sizes, strict=False))
        double[at] = next((name for name, size in pairs if size and _FLOATING.search(name)), "") == "double"
    found[found] = double[each.of]
    return found
