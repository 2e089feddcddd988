from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.kernels.op_work import device_peaks
from traceanalyze.model.columns import Rows, occurs
from traceanalyze.model.op_calls import parse_call
from traceanalyze.model.op_costs import cost_of
from traceanalyze.model.patterns import regex
from traceanalyze.replay.parts import shorter
from traceanalyze.rules.common.computing import PRODUCTS, compute_finding, computing, listed, names_of, part_of_compute
from traceanalyze.rules.common.host_ops import CALL_NS, host_ops
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, Scope, measured, rule

LEAST = 0.2
"""By so much of their time kernels are faster in float32 that wait for neither memory nor arithmetic: 21 to 23 % were
measured of resizing and indexing on an A100."""
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
        Device time of kernels of such operators from 1 % of compute on. As saving counts the part of it in which bytes
        move that float32 would not, by formula and the device's bandwidth, but no less than a fifth; that much alone of
        operators without a formula, half of products and convolutions. At most half is saved, of products and
        convolutions 31/32 on devices with few float64 units.
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
    part = np.where(product[chosen], 0.5, _moving(facts, chosen))
    yield compute_finding(
        facts,
        chosen,
        saving=facts.per_step(np.round(work.time[chosen] * part).astype(np.int64)),
        change=shorter(facts.context, work.event[chosen], part),
        bound=(time - products) // 2 + products * 31 // 32,
        between=tuple(shorter(facts.context, work.event[chosen], each) for each in (LEAST, 0.5)),
    )


def _moving(facts: Facts, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Part of the time of each chosen kernel in which bytes move that float32 would not."""
    work, peaks, trace = facts.once(computing), facts.context.once(device_peaks), facts.context.trace
    row, time = work.op_row[chosen], work.time[chosen]
    each = group(work.op[chosen])
    whole = each.sum(time)[each.of]
    codes = [trace.events.numbers(name, row, -1) for name in ("shapes", "dtypes", "strides")]
    calls = group(work.op_name[chosen], *codes)
    saved, moved = np.zeros((2, len(calls)))
    for at, first in enumerate(calls.first.tolist()):
        shapes, dtypes, strides = (trace.strings.text(int(code[first])) if code[first] >= 0 else "" for code in codes)
        name = trace.strings.text(int(work.op_name[chosen][first]))
        double, single = (
            None if call is None else cost_of(call)
            for call in (
                parse_call(name, shapes, types, None, strides) for types in (dtypes, dtypes.replace("double", "float"))
            )
        )
        if double and single and double.bytes and single.bytes:
            saved[at], moved[at] = double.bytes - single.bytes, double.bytes
    # Bytes over the bandwidth are a time; where it is unknown, all of the time counts as theirs.
    least = moved[calls.of] / peaks.bandwidth if peaks else whole
    part = saved[calls.of] / np.maximum(moved[calls.of], 1) * np.minimum(1.0, least / np.maximum(whole, 1))
    return np.clip(part, LEAST, 0.5)


def _on_host(facts: Facts, options: Options) -> Iterator[Finding]:
    """The same of operators on the host."""
    ops = facts.once(host_ops)
    chosen = np.flatnonzero(ops.nest.own[ops.place] > CALL_NS)
    chosen = chosen[_in_double(facts, ops.nest.row[ops.place[chosen]])]
    work, count = ops.nest.own[ops.place[chosen]] - CALL_NS, len(chosen)
    time = facts.per_step(work)
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
        scope=Scope(ops=names_of(facts, ops.name[chosen], work)),
        count=count,
    )


def _in_double(facts: Facts, row: Rows) -> NDArray[np.bool_]:
    """Operators (rows, -1 for none) whose first tensor of a floating type is float64; plain numbers are so, too."""
    events, strings = facts.context.trace.events, facts.context.trace.strings
    column = events.fields.get("dtypes")
    if column is None:
        return np.zeros(len(row), np.bool_)
    dtypes = column.take(row, -1)
    found = dtypes >= 0
    found[found] = strings.matches(dtypes[found], lambda text: "double" in text.lower())
    shapes = events.numbers("shapes", row[found])
    found[found] = shapes >= 0
    dtypes, shapes = dtypes[found], shapes[shapes >= 0]
    each = group(dtypes, shapes)
    double = np.zeros(len(each), np.bool_)
    for at, first in enumerate(each.first.tolist()):
        names, sizes = (listed(strings.text(int(codes[first]))) for codes in (dtypes, shapes))
        pairs = ((str(name).lower(), size) for name, size in zip(names, sizes, strict=False))
        double[at] = next((name for name, size in pairs if size and _FLOATING.search(name)), "") == "double"
    found[found] = double[each.of]
    return found
