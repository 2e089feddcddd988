"""Collectives matched across ranks (definitions §12): same group, same step, same place in the order of the program.

And what their ends tell of the clocks of the ranks.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.steps.window import median
from traceanalyze.model.collectives import SENDS, TYPES
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, declare
from traceanalyze.ranks.results import Cluster, Group, MatchedGroup, Members, RankSummary, Stop, columns_of

_ROLES = {
    "tensor": r"tp|tensor|mp|model_parallel",
    "pipeline": r"pp|pipe|pipeline",
    "data": r"dp|data|ddp|fsdp|replicate|shard",
    "expert": r"ep|expert|moe",
    "context": r"cp|sp|context|sequence",
}
_WORDS = {role: regex(rf"(?:^|[^a-z])(?:{words})(?:[^a-z]|$)") for role, words in _ROLES.items()}


def role_of(names: Iterable[str]) -> str | None:
    """What a group is for, by the first of its names that says so; None where none does."""
    for name in names:
        found = [role for role, words in _WORDS.items() if words.search(name.lower())]
        if len(found) == 1:
            return found[0]
    return None


def world_size(ranks: Iterable[RankSummary]) -> int:
    """How many ranks the run has, as far as the recordings tell; 0 where they do not."""
    return max((rank.world_size or 0 for rank in ranks), default=0)


def missing_ranks(ranks: Sequence[RankSummary]) -> tuple[int, ...]:
    """Ranks of the run that were not recorded, as far as the recordings tell how many there are."""
    size = world_size(ranks)
    here = {rank.rank for rank in ranks}
    return tuple(number for number in range(size) if number not in here)


def presence(
    known: Sequence[Group], members: Sequence[int], ranks: Sequence[RankSummary], world: int
) -> tuple[tuple[int, ...], bool]:
    """Ranks of a group that were not recorded, and whether all are known to be here.

    A group that nothing describes counts as that of all ranks of the run, `world` many (`world_size`).
    """
    here = {ranks[position].rank for position in members}
    listed = next((one.ranks for one in known if one.ranks), ())
    if not listed:
        unnamed = not any(one.label for one in known)
        size = max([world if unnamed else 0, *(one.size for one in known)])
        if not size:
            return (), False
        # Ranks inside a group are those of the run only if it is the group of all.
        numbered = size == world or not world
        absent = tuple(number for number in range(size) if number not in here) if numbered else ()
        return absent, len(members) >= size
    return tuple(number for number in listed if number not in here), all(number in here for number in listed)


SYNCHRONISING = np.array(
    [kind in {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"} for kind in TYPES], np.bool_
)
"""By position in `TYPES`."""
POINT_TO_POINT = np.array([kind in SENDS for kind in TYPES], np.bool_)
"""Not matched: what is a send on one rank is a receive on another."""
_UNEVEN = np.array([kind in {"all_to_all", "gather", "scatter"} for kind in TYPES], np.bool_)
"""Ranks may send different amounts."""


def common_steps(ranks: Sequence[RankSummary]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Steps that count on all ranks (that all recorded at all, where there is none), and their rows by rank.

    Steps are the same by their names; of equal names the first with the first.
    """
    # Most ranks have the same.
    numbered = {names: _numbered(names) for names in {rank.steps for rank in ranks}}
    shared = [key for key in numbered[ranks[0].steps] if all(key in each for each in numbered.values())]
    row = {names: np.array([each[key] for key in shared], np.int64) for names, each in numbered.items()}
    rows = np.stack([row[rank.steps] for rank in ranks])
    whole = np.ones(len(shared), np.bool_)
    for rank, own in zip(ranks, rows, strict=True):
        whole &= rank.counted[own]
    chosen = whole if whole.any() else np.ones(len(shared), np.bool_)
    return tuple(key[0] for key, wanted in zip(shared, chosen.tolist(), strict=True) if wanted), rows[:, chosen]


def _numbered(names: Sequence[str]) -> dict[tuple[str, int], int]:
    count: Counter[str] = Counter()
    found = {}
    for row, name in enumerate(names):
        found[name, count[name]] = row
        count[name] += 1
    return found


