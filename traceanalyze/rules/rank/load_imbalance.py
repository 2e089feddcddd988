import numpy as np

from traceanalyze.ranks.results import Cluster
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Finding,
    Findings,
    Options,
    Scope,
    Severity,
    UnmeasuredError,
    measured,
    rule,
)


@rule(
    "RNK102",
    "load-imbalance",
    title="ranks have unequal work",
    sentence={
        "": (
            "The busiest rank computes {imbalance} longer than the mean (mean of the steps): rank {rank} {most} {per}, "
            "the least {least}."
        ),
        "compute_and_host": (
            "The busiest rank has {imbalance} more compute, data loading and host work than the mean (mean of the "
            "steps): rank {rank} {most} {per}, the least {least}. Compute alone differs by {compute_alone}: it is the "
            "host that is slower."
        ),
    },
    evidence={"imbalance": "imbalance", "compute_alone": "imbalance of compute alone"},
    confidence=Confidence.MEDIUM,
    needs="R",
    advice=("balance_batches",),
    options={"imbalance": (0.10, "own; msprof-analyze advisor: 0.05")},
    order=1,
)
def find(ranks: Cluster, options: Options) -> Findings:
    """Ranks have unequal work.

    What it finds
        Compute, or compute with data loading and host work, of which the busiest rank has 10 % more than the mean.
    Why it costs time
        The others wait for it in the next collective.
    How it is measured
        (max - mean) / mean over the ranks, in every step, then the mean over steps. Equal work would shorten a step by
        (max - mean) at most; the saving is as much of it as the ranks spend waiting for each other with no compute
        beside it, on average. Where the same rank is always the last, RNK101 tells it, and this rule only what is
        left. Stages of a pipeline differ by design and are left out.
    What to do
        The same number of tokens for every rank: bucket or sort by length, sample anew; mixtures of experts: a balance
        loss and a capacity.

    References
        PyTorch Performance Tuning Guide.
    """
    # Imported here: many runs have one rank.
    from traceanalyze.ranks.compare import imbalance
    from traceanalyze.ranks.waits import point_to_point

    table = imbalance(ranks)
    if table.absent is not None:
        raise UnmeasuredError(table.absent.reason)
    between = any(point_to_point(rank, rows) for rank, rows in zip(ranks.ranks, ranks.rows, strict=True))
    if between and any(group.role == "pipeline" for group in ranks.groups):
        return
    rows = list(table.records())
    uneven = [one for one in rows if one.imbalance >= options.number("imbalance")]
    alone = next((one.imbalance for one in rows if one.quantity == "compute"), 0.0)
    for one in uneven[:1]:
        excess, gain = _saved(ranks, one.quantity)
        yield Finding(
            saving=gain,
            bound=excess,
            draws="comm_exposed",
            sentence="" if one.quantity == "compute" else one.quantity,
            evidence=(
                Evidence("imbalance", one.imbalance, "SHARE"),
                *measured(rank=one.most_rank, most=one.most_ns, least=one.least_ns),
                *(() if one.quantity == "compute" else (Evidence("compute_alone", alone, "SHARE"),)),
            ),
            advice=() if one.quantity == "compute" else ("diff_ranks",),
            scope=Scope(ops=(f"rank {one.most_rank}",)),
            count=one.steps,
            severity=Severity.LOW if gain is None else None,
        )


def _saved(ranks: Cluster, quantity: str) -> tuple[int, int | None]:
    """By how much equal work shortens a step at most, and how much of that the ranks spend waiting on average.

    The latter is known of groups that are complete: equal work saves no more of it.
    """
    from traceanalyze.ranks.compare import amount
    from traceanalyze.ranks.waits import by_durations

    work = amount(ranks, quantity)
    if work is None:
        return 0, None
    excess = work.max(axis=0) - np.ceil(work.mean(axis=0)).astype(np.int64)
    whole = [one for one in ranks.groups if one.complete and one.synchronising.any()]
    waited = by_durations(whole, ranks.rows).sum(axis=0) // len(ranks.rows)
    steps = len(ranks.steps)
    return int(excess.sum()) // steps, int(np.minimum(excess, waited).sum()) // steps if whole else None
