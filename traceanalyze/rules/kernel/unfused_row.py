from traceanalyze.model.columns import occurs
from traceanalyze.rules.common.computing import FUSIBLE, compute_finding, computing
from traceanalyze.rules.common.op_chains import fusible_rows
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule


@rule(
    "KRN122",
    "unfused-row",
    title="element-wise kernels right after one another",
    sentence=(
        "Element-wise kernels, reductions and normalization, each right after another of them, take {time} {per} "
        "({part} of compute, {count} in all); those that work on one tensor can be one kernel."
    ),
    confidence=Confidence.LOW,
    needs="D",
    advice=("compile_region",),
    options={"share": (0.1, "own: of the step, what one pass a row saves at most")},
    order=2,
    unless="KRN106",
)
def find(facts: Facts, options: Options) -> Findings:
    """Kernels that only read and write memory stand in rows, with no product between them.

    What it finds
        Element-wise kernels, reductions, normalization and softmax that follow each other on one stream, where one of
        each row in place of all could save a tenth of the step; not beside chains on tensors of one size (KRN106).
    Why it costs time
        Each kernel reads from memory what the one before it has just written there.
    How it is measured
        Consecutive kernels of a stream of which none is a product or compiled code; kernels of one operator are one
        pass over its tensors, and where an operator comes again a new row begins, as of a loop over tensors. At most
        each row saves all but its longest pass; whether its kernels work on one tensor the recording does not tell, so
        at least it saves nothing, and half is the estimate.
    What to do
        `torch.compile` on the function around them.

    References
        PyTorch Performance Tuning Guide; torch.compiler.
    """
    work = facts.once(computing)
    share = options.number("share") * facts.step_time
    if not share or facts.per_step(work.time[occurs(work.group, FUSIBLE)]) < share:
        return
    chosen, kept = facts.once(fusible_rows)
    bound = facts.per_step(work.time[chosen[~kept]])
    if bound >= share:
        yield compute_finding(facts, chosen, bound=bound, low=0)
