from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.columns import median
from traceanalyze.rules.common.communication import REPEATED, comm_finding, communicating
from traceanalyze.rules.pricing import LEAST_SHARE
from traceanalyze.rules.ranking import HIGH
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, Severity, UnmeasuredError, measured, rule

_SLOWEST = 1.0
"""Own: GB/s; any link between devices is faster, so what takes longer waits."""
_SHORT, _LONG = 0.05, 2.0
"""Own: of the longest stretch of a step, what is no waiting for a stage; of the median of the others, a bubble."""


@rule(
    "COM115",
    "pipeline-bubble",
    title="waiting in the pipeline",
    sentence={
        "": "Sending to and receiving from neighbours takes {exposed} {per} ({share}) with no compute beside it.",
        "stages": (
            "Between micro-batches this stage waits {exposed} {per} ({share}) for its neighbours, about as long each "
            "time: they take longer than it does. More micro-batches do not change that."
        ),
        "perhaps": (
            "Between micro-batches this stage sends and receives for {exposed} {per} ({share}), about as long each "
            "time: whether that moves data or waits for stages that take longer shows only beside the recordings of "
            "the other ranks."
        ),
    },
    confidence=Confidence.MEDIUM,
    needs="D",
    advice_texts={
        "more_micro_batches": "More micro-batches, an interleaved schedule, stages of equal time.",
        "equal_stages": "Stages of equal time: move layers from the slowest stage; compare the ranks to find it.",
    },
    advice=("more_micro_batches",),
    options={"share": (0.10, "own: of the step")},
    order=-1,
)
def find(facts: Facts, options: Options) -> Findings:
    """A pipeline stage waits for its neighbours.

    What it finds
        Steps that spend a tenth of their time or more in sending to and receiving from single ranks, with no compute.
    Why it costs time
        At the begin and the end of each step a stage has nothing to do until the others have passed their micro-batch
        on; uneven stages wait in between, too.
    How it is measured
        Exposed time of `send` and `recv`, which contains the waiting. Where a step has four stretches of it or more,
        those of less than twice the median wait for slower stages, micro-batch after micro-batch: what evening them out
        saves, one rank does not tell; nor whether they wait at all, unless they move less than 1 GB/s. Of what the
        others are longer than that, half is the estimate, as with twice as many micro-batches; at most, all of it.
    What to do
        More micro-batches, an interleaved schedule, stages of equal time.

    References
        Ascend foundation-model tuning guide; torch.distributed.pipelining.
    """
    work = facts.once(communicating)
    if len(work) == 0:
        return
    if not work.described and facts.platform != "ascend":  # NCCL runs an all_to_all in a kernel of the same name.
        raise UnmeasuredError("no_collective_metadata")
    chosen = work.of_kind("send", "recv", "send_recv")
    spans = work.exposed_spans(chosen)
    if not len(spans) or facts.share(facts.length(spans)) < options.number("share"):
        return
    usual = _usual(facts, spans)
    stages = (usual > 0) & (spans[:, 1] - spans[:, 0] < _LONG * usual)
    sized = chosen & (work.size >= 0)
    slow = int(work.size[sized].sum()) < _SLOWEST * int(work.time[sized].sum())
    for part, sentence in ((spans[~stages], ""), (spans[stages], "stages")):
        exposed = facts.length(part)
        share = facts.share(exposed)
        if share < LEAST_SHARE:
            continue
        evidence = measured(exposed=exposed, share=share, count=int(chosen.sum()))
        bubble = max(0, exposed - facts.per_step(usual[~stages]))
        found = replace(comm_finding(facts, chosen, evidence, saving=bubble // 2, bound=bubble), intervals=part)
        if sentence:
            found = replace(
                found,
                saving=None,
                bound=None,
                between=(),
                cost=exposed,
                sentence=sentence if slow else "perhaps",
                advice=("equal_stages",),
                severity=Severity.MEDIUM if share >= HIGH else Severity.LOW,
                confidence=None if slow else Confidence.LOW,
            )
        yield found


def _usual(facts: Facts, spans: NDArray[np.int64]) -> NDArray[np.int64]:
    """Median of the stretches of the step of each, where they are several; of short ones, and else, 0."""
    length, usual = spans[:, 1] - spans[:, 0], np.zeros(len(spans), np.int64)
    step = np.searchsorted(facts.edges[0], spans[:, 0], "right")
    for one in np.unique(step).tolist():
        own = np.flatnonzero(step == one)
        own = own[length[own] >= _SHORT * length[own].max()]
        if len(own) >= REPEATED:
            usual[own] = median(length[own])
    return usual
