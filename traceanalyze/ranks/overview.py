"""Many ranks at a glance: by machine, pipeline stage and process group; and which of them are worth a full analysis."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.columns import distinct
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value, declare
from traceanalyze.ranks.match import role_of
from traceanalyze.ranks.results import MANY, Cluster, Members, RankSummary, spans
from traceanalyze.ranks.waits import in_groups

IN_FULL = 32
"""Of more ranks so many are analysed in full."""
UNUSUAL = 0.05
"""Own: by so much the kernels of a rank differ from those of the others before it is looked at for that."""
_EACH = 6
"""Ranks that are chosen for one reason."""
_OFTEN = 2
"""Times the mean of the ranks, from which on one is last to collectives often."""
WHYS = "why_slowest", "why_straggler", "why_last", "why_kernels", "why_group", "why_typical"
"""Why a rank is analysed in full; the most telling first."""


class Grouping(NamedTuple):
    """One way to put ranks into groups."""

    kind: str
    """Term: by_host, by_stage, or the role of process groups."""
    names: tuple[str, ...]
    of: NDArray[np.int64]
    """(ranks,) position in `names`; -1 for none."""


def groupings(ranks: Sequence[RankSummary]) -> tuple[Grouping, ...]:
    """By machine, pipeline stage and kind of process group, where recordings tell of at least two of a kind."""
    found = [*_by_host(ranks), *_by_process_group(ranks)]
    return tuple(one for one in found if len(distinct(one.of[one.of >= 0])) > 1)


def _by_host(ranks: Sequence[RankSummary]) -> Iterator[Grouping]:
    hosts = [rank.host for rank in ranks]
    number = {host: at for at, host in enumerate(dict.fromkeys(host for host in hosts if host))}
    yield Grouping("by_host", tuple(number), np.array([number.get(host or "", -1) for host in hosts], np.int64))


def _by_process_group(ranks: Sequence[RankSummary]) -> Iterator[Grouping]:
    named: dict[Members, dict[str, None]] = {}
    for rank in ranks:
        for name, members in (*rank.group_names.items(), *((one.label, one.ranks) for one in rank.groups)):
            named.setdefault(members, {})[name] = None
    named.pop((), None)
    roles: dict[str, list[tuple[str, Members]]] = {}
    for members, names in named.items():
        role = role_of(names)
        if role is not None:
            roles.setdefault(role, []).append((next(iter(names)), members))
    at = {rank.rank: position for position, rank in enumerate(ranks)}
    for role, groups in roles.items():
        stages = role == "pipeline"
        of = np.full(len(ranks), -1, np.int64)
        for number, (_, members) in enumerate(groups):
            here = [(at[member], place) for place, member in enumerate(members) if member in at]
            of[[position for position, _ in here]] = [place for _, place in here] if stages else number
        shown = range(int(of.max(initial=-1)) + 1) if stages else [name for name, _ in groups]
        yield Grouping("by_stage" if stages else f"role_{role}", tuple(map(str, shown)), of)


def own_times(cluster: Cluster) -> NDArray[np.int64]:
    """(ranks,) ns that each needs for a step without waiting for others; its step, where that is not known."""
    step = cluster.step_time.sum(axis=1) // max(len(cluster.steps), 1)
    return np.array([own if own is not None else time for own, time in zip(cluster.own_time, step, strict=True)])


_GROUPS = declare(
    "rank_groups",
    "Ranks by machine, pipeline stage and process group (mean step)",
    Column("grouping", Kind.TERM, "how ranks are put into groups", heading="by"),
    Column("group", Kind.NAME, "machine, number of the stage, or name of the process group"),
    Column("ranks", Kind.TEXT, "ranks in it"),
    Column("count", Kind.COUNT, "how many these are"),
    Column("step_ns", Kind.DURATION, "mean step time"),
    Column("own_ns", Kind.DURATION, "mean step without waiting for other ranks, where that is known", heading="own"),
    Column("of_mean", Kind.RATIO, "that over the mean of all ranks", heading="of the mean"),
    Column("wait_ns", Kind.DURATION, "waiting in collectives, mean", heading="waiting"),
    Column("slowest_rank", Kind.TEXT, "rank with most time of its own", heading="slowest: rank"),
    Column("slowest_ns", Kind.DURATION, "its time", heading="its own"),
    worst="of_mean",
)


def rank_groups(cluster: Cluster) -> Table:
    """A row a group of many ranks, of each kind the slowest first."""
    kinds = groupings(cluster.ranks)
    if not kinds or not cluster.steps:
        return _GROUPS.missing("no_common_steps" if kinds else "no_rank_groups")
    own, steps = own_times(cluster), len(cluster.steps)
    time, (waits, _, matched) = cluster.step_time.sum(axis=1) // steps, in_groups(cluster)
    wait, mean = waits.sum(axis=1) // steps, float(own.mean())
    rows: list[dict[str, Value]] = []
    for one in kinds:
        slow_first = sorted(filter(len, _members(one)), key=lambda members: -float(own[members].mean()))
        for members in slow_first:
            slowest = int(members[own[members].argmax()])
            known = matched[members].all()
            rows.append(
                {
                    "grouping": one.kind,
                    "group": one.names[int(one.of[members[0]])],
                    "ranks": spans([cluster.ranks[at].label for at in members]),
                    "count": len(members),
                    "step_ns": int(time[members].mean()),
                    "own_ns": int(own[members].mean()),
                    "of_mean": float(own[members].mean()) / mean if mean else None,
                    "wait_ns": int(wait[members].mean()) if known else NotMeasured("no_matched_collectives"),
                    "slowest_rank": cluster.ranks[slowest].label,
                    "slowest_ns": int(own[slowest]),
                }
            )
    return _GROUPS.fill_records(rows)


def _members(one: Grouping) -> list[NDArray[np.int64]]:
    """Positions of the ranks of each group."""
    order = np.argsort(one.of, kind="stable")
    return np.split(order, np.searchsorted(one.of[order], np.arange(len(one.names) + 1)))[1:-1]


def slower_kernels(ranks: Sequence[RankSummary]) -> "SameKernels | None":
    """Kernels that all ranks have, and how they differ in time; None where there are none, or some rank tells none."""
    code: dict[tuple[str, str], int] = {}
    own = [
        np.array([code.setdefault(key, len(code)) for key in zip(rank.kernels.names, rank.kernels.what, strict=True)])
        for rank in ranks
    ]
    if len(ranks) < 2 or not all(map(len, own)):
        return None
    same = np.flatnonzero(np.bincount(np.concatenate(own)) == len(ranks))
    if not len(same):
        return None
    rows = np.stack([(order := np.argsort(each))[np.searchsorted(each[order], same)] for each in own])
    time, median = (
        np.stack([getattr(rank.kernels, key)[row] for rank, row in zip(ranks, rows, strict=True)])
        for key in ("time", "median")
    )
    ratios = median / np.maximum(_medians_of_others(median), 1)
    order = np.argsort(ratios, axis=1, kind="stable")
    reach = np.cumsum(np.take_along_axis(time, order, 1), axis=1)
    middle = (reach < reach[:, -1:] / 2).sum(axis=1)[:, None]
    slower = np.take_along_axis(np.take_along_axis(ratios, order, 1), middle, 1)[:, 0]
    names = [list(code)[at][0] for at in same.tolist()]
    return SameKernels(names, time, ratios, slower)


class SameKernels(NamedTuple):
    """Kernels that all ranks have."""

    names: Sequence[str]
    time: NDArray[np.int64]
    """(ranks, kernels) ns in all."""
    ratios: NDArray[np.float64]
    """(ranks, kernels) median duration over the median of those of the other ranks."""
    slower: NDArray[np.float64]
    """(ranks,) median of these ratios, weighted by time."""


def _medians_of_others(values: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of each value the median of the others of its column; columns are sorted once."""
    order = np.argsort(values, axis=0, kind="stable")
    place = np.argsort(order, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    middle = [at + (at >= place) for at in ((len(values) - 2) // 2, (len(values) - 1) // 2)]
    return np.asarray(sum(np.take_along_axis(ordered, at, axis=0) for at in middle) / 2)


def worth_full(cluster: Cluster) -> dict[int, str]:
    """Positions of the ranks to be analysed in full, and why: a term; the most telling first."""
    found: dict[int, str] = {}
    own = own_times(cluster)
    typical = int(np.argmin(np.abs(own - np.median(own))))
    for at, why in (*_telling(cluster, own), *_slowest_of_groups(cluster, own)):
        if at != typical and len(found) < IN_FULL - 1:
            found.setdefault(at, why)
    return found | {typical: found.get(typical, "why_typical")}


def _telling(cluster: Cluster, own: NDArray[np.int64]) -> Iterator[tuple[int, str]]:
    yield cluster.lead, "why_slowest"
    late = () if isinstance(cluster.stragglers, NotMeasured) else cluster.stragglers
    yield from ((one.position, "why_straggler") for one in late[:_EACH])
    _, last, matched = in_groups(cluster)
    often = np.where(matched > 0, last / np.maximum(matched, 1), 0)
    yield from (
        (int(at), "why_last") for at in np.argsort(-often, kind="stable")[:_EACH] if often[at] > _OFTEN * often.mean()
    )
    kernels = slower_kernels(cluster.ranks)
    if kernels is not None:
        away = np.abs(kernels.slower - 1)
        yield from ((int(at), "why_kernels") for at in np.argsort(-away, kind="stable")[:_EACH] if away[at] >= UNUSUAL)


def _slowest_of_groups(cluster: Cluster, own: NDArray[np.int64]) -> Iterator[tuple[int, str]]:
    """The slowest rank of each group, those of the slowest groups first: of each kind of group in turn one."""
    kinds = groupings(cluster.ranks) or (Grouping("", *by_group(cluster)),)
    slowest = [[int(members[own[members].argmax()]) for members in _members(one) if len(members)] for one in kinds]
    for row in zip_longest(*(sorted(each, key=lambda at: -own[at]) for each in slowest)):
        yield from ((at, "why_group") for at in row if at is not None)


def by_group(cluster: Cluster) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Names of the groups of ranks that a picture of many ranks is drawn of, and the group of each rank.

    Machines, or else the kind of process group with most groups; where nothing tells of any, ranks in a row.
    """
    kinds = groupings(cluster.ranks)
    whole = [one for one in kinds if (one.of >= 0).all()]
    if whole:
        one = max(whole, key=lambda each: (each.kind == "by_host", len(each.names)))
        # Of groups that ranks merely know of none may be here.
        names = (spans([cluster.ranks[at].label for at in members]) for members in _members(one) if len(members))
        return tuple(names), np.unique(one.of, return_inverse=True)[1]
    size = -(-len(cluster.ranks) // MANY)
    labels = [rank.label for rank in cluster.ranks]
    names = (spans(labels[at : at + size]) for at in range(0, len(labels), size))
    return tuple(names), np.arange(len(labels)) // size
