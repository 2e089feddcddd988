import numpy as np

from traceanalyze.model.columns import distinct
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, Severity, rule


@rule(
    "DAT107",
    "ragged-batches",
    title="batches of different size",
    sentence="The compute time of steps varies by {variation}, and shapes differ between them.",
    confidence=Confidence.MEDIUM,
    needs="DH",
    advice=("bucket_lengths",),
    options={"variation": (0.15, "own: of the steps' compute time"), "steps": (4.0, "own: fewer tell nothing")},
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Batches are of very different size.

    What it finds
        Steps whose compute time varies by more than 15 % while the shapes of operators differ between them.
    Why it costs time
        With several ranks all wait for the largest batch; and memory is taken from the device again and again.
    How it is measured
        Coefficient of variation of the compute time of the complete steps, and the sets of input shapes of each step.
        Gradient accumulation and evaluation steps look the same.
    What to do
        Bucket samples by length, keep the tokens of a batch constant, or pad to few sizes.

    References
        PyTorch Performance Tuning Guide.
    """
    compute = facts.analysis.partitions[0].compute[list(facts.window.rows)]
    if len(compute) < options.number("steps") or not compute.mean():
        return
    variation = float(compute.std() / compute.mean())
    if variation <= options.number("variation") or len(set(_shapes(facts))) < 2:
        return
    yield Finding(evidence=(Evidence("variation", variation, "SHARE"),), count=len(compute), severity=Severity.INFO)


def _shapes(facts: Facts) -> list[tuple[int, ...]]:
    """The distinct input shapes of operators in each step."""
    context = facts.context
    rows = np.flatnonzero(context.kind == EventKind.HOST_OP)
    shapes, start = context.trace.events.fields["shapes"].take(rows, -1), context.trace.events.ts[rows]
    steps, order = facts.analysis.steps, np.argsort(start, kind="stable")
    shapes, start = shapes[order], start[order]
    edges = (np.searchsorted(start, each[list(facts.window.rows)]) for each in (steps.host_start, steps.host_end))
    return [tuple(distinct(shapes[first:last]).tolist()) for first, last in zip(*edges, strict=True)]
