from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.common.launching import idle_during
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule

_SEARCH = regex(r"nn/parallel/distributed\.py\(\d+\): _find_tensors$")


@rule(
    "COM103",
    "unused-parameters",
    title="search for unused parameters",
    sentence=(
        "DistributedDataParallel searches for unused parameters, {host} {per} on the host; the device has no work for "
        "{idle} of it."
    ),
    confidence=Confidence.MEDIUM,
    needs="DOP",
    advice_texts={
        "no_unused_search": (
            "find_unused_parameters=False, or static_graph=True if the same parameters are used in every step."
        )
    },
    order=-1,
)
def find(facts: Facts, options: Options) -> Findings:
    """DistributedDataParallel looks for unused parameters in every step.

    What it finds
        The walk through the results and the graph that `find_unused_parameters=True` causes after each forward.
    Why it costs time
        The host walks through the whole autograd graph before the backward begins, and one more all-reduce tells the
        ranks what was used.
    How it is measured
        Idle time of the device during `_find_tensors` of DDP, which runs only with this option; at most, the host time
        of these calls.
    What to do
        `find_unused_parameters=False` if all parameters take part in every step. Mixtures of experts and models with
        branches may need it; `static_graph=True` then looks only once.

    References
        DistributedDataParallel; PyTorch Performance Tuning Guide.
    """
    rows = facts.rows(EventKind.PYTHON, _SEARCH)
    if len(rows):
        yield idle_during(facts, rows, ("_find_tensors",))
