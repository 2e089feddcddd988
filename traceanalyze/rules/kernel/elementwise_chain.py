import numpy as np

from traceanalyze.model.columns import occurs
from traceanalyze.model.kernel_classes import KernelGroup
from traceanalyze.rules.common.computing import compute_finding, computing, largest, matters, op_text
from traceanalyze.rules.common.op_chains import fused_away
from traceanalyze.rules.common.replay import without
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Findings, Options, rule

_POINTWISE = (KernelGroup.ELEMENTWISE, KernelGroup.REDUCTION)


@rule(
    "KRN106",
    "elementwise-chain",
    title="chains of element-wise operators",
    sentence=(
        "{chains} chain(s) of element-wise kernels on tensors of one size take {time} {per} ({part} of compute), each "
        "kernel reading and writing memory."
    ),
    evidence={"chains": "chains"},
    confidence=Confidence.HIGH,
    needs="DOH",
    advice_texts={
        "compile_region": "torch.compile on the function around these operators fuses them.",
        "compile_region.ascend": "Fused operators of torch_npu for these chains; or try TORCH_NPU_LAZY_FUSION=True.",
    },
    options={
        "length": (4.0, "own: kernels in a row"),
        "share": (0.05, "own: of compute"),
    },
    order=1,
)
def find(facts: Facts, options: Options) -> Findings:
    """Kernels that only read and write memory follow each other on tensors of one size.

    What it finds
        Four or more element-wise operators or reductions in a row on one stream whose largest tensor is equally large.
    Why it costs time
        Each kernel reads its inputs from memory and writes its result there, although the next one needs it at once. A
        fused kernel reads and writes once.
    How it is measured
        Consecutive compute kernels of a stream, grouped by what they compute (definitions §13) and by the recorded
        shapes of their operators; kernels of compiled code are not counted. The saving of a chain is its time but that
        of the longest kernel.
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
    fit = (occurs(work.group, _POINTWISE) & (size > 1))[order]
    same = (stream[order][1:] == stream[order][:-1]) & (size[order][1:] == size[order][:-1])
    first = np.flatnonzero(np.concatenate(([True], ~(same & fit[1:] & fit[:-1]))))
    length = np.diff(first, append=len(order))
    long = (length >= options.number("length")) & fit[first]
    chosen = order[np.repeat(long, length)]
    if not len(chosen):
        return
    fused, chains = fused_away(work.time, chosen, length[long]), int(long.sum())
    change = without(facts, work.event[fused])
    if not matters(facts, chosen, change, options.number("share")):
        return
    yield compute_finding(
        facts,
        chosen,
        saving=facts.per_step(work.time[fused]),
        change=change,
        evidence=(Evidence("chains", chains, "COUNT"),),
        count=chains,
    )
