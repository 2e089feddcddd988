"""Ranks step by step, and how evenly they are loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.ranks.results import Cluster

_STEPS = (
    Column("step", Kind.TEXT),
    Column("rank", Kind.TEXT),
    Column("time_ns", Kind.DURATION),
    Column("of_mean", Kind.RATIO),
    Column("wait_ns", Kind.DURATION),
    Column("longest_part", Kind.TERM),
    Column("longest_ns", Kind.DURATION),
)
_IMBALANCE = (
    Column("quantity", Kind.TERM),
    Column("imbalance", Kind.SHARE),
    Column("worst_imbalance", Kind.SHARE),
    Column("worst_step", Kind.TEXT, minor=True),
    Column("most_rank", Kind.TEXT),
    Column("most_ns", Kind.DURATION),
    Column("least_rank", Kind.TEXT),
    Column("least_ns", Kind.DURATION),
    Column("steps", Kind.COUNT, minor=True),
)
_PARTS = ("compute", "communication", "memory_ops", "data_loading", "dispatch", "sync", "device_gap", "untraced")


def steps_table(cluster: Cluster) -> Table:
    """Every rank in every step; a heat map of `of_mean`, its time without waiting over the mean of the ranks.

    Step times themselves are alike on all ranks, as they wait for each other.
    """
    if not cluster.steps:
        return table_of_rows("rank_steps", _STEPS, NotMeasured("no_common_steps"), detail=True)
    time = cluster.step_time
    wait = _waits(cluster)
    own = time - np.array([wait.get(position, [0] * len(cluster.steps)) for position in range(len(time))], np.int64)
    mean = own.mean(axis=0)
    labels = step_labels(cluster.steps)
    known = {key: part for key in _PARTS if (part := cluster.part(key)) is not None}
    stacked = np.stack([*known.values()]) if known else np.zeros((0, *time.shape), np.int64)
    names = tuple(known)
    rows = []
    for step, label in enumerate(labels):
        for position, rank in enumerate(cluster.ranks):
            parts = stacked[:, position, step]
            longest = int(parts.argmax()) if len(parts) else -1
            rows.append(
                (
                    label,
                    rank.label,
                    int(time[position, step]),
                    float(own[position, step] / mean[step]) if mean[step] else None,
                    wait[position][step] if position in wait else NotMeasured("no_matched_collectives"),
                    names[longest] if longest >= 0 else NotMeasured("no_device_events"),
                    int(parts[longest]) if longest >= 0 else NotMeasured("no_device_events"),
                )
            )
    return table_of_rows("rank_steps", _STEPS, tuple(rows), worst="time_ns", detail=True)


def _waits(cluster: Cluster) -> dict[int, list[int]]:
    """Wait by rank and step, of ranks that took part in matched collectives."""
    found: dict[int, np.ndarray[tuple[int], np.dtype[np.int64]]] = {}
    for group in cluster.groups:
        chosen = np.flatnonzero(group.synchronising)
        if len(chosen) == 0:
            continue
        wait = group.wait[chosen]
        for place, member in enumerate(group.members):
            own = found.setdefault(member, np.zeros(len(cluster.steps), np.int64))
            np.add.at(own, group.step[chosen], wait[:, place])
    return {member: own.tolist() for member, own in found.items()}


def imbalance_table(cluster: Cluster) -> Table:
    """(max - mean) / mean over ranks (definitions §12)."""
    if isinstance(cluster.imbalance, NotMeasured):
        return table_of_rows("rank_imbalance", _IMBALANCE, cluster.imbalance, detail=True)
    labels = dict(zip(cluster.steps, step_labels(cluster.steps), strict=True))
    rows = tuple(
        (
            one.what,
            one.mean,
            one.worst,
            labels[one.worst_step],
            one.highest,
            one.high,
            one.lowest,
            one.low,
            one.steps,
        )
        for one in cluster.imbalance
    )
    return table_of_rows("rank_imbalance", _IMBALANCE, rows)
