"""All ranks of a run side by side, from the summary of each: how evenly they are loaded, and who leads."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value, declare
from traceanalyze.model.trace import at_other_times
from traceanalyze.ranks.links import links
from traceanalyze.ranks.match import clock_offsets, common_steps, matched, missing_ranks
from traceanalyze.ranks.overview import by_group, rank_groups
from traceanalyze.ranks.pipeline import pipeline_tables
from traceanalyze.ranks.results import MANY, Cluster, Members, RankSummary, spans
from traceanalyze.ranks.sends import between, moves, sends, waits_between
from traceanalyze.ranks.spread import spread_tables
from traceanalyze.ranks.stragglers import stragglers
from traceanalyze.ranks.waits import collective_waits, exposed_waits, in_groups, rank_waits

_QUANTITIES = {"compute": ("compute",), "compute_and_host": ("compute", "dispatch", "data_loading")}
_IMBALANCE = declare(
    "rank_imbalance",
    "How evenly the ranks are loaded",
    Column("quantity", Kind.TERM, "what is compared"),
    Column("imbalance", Kind.SHARE, "(maximum - mean) / mean over ranks; mean over steps"),
    Column("worst_imbalance", Kind.SHARE, "the same in the step with the largest", heading="imbalance, worst step"),
    Column("worst_step", Kind.TEXT, "that step", minor=True),
    Column("most_rank", Kind.TEXT, "rank that has most, over all steps", heading="most: rank"),
    Column("most_ns", Kind.DURATION, "per step"),
    Column("least_rank", Kind.TEXT, "rank that has least", heading="least: rank"),
    Column("least_ns", Kind.DURATION, "per step"),
    Column("steps", Kind.COUNT, "number of steps", minor=True),
)


def amount(cluster: Cluster, quantity: str) -> NDArray[np.int64] | None:
    """(ranks, steps) ns of what is compared; None where some rank does not tell it."""
    parts = [part for key in _QUANTITIES[quantity] if (part := cluster.part(key)) is not None]
    if len(parts) < len(_QUANTITIES[quantity]):
        return None
    found: NDArray[np.int64] = np.sum(parts, axis=0)
    return found


def imbalance(cluster: Cluster) -> Table:
    """(max - mean) / mean over ranks, by step and then over steps, of what all ranks recorded (definitions §12)."""
    if not cluster.steps:
        return _IMBALANCE.missing("no_common_steps", detail=True)
    labels, count = step_labels(cluster.steps), len(cluster.steps)
    rows: list[dict[str, Value]] = []
    for quantity in _QUANTITIES:
        each = amount(cluster, quantity)
        if each is None:
            continue
        mean = each.mean(axis=0)
        over = (each.max(axis=0) - mean) / np.maximum(mean, 1)
        total = each.sum(axis=1)
        high, low, worst = int(total.argmax()), int(total.argmin()), int(over.argmax())
        rows.append(
            {
                "quantity": quantity,
                "imbalance": float(over.mean()),
                "worst_imbalance": float(over[worst]),
                "worst_step": labels[worst],
                "most_rank": cluster.ranks[high].label,
                "most_ns": int(total[high]) // count,
                "least_rank": cluster.ranks[low].label,
                "least_ns": int(total[low]) // count,
                "steps": count,
            }
        )
    return _IMBALANCE.fill_records(rows) if rows else _IMBALANCE.missing("no_device_events", detail=True)


_PARTS = ("compute", "communication", "memory_ops", "data_loading", "dispatch", "sync", "device_gap", "untraced")
_RANK_STEPS = declare(
    "rank_steps",
    "Ranks step by step",
    Column("step", Kind.TEXT, "number of the step, or its name"),
    Column("rank", Kind.TEXT, "rank of the process; ?n where the profile does not tell; of many the ranks of a group"),
    Column("time_ns", Kind.DURATION, "step time"),
    Column(
        "of_mean",
        Kind.RATIO,
        "step time without waiting, over the mean of all ranks in that step",
        heading="of the mean",
    ),
    Column("wait_ns", Kind.DURATION, "in collectives, beyond the shortest duration on any rank", heading="waiting"),
    Column("longest_part", Kind.TERM, "part of the step that takes most"),
    Column("longest_ns", Kind.DURATION, "its time", heading="its time"),
    worst="time_ns",
    detail=True,
)


def rank_steps(cluster: Cluster) -> Table:
    """Every rank in every step; a heat map of `of_mean`, its time without waiting over the mean of the ranks.

    Step times themselves are alike on all ranks, as they wait for each other. Of many ranks the means of each machine
    or other group.
    """
    if not cluster.steps:
        return _RANK_STEPS.missing("no_common_steps")
    time, (wait, _, matched) = cluster.step_time, in_groups(cluster)
    own = time - wait
    parts = {key: part for key in _PARTS if (part := cluster.part(key)) is not None}
    stacked = np.stack([*parts.values()]) if parts else None
    labels, all_matched, mean = tuple(rank.label for rank in cluster.ranks), matched > 0, own.mean(axis=0)
    if len(labels) > MANY:
        labels, of = by_group(cluster)
        time, wait, own = (_mean(each, of) for each in (time, wait, own))
        all_matched = np.array([matched[of == at].all() for at in range(len(labels))])
        stacked = None if stacked is None else np.stack([_mean(each, of) for each in stacked])
    unmatched, unknown = NotMeasured("no_matched_collectives"), NotMeasured("no_device_events")
    ranks, steps = time.shape
    return _RANK_STEPS.fill(
        step=[label for label in step_labels(cluster.steps) for _ in range(ranks)],
        rank=labels * steps,
        time_ns=time.T.ravel(),
        of_mean=[float(one / mean[step]) if mean[step] else None for step in range(steps) for one in own[:, step]],
        wait_ns=[
            int(wait[rank, step]) if all_matched[rank] else unmatched for step in range(steps) for rank in range(ranks)
        ],
        longest_part=unknown if stacked is None else [[*parts][part] for part in stacked.argmax(axis=0).T.ravel()],
        longest_ns=unknown if stacked is None else stacked.max(axis=0).T.ravel(),
    )


def _mean(values: NDArray[np.int64], of: NDArray[np.int64]) -> NDArray[np.int64]:
    """(groups, steps) means of (ranks, steps) values over the groups that the ranks are of."""
    found = np.zeros((int(of.max()) + 1, values.shape[1]), np.int64)
    np.add.at(found, of, values)
    return found // np.bincount(of)[:, None]


def compare_ranks(summaries: Sequence[RankSummary], places: Sequence[int] = ()) -> Cluster:
    """Compare the ranks of one run, which come in the order of the report; `places` are theirs in it, if not all."""
    places = tuple(places or range(len(summaries)))
    ranks = _labelled(summaries, places)
    steps, rows = common_steps(ranks)
    groups, stops, outside = matched(ranks, steps, rows)
    missing, moved = missing_ranks(ranks), moves(between(ranks, rows))
    waits, late = exposed_waits(ranks, groups, rows, missing), stragglers(ranks, groups, rows, missing, moved)
    alone, told = isinstance(waits, NotMeasured), not missing and len(ranks) > 1 and all(len(one.row) for one in moved)
    sent = waits_between(ranks, rows, moved) if told or not alone else None
    return Cluster(ranks, steps, rows, missing, groups, stops, outside, waits, late, places=places, between=sent)


def with_summaries(cluster: Cluster, summaries: Sequence[RankSummary]) -> Cluster:
    """The same with summaries of the same ranks that tell more of some: their steps and collectives are the same."""
    return cluster._replace(ranks=_labelled(summaries, cluster.places))


def _labelled(summaries: Sequence[RankSummary], places: Sequence[int]) -> tuple[RankSummary, ...]:
    """All ranks with a label, and groups of one name that have other members with one each."""
    lists: dict[str, set[Members]] = {}
    for label, members in {(each.label, each.ranks) for one in summaries for each in one.groups if each.ranks}:
        lists.setdefault(label, set()).add(members)
    several = {label for label, known in lists.items() if len(known) > 1}
    pairs = zip(places, summaries, strict=True)
    found = (one if one.label else replace(one, label=f"?{at}") for at, one in pairs)
    return tuple(_apart(one, several) if several else one for one in found)


def _apart(one: RankSummary, several: Collection[str]) -> RankSummary:
    groups = (
        each._replace(label=f"{each.label} ({spans([*map(str, each.ranks)])})") if each.label in several else each
        for each in one.groups
    )
    return replace(one, groups=tuple(groups))


def cluster_tables(cluster: Cluster) -> tuple[Table, ...]:
    """All tables over the ranks, the most telling first."""
    pairs = between(cluster.ranks, cluster.rows)
    return (
        rank_waits(cluster),
        *((rank_groups(cluster),) if len(cluster.ranks) > MANY else ()),
        collective_waits(cluster),
        imbalance(cluster),
        rank_steps(cluster),
        clock_offsets(cluster),
        links(cluster.ranks),
        sends(cluster, pairs),
        *pipeline_tables(cluster, pairs),
        *spread_tables(cluster.ranks),
    )


def comparable(analyses: Sequence[RankAnalysis]) -> list[bool]:
    """Which recordings can be held against the others: whole files of their time that tell of a device if any does.

    And that have a step which more than half of them have. What a file lacks would be told as a difference of its rank.
    """
    device = any(one.partitions for one in analyses)
    apart = at_other_times([one.trace for one in analyses])
    found = [
        one.trace.read.whole and not other and bool(one.partitions) == device
        for one, other in zip(analyses, apart, strict=True)
    ]
    # Most of them have the same steps.
    alike = Counter(one.steps.name for one in compress(analyses, found))
    count: Counter[str] = Counter()
    for names, ranks in alike.items():
        count.update(dict.fromkeys(names, ranks))
    usual = {name for name, ranks in count.items() if 2 * ranks > sum(found)}
    unlike = {names for names in {one.steps.name for one in analyses} if usual and usual.isdisjoint(names)}
    return [fit and one.steps.name not in unlike for fit, one in zip(found, analyses, strict=True)]


def longest(step_times: Sequence[int]) -> int:
    """Position of the rank with the longest mean step; the first of equals."""
    return max(range(len(step_times)), key=step_times.__getitem__)
