from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.model.table import NotMeasured
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

if TYPE_CHECKING:
    from traceanalyze.ranks.results import Cluster

PARTS = ("compute", "dispatch", "data_loading")
"""What a rank does of its own accord."""


@rule(
    "RNK102",
    "load-imbalance",
    title={
        "": "ranks have unequal work",
        "dispatch": "one rank's host is later than the others",
        "data_loading": "one rank waits longer for its data than the others",
    },
    sentence={
        "": (
            "The busiest rank computes {imbalance} longer than the mean (mean of the steps): rank {rank} {most} {per}, "
            "the least {least}."
        ),
        "stages": (
            "The stages of the pipeline have unequal work: rank {rank} computes {most} {per}, {imbalance} more than "
            "the mean, another one {least}; the others wait for it."
        ),
        "dispatch": (
            "The host of rank {rank} prepares and launches work for {most} {per}, that of another one for {least}. "
            "With compute and data loading that is {imbalance} more than the mean; compute alone differs by "
            "{compute_alone}."
        ),
        "data_loading": (
            "Rank {rank} waits {most} {per} for its data, another one {least}. With compute and host work that is "
            "{imbalance} more than the mean; compute alone differs by {compute_alone}."
        ),
    },
    evidence={"imbalance": "imbalance", "compute_alone": "imbalance of compute alone"},
    confidence=Confidence.MEDIUM,
    needs="R",
    advice_texts={
        "even_stages": "Move layers from the stage that computes longest to the others; embedding and loss count, too."
    },
    advice=("balance_batches",),
    options={"imbalance": (0.10, "own; msprof-analyze advisor: 0.05")},
    order=1,
)
def find(ranks: "Cluster", options: Options) -> Findings:
    """Ranks have unequal work.

    What it finds
        Compute, or compute with data loading and host work, of which the busiest rank has 10 % more than the mean.
    Why it costs time
        The others wait for it in the next collective.
    How it is measured
        (max - mean) / mean over the ranks, in every step, then the mean over steps. Equal work would shorten a step by
        (max - mean) at most; the saving is as much of it as the ranks spend waiting for each other with no compute
        beside it, on average; its cost is all that they wait beyond the one that waits least. What the busiest rank has
        most more of than the mean is named; one that itself waits longer than the mean is not who others wait for.
        Where that rank is always the last, RNK101 tells it. Of stages of a pipeline compute alone is compared, and no
        saving told.
    What to do
        The same number of tokens for every rank: bucket or sort by length, sample anew; mixtures of experts: a balance
        loss and a capacity. Pipelines: fewer layers for the stage that computes longest.

    References
        PyTorch Performance Tuning Guide.
    """
    # Imported here: many runs have one rank.
    from traceanalyze.ranks.compare import imbalance
    from traceanalyze.ranks.match import role_of
    from traceanalyze.ranks.waits import in_common, point_to_point, waits_itself

    table = imbalance(ranks)
    if table.absent is not None:
        raise UnmeasuredError(table.absent.reason)
    between = any(
        point_to_point(rank, in_common(rank, rows)[1]) for rank, rows in zip(ranks.ranks, ranks.rows, strict=True)
    )
    named = (role_of((name,)) for name in {name for rank in ranks.ranks for name in rank.group_names})
    stages = between and "pipeline" in {*(group.role for group in ranks.groups), *named}
    rows = [row for row in table.records() if row.quantity == "compute" or not stages]
    uneven = [one for one in rows if one.imbalance >= options.number("imbalance")]
    alone = next((one.imbalance for one in rows if one.quantity == "compute"), 0.0)
    for one in uneven[:1]:
        if waits_itself(ranks, one.most_rank):
            continue
        excess, gain = _saved(ranks, one.quantity)
        part, most, least = _differs(ranks, one.most_rank)
        told = one.quantity == "compute" or part == "compute"
        if stages:
            # What passes from stage to stage hides how much of it is waiting.
            gain = None
        yield Finding(
            saving=gain,
            cost=_waiting(ranks, gain),
            bound=excess,
            draws="comm_exposed",
            sentence="stages" if stages else "" if told else part,
            evidence=(
                Evidence("imbalance", one.imbalance, "SHARE"),
                *measured(rank=one.most_rank, most=most, least=least),
                *(() if told else (Evidence("compute_alone", alone, "SHARE"),)),
            ),
            advice=("even_stages",) if stages else () if told else ("diff_ranks",),
            scope=Scope(ops=(f"rank {one.most_rank}",)),
            count=one.steps,
            severity=Severity.LOW if gain is None else None,
        )


def _differs(ranks: "Cluster", label: str) -> tuple[str, int, int]:
    """Which part one rank has most more of than the mean of all, how much it has, and the least of any; ns a step."""
    at = [rank.label for rank in ranks.ranks].index(label)
    known = {key: part.sum(axis=1) // len(ranks.steps) for key in PARTS if (part := ranks.part(key)) is not None}
    name = max(known, key=lambda key: float(known[key][at] - known[key].mean()))
    return name, int(known[name][at]), int(known[name].min())


def _waiting(ranks: "Cluster", gain: int | None) -> int | None:
    """What the ranks wait on average beyond the one that waits least, where that is more than what is saved."""
    if gain is None or isinstance(ranks.exposed_waits, NotMeasured):
        return None
    waits = ranks.exposed_waits.mean
    return max(gain, int(waits.sum()) // len(waits) - int(waits.min()))


def _saved(ranks: "Cluster", quantity: str) -> tuple[int, int | None]:
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
