import numpy as np

from traceanalyze.model import intervals
from traceanalyze.model.vocabulary import DeviceClass
from traceanalyze.rules.common.communication import communicating
from traceanalyze.rules.common.computing import names_of
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, Scope, rule


@rule(
    "COM112",
    "fsdp-prefetch",
    title="parameters gathered late",
    sentence=(
        "{count} all-gather(s) of parameters are launched only when the compute before them is over: {exposed} {per} "
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
    work, device = facts.once(communicating), facts.context.device
    gathers = work.of_kind("all_gather") & (work.exposed > 0) & (work.issued > 0)
    if not gathers.any():
        return
    mine = (device.klass == DeviceClass.COMPUTE) & (device.device == facts.context.devices[0])
    compute = intervals.merge(device.start[mine], device.end[mine])
    before = np.searchsorted(compute.end, work.start, "right") - 1
    ended = np.where(before >= 0, compute.end[np.maximum(before, 0)] if len(compute.end) else 0, 0)
    late = gathers & (before >= 0) & (work.issued >= ended)
    spans = work.exposed_spans(late)
    exposed = facts.length(spans)
    if exposed < options.number("late") * facts.length(work.exposed_spans(gathers)):
        return
    if facts.share(exposed) < options.number("share"):
        return
    yield Finding(
        saving=exposed,
        bound=exposed,
        draws="comm_exposed",
        intervals=spans,
        evidence=(Evidence("exposed", exposed, "DURATION"), Evidence("count", int(late.sum()), "COUNT")),
        scope=Scope(ops=names_of(facts, device.name[work.event[late]], work.exposed[late])),
        count=int(late.sum()),
    )