class _Part(NamedTuple):
    """What a rank contributes to a group: positions in its collectives, step by step in their order."""

    rank: int
    rows: NDArray[np.int64]
    step: NDArray[np.int64]
    """Common step of each."""

    def by_step(self, steps: int) -> list[NDArray[np.int64]]:
        """Its rows of each step."""
        return np.split(self.rows, np.searchsorted(self.step, np.arange(1, steps)))


class _Asked(NamedTuple):
    """Collectives of a rank by its groups, and how many lie outside the common steps."""

    parts: tuple[tuple[int, int, NDArray[np.int64], NDArray[np.int64]], ...]
    """Number of the group, kind (-1 for all), and rows and steps as in `_Part`."""
    outside: int


def _asked(rank: RankSummary, rows: NDArray[np.int64]) -> _Asked:
    own = rank.collectives
    common = np.full(len(rank.steps) + 1, -1, np.int64)
    common[rows] = np.arange(len(rows))
    step = common[own.step]
    found = []
    for number, one in enumerate(rank.groups):
        useful = (own.group == number) & (step >= 0) & ~POINT_TO_POINT[own.kind]
        kinds = [-1] if one.label else np.unique(own.kind[useful]).tolist()
        for kind in kinds:
            chosen = np.flatnonzero(useful & ((kind < 0) | (own.kind == kind)))
            chosen = chosen[np.argsort(step[chosen], kind="stable")]
            if len(chosen):
                found.append((number, kind, chosen, step[chosen]))
    return _Asked(tuple(found), int((step < 0).sum()))


def matched(
    ranks: Sequence[RankSummary], steps: Sequence[str], rows: NDArray[np.int64]
) -> tuple[tuple[MatchedGroup, ...], tuple[Stop, ...], int]:
    """Groups of at least two recorded ranks, where matching stopped, and how many collectives lie outside the steps.

    Within a step the collectives of a group are one sequence; where kinds or sizes disagree, the rest of it is left
    out. Where groups are not recorded, each kind is taken as a sequence of its own.
    """
    parts: dict[tuple[str, int], list[_Part]] = {}
    known: dict[str, list[Group]] = {}
    alike: dict[tuple[Hashable, ...], _Asked] = {}
    outside = 0
    for position, rank in enumerate(ranks):
        own = rank.collectives
        # Most ranks run one program, and ask for the same.
        about = (own.group, own.kind, own.step, rows[position])
        key = len(rank.steps), *(bool(one.label) for one in rank.groups), *((c.dtype, c.tobytes()) for c in about)
        if key not in alike:
            alike[key] = _asked(rank, rows[position])
        outside += alike[key].outside
        for group in rank.groups:
            known.setdefault(group.label, []).append(group)
        for number, only, chosen, step in alike[key].parts:
            parts.setdefault((rank.groups[number].label, only), []).append(_Part(position, chosen, step))
    names: dict[Members, dict[str, None]] = {}
    for name, listed in {pair: None for rank in ranks for pair in rank.group_names.items()}:
        names.setdefault(listed, {})[name] = None
    every, stops, world = _Every(ranks), list[Stop](), world_size(ranks)
    found: list[dict[str, Any]] = []
    kinds, sizes = every.column("kind"), every.column("bytes")
    for (label, _), sides in parts.items():
        if len(sides) < 2:
            continue
        members = tuple(side.rank for side in sides)
        table, step, stopped = _table(every, kinds, sizes, label, steps, sides)
        stops.extend(stopped)
        listed = next((one.ranks for one in known[label] if one.ranks), ())
        role = role_of({label: None, **names.get(listed, {})} if listed else (label,))
        missing, complete = presence(known[label], members, ranks, world)
        at = every.rows(members, table)
        kind = kinds[at[:, 0]]
        head = {"group": label, "role": role, "members": members, "missing": missing, "complete": complete}
        columns = {"kind": kind, "bytes": sizes[at].max(axis=1), "step": step, "synchronising": SYNCHRONISING[kind]}
        found.append({**head, **columns, "row": table})
    # One column of all ranks at a time: all of them together would take as much as the ranks themselves.
    del kinds, sizes
    for name in ("start", "end", "exposed", "moved"):
        column = every.column(name)
        for one in found:
            one[name] = column[every.rows(one["members"], one["row"])]
        del column
    return tuple(_joined([MatchedGroup(**one) for one in found])), tuple(stops), outside


