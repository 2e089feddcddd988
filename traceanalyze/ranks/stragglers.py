"""The rank that makes a group wait, if it is the same again and again, and what makes it late (definitions §12)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import ranges
from traceanalyze.model.table import Kind, Message, NotMeasured, sentences
from traceanalyze.ranks.match import SYNCHRONISING, presence, world_size
from traceanalyze.ranks.results import (
    NONE,
    PHASES,
    Cluster,
    Group,
    MatchedGroup,
    Moved,
    RankCollectives,
    RankSummary,
    Straggler,
    columns_of,
    spans,
)
from traceanalyze.ranks.waits import beyond_siblings, by_durations, in_common, of_group, waited_for

_SAY = sentences(
    straggler="Rank {rank} makes the others wait {wait} a step ({share}).",
    straggler_because="Rank {rank} makes the others wait {wait} a step ({share}), because {phase}.",
    straggler_part=(
        "Rank {rank} makes the others wait {wait} a step; for {exposed} of it ({share}) they compute nothing meanwhile."
    ),
    straggler_part_because=(
        "Rank {rank} makes the others wait {wait} a step, because {phase}; for {exposed} of it ({share}) they compute "
        "nothing meanwhile."
    ),
    stragglers=(
        "Ranks {rank} come late alike: for {exposed} a step ({share}) the others wait for them and compute nothing "
        "meanwhile."
    ),
    stragglers_because=(
        "Ranks {rank} come late alike, each because {phase}: for {exposed} a step ({share}) the others wait for them "
        "and compute nothing meanwhile."
    ),
    waited_for_absent=(
        "In collectives the recorded ranks wait {wait} a step ({share}), most of it for rank {rank} of the group, which"
        " was {state}."
    ),
    waits_for_absent=(
        "In collectives the recorded ranks wait {wait} a step ({share}), perhaps for ranks that were {absent}."
    ),
    may_wait_for_absent=(
        "For {wait} a step ({share}) the recorded ranks do nothing but communicate with ranks that were {absent}: up "
        "to all of it may be waiting for these."
    ),
)

_Columns: TypeAlias = Mapping[int, Sequence[tuple[int, int]]]
"""Groups of each rank, and its column in each (`columns_of`)."""
MOSTLY = 0.5
"""Part of what a group waits for its last rank that this one must have waited elsewhere just before."""


_NO_SENDS = Moved(NONE, NONE, NONE.astype(np.bool_))
UNSURE = -1
"""In place of a group: those whose ranks are not all here, and sends and receives."""
_Waits: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
"""When a rank came to collectives, by its own clock, and how long it waited, or was, in each."""


def sources(
    groups: Sequence[MatchedGroup], last: Mapping[int, int], unsure: Callable[[int], _Waits | None] = lambda _: None
) -> dict[int, int | None]:
    """For each group with a last rank the one whose last rank it waits for in the end; None where that has none.

    `last` is, by position of a complete group, the place in it of the rank that comes last again and again. `unsure` is
    where a rank may have waited elsewhere: for ranks that were not recorded, or in sends and receives.
    """
    of = columns_of(groups)
    before = {at: _delayed_by(groups, of, at, place, unsure) for at, place in last.items()}
    found: dict[int, int | None] = {}
    for at in last:
        way, here = [at], at
        while (source := before.get(here)) is not None and source not in way:
            way.append(source)
            here = source
        # Ranks that wait for each other in turn pass nothing on.
        found[at] = at if before.get(here) is not None else here if here in last else None
    return found


def _delayed_by(
    groups: Sequence[MatchedGroup],
    of: _Columns,
    at: int,
    place: int,
    unsure: Callable[[int], _Waits | None] = lambda _: None,
) -> int | None:
    """The group in which the last rank of this one waits most, if that is why it comes late.

    `UNSURE` where it is long in others without waiting for their ranks: then their links are slow, not this rank.
    """
    one = groups[at]
    elsewhere = {
        number: int(_waits_of(groups[number], column)[1].sum())
        for number, column in of[one.members[place]]
        if number != at
    }
    perhaps = unsure(one.members[place])
    if perhaps is not None:
        elsewhere[UNSURE] = int(perhaps[1].sum())
    if not elsewhere:
        return None
    caused = np.zeros(int(one.synchronising.sum()), np.int64)
    for part in one.parts():
        wait, shown = (each(part)[one.synchronising].T for each in (one.wait, one.exposed_wait))
        # Who computes while it waits is as early for the next one: only what is new of that waiting was caused since.
        kept = np.concatenate((np.zeros_like(wait[:, :1]), (wait - shown)[:, :-1]), axis=1)
        theirs = np.arange(len(one.members))[part] != place
        caused += np.clip(wait - kept, 0, None)[theirs].sum(axis=0)
    count = len(one.members) - 1
    for spent, found in ((_waits_of, max(elsewhere, key=elsewhere.__getitem__)), (_time_of, UNSURE)):
        (longer,) = _spent_before(groups, of, at, slice(place, place + 1), spent, unsure)
        every = [_spent_before(groups, of, at, part, spent, unsure).sum(axis=0) for part in one.parts()]
        others = np.sum(every, axis=0) - longer
        late = np.clip(longer - others / count, 0, caused / count)
        spent_late, whole = (np.bincount(one.step[one.synchronising], each) for each in (late, caused / count))
        # Who comes late of itself in few steps only may be waited for longer in them than in all others.
        kept = (spent_late >= MOSTLY * whole)[whole > 0]
        if late.sum() >= MOSTLY * whole.sum() or kept.sum() > (1 - LAST_IN_STEPS) * len(kept):
            return found
    return None


def _spent_before(
    groups: Sequence[MatchedGroup],
    of: _Columns,
    at: int,
    part: slice,
    spent: Callable[[MatchedGroup, int], _Waits],
    unsure: Callable[[int], _Waits | None] = lambda _: None,
) -> NDArray[np.int64]:
    """(members, n) ns that some members `spent` in other groups before each collective of one, since the one before."""
    one = groups[at]
    own = np.ascontiguousarray(one.start[one.synchronising, part].T)
    starts, waits, owners = [*own], [np.zeros_like(own).ravel()], [*range(len(own))]
    for number, member in enumerate(one.members[part]):
        others = [spent(groups[other], column) for other, column in of[member] if other != at]
        perhaps = unsure(member)
        for start, wait in others if perhaps is None else (*others, perhaps):
            starts.append(start)
            waits.append(wait)
            owners.append(number)
    owner = np.repeat(owners, [len(each) for each in starts])
    start, wait = np.concatenate(starts), np.concatenate(waits)
    # Who comes to two at once has not waited in the other yet.
    order = np.lexsort((np.arange(len(start)) >= own.size, start, owner))
    upto = np.cumsum(wait[order]) - wait[order]
    come = np.flatnonzero(order < own.size)
    begin = upto[np.searchsorted(owner[order], np.arange(len(own)))]
    found = np.empty_like(own)
    since = np.diff(upto[come].reshape(own.shape), prepend=begin[:, None], axis=1)
    found.ravel()[order[come]] = since.ravel()
    return found


def _waits_of(one: MatchedGroup, column: int) -> _Waits:
    """Of one group."""
    return one.start[one.synchronising, column], one.wait(column)[one.synchronising]


def _time_of(one: MatchedGroup, column: int) -> _Waits:
    """The same with all of its time that nothing hides."""
    return one.start[one.synchronising, column], one.exposed[one.synchronising, column].astype(np.int64)


def _unsure(
    ranks: Sequence[RankSummary], whole: Sequence[MatchedGroup], rows: NDArray[np.int64], moved: Sequence[Moved]
) -> Callable[[int], _Waits | None]:
    """By position of a rank how long it waits, at most, in groups whose ranks are not all here, and in what it sends.

    None where all are here, and it sends nothing.
    """
    known = {one.group for one in whole}

    @cache
    def waits(position: int) -> _Waits | None:
        rank = ranks[position]
        lacking = [
            at for at, one in enumerate(rank.groups) if one.label not in known and max(one.size, len(one.ranks)) != 1
        ]
        sent = moved[position] if moved else _NO_SENDS
        if not lacking and not len(sent.row):
            return None
        own, time = rank.collectives, rank.collectives.end - rank.collectives.start
        chosen = np.isin(own.group, lacking) & SYNCHRONISING[own.kind] & in_common(rank, rows[position])[1]
        between = time[sent.row] - np.where(sent.exact, sent.time, 0)
        return np.append(own.start[chosen], own.start[sent.row]), np.append(time[chosen], between)

    return waits


LAST_IN_COLLECTIVES, LAST_IN_STEPS, LEAST_STEPS = 0.5, 0.6, 3
"""Part of the waiting that is in collectives to which a straggler comes last, part of the steps in which nobody waits
less, and how many steps these must be at least."""
_RECURS = 0.1
"""Own: of what a group waits in the mean of its steps; a step in which it waits less tells nothing of who is late."""
_HOST = frozenset({"dispatch", "untraced", "device_gap"})
"""Parts of the step in which pauses of the garbage collector lie."""


_REASON = 0.1
"""Own: of the waiting; a part of the step that differs by less is no reason for it."""


class _Last(NamedTuple):
    """A rank that comes last to the collectives of one group again and again."""

    group: int
    place: int
    last: float
    steps_last: int
    steps: int


def stragglers(
    ranks: Sequence[RankSummary],
    groups: Sequence[MatchedGroup],
    rows: NDArray[np.int64],
    missing: Sequence[int] = (),
    moved: Sequence[Moved] = (),
) -> tuple[Straggler, ...] | NotMeasured:
    """Ranks that make others wait, most waiting first. NotMeasured where no group is complete, or steps are too few.

    Each is the last of a group, and did not come late to it because it was kept waiting in another group: then the
    waiting counts for the last rank of that one. Nor is one named that may have waited for ranks that are not here, or
    in what it sends and receives, nor one that costs the others less than is worth naming: some rank is always last.
    """
    if not any(one.synchronising.any() for one in groups):
        return NotMeasured("ranks_missing") if missing else _on_host(ranks, rows)
    whole = [one for one in groups if one.complete and one.synchronising.any()]
    if not whole:
        return NotMeasured("ranks_missing")
    # Steps of the start are in no number, but whoever is late after them as well is late again and again.
    started = min(rank.started for rank in ranks)
    if rows.shape[1] < 2 or rows.shape[1] + started < LEAST_STEPS:
        return NotMeasured("few_steps_for_stragglers")
    found = [one for at in range(len(whole)) if (one := _last_of(whole, at, rows.shape[1])) is not None]
    source = sources(whole, {one.group: one.place for one in found}, _unsure(ranks, whole, rows, moved))
    named: dict[int, list[_Last]] = {}
    for one in found:
        if source[one.group] == one.group:
            named.setdefault(whole[one.group].members[one.place], []).append(one)
    late_ranks = [_straggler(ranks, whole, rows, position, own) for position, own in named.items()]
    late_ranks = [one for one in late_ranks if one.share >= WORTH_NAMING]
    if len(late_ranks) > 1:
        late_ranks = sorted(_together(late_ranks, whole, rows), key=lambda one: -one.wait)
    return tuple(late_ranks)


def _on_host(ranks: Sequence[RankSummary], rows: NDArray[np.int64]) -> tuple[Straggler, ...] | NotMeasured:
    """The rank that waits least of hosts that compute and wait for each other, step after step."""
    if len(ranks) < 2 or not all(one.host_computes and "peer_wait" in one.parts for one in ranks):
        return NotMeasured("no_matched_collectives")
    steps = rows.shape[1]
    if steps < LEAST_STEPS:
        return NotMeasured("few_steps_for_stragglers")
    wait = np.stack([one.part("peer_wait")[own] for one, own in zip(ranks, rows, strict=True)])
    wait -= wait.min(axis=0)
    late = int(wait.sum(axis=1).argmin())
    whole, comes_last = int(wait.sum()), wait[late] == 0
    last = int(wait[:, comes_last].sum()) / max(whole, 1)
    if not whole or last < LAST_IN_COLLECTIVES or comes_last.sum() < LAST_IN_STEPS * steps:
        return ()
    others = [at for at in range(len(ranks)) if at != late]
    # If it came in time, the next one would be the last.
    gained = int(np.partition(wait, 1, axis=0)[1, comes_last].sum()) // steps
    time = sum(int(ranks[at].step_time[rows[at]].sum()) for at in others)
    waited = (whole - int(wait[late].sum())) // (len(others) * steps)
    phase, excess = late_because(ranks, late, others, rows)
    told = excess >= _REASON * waited
    return (
        Straggler(
            group="",
            position=late,
            label=ranks[late].label,
            wait=waited,
            exposed=gained,
            share=waited * len(others) * steps / time if time else 0.0,
            last=last,
            steps_last=int(comes_last.sum()),
            steps=steps,
            phase=phase if told else None,
            excess=excess if told else 0,
        ),
    )


def _last_of(groups: Sequence[MatchedGroup], at: int, steps: int) -> _Last | None:
    one = groups[at]
    by_step = one.by_step(one.wait, steps)
    least = int(by_step.sum(axis=0).argmin())
    used = np.unique(one.step[one.synchronising])
    waited = np.sum([one.wait(part).sum(axis=1) for part in one.parts()], axis=0)[one.synchronising]
    comes_last = one.wait(least)[one.synchronising] == 0
    last = int(waited[comes_last].sum()) / max(int(waited.sum()), 1)
    waits = by_step[used].sum(axis=1)
    felt = used[waits >= _RECURS * waits.mean()]
    steps_last = int((by_step[felt, least] == by_step[felt].min(axis=1)).sum())
    recurs = (
        last >= LAST_IN_COLLECTIVES and steps_last >= LAST_IN_STEPS * len(felt) and len(felt) >= min(LEAST_STEPS, steps)
    )
    return _Last(at, least, last, steps_last, len(used)) if recurs and waited.any() else None


def _straggler(
    ranks: Sequence[RankSummary],
    groups: Sequence[MatchedGroup],
    rows: NDArray[np.int64],
    position: int,
    own: Sequence[_Last],
) -> Straggler:
    """One rank, with numbers of the group whose other ranks wait longest for it, of those it is the last of."""
    steps = rows.shape[1]

    def waits(each: _Last) -> float:
        one = groups[each.group]
        return int(one.by_step(one.wait, steps).sum()) / (len(one.members) - 1)

    main = max(own, key=waits)
    one = groups[main.group]
    others = [member for member in one.members if member != position]
    wait = one.by_step(one.wait, steps).sum(axis=0)
    exposed = of_group(one, steps).sum(axis=0)
    time = sum(int(ranks[member].step_time[rows[member]].sum()) for member in others)
    waited = int(wait.sum() - wait[main.place])
    phase, excess = late_because(ranks, position, others, rows)
    if excess < _REASON * waited // (len(others) * steps):
        phase, excess = None, 0
    return Straggler(
        group=one.group,
        position=position,
        label=ranks[position].label,
        wait=waited // (len(others) * steps),
        exposed=int(exposed.sum() - exposed[main.place]) // (len(others) * steps),
        share=waited / time if time else 0.0,
        last=main.last,
        steps_last=main.steps_last,
        steps=main.steps,
        phase=phase,
        excess=excess,
    )


def _together(
    stragglers: Sequence[Straggler], groups: Sequence[MatchedGroup], rows: NDArray[np.int64]
) -> Iterator[Straggler]:
    """Where several ranks of groups that depend on each other are late, what they cost is the waiting of the others.

    Beside another late rank, one that is mended is waited for no less: together they cost what the mean of the ranks
    that are not late waits, and each has its part of that.
    """
    waits = by_durations(groups, rows).sum(axis=1)
    near, most = _connected(groups), dict[int, tuple[int, int]]()
    for one in stragglers:
        whole = near[one.position]
        if id(whole) not in most:
            late = [each for each in stragglers if each.position in whole]
            others = sorted(whole - {each.position for each in late})
            total = sum(each.exposed for each in late)
            usual = int(waits[others].sum()) // (len(others) * rows.shape[1]) if others else total
            most[id(whole)] = (total, total) if len(late) < 2 else (min(usual, total), total)
        allowed, total = most[id(whole)]
        yield one if allowed == total else one._replace(exposed=one.exposed * allowed // total)


def _connected(groups: Sequence[MatchedGroup]) -> dict[int, set[int]]:
    """Each rank with those that share a group with it, or with one of these, and so on."""
    found: dict[int, set[int]] = {}
    for one in groups:
        parts = {id(found[member]): found[member] for member in one.members if member in found}
        whole = max(parts.values(), key=len, default=set[int]())
        for part in [*parts.values(), set(one.members) - found.keys()]:
            if part is not whole:
                whole |= part
                found.update(dict.fromkeys(part, whole))
    return found


def late_because(
    ranks: Sequence[RankSummary], late: int, others: Sequence[int], rows: NDArray[np.int64]
) -> tuple[str | None, int]:
    """The part of the step by which one rank exceeds the mean of the others most, and by how much, ns a step.

    Where pauses of the garbage collector make up at least half of an excess of host time, they are named; and where the
    program stands still in every step for longer than that excess, this is: the device may have other work meanwhile.
    """
    count = max(rows.shape[1], 1)
    excess = {}
    for phase in PHASES:
        if all(phase in ranks[rank].parts for rank in (late, *others)):
            own, *theirs = (int(ranks[rank].part(phase)[rows[rank]].sum()) for rank in (late, *others))
            excess[phase] = (own - sum(theirs) // len(theirs)) // count
    pauses, still = excess.pop("gc", 0), excess.pop("pause", 0)
    most = max(excess, key=lambda phase: excess[phase], default=None)
    if most is None or excess[most] <= 0:
        return None, 0
    if most in _HOST and 2 * pauses >= excess[most]:
        return "gc", pauses
    if most in _HOST and still >= excess[most]:
        return "pause", still
    return most, excess[most]


WORTH_NAMING, PERHAPS = 0.01, 0.1
"""Share of the step that the others must wait, or may wait."""
ALIKE = 0.9
"""Ranks that cost as much of what the one that costs most does are late alike."""
WAITS_FOR_ABSENT = frozenset({"waited_for_absent", "waits_for_absent", "may_wait_for_absent"})
"""Keys of `absent_sentences`."""


def straggler_sentences(cluster: Cluster) -> tuple[Message, ...]:
    """The rank that makes the others wait most, if it does so again and again; several that are late alike."""
    if isinstance(cluster.stragglers, NotMeasured) or not cluster.stragglers:
        return ()
    one = max(cluster.stragglers, key=lambda each: each.exposed)
    alike = [each for each in cluster.stragglers if each.phase == one.phase and each.exposed >= ALIKE * one.exposed]
    # What compute hides of the waiting costs nobody anything.
    near = _connected([each for each in cluster.groups if each.complete and each.synchronising.any()])
    connected = [near.get(each.position, {each.position}) for each in alike]
    # Who shares no group with one of them, not even by others, does not wait for it.
    part = [len(each) / len(set[int]().union(*connected)) for each in connected]
    share = sum(each.share * each.exposed / max(each.wait, 1) * of for each, of in zip(alike, part, strict=True))
    if share < WORTH_NAMING:
        return ()
    values = (
        ("rank", Kind.TEXT, spans([each.label for each in sorted(alike, key=lambda each: each.position)])),
        ("wait", Kind.DURATION, one.wait),
        ("exposed", Kind.DURATION, round(sum(each.exposed * of for each, of in zip(alike, part, strict=True)))),
        ("share", Kind.SHARE, share),
    )
    key = "stragglers" if len(alike) > 1 else "straggler" if one.exposed == one.wait else "straggler_part"
    if one.phase is None:
        return (Message(_SAY[key], values),)
    return (Message(_SAY[f"{key}_because"], (*values, ("phase", Kind.TERM, f"late_{one.phase}"))),)


def absent_sentences(cluster: Cluster) -> tuple[tuple[Message, ...], bool]:
    """That ranks wait, or may wait, for some that were not recorded; and whether most but compute is that."""
    waited, step = cluster.exposed_waits, cluster.step
    if isinstance(waited, NotMeasured) or not cluster.missing_ranks or not step:
        return (), False
    peer = absent_rank(cluster) if waited.by_tasks else None
    wait = int((waits_for_absent(cluster)[0] if peer is None else waited.by_step).sum()) // cluster.step_time.size
    if wait < (WORTH_NAMING if waited.by_tasks else PERHAPS) * step:
        return (), False
    values = (
        ("rank", Kind.COUNT, peer),
        ("ranks", Kind.TEXT, ranges(cluster.missing_ranks)),
        ("absent", Kind.TEXT, cluster.absent),
        *(() if peer is None else (("state", Kind.TEXT, cluster.absence(peer)),)),
        ("wait", Kind.DURATION, wait),
        ("share", Kind.SHARE, wait / step),
    )
    key = "waited_for_absent" if peer is not None else "waits_for_absent" if waited.by_tasks else "may_wait_for_absent"
    compute = cluster.part("compute")
    most = compute is not None and 2 * wait * compute.size >= int((cluster.step_time - compute).sum())
    return (Message(_SAY[key], values),), most


def absent_waits(cluster: Cluster) -> tuple[int, int]:
    """How long the ranks wait for some that were not recorded, at most and for certain, ns a step."""
    waited = cluster.exposed_waits
    if not cluster.missing_ranks or not cluster.steps:
        return 0, 0
    if not isinstance(waited, NotMeasured) and waited.by_tasks and absent_rank(cluster) is not None:
        mean = int(waited.mean.sum()) // len(cluster.ranks)
        return mean, mean
    most, certain = (int(each.sum()) // cluster.step_time.size for each in waits_for_absent(cluster))
    return most, certain


def waits_for_absent(cluster: Cluster) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(ranks, steps) exposed ns in which ranks may wait for some that were not recorded, at most and at least.

    That is, in groups that are not known to be complete.

    At most what the recorded rank that came last is in each collective without moving data: what the others take longer
    they wait for recorded ones. Only a recording of the missing rank tells how much of it is waiting, but where tasks
    are recorded, or it outlasts its siblings.
    """
    most, least = np.zeros((2, *cluster.rows.shape), np.int64)
    members: dict[str, list[int]] = {}
    known: dict[str, list[Group]] = {}
    for position, rank in enumerate(cluster.ranks):
        for one in rank.groups:
            members.setdefault(one.label, []).append(position)
            known.setdefault(one.label, []).append(one)
    world = world_size(cluster.ranks)
    lacking = {label for label, of in members.items() if not presence(known[label], of, cluster.ranks, world)[1]}
    shared = columns_of(cluster.groups)
    shortest = [_without_moving(each)[each.synchronising].min(axis=1) for each in cluster.groups]
    for position, (rank, rows) in enumerate(zip(cluster.ranks, cluster.rows, strict=True)):
        own = rank.collectives
        common = _without_moving(own)
        for at, column in shared.get(position, ()):
            each = cluster.groups[at]
            common[each.row[each.synchronising, column]] = shortest[at]
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
    ranks = zip(cluster.ranks, cluster.rows, strict=True)
    peers = {waited_for(rank, in_common(rank, rows)[1]) for rank, rows in ranks}
    (peer,) = peers if len(peers) == 1 else (None,)
    return None if isinstance(peer, NotMeasured) or peer not in cluster.missing_ranks else peer
