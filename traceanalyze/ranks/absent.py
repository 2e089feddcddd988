"""Ranks that were not recorded: what the others may be waiting for them, and which one they say they wait for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.table import NotMeasured
from traceanalyze.ranks.match import SYNCHRONISING, presence
from traceanalyze.ranks.results import Cluster, MatchedGroup, RankCollectives
from traceanalyze.ranks.waits import beyond_siblings, in_common, waited_for


def waits_for_absent(cluster: Cluster) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(ranks, steps) exposed ns in which ranks may wait for some that were not recorded, at most and at least.

    At most what the recorded rank that came last is in each collective without moving data: what the others take longer
    they wait for recorded ones. Only a recording of the missing rank tells how much of it is waiting, but where tasks
    are recorded, or it outlasts its siblings.
    """
    most, least = np.zeros((2, *cluster.rows.shape), np.int64)
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
        common = _without_moving(own)
        for each in cluster.groups:
            if position in each.members:
                same = each.row[each.synchronising, each.members.index(position)]
                common[same] = _without_moving(each)[each.synchronising].min(axis=1)
        groups = [number for number, one in enumerate(rank.groups) if one.label in lacking]
        step, inside = in_common(rank, rows)
        by_tasks = own.moved >= 0
        chosen = (by_tasks | SYNCHRONISING[own.kind] & np.isin(own.group, groups)) & inside
        shown = np.clip(own.exposed - np.maximum(own.moved, 0), 0, common)
        certain = np.where(by_tasks, shown, beyond_siblings(own, common))
        for found, time in ((most, shown), (least, certain)):
            np.add.at(found[position], step[chosen], time[chosen])
    return most, least


def _without_moving(one: RankCollectives | MatchedGroup) -> NDArray[np.int64]:
    """How long each takes without moving data, as far as its tasks are recorded; ns."""
    found: NDArray[np.int64] = np.maximum(one.end - one.start - np.maximum(one.moved, 0), 0)
    return found


def absent_rank(cluster: Cluster) -> int | None:
    """The rank that was not recorded, if all recorded ones say that they wait for it longest (Ascend)."""
    peers = {waited_for(rank, rows) for rank, rows in zip(cluster.ranks, cluster.rows, strict=True)}
    (peer,) = peers if len(peers) == 1 else (None,)
    return None if isinstance(peer, NotMeasured) or peer not in cluster.missing_ranks else peer
