from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.columns import distinct, occurs
from traceanalyze.model.intervals import Intervals, merge, union
from traceanalyze.model.kernel_classes import KernelGroup
from traceanalyze.model.vocabulary import ApiClass
from traceanalyze.replay.parts import shorter
from traceanalyze.replay.replay import together
from traceanalyze.rules.common.computing import computing, part_of_compute
from traceanalyze.rules.common.host_ops import RECORDING_NS, host_chains
from traceanalyze.rules.common.op_chains import chains
from traceanalyze.rules.common.replay import launching, without
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, Scope, intervals_of, measured, rule

SCORES = r"[mqaktu.]{0,5}S[dmtkq]{0,4}"
"""Scaling and mask, softmax, dropout."""
FORWARD = f"B{SCORES}B"
"""Scores, what is done with them, values."""
BACKWARD = r"[dmtk]{0,4}Z[mqakt]{0,4}"
PRODUCTS_BACK = r"B{1,2}[dmtk]{0,4}Z[mqakt]{0,4}B{1,2}"
"""With the products before and after, whose results or inputs are matrices of scores, too."""


@rule(
    "KRN104",
    "unfused-attention",
    title="attention that is not fused",
    sentence={
        "": (
            "Attention is computed operator by operator ({count} time(s) in all) and takes {time} {per} ({part} of "
            "compute)."
        ),
        "host": (
            "Attention is computed operator by operator ({count} time(s) in all): what lies between its products takes "
            "{time} {per} ({share} of the time)."
        ),
    },
    confidence=Confidence.HIGH,
    needs="DO",
    host="O",
    advice=("fused_attention",),
    advice_texts={
        "fused_attention.cuda": (
            "torch.nn.functional.scaled_dot_product_attention (is_causal=True in place of a mask, where that is "
            "meant), or FlashAttention."
        ),
        "fused_attention.ascend": "torch_npu.npu_fusion_attention.",
        "fused_attention_host": (
            "torch.nn.functional.scaled_dot_product_attention (is_causal=True in place of a mask, where that is meant)."
        ),
    },
    options={
        "products": (
            0.5,
            (
                "own: part of the products that goes: their matrix of scores is limited by memory, a fused kernel by "
                "arithmetic; FlashAttention-2 tells 5 to 9 times for the whole, which this makes 5"
            ),
        ),
        "between": (0.8, "own measurement, torch 2.13 on the host: 0.6 to 1.0 of the time between the products goes"),
    },
    order=-1,
)
def find(facts: Facts, options: Options) -> Findings:
    """Attention is computed operator by operator.

    What it finds
        A batched product, scaling and mask, softmax, dropout, and a second batched product one after the other.
    Why it costs time
        The matrix of scores, sequence times sequence for every head, is written to memory and read again by each of
        them. Fused attention keeps it on the chip.
    How it is measured
        Sequences of operators by launch. The saving is the device time of everything in them but the products (changes
        of layout before these count), in the backward pass around that of the softmax, and half of the products, with
        the memory that the scores take; at most the time of the whole sequences.
        Where the host computes: 0.8 of the time between the products, less 0.6 µs an operator for the profiler; a fused
        attention takes longer than the products by the rest.
    What to do
        `torch.nn.functional.scaled_dot_product_attention`, or FlashAttention; on Ascend `npu_fusion_attention`. Masks
        that are neither causal nor padding may keep the fastest kernels from being chosen.

    References
        scaled_dot_product_attention; msprof-analyze advisor.
    """
    if facts.host_computes:
        yield from _on_host(facts, options)
        return
    found, work = facts.once(chains), facts.once(computing)
    forward = list(found.find(FORWARD))
    if not forward:
        return
    rows = np.concatenate([_pointwise(work.op, run) for run in forward] + list(found.find(BACKWARD)))
    back = list(found.find(PRODUCTS_BACK))
    whole = distinct(np.concatenate((*forward, rows, *back)))
    # Changes of layout before a product go with it.
    rows = distinct(np.concatenate((rows, whole[work.group[whole] == KernelGroup.LAYOUT])))
    time = facts.per_step(work.time[rows])
    product = np.setdiff1d(whole, rows)
    # Fused attention takes the host as long as the products of the forward pass and one of the backward pass.
    others = np.setdiff1d(product, np.concatenate((*forward, *(run[:1] for run in back))))
    products, taken = facts.per_step(work.time[product]), facts.length(work.spans(whole))
    allocating = _allocating(facts, [run[0] for run in forward])
    yield Finding(
        saving=time + round(products * options.number("products")),
        change=together(
            without(facts, work.event[rows]),
            shorter(facts.context, work.event[product], options.number("products"))._replace(
                host=union(launching(facts, work.event[others]), allocating)
            ),
        ),
        bound=taken + facts.length(intervals_of(*allocating)),
        draws="compute",
        intervals=work.spans(whole),
        evidence=measured(time=taken, part=part_of_compute(facts, whole), count=len(forward)),
        scope=Scope(ops=("aten::_softmax",)),
        count=len(forward),
    )


def _on_host(facts: Facts, options: Options) -> Iterator[Finding]:
    """The same of operators on the host."""
    found = facts.once(host_chains)
    forward, whole = found.inside(f"B({SCORES})B")
    if not len(forward):
        return
    backward, whole_back = found.inside(f"B({BACKWARD})B")
    between = np.concatenate((forward, backward))
    recording = len(found.ops.inside(facts.clip(between))) * RECORDING_NS
    time = max(0, facts.length(between) - facts.mean(recording))
    yield Finding(
        saving=round(time * options.number("between")),
        bound=facts.length(np.concatenate((whole, whole_back))),
        draws="host",
        intervals=between,
        sentence="host",
        evidence=measured(time=time, share=facts.share(time), count=len(forward)),
        advice=("fused_attention_host",),
        scope=Scope(ops=("aten::softmax",)),
        count=len(forward),
    )


def _allocating(facts: Facts, rows: list[np.int64]) -> Intervals:
    """When the operators of some kernels take memory from the device: matrices of scores need none any more."""
    context = facts.context
    op = distinct(facts.once(computing).op[rows])
    op = op[op >= 0]
    taken = np.flatnonzero((context.calls.klass == ApiClass.ALLOC) & occurs(context.call_op, op))
    return merge(context.calls.start[taken], context.calls.end[taken])


def _pointwise(op: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Kernels of a sequence but those of its first and its last operator."""
    ends = np.zeros(len(rows), np.bool_)
    ends[[0, -1]] = True
    ends |= (op[rows] >= 0) & ((op[rows] == op[rows[0]]) | (op[rows] == op[rows[-1]]))
    return rows[~ends]