class _Every:
    """Collectives of all ranks one after another."""

    def __init__(self, ranks: Sequence[RankSummary]) -> None:
        self._ranks = ranks
        self._first = np.concatenate(([0], np.cumsum([len(rank.collectives) for rank in ranks])))

    def column(self, name: str) -> NDArray[Any]:
        """One column of all of them."""
        return np.concatenate([getattr(rank.collectives, name) for rank in self._ranks])

    def rows(self, members: Sequence[int], table: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the rows of some ranks lie in it; `table` has a column a rank."""
        found: NDArray[np.int64] = self._first[list(members)] + table
        return found


def _joined(groups: Sequence[MatchedGroup]) -> Iterator[MatchedGroup]:
    """Kinds that were matched apart as one group again, in order of time."""
    found: dict[tuple[str, tuple[int, ...]], list[MatchedGroup]] = {}
    for one in groups:
        found.setdefault((one.group, one.members), []).append(one)
    for same in found.values():
        if len(same) == 1:
            yield same[0]
            continue
        columns: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in same]) for name in _COLUMNS}
        order = np.lexsort((columns["start"][:, 0], columns["step"]))
        yield replace(same[0], **{name: column[order] for name, column in columns.items()})


_COLUMNS = ("kind", "bytes", "step", "start", "end", "exposed", "moved", "synchronising", "row")
"""Of a `MatchedGroup`, a row a collective."""


def _table(
    every: _Every,
    kinds: NDArray[Any],
    sizes: NDArray[Any],
    label: str,
    steps: Sequence[str],
    sides: Sequence[_Part],
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[Stop]]:
    """(n, ranks) rows of the collectives that match, the step of each, and where matching stopped.

    `kinds` and `sizes` are of every rank's collectives.
    """
    members, first = [side.rank for side in sides], sides[0]

    def agreement(rows: NDArray[np.int64], lengths: Collection[int]) -> tuple[int, str]:
        at = every.rows(members, rows)
        return _agreement(kinds[at], sizes[at], lengths)

    if all(side.step is first.step or np.array_equal(side.step, first.step) for side in sides):
        # As it should be: then all steps are matched at once, and where ranks ask for the same one column says it.
        same = all(side.rows is first.rows for side in sides)
        shape = len(first.rows), len(sides)
        table = np.broadcast_to(first.rows[:, None], shape) if same else np.stack([one.rows for one in sides], axis=1)
        if agreement(table, shape[:1])[0] == len(table):
            return table, first.step, []
    kept: list[NDArray[np.int64]] = []
    stops = []
    for name, own in zip(steps, zip(*(side.by_step(len(steps)) for side in sides), strict=True), strict=True):
        lengths = [len(each) for each in own]
        table = np.stack([each[: min(lengths)] for each in own], axis=1)
        length, what = agreement(table, lengths)
        kept.append(table[:length])
        if left_out := sum(lengths) - length * len(own):
            stops.append(Stop(label, name, length, what, left_out))
    return np.concatenate(kept), np.repeat(np.arange(len(steps)), [len(each) for each in kept]), stops


def _agreement(kind: NDArray[Any], size: NDArray[Any], lengths: Collection[int]) -> tuple[int, str]:
    """How far the sequences of the ranks, which are so long, agree, and in what they then do not.

    Of as many as all have: (n, ranks) kinds and sizes.
    """
    other_kind = (kind != kind[:, :1]).any(axis=1)
    stated = np.where(size < 0, size.max(axis=1, keepdims=True), size)
    other_size = (stated != stated[:, :1]).any(axis=1) & ~_UNEVEN[kind[:, 0]]
    wrong = np.flatnonzero(other_kind | other_size)
    if len({*lengths}) > 1 and (size < 0).any():
        # One more on some ranks: without sizes nothing tells which one it is.
        return 0, "count"
    if len(wrong) == 0:
        return len(kind), "count"
    return int(wrong[0]), "kind" if other_kind[wrong[0]] else "bytes"


TOLERATED = 0.2
"""Residual over skew up to which arrival times can be trusted."""
MATCHED = Column(
    "matched",
    Kind.COUNT,
    "collectives that were matched with those of other ranks and synchronise",
    heading="collectives",
)
_CLOCK_OFFSETS = declare(
    "clock_offsets",
    "Clocks of the ranks",
    Column("rank", Kind.TEXT, "rank of the process; ?n where the profile does not tell"),
    Column(
        "offset_ns",
        Kind.CHANGE,
        "by how much its clock is ahead of the reference's: median difference of the ends of collectives",
        heading="ahead",
        scale="offset",
    ),
    Column(
        "residual_ns",
        Kind.DURATION,
        "median absolute deviation of these differences",
        heading="uncertainty",
        scale="residual",
    ),
    Column(
        "skew_ns",
        Kind.DURATION,
        "median arrival after the first rank, with clocks aligned",
        heading="arrives later",
        scale="skew",
    ),
    MATCHED,
    Column("reference", Kind.TEXT, "rank whose clock the others are compared with", minor=True),
    detail=True,
)


def clock_offsets(cluster: Cluster) -> Table:
    """Of every rank that shares a group with the reference, the first rank; directly or by way of others."""
    useful = [one for one in cluster.groups if one.synchronising.any()]
    if not useful:
        return _CLOCK_OFFSETS.missing("no_matched_collectives")
    of, offsets, found = columns_of(useful), {0: 0}, {0: (0, 0)}
    # The first group with ranks that are reached and others is next; of each group the members so far.
    waiting, done = [at for at, _ in of.get(0, ())], [0] * len(useful)
    while waiting:
        at = waiting[0]
        members = useful[at].members
        while done[at] < len(members) and members[done[at]] in offsets:
            done[at] += 1
        if done[at] == len(members):
            heappop(waiting)
            continue
        rank, anchor = members[done[at]], next(member for member in members if member in offsets)
        other = dict(of[anchor])
        difference = np.concatenate(
            [_ends(useful[one], column, other[one]) for one, column in of[rank] if one in other]
        )
        middle = median(difference)
        offsets[rank] = offsets[anchor] + middle
        found[rank] = (median(np.abs(difference - middle)), len(difference))
        for one, _ in of[rank]:
            heappush(waiting, one)
    late = [_late(one, offsets) for one in useful]
    ranks = sorted(offsets)
    return _CLOCK_OFFSETS.fill(
        rank=[cluster.ranks[rank].label for rank in ranks],
        offset_ns=[offsets[rank] for rank in ranks],
        residual_ns=[found[rank][0] for rank in ranks],
        skew_ns=[_skew([(late[at], column) for at, column in of.get(rank, ())], found[rank][0]) for rank in ranks],
        matched=[found[rank][1] for rank in ranks],
        reference=[cluster.ranks[0].label] * len(ranks),
    )


def _ends(one: MatchedGroup, column: int, anchor: int) -> NDArray[np.int64]:
    """By how much later one rank's clock says that the collectives of a group ended."""
    found: NDArray[np.int64] = (one.end[:, column] - one.end[:, anchor])[one.synchronising]
    return found


class _Late(NamedTuple):
    after: NDArray[np.int64]
    """(n, members) ns that each comes after the first."""
    spread: NDArray[np.int64]
    """(n,) that the last one does."""


def _late(one: MatchedGroup, offsets: dict[int, int]) -> _Late | None:
    """How late each comes to the collectives of a group; None where the clock of some is not known."""
    if any(member not in offsets for member in one.members):
        return None
    start = one.start[one.synchronising] - np.array([offsets[member] for member in one.members])
    after = start - start.min(axis=1)[:, None]
    return _Late(after, after.max(axis=1))


def _skew(groups: Sequence[tuple[_Late | None, int]], residual: int) -> int | NotMeasured:
    """Median arrival of a rank after the first one of its groups; only where the clocks are known well enough for it.

    `groups` are its own, with its column. What the residual is measured by is the usual spread between the first and
    the last arrival.
    """
    known = [(late, column) for late, column in groups if late is not None]
    if not known or residual > TOLERATED * median(np.concatenate([late.spread for late, _ in known])):
        return NotMeasured("clocks_too_uneven")
    return median(np.concatenate([late.after[:, column] for late, column in known]))
