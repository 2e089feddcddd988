import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.model.kernel_classes import KernelGroup
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import NotMeasured
from traceanalyze.rules.common.computing import (
    alone_time,
    compute_finding,
    computing,
    kernels_of,
    part_of_compute,
    shapes_of,
)
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Facts,
    Finding,
    Findings,
    Options,
    Scope,
    Severity,
    UnmeasuredError,
    measured,
    rule,
)

_ATTENTION = regex(r"attention", re.IGNORECASE)


@rule(
    "KRN119",
    "low-roofline",
    title="operators far from their roofline",
    sentence={
        "": "{op} with {shape} takes {time} {per} ({part} of compute) and reaches {reached} of the device's limit.",
        "twins": (
            "Element-wise operators ({count} in all, above all {op} with {shape}) take {time} {per} ({part} of "
            "compute), {beyond} more than other calls of theirs on as large tensors, by another kernel: most likely an "
            "operand is not contiguous."
        ),
    },
    evidence={"reached": "reached of the roofline", "op": "operator", "beyond": "more than with the faster kernel"},
    confidence=Confidence.MEDIUM,
    needs="D",
    advice=("better_shapes",),
    advice_texts={
        "better_shapes": "Try other layouts and sizes, a newer library, or a fused kernel for this operator.",
        "one_layout": (
            "Let what makes these tensors write them in one layout, instead of views in another order of dimensions "
            "(permute, transpose)."
        ),
    },
    options={
        "reached": (0.5, "own: of the roofline"),
        "attention": (0.35, "FlashAttention-3 paper: what FlashAttention-2 reaches on an H100"),
        "share": (0.05, "own: of compute"),
        "least_us": (20.0, "own: shorter calls are limited by their launch"),
        "most": (3.0, "own: findings, costliest first"),
    },
    order=2,
)
def find(facts: Facts, options: Options) -> Findings:
    """An operator takes more than twice what the device needs at best.

    What it finds
        Operators with certain shapes that take 5 % of compute or more and reach less than half of their roofline; and
        element-wise operators that lose 5 % of compute to kernels for tensors that are not contiguous.
    Why it costs time
        The device could compute as much, or move as many bytes, in less than half of the time: the kernel or the shape
        does not fit it.
    How it is measured
        Floating-point operations and bytes by formula (table of operators with a formula) over the peak rates of the
        device; calls shorter than 20 µs are left out, and operators that have other kernels beside them most of the
        time. The estimate brings the operator to half of its roofline, fused attention to the third that good kernels
        reach; at most, all the way. Certain is only what the best operator of its kind and type with no more work a
        call reaches in the same recording: where none is better, nothing. In an excerpt of a few launches that is a
        cost, and what it saves is not measured. Calls of one element-wise operator with the same shapes and types are
        compared by their kernels: where one takes twice as long as another, that is more than the work needs. At most
        all of that is saved, at least nothing, as another layout may cost elsewhere what it saves here.
    What to do
        Other layouts and sizes, a newer library, a fused or specialised kernel; one layout for all operands.

    References
        NVIDIA Deep Learning Performance Guide; msprof-analyze advisor.
    """
    yield from _twins(facts, options)
    table = facts.analysis.tables["op_rates"]
    if table.absent is not None:
        raise UnmeasuredError(table.absent.reason)
    work = facts.once(computing)
    total = int(work.time.sum())
    least = options.number("least_us") * 1000
    found, known = 0, [one for one in table.records() if not isinstance(one.roofline_share, NotMeasured)]
    for one in known:
        share = one.roofline_share
        if one.device_time_ns < options.number("share") * total:
            continue
        attention = _ATTENTION.search(one.op) is not None
        limit = options.number("attention" if attention else "reached")
        if share >= limit or one.device_time_ns < least * one.calls or found >= options.number("most"):
            continue
        rows = kernels_of(facts, one.op, one.shapes)
        if 2 * int(facts.once(alone_time)[rows].sum()) <= int(work.time[rows].sum()):
            continue  # Others share the device with it.
        found += 1
        time = facts.per_step(work.time[rows])
        best = min(limit, max(each.roofline_share for each in known if _comparable(each, one)))
        # The goal for attention is one of compute: where bytes limit it, what nothing does better may be all there is.
        doubtful = Confidence.LOW if attention and best == share and one.bound != "bound_compute" else None
        yield Finding(
            saving=round(time * (1 - share / limit)),
            low=round(time * (1 - share / best)),
            bound=round(time * (1 - share)),
            confidence=doubtful,
            severity=None if doubtful is None else Severity.LOW,
            draws="compute",
            intervals=work.spans(rows),
            evidence=(
                Evidence("op", one.op, "NAME"),
                *measured(shape=one.shapes, time=time, part=part_of_compute(facts, rows)),
                Evidence("reached", share, "SHARE"),
                *measured(count=one.calls),
            ),
            scope=Scope(ops=(f"{one.op} {one.shapes}",)),
            count=one.calls,
        )


def _twins(facts: Facts, options: Options) -> Iterator[Finding]:
    """Element-wise calls that take as long again or more as others of the same operator, shapes and types.

    Only operators of one kernel are compared; that one kernel is another than that of the others.
    """
    work, events = facts.once(computing), facts.context.trace.events
    rows = np.flatnonzero((work.group == KernelGroup.ELEMENTWISE) & (work.op >= 0))
    rows = rows[np.bincount(work.op + 1)[work.op[rows] + 1] == 1]
    shape = events.numbers("shapes", work.op_row[rows], -1)
    rows, shape = rows[shape >= 0], shape[shape >= 0]
    calls = group(work.op_name[rows], shape, events.numbers("dtypes", work.op_row[rows], -1))
    kernels = group(calls.of, work.name[rows])
    usual = kernels.sum(work.time[rows]) / kernels.count()
    best = np.full(len(calls), np.inf)
    np.minimum.at(best, calls.of[kernels.first], usual)
    slow = usual[kernels.of] * options.number("reached") >= best[calls.of]
    excess = np.maximum(0, work.time[rows] - best[calls.of])[slow].astype(np.int64)
    if not slow.any() or excess.sum() < options.number("share") * work.time.sum():
        return
    each = group(calls.of[slow])
    longest = int(each.sum(excess)[each.of].argmax())
    most = int(rows[slow][longest])
    text = facts.context.trace.strings.text
    one = compute_finding(
        facts,
        rows[slow],
        bound=facts.per_step(excess),
        about=text(int(work.op_name[most])),
        low=0,
        sentence="twins",
        confidence=Confidence.LOW,
        advice=("one_layout",),
    )
    time, part, count = one.evidence
    shapes = ", ".join("×".join(map(str, each)) for each in shapes_of(text(int(shape[slow][longest]))))
    named = Evidence("op", text(int(work.op_name[most])), "NAME"), *measured(shape=shapes)
    lost = Evidence("beyond", facts.per_step(excess), "DURATION")
    yield replace(one, evidence=(time, part, lost, *named, count))


def _comparable(each: Any, one: Any) -> bool:
    """Whether what a row of the table reaches, another one could: the same kind of work, and no more of it a call."""
    amount = "flop" if one.bound == "bound_compute" else "bytes"
    return (each.work, each.dtype, each.bound) == (one.work, one.dtype, one.bound) and each.calls * getattr(
        one, amount
    ) >= one.calls * getattr(each, amount)
