"""RNK102: ranks have unequal work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traceanalyze.model.table import NotMeasured
from traceanalyze.rules.rule import Confidence, Evidence, Finding, NotApplicable, Options, Scope, Severity, rule

if TYPE_CHECKING:
    from traceanalyze.ranks.results import Cluster


@rule(
    "RNK102",
    "load-imbalance",
    confidence=Confidence.MEDIUM,
    needs="R",
    advice=("balance_batches",),
    options={"imbalance": (0.10, "own; msprof-analyze advisor: 0.05")},
    order=1,
)
def find(ranks: Cluster, options: Options) -> Iterator[Finding | NotApplicable]:
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
    if isinstance(ranks.imbalance, NotMeasured):
        yield NotApplicable(ranks.imbalance.reason)
        return
    if any(one.point_to_point for one in ranks.waits) and any(group.role == "pipeline" for group in ranks.groups):
        return
    uneven = [one for one in ranks.imbalance if one.mean >= options.number("imbalance")]
    alone = next((one.mean for one in ranks.imbalance if one.what == "compute"), 0.0)
    for one in uneven[:1]:
        yield Finding(
            saving=one.gain if isinstance(one.gain, int) else None,
            bound=one.excess,
            draws="comm_exposed",
            sentence="" if one.what == "compute" else one.what,
            evidence=(
                Evidence("imbalance", one.mean, "SHARE"),
                Evidence("rank", one.highest, "TEXT"),
                Evidence("most", one.high, "DURATION"),
                Evidence("least", one.low, "DURATION"),
                *(() if one.what == "compute" else (Evidence("compute_alone", alone, "SHARE"),)),
            ),
            advice=() if one.what == "compute" else ("diff_ranks",),
            scope=Scope(ops=(f"rank {one.highest}",)),
            count=one.steps,
            severity=None if isinstance(one.gain, int) else Severity.LOW,
        )
