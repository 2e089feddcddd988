"""Flight recorders of all ranks side by side: where a process group first parts, and which ranks the others wait for.

Rings are cut at different places: ranks are compared by the number of a collective in its group, and only where both
have it. No rank is taken to be right: the odd one out is that which few have, or which breaks its own routine.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.incident.evidence import UNKNOWN, Flight, Group

UNEVEN = ("all_to_all", "alltoall", "gather", "scatter", "coalesced", "barrier")
"""Collectives whose sizes may differ from rank to rank; `all_gather` and `reduce_scatter` are none of them."""
DEFAULT = "default_pg"
"""What torch calls the group of all ranks."""
LATE = 0.08
"""Of the recorded time: less that ranks wait for another one is usual."""
STEADY = 0.15
"""Deviation of a pause over its mean, up to which it is always the same."""


class Side(NamedTuple):
    """What one rank recorded of a group's collectives."""

    rank: int
    flight: Flight
    group: Group
    rows: NDArray[np.int64]
    """Of its entries, one a collective, in their order."""
    last: int
    """Number of the last one that it enqueued; −1 for none."""

    @property
    def seqs(self) -> NDArray[np.int64]:
        """Numbers of the collectives."""
        return self.flight.entries.seq[self.rows]

    def open(self) -> NDArray[np.bool_]:
        """Which of the rows did not end."""
        return open_rows(self.flight, self.rows)

    def row(self, seq: int) -> int | None:
        """Where a collective stands; None where the ring has lost it."""
        found = self.rows[self.seqs == seq]
        return int(found[0]) if len(found) else None


class Divergence(NamedTuple):
    """The first collective of a group in which not all ranks do the same."""

    kind: str
    """missing, unrecorded (no dump of who lacks), operation, size, order, or stuck: all are in, none is out."""
    group: Group
    members: tuple[int, ...]
    seq: int
    op: str
    """What most called, or would have been called."""
    other: str
    """What the odd ones called in its place."""
    culprits: tuple[int, ...]
    waiting: tuple[int, ...]
    """Ranks that are in it."""
    since_ns: int | None
    """When the last of them came."""
    line: str = ""
    """Of their program."""


class Progress(NamedTuple):
    """How far a rank came in a group."""

    group: Group
    rank: int
    enqueued: int | None
    started: int | None
    completed: int | None


class Lateness(NamedTuple):
    """Ranks that the others wait for again and again."""

    ranks: tuple[int, ...]
    share: float
    """Of the recorded time, which the others wait for them."""
    steady: bool
    """They are late by the same in the same collective."""
    each_ns: int
    """By how much in that one, in the mean."""
    op: str
    stage: int | None
    """Position in their pipelines, where all of them have the same one in different groups of sends and receives."""


