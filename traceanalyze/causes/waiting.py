"""When ranks wait, step by step, and what each needs of its own where that cannot be told."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.table import NotMeasured
from traceanalyze.ranks.results import Cluster
from traceanalyze.rules.finding import Finding

DRAWS = "comm_exposed"


def cost_of(finding: Finding, cluster: Cluster) -> NDArray[np.int64] | None:
    """What a finding about waiting takes in each of the common steps: the mean wait of the ranks that wait for it."""
    if isinstance(cluster.exposed_waits, NotMeasured) or finding.draws != DRAWS:
        return None
    late = [at for at, rank in enumerate(cluster.ranks) if rank.rank in finding.scope.ranks]
    others = np.delete(cluster.exposed_waits.by_step, late, axis=0)
    mean: NDArray[np.int64] = others.sum(axis=0) // max(len(others), 1)
    return mean


def needs_of(cluster: Cluster) -> tuple[int | None, ...]:
    """What each rank needs for a step of its own, ns, but for what all need alike; None where that is not known.

    Its mean step without waiting. Where ranks are missing, or waiting was not matched, without all communication that
    nothing hides and all waiting on the host: the transfer in it takes all ranks equally long.
    """
    waited, steps = cluster.exposed_waits, max(len(cluster.steps), 1)
    if not isinstance(waited, NotMeasured) and not waited.bound:
        return cluster.own_time
    communication, peers = cluster.part("communication"), cluster.part("peer_wait")
    if communication is None or not cluster.steps:
        return (None,) * len(cluster.ranks)
    alone = cluster.step_time - communication - (0 if peers is None else peers)
    return tuple((alone.sum(axis=1) // steps).tolist())
