from traceanalyze.model.columns import median
from traceanalyze.model.patterns import regex
from traceanalyze.rules.common.communication import comm_finding, communicating
from traceanalyze.rules.common.op_chains import names_under
from traceanalyze.rules.facts import RANGES
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Findings, Options, measured, rule

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
    if len(facts.rows(RANGES, _LAYER)) == 0:
        return
    work = facts.once(communicating)
    chosen = names_under(facts, facts.context.event_op[work.event], _LAYER.pattern)
    count = int(chosen.sum())
    if count <= options.number("least") * facts.window.count:
        return
    exposed = work.exposed_mean(facts, chosen)
    usual = Evidence("usual", int(median(work.time[chosen])), "DURATION")
    evidence = (*measured(exposed=exposed, count=count), usual)
    bound = facts.per_step(work.time[chosen])
    yield comm_finding(facts, chosen, evidence, saving=exposed, bound=bound, about="SyncBatchNorm")
