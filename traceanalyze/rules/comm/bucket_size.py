import numpy as np

from traceanalyze.model import intervals
from traceanalyze.model.patterns import regex
from traceanalyze.rules.common.communication import comm_finding, communicating
from traceanalyze.rules.facts import RANGES
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Findings, Options, measured, rule

_FORWARD = regex(r"^DistributedDataParallel\.forward$")


@rule(
    "COM105",
    "bucket-size",
    title="last bucket of gradients",
    sentence=(
        "The last of {buckets} buckets of gradients is exposed for {exposed} {per}, {part} of all exposed "
        "communication."
    ),
    evidence={"buckets": "buckets"},
    confidence=Confidence.MEDIUM,
    needs="DLO",
    advice_texts={
        "tune_buckets": "Try bucket_cap_mb (25 by default) at half and at twice its value; the more ranks, the larger."
    },
    options={
        "part": (0.5, "own: of the exposed communication"),
        "share": (0.05, "own: of the step, below which buckets are not worth tuning"),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """The last bucket of gradients is reduced when nothing is left to hide it.

    What it finds
        Steps of DistributedDataParallel with several all-reduces whose last one makes up half of the exposed
        communication or more.
    Why it costs time
        The last bucket is ready only when the backward is over. The larger it is, the longer all wait for it.
    How it is measured
        Exposed time of the last all-reduce of each step. Half of it is the estimate, for a bucket of half the size; at
        most, all of it.
    What to do
        Try several values of `bucket_cap_mb` (25 by default; 50 to 100 and more on large clusters, where each bucket
        costs more latency), and a smaller first bucket (`dist._DEFAULT_FIRST_BUCKET_BYTES`).

    References
        DistributedDataParallel.
    """
    work = facts.once(communicating)
    if not len(facts.rows(RANGES, _FORWARD)):
        return
    chosen = np.flatnonzero(work.of_kind("all_reduce"))
    low, high = (np.searchsorted(work.start[chosen], edge) for edge in facts.edges)
    several = high - low > 1
    if not len(chosen) or 2 * int(several.sum()) < len(several):
        return
    last = np.zeros(len(work), np.bool_)
    last[chosen[high[several] - 1]] = True
    exposed, every = work.exposed_mean(facts, last), facts.mean(intervals.total(work.free))
    if exposed < options.number("part") * every or facts.share(exposed) < options.number("share"):
        return
    evidence = (
        *measured(exposed=exposed, part=exposed / every),
        Evidence("buckets", float((high - low).mean()), "NUMBER"),
    )
    about = "DistributedDataParallel.forward"
    yield comm_finding(facts, last, evidence, saving=exposed // 2, about=about, count=int(several.sum()))
