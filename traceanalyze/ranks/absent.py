"""Ranks that were not recorded: what the others may be waiting for them, and which one they say they wait for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.table import NotMeasured
from traceanalyze.ranks.match import SYNCHRONISING, presence
from traceanalyze.ranks.results import Cluster
from traceanalyze.ranks.waits import in_common, waited_for


def perhaps_waiting(cluster: Cluster) -> NDArray[np.int64]:
    """(ranks, steps) exposed ns of collectives that end no earlier than a rank comes that was not recorded.

    How much of it is waiting for that rank, and how much transfer, only its own recording tells.
    """
    found = np.zeros(cluster.rows.shape, np.int64)
    members: dict[str, list[int]] = {}
    for position, rank in enumerate(cluster.ranks):
        for one in rank.groups:
            members.setdefault(one.label, []).append(position)
    lacking = set()
    for label, of in members.items():
        known = [one for at in of for one in cluster.ranks[at].groups if one.label == label]
        if presence(known, of, cluster.ranks)[0]:
            lacking.add(label)
    for position, (rank, rows) in enumerate(zip(cluster.ranks, cluster.rows, strict=True)):
        own = rank.collectives
        groups = [number for number, one in enumerate(rank.groups) if one.label in lacking]
        step, inside = in_common(rank, rows)
        chosen = SYNCHRONISING[own.kind] & np.isin(own.group, groups) & inside
        np.add.at(found[position], step[chosen], own.exposed[chosen])
    return found


def absent_rank(cluster: Cluster) -> int | None:
    """The rank that was not recorded, if all recorded ones say that they wait for it longest (Ascend)."""
    peers = {waited_for(rank, rows) for rank, rows in zip(cluster.ranks, cluster.rows, strict=True)}
    (peer,) = peers if len(peers) == 1 else (None,)
    return None if isinstance(peer, NotMeasured) or peer not in cluster.missing_ranks else peer
