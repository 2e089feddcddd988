"""Which groups only pass on the lateness of another one: their last rank was kept waiting there before.

A rank of several groups (tensor and data parallel, say) that waits in one of them comes late to the next. It makes the
ranks there wait, but is not what makes them wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from traceanalyze.cluster.results import MatchedGroup

MOSTLY = 0.5
"""Part of what a group waits for its last rank that this one must have waited elsewhere just before."""


def sources(groups: Sequence[MatchedGroup], last: Mapping[int, int]) -> dict[int, int | None]:
    """For each group with a last rank the one whose last rank it waits for in the end; None where that has none.

    Args:
        groups: Complete ones.
        last: By position of a group the place in it of the rank that comes last again and again.
    """
    before = {at: _passed_on_from(groups, at, place) for at, place in last.items()}
    found: dict[int, int | None] = {}
    for at in last:
        seen, here = [at], at
        while (source := before.get(here)) is not None and source not in seen:
            seen.append(source)
            here = source
        # Ranks that wait for each other in turn pass nothing on.
        found[at] = at if before.get(here) is not None else here if here in last else None
    return found


def _passed_on_from(groups: Sequence[MatchedGroup], at: int, place: int) -> int | None:
    """The group in which the last rank of this one waits most, if that is why it comes late."""
    one = groups[at]
    chosen = np.flatnonzero(one.synchronising)
    elsewhere = [
        number for number in range(len(groups)) if number != at and one.members[place] in groups[number].members
    ]
    if not elsewhere:
        return None
    waited = np.stack([_waited_before(groups, at, member, chosen) for member in range(len(one.members))], axis=1)
    caused = np.delete(one.wait[chosen], place, axis=1).mean(axis=1)
    longer = waited[:, place] - np.delete(waited, place, axis=1).mean(axis=1)
    if np.clip(longer, 0, caused).sum() < MOSTLY * caused.sum():
        return None
    return max(elsewhere, key=lambda number: int(_waits_of(groups[number], one.members[place])[1].sum()))


def _waited_before(
    groups: Sequence[MatchedGroup], at: int, member: int, chosen: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Before each collective of a group, since the one before it: how long the member waited in other groups, ns."""
    one = groups[at]
    rank = one.members[member]
    waits = [_waits_of(other, rank) for number, other in enumerate(groups) if number != at and rank in other.members]
    start = np.concatenate([begin for begin, _ in waits] or [np.zeros(0, np.int64)])
    wait = np.concatenate([amount for _, amount in waits] or [np.zeros(0, np.int64)])
    order = np.argsort(start, kind="stable")
    upto = np.concatenate(([0], np.cumsum(wait[order])))
    mine = one.start[chosen, member]
    sequence = np.argsort(mine, kind="stable")
    found = np.empty(len(mine), np.int64)
    found[sequence] = np.diff(upto[np.searchsorted(start[order], mine[sequence])], prepend=0)
    return found


def _waits_of(one: MatchedGroup, rank: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When a rank came to the collectives of a group, by its own clock, and how long it waited in each."""
    chosen, place = np.flatnonzero(one.synchronising), one.members.index(rank)
    return one.start[chosen, place], one.wait[chosen, place]
