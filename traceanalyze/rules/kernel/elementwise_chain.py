import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.columns import distinct, distinct_codes, occurs
from traceanalyze.model.kernel_classes import KernelGroup
from traceanalyze.model.patterns import regex
from traceanalyze.rules.common.computing import compute_finding, computing, fits, largest, matters, op_text
from traceanalyze.rules.common.op_chains import fused_away, inside_ranges
from traceanalyze.rules.common.replay import without
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Findings, Options, rule

_POINTWISE = (KernelGroup.ELEMENTWISE, KernelGroup.REDUCTION)
_REPEATED = regex(r"(.{4,64}?)\1+|(.{1,3}?)\2{2,}", re.DOTALL)
"""Operators, a letter each, that begin again: a chain of its own at once, fewer for the third time."""
_OPTIMIZER = r"^Optimizer\.step#"


@rule(
    "KRN106",
    "elementwise-chain",
    title="chains of element-wise operators",
    sentence=(
        "{chains} chain(s) in all of element-wise kernels on tensors of one size (takes|take) {time} {per} ({part} of "
        "compute), each kernel reading and writing memory."
    ),
    evidence={"chains": "chains"},
    confidence=Confidence.HIGH,
    needs="DOH",
    advice_texts={
        "compile_region": "torch.compile on the function around these operators fuses them.",
        "compile_region.ascend": "Fused operators of torch_npu for these chains; or try TORCH_NPU_LAZY_FUSION=True.",
    },
    options={"length": (4.0, "own: operators in a row"), "share": (0.02, "own: of compute")},
    order=1,
)
def find(facts: Facts, options: Options) -> Findings:
    """Kernels that only read and write memory follow each other on tensors of one size.

    What it finds
        Four or more element-wise operators or reductions in a row on one stream whose largest tensor is equally large.
        Where the same operators begin again, a loop over tensors goes on (the parameters of an optimizer, say), and a
        chain ends.
    Why it costs time
        Each kernel reads its inputs from memory and writes its result there, although the next one needs it at once. A
        fused kernel reads and writes once.
    How it is measured
        Consecutive compute kernels of a stream, grouped by what they compute (definitions §13) and by the recorded
        shapes of their operators, of which each counts once, however many kernels its tensors are cut into; kernels of
        compiled code are not counted. The saving of a chain is its time but that of the longest operator; at most, its
        time but that of the shortest. Repetitions outside of optimizers that change
        nothing in place may be about one tensor: then they are one chain, and at least a chain each.
    What to do
        `torch.compile` on the function around them; fused operators; in-place variants do not help, as they read and
        write as much.

    References
        PyTorch Performance Tuning Guide; torch.compiler.
    """
    work = facts.once(computing)
    if len(work) == 0:
        return
    stream = facts.context.device.stream[work.event]
    order = np.argsort(stream, kind="stable")
    size = op_text(facts, "shapes", work.op_row, largest, 0)
    step = np.searchsorted(facts.edges[0], facts.context.device.start[work.event], "right")[order]
    stream, size = stream[order], size[order]
    fit = occurs(work.group, _POINTWISE)[order] & (size > 1)
    same = (stream[1:] == stream[:-1]) & (size[1:] == size[:-1]) & (step[1:] == step[:-1])
    opens = np.concatenate(([True], ~(same & fit[1:] & fit[:-1])))
    # Kernels of one operator each take a part of its tensors: together they read and write once.
    op = work.op[order]
    begin = np.flatnonzero(opens | np.concatenate(([True], (op[1:] != op[:-1]) | (op[1:] < 0))))
    first, kernels = np.flatnonzero(opens[begin]), np.diff(begin, append=len(order))
    length = np.diff(first, append=len(begin))
    long = (length >= options.number("length")) & fit[begin[first]]
    own, length = np.repeat(long, length), length[long]
    chosen, head, kernels = order[np.repeat(own, kernels)], order[begin[own]], kernels[own]
    if not len(chosen):
        return
    call, calls = facts.context.issued_by[work.event[head]], facts.context.calls
    loop = (call >= 0) & inside_ranges(facts, calls.track[call], calls.start[call], _OPTIMIZER)
    updates = loop[np.cumsum(length) - length]
    loop |= fits(facts, work.op_name[head], r"_$")
    # Those of an optimizer are other ones, and may be a loop over parameters (HST111).
    for own in (updates, ~updates):
        heads = np.repeat(own, length)
        rows = chosen[np.repeat(heads, kernels)]
        if len(rows):
            yield from _of(
                facts, rows, (head[heads], kernels[heads], length[own], loop[heads]), options.number("share")
            )


def _of(
    facts: Facts,
    chosen: NDArray[np.int64],
    chains: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]],
    share: float,
) -> Findings:
    """On some chains: their kernels, the first of each operator and how many it has, their lengths, what is a loop."""
    work, (head, kernels, length, loop) = facts.once(computing), chains
    cuts = _cuts(work.op_name[head], length)
    certain = distinct(np.concatenate((np.cumsum(length), cuts[np.logical_or.reduceat(loop, np.append(0, cuts[:-1]))])))
    parts, every = np.diff(certain, prepend=0), np.diff(cuts, prepend=0)
    time = np.add.reduceat(work.time[chosen], np.cumsum(kernels) - kernels)
    fused, least = (chosen[np.repeat(fused_away(time, each), kernels)] for each in (parts, every))
    change = without(facts, work.event[fused])
    if not matters(facts, chosen, change, share):
        return
    once = np.minimum.reduceat(time, certain - parts)
    yield compute_finding(
        facts,
        chosen,
        saving=facts.per_step(work.time[fused]),
        bound=facts.mean(int(time.sum() - once.sum())),
        change=change,
        between=(without(facts, work.event[least]),) if len(least) < len(fused) else (),
        # One operator again and again may be no chain at all.
        confidence=None if len(least) else Confidence.LOW,
        evidence=(Evidence("chains", len(parts), "COUNT"),),
        count=len(parts),
    )


def _cuts(op: NDArray[np.int32], length: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where runs of operators of these lengths end, and where in them the same ones begin again."""
    names, letter = distinct_codes(op, int(op.max()) + 1)
    ends = np.cumsum(length)
    apart = np.insert(letter, ends[:-1], len(names)).astype("<u4")
    runs = apart.tobytes().decode("utf-32-le", "surrogatepass").split(chr(len(names)))
    known = {run: at for at, run in enumerate(dict.fromkeys(runs))}
    of = np.fromiter(map(known.__getitem__, runs), np.int64, len(runs))
    starts = np.split((ends - length)[np.argsort(of, kind="stable")], np.cumsum(np.bincount(of))[:-1])
    again = (
        np.add.outer(own, np.fromiter(_again(run), np.int64)).ravel() for run, own in zip(known, starts, strict=True)
    )
    return distinct(np.concatenate((ends, *again)))


def _again(text: str) -> Iterator[int]:
    """Where in a run a sequence begins again or ends that stands there several times."""
    for match in _REPEATED.finditer(text):
        unit = match[match.lastindex or 0]
        period = (unit + unit).index(unit, 1)
        yield from range(match.start() + period, match.end() + 1, period)
