"""How long ranks wait for each other, and for what, where no single one is to blame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.cluster.exposed_wait import bare_wait
from traceanalyze.rules.finding import Confidence, Evidence, Finding, Scope, Severity
from traceanalyze.rules.ranking import HIGH, LEAST_NS, MEDIUM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.cluster.results import Cluster

ABSENT, MISSING, ALONE = "absent", "missing", "alone"
"""Variants of the sentence where ranks were not recorded: then findings about single ranks include the waiting."""
WAITING = "waiting"
"""Slug of the finding; no rule has it."""
DRAWS = "comm_exposed"


def waits(cluster: Cluster) -> NDArray[np.int64] | None:
    """Time of each rank in which it does nothing but wait for others in collectives, ns a step; None if not known.

    From the durations on all ranks (definitions §12); where ranks are missing rather from the parts of the collectives,
    where these were recorded (Ascend): they tell one rank's waiting without the others.
    """
    recorded = _recorded(cluster)
    return recorded if cluster.missing_ranks and recorded is not None else _matched(cluster, recorded)


def own_times(cluster: Cluster) -> tuple[int | None, ...]:
    """Mean step of each rank without that, ns."""
    waited = waits(cluster)
    if waited is None or not cluster.steps:
        return (None,) * len(cluster.ranks)
    return tuple((cluster.step_time.sum(axis=1) // len(cluster.steps) - waited).tolist())


def waits_by_step(cluster: Cluster) -> NDArray[np.int64] | None:
    """(ranks, steps) ns in which a rank does nothing but wait in collectives, by their durations; None if not known."""
    if not cluster.steps or not any(group.synchronising.any() for group in cluster.groups):
        return None
    total = np.zeros((len(cluster.ranks), len(cluster.steps)), np.int64)
    for group in cluster.groups:
        chosen = np.flatnonzero(group.synchronising)
        bare = bare_wait(group)[chosen]
        for place, member in enumerate(group.members):
            np.add.at(total[member], group.step[chosen], bare[:, place])
    return total


def cost_of(finding: Finding, cluster: Cluster) -> NDArray[np.int64] | None:
    """What a finding about waiting takes in each of the common steps: the mean wait of the ranks that wait for it."""
    waited = waits_by_step(cluster)
    if waited is None or finding.draws != DRAWS:
        return None
    late = [at for at, rank in enumerate(cluster.ranks) if rank.rank in finding.scope.ranks]
    others = np.delete(waited, late, axis=0)
    mean: NDArray[np.int64] = others.sum(axis=0) // max(len(others), 1)
    return mean


def _matched(cluster: Cluster, otherwise: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
    by_step = waits_by_step(cluster)
    if by_step is None:
        return otherwise
    total: NDArray[np.int64] = by_step.sum(axis=1) // len(cluster.steps)
    return total


def _recorded(cluster: Cluster) -> NDArray[np.int64] | None:
    """By the tasks of the collectives: exposed time in which no plane moved data, at least."""
    sums = []
    for rank, rows in zip(cluster.ranks, cluster.rows, strict=True):
        found = rank.collectives
        inside = np.isin(found.step, rows)
        if not cluster.steps or not inside.any() or (found.moved[inside] < 0).any():
            return None
        sums.append(int(np.clip(found.exposed[inside] - found.moved[inside], 0, None).sum()) // len(cluster.steps))
    return np.array(sums, np.int64)


def waiting(cluster: Cluster, about: Sequence[Finding] = (), least: float = MEDIUM) -> Finding | None:
    """That the ranks wait for each other, if it costs 5 % of the step more than what rules tell about it.

    What is saved is the mean waiting, less the least of any rank, which even ranks would have; where a rank was not
    recorded all of it, as that one may be the late one.

    Args:
        cluster: The ranks side by side.
        about: What the rules say about them; the wait for a straggler is told by its own finding.
        least: Share of the step.
    """
    amounts = waits(cluster)
    named = not isinstance(cluster.stragglers, NotMeasured) and any(one.share >= least for one in cluster.stragglers)
    if amounts is None or named:
        return None
    told = max((one.saving or 0 for one in about if one.draws == DRAWS), default=0)
    step = int(cluster.step_time.sum()) // max(cluster.step_time.size, 1)
    partial = bool(cluster.missing_ranks) or len(cluster.ranks) == 1
    mean = int(amounts.sum()) // len(amounts)
    saving = mean if partial else mean - int(amounts.min())
    share = saving / step if step else 0.0
    if saving < LEAST_NS or saving - told < least * step:
        return None
    sentence, evidence, ranks = _for_whom(cluster, partial)
    return Finding(
        saving=saving,
        bound=mean,
        draws=DRAWS,
        sentence=sentence,
        evidence=(Evidence("wait", saving, "DURATION"), Evidence("share", share, "SHARE"), *evidence),
        advice=("record_that_rank",) if partial else ("balance_batches", "diff_ranks"),
        scope=Scope(ops=ranks),
        count=len(cluster.steps),
        severity=Severity.HIGH if share >= HIGH else Severity.MEDIUM,
        confidence=Confidence.MEDIUM,
        slug=WAITING,
    )


def _for_whom(cluster: Cluster, partial: bool) -> tuple[str, tuple[Evidence, ...], tuple[str, ...]]:
    """Which sentence tells it, with what it mentions."""
    peers = {one.waited_for for one in cluster.waits if not isinstance(one.waited_for, NotMeasured)}
    if partial and len(peers) == 1 and peers <= set(cluster.missing_ranks):
        rank = str(next(iter(peers)))
        return ABSENT, (Evidence("rank", rank, "TEXT"),), (f"rank {rank}",)
    if partial and not cluster.missing_ranks:
        return ALONE, (), ()
    if partial:
        listed = ", ".join(map(str, cluster.missing_ranks))
        return MISSING, (Evidence("ranks", listed, "TEXT"),), ()
    uneven = () if isinstance(cluster.imbalance, NotMeasured) else cluster.imbalance
    most = max(uneven, key=lambda one: one.high - one.low, default=None)
    if most is None or most.high == most.low:
        return "", (), ()
    told = (
        Evidence("rank", most.highest, "TEXT"),
        Evidence("most", most.high, "DURATION"),
        Evidence("least", most.low, "DURATION"),
    )
    return f"uneven_{most.what}", told, (f"rank {most.highest}",)