def open_rows(flight: Flight, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which operations did not end; gloo says nothing of states, so what is not retired or above the last completed."""
    entries = flight.entries
    # Only of what stands in these rows: a dump may have thousands of groups, and each asks for its own.
    kinds, state = np.unique(entries.state[rows], return_inverse=True)
    done = np.array([entries.names[kind] == "completed" for kind in kinds], bool)[state]
    present, group = np.unique(entries.group[rows], return_inverse=True)
    groups = [flight.groups[at] for at in present]
    completed = np.array([one.completed if one.completed is not None else UNKNOWN for one in groups], np.int64)
    gloo = np.array([one.library == "gloo" for one in groups], bool)
    seq, last = entries.seq[rows], completed[group]
    open_: NDArray[np.bool_] = np.where(gloo[group], ~entries.retired[rows] | ((last != UNKNOWN) & (seq > last)), ~done)
    return open_


def sides(flights: Sequence[Flight]) -> dict[tuple[str, tuple[int, ...]], list[Side]]:
    """Ranks of each group; where no dump tells who is in it, those that have it."""
    found: dict[tuple[str, tuple[int, ...]], list[Side]] = defaultdict(list)
    for flight in flights:
        if flight.rank is None:
            continue
        entries = flight.entries
        usable = np.flatnonzero(~entries.p2p & (entries.seq != UNKNOWN))
        usable = usable[np.argsort(entries.group[usable], kind="stable")]
        bounds = np.searchsorted(entries.group[usable], np.arange(len(flight.groups) + 1))
        for group, (begin, end) in zip(flight.groups, pairwise(bounds.tolist()), strict=True):
            rows = usable[begin:end]
            # Members of a coalesced launch share its number.
            rows = rows[np.sort(np.unique(entries.seq[rows], return_index=True)[1])]
            last = max(int(entries.seq[rows].max(initial=-1)), -1 if group.enqueued is None else group.enqueued)
            if last >= 0:
                found[group.name, group.ranks].append(Side(flight.rank, flight, group, rows, last))
    return found


def progress(flights: Sequence[Flight]) -> Iterator[Progress]:
    """How far each rank came in each group, group by group."""
    for each in sides(flights).values():
        for one in each:
            ended = one.seqs[~one.open()]
            done = one.group.completed if one.group.completed is not None else int(ended.max(initial=-1))
            yield Progress(one.group, one.rank, one.last, one.group.started if one.flight.timed else None, done)


def divergences(flights: Sequence[Flight], world: int = 0) -> tuple[Divergence, ...]:
    """Of every group the first, that which began first before the others; `world` is how many ranks there are."""
    groups = sides(flights)
    every = tuple(range(world))
    # Dumps of gloo do not say who is in a group.
    known = {key: key[1] or (every if each[0].group.desc == DEFAULT else ()) for key, each in groups.items()}
    found = [one for key, each in groups.items() for one in _of_group(known[key], each)]
    return tuple(sorted(found, key=lambda one: (one.since_ns is None, one.since_ns or 0)))


def _of_group(ranks: tuple[int, ...], each: Sequence[Side]) -> Iterator[Divergence]:
    members = ranks or tuple(sorted(one.rank for one in each))
    unlike = _unlike(each)
    least, most = min(one.last for one in each), max(one.last for one in each)
    ahead = [one for one in each if one.last > least]
    absent = tuple(sorted(set(members) - {one.rank for one in each}))
    behind = tuple(sorted(one.rank for one in each if one.last == least))
    # A collective that gloo gave up counts as ended; without a member none can have.
    waiting = [one for one in ahead if _in(one, least + 1) or (one.group.library == "gloo" and _joint(one, least + 1))]
    if unlike is not None and (not waiting or unlike[0] <= least):
        seq, odd, op, other, kind = unlike
        in_it = [one for one in each if one.rank not in odd and one.row(seq) is not None]
        yield _made(kind, each[0].group, members, seq, odd, in_it, op=op, other=other)
    elif waiting:
        yield _made("missing", each[0].group, members, least + 1, behind, waiting)
    elif least == most and all(_in(one, most) for one in each):
        timed = all(one.flight.timed for one in each)
        begun = [one for one in each if not timed or _state(one, most) == "started"]
        late = tuple(sorted(one.rank for one in each if one not in begun)) if begun else ()
        kind = "unrecorded" if absent else "stuck"
        yield _made(kind, each[0].group, members, most, absent or late, each)


def _in(side: Side, seq: int) -> bool:
    """Whether a rank has entered a collective and has not left it."""
    row = side.row(seq)
    if row is None:
        return side.group.completed is not None and side.group.completed < seq <= side.last
    return bool(open_rows(side.flight, np.array([row]))[0])


def _joint(side: Side, seq: int) -> bool:
    """Whether a rank entered a collective that nobody leaves before all are in."""
    row = side.row(seq)
    entries = side.flight.entries
    return row is not None and any(each in entries.names[entries.op[row]] for each in ("all", "barrier"))


def _state(side: Side, seq: int) -> str:
    row = side.row(seq)
    return "" if row is None else side.flight.entries.names[side.flight.entries.state[row]]


def _made(
    kind: str,
    group: Group,
    members: tuple[int, ...],
    seq: int,
    culprits: tuple[int, ...],
    waiting: Sequence[Side],
    *,
    op: str = "",
    other: str = "",
) -> Divergence:
    rows = [(one.flight.entries, row) for one in waiting if (row := one.row(seq)) is not None]
    called = Counter(entries.names[entries.op[row]] for entries, row in rows)
    frames = (entries.names[entries.stack[row]].splitlines() for entries, row in rows)
    own = Counter(own_frame(each) for each in frames)
    since = max((int(entries.created[row]) for entries, row in rows), default=None)
    op = op or (called.most_common(1)[0][0] if called else "")
    line = own.most_common(1)[0][0] if own else ""
    who = tuple(sorted(one.rank for one in waiting))
    return Divergence(kind, group, members, seq, op, other, culprits, who, since, line)


def own_frame(frames: Sequence[str]) -> str:
    """The innermost frame of the program itself; empty where there is none."""
    return next((one for one in frames if "torch/" not in one and "distributed_c10d" not in one), "")


def _signatures(side: Side, codes: dict[str, int]) -> NDArray[np.int64]:
    """What each collective was called with, by the codes that all ranks share."""
    entries = side.flight.entries
    names, found = entries.names, []
    triples = np.stack([entries.op[side.rows], entries.sizes[side.rows], entries.dtypes[side.rows]], 1)
    kinds, which = np.unique(triples, axis=0, return_inverse=True)
    for op, size, kind in kinds.tolist():
        even = "all_gather" in names[op] or "reduce_scatter" in names[op]
        shape = "" if any(each in names[op] for each in UNEVEN) and not even else f" {names[size]} {names[kind]}"
        found.append(codes.setdefault(names[op] + shape, len(codes)))
    return np.array(found, np.int64)[which.ravel()]


def _unlike(each: Sequence[Side]) -> tuple[int, tuple[int, ...], str, str, str] | None:
    """The first collective that ranks called with other operations or sizes, and which did not end on all of them."""
    codes: dict[str, int] = {}
    parts = [(one, _signatures(one, codes)) for one in each]
    seqs, code = (np.concatenate(columns) for columns in zip(*((one.seqs, found) for one, found in parts), strict=True))
    pairs = np.unique(np.stack([seqs, code], 1), axis=0)
    values, counts = np.unique(pairs[:, 0], return_counts=True)
    texts = list(codes)
    for seq in values[counts > 1].tolist():
        here = {one.rank: texts[found[one.seqs == seq][0]] for one, found in parts if seq in one.seqs}
        # Where all are out of it, it did no harm; gloo does not tell.
        if not any(_in(one, seq) or one.group.library == "gloo" for one in each if one.rank in here):
            continue
        usual = Counter(here.values()).most_common()
        odd = tuple(sorted(rank for rank, text in here.items() if text != usual[0][0]))
        if len(usual) > 1 and usual[0][1] == usual[1][1]:
            # As many do the one as the other: who breaks its own routine.
            broken = tuple(one.rank for one in each if one.rank in here and breaks_routine(one.flight, one.row(seq)))
            odd = broken if 0 < len(broken) < len(here) else tuple(sorted(here))
        right = next((text for rank, text in here.items() if rank not in odd), usual[0][0])
        other = next(here[rank] for rank in odd if len(odd) == len(here) or here[rank] != right)
        same = right.partition(" ")[0] == other.partition(" ")[0]
        return (
            seq,
            odd,
            right.partition(" ")[0],
            other if same else other.partition(" ")[0],
            "size" if same else "operation",
        )
    return None


def breaks_routine(flight: Flight, row: int | None) -> str:
    """What usually comes where a rank called this, if it never called it after what came before; else empty."""
    if not row:
        return ""
    entries = flight.entries
    key = np.stack([entries.group, entries.op, entries.sizes], 1)[: row + 1]
    same = (key[:-1] == key[row - 1]).all(1)
    before = np.flatnonzero(same)[:-1]
    next_ = key[before + 1] if len(before) else key[:0]
    if len(before) < 2 or (next_ == key[row]).all(1).any():
        return ""
    usual = Counter(map(tuple, next_.tolist())).most_common(1)[0][0]
    return entries.names[usual[1]] or "?"


def root(found: Sequence[Divergence], flights: Sequence[Flight]) -> Divergence | None:
    """The divergence that the others come from: its culprits wait for nobody, or nobody called what they did."""
    unlike = [one for one in found if one.kind in {"operation", "size"}]
    if unlike:
        return unlike[0]
    waits = {rank for one in found for rank in one.waiting}
    for one in found:
        free = tuple(rank for rank in one.culprits if rank not in waits)
        if one.kind in {"missing", "unrecorded"} and free:
            return one._replace(culprits=free)
    missing = [one for one in found if one.kind == "missing"]
    involved = {rank for one in missing for rank in (*one.culprits, *one.waiting)}
    for flight in flights:
        if flight.rank not in involved or flight.rank is None:
            continue
        entries = flight.entries
        rows = np.arange(len(entries.record))
        still = np.flatnonzero(open_rows(flight, rows))
        first = int(still[0]) if len(still) else None
        usual = breaks_routine(flight, first)
        at = next((one for one in missing if flight.rank in one.culprits), None)
        if usual and first is not None and at is not None:
            other = entries.names[entries.op[first]]
            return at._replace(kind="order", op=at.op or usual, other=other, culprits=(flight.rank,))
    # They wait for each other, or all are in and none is out.
    return next(iter([*missing, *found]), None)


def lateness(flights: Sequence[Flight]) -> Lateness | None:
    """The ranks that wait least, where the others wait for them.

    Waiting is the time of a collective, or of a send or receive, on the device, else from call to end; it needs no
    common clock. Who needs longest of its own waits least.
    """
    known = [one for one in flights if one.rank is not None and len(one.entries.record)]
    waits = [_waits(one) for one in known]
    timed = [at for at, each in enumerate(waits) if each.any()]
    if timed:
        # Of a rank without any time it is not known how long it waited: it is neither late nor in time.
        known, waits = [known[at] for at in timed], [waits[at] for at in timed]
    else:
        waits = _arrivals(known)
    if len(known) < 2:
        return None
    ends = [one.entries.created + wait for one, wait in zip(known, waits, strict=True)]
    begin = max(int(one.entries.created.min()) for one in known)
    until = min(int(each.max()) for each in ends)
    if until <= begin:
        return None
    inside = [(one.entries.created >= begin) & (end <= until) for one, end in zip(known, ends, strict=True)]
    total = np.array([float(wait[rows].sum()) for wait, rows in zip(waits, inside, strict=True)])
    order = np.argsort(total)
    gaps = np.diff(total[order])[: max(len(known) // 2, 1)]
    count = int(gaps.argmax()) + 1
    share = float(gaps.max()) / (until - begin)
    if share < LATE:
        return None
    late = [int(at) for at in order[:count]]
    ranks = tuple(sorted(rank for at in late if (rank := known[at].rank) is not None))
    op, pauses = _place(known, waits, inside, late)
    mean = float(pauses.mean()) if len(pauses) else 0.0
    steady = len(pauses) > 2 and mean > 0 and float(pauses.std()) <= STEADY * mean
    return Lateness(ranks, share, steady, int(mean), op, _stage(known, late))


def _waits(flight: Flight) -> NDArray[np.int64]:
    entries = flight.entries
    seen = np.where(entries.completed != UNKNOWN, entries.completed - entries.created, 0)
    return np.where(np.isnan(entries.duration), np.maximum(seen, 0), entries.duration * 1e6).astype(np.int64)


def _arrivals(flights: Sequence[Flight]) -> list[NDArray[np.int64]]:
    """How long before its last rank each came to a collective; for dumps that have no ends, if the clocks agree."""
    last: dict[tuple[str, int], int] = {}
    keys = []
    for one in flights:
        names = [group.name for group in one.groups]
        groups, entries = one.entries.group.tolist(), one.entries
        keys.append([(names[at], seq) for at, seq in zip(groups, entries.seq.tolist(), strict=True)])
        for key, created in zip(keys[-1], entries.created.tolist(), strict=True):
            last[key] = max(last.get(key, 0), created)
    return [
        np.array([last[key] for key in each], np.int64) - one.entries.created
        for one, each in zip(flights, keys, strict=True)
    ]


def _place(
    flights: Sequence[Flight],
    waits: Sequence[NDArray[np.int64]],
    inside: Sequence[NDArray[np.bool_]],
    late: Sequence[int],
) -> tuple[str, NDArray[np.int64]]:
    """The operation in which most is waited for the first of these ranks, and how long each time."""
    at, first = late[0], flights[late[0]]
    entries, best, pauses = first.entries, "", np.zeros(0, np.int64)
    for place, group in enumerate(first.groups):
        rows = np.flatnonzero(inside[at] & (entries.group == place) & ~entries.p2p)
        if not len(rows):
            continue
        seqs = entries.seq[rows]
        longest = np.full(len(rows), -1)
        order = np.argsort(seqs)
        for other, flight in enumerate(flights):
            same = [n for n, each in enumerate(flight.groups) if (each.name, each.ranks) == (group.name, group.ranks)]
            theirs = np.flatnonzero(np.isin(flight.entries.group, same) & ~flight.entries.p2p & (other not in late))
            theirs = theirs[np.isin(flight.entries.seq[theirs], seqs)]
            to = order[np.searchsorted(seqs, flight.entries.seq[theirs], sorter=order)]
            np.maximum.at(longest, to, waits[other][theirs])
        waited = longest - waits[at][rows]
        for code in np.unique(entries.op[rows]).tolist():
            found = waited[(entries.op[rows] == code) & (longest >= 0)]
            if found.sum() > pauses.sum():
                best, pauses = entries.names[code], found
    return best, pauses


def _stage(flights: Sequence[Flight], late: Sequence[int]) -> int | None:
    """Position of these ranks in their groups of sends and receives, if it is one."""
    found = set()
    for at in late:
        flight = flights[at]
        groups = [flight.groups[each] for each in np.unique(flight.entries.group[flight.entries.p2p]).tolist()]
        found.add(next((one.ranks.index(flight.rank) for one in groups if flight.rank in one.ranks), -1))
    stage = found.pop() if len(found) == 1 else -1
    return None if stage < 0 else stage
