import numpy as np

from traceanalyze.model.vocabulary import DeviceClass
from traceanalyze.rules.common.communication import comm_finding, communicating
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, measured, rule


@rule(
    "COM112",
    "fsdp-prefetch",
    title="parameters gathered late",
    sentence=(
        "{count} all-gather(s) of parameters (is|are) launched only when the compute before them is "
        "over: {exposed} {per} "
        "exposed."
    ),
    confidence=Confidence.MEDIUM,
    needs="DLO",
    advice_texts={
        "prefetch_parameters": (
            "Prefetch: FSDP(forward_prefetch=True, backward_prefetch=BACKWARD_PRE), FSDP2 "
            "set_modules_to_forward_prefetch."
        )
    },
    options={
        "share": (0.05, "own: of the step"),
        "late": (0.5, "own: of the exposed time of all-gathers, from such as were launched late"),
    },
    order=-1,
)
def find(facts: Facts, options: Options) -> Findings:
    """Parameters are gathered only when the device has run out of work.

    What it finds
        All-gathers of sharded parameters that were launched when the compute before them was already over.
    Why it costs time
        The next block cannot begin before its parameters are there; launched one block earlier, the gathering would be
        hidden.
    How it is measured
        Exposed time of all-gathers whose launch came after the last compute before them had ended, if they are most of
        the exposed all-gathers and 5 % of the step.
    What to do
        Forward and backward prefetch (`forward_prefetch=True`, `set_modules_to_forward_prefetch`); look at
        `limit_all_gathers`; keep parameters after the forward where memory allows.

    References
        FSDP.
    """
    work = facts.once(communicating)
    gathers = work.of_kind("all_gather") & (work.exposed > 0) & (work.issued > 0)
    if not gathers.any():
        return
    compute = facts.busy(DeviceClass.COMPUTE)
    before = np.searchsorted(compute.end, work.start, "right") - 1
    ended = np.where(before >= 0, compute.end[np.maximum(before, 0)] if len(compute.end) else 0, 0)
    late = gathers & (before >= 0) & (work.issued >= ended)
    exposed = work.exposed_mean(facts, late)
    most = exposed >= options.number("late") * work.exposed_mean(facts, gathers)
    if most and facts.share(exposed) >= options.number("share"):
        yield comm_finding(facts, late, measured(exposed=exposed, count=int(late.sum())), saving=exposed)
