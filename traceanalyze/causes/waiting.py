"""How long ranks wait for each other, and for what, where no single one is to blame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import listed
from traceanalyze.model.table import NotMeasured
from traceanalyze.ranks.compare import imbalance
from traceanalyze.ranks.results import Cluster
from traceanalyze.ranks.waits import waited_for
from traceanalyze.rules.finding import Confidence, Evidence, Finding, Scope, Severity
from traceanalyze.rules.ranking import HIGH, LEAST_NS, MEDIUM

ABSENT, MISSING, ALONE = "absent", "missing", "alone"
"""Variants of the sentence where ranks were not recorded: then findings about single ranks include the waiting."""
WAITING = "waiting"
"""Slug of the finding; no rule has it."""
DRAWS = "comm_exposed"


def cost_of(finding: Finding, cluster: Cluster) -> NDArray[np.int64] | None:
    """What a finding about waiting takes in each of the common steps: the mean wait of the ranks that wait for it."""
    if isinstance(cluster.exposed_waits, NotMeasured) or finding.draws != DRAWS:
        return None
    late = [at for at, rank in enumerate(cluster.ranks) if rank.rank in finding.scope.ranks]
    others = np.delete(cluster.exposed_waits.by_step, late, axis=0)
    mean: NDArray[np.int64] = others.sum(axis=0) // max(len(others), 1)
    return mean


def waiting(cluster: Cluster, about: Sequence[Finding] = (), least: float = MEDIUM) -> Finding | None:
    """That the ranks wait for each other, if it costs 5 % of the step more than what rules tell about it.

    What is saved is the mean waiting, less the least of any rank, which even ranks would have; where a rank was not
    recorded all of it, as that one may be the late one. `about` are findings of rules about the ranks: the wait for a
    straggler has one of its own.
    """
    waited = cluster.exposed_waits
    named = not isinstance(cluster.stragglers, NotMeasured) and any(one.share >= least for one in cluster.stragglers)
    if isinstance(waited, NotMeasured) or named:
        return None
    amounts = waited.mean
    known = max((one.saving or 0 for one in about if one.draws == DRAWS), default=0)
    step = int(cluster.step_time.sum()) // max(cluster.step_time.size, 1)
    partial = bool(cluster.missing_ranks) or len(cluster.ranks) == 1
    mean = int(amounts.sum()) // len(amounts)
    saving = mean if partial else mean - int(amounts.min())
    share = saving / step if step else 0.0
    if saving < LEAST_NS or saving - known < least * step:
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
    each = (waited_for(rank, rows) for rank, rows in zip(cluster.ranks, cluster.rows, strict=True))
    peers = {peer for peer in each if not isinstance(peer, NotMeasured)}
    if partial and len(peers) == 1 and peers <= set(cluster.missing_ranks):
        rank = str(next(iter(peers)))
        return ABSENT, (Evidence("rank", rank, "TEXT"),), (f"rank {rank}",)
    if partial and not cluster.missing_ranks:
        return ALONE, (), ()
    if partial:
        ranks = listed(cluster.missing_ranks)
        return MISSING, (Evidence("ranks", ranks, "TEXT"),), ()
    most = max(imbalance(cluster).records(), key=lambda one: one.most_ns - one.least_ns, default=None)
    if most is None or most.most_ns == most.least_ns:
        return "", (), ()
    measured = (
        Evidence("rank", most.most_rank, "TEXT"),
        Evidence("most", most.most_ns, "DURATION"),
        Evidence("least", most.least_ns, "DURATION"),
    )
    return f"uneven_{most.quantity}", measured, (f"rank {most.most_rank}",)
