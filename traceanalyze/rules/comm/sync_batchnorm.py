import numpy as np

from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.common.communication import communicating
from traceanalyze.rules.common.op_chains import names_under
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, Scope, rule

_LAYER = regex(r"^SyncBatchNorm(Backward)?$|^autograd::engine::evaluate_function: SyncBatchNormBackward$")


@rule(
    "COM118",
    "sync-batchnorm",
    title="synchronised batch normalisation",
    sentence=(
        "Synchronised batch normalisation communicates {count} time(s) in all, {usual} each: {exposed} {per} exposed."
    ),
    evidence={"usual": "median time"},
    confidence=Confidence.MEDIUM,
    needs="DLO",
    advice_texts={"plain_batchnorm": "Plain batch norm if each rank has 16 samples or more; or convert fewer layers."},
    options={"least": (20.0, "msprof-analyze advisor: layers a step")},
    order=-1,
)
def find(facts: Facts, options: Options) -> Findings:
    """Synchronised batch normalisation communicates for every layer.

    What it finds
        More than 20 collectives of SyncBatchNorm in a step.
    Why it costs time
        Each layer gathers a few numbers of all ranks in forward and in backward; these collectives cannot overlap, as
        the layer needs the result at once.
    How it is measured
        Exposed time of the collectives that `SyncBatchNorm` and its backward launched.
    What to do
        Plain batch norm if the batch of a rank is large enough (16 samples and more); or convert fewer layers.

    References
        torch.nn.SyncBatchNorm; msprof-analyze advisor.
    """
    layers = facts.rows((EventKind.HOST_OP, EventKind.ANNOTATION), _LAYER)
    if len(layers) == 0:
        return
    work, context = facts.once(communicating), facts.context
    chosen = names_under(facts, context.event_op[work.event], _LAYER.pattern)
    if int(chosen.sum()) <= options.number("least") * facts.window.count:
        return
    spans = work.exposed_spans(chosen)
    exposed = facts.length(spans)
    yield Finding(
        saving=exposed,
        bound=facts.mean(int(work.time[chosen].sum())),
        draws="comm_exposed",
        intervals=spans,
        evidence=(
            Evidence("exposed", exposed, "DURATION"),
            Evidence("count", int(chosen.sum()), "COUNT"),
            Evidence("usual", int(np.median(work.time[chosen])), "DURATION"),
        ),
        scope=Scope(ops=("SyncBatchNorm",)),
        count=int(chosen.sum()),
    )
