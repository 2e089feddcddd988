"""How much of the waiting for other ranks nothing hides: one definition for all that tell it (definitions §12).

At least it is what each collective is exposed beyond its transfer. Late collectives also push those after them out of
the compute that would hide them: in a group all of whose ranks were recorded it is what a rank's collectives are
exposed in a step beyond what those of the rank that waited least are exposed without waiting, and never more than all
waiting. Of a group with ranks missing nobody knows that rank, and only the lower bound is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.cluster.results import ExposedWaits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.cluster.results import MatchedGroup, RankSummary


def exposed_waits(
    ranks: Sequence[RankSummary],
    groups: Sequence[MatchedGroup],
    rows: NDArray[np.int64],
    missing: Sequence[int] = (),
) -> ExposedWaits | NotMeasured:
    """Waiting of each rank in each common step with nothing beside it.

    From the durations on all ranks; where ranks are missing rather from the tasks of each rank's own collectives, where
    these were recorded (Ascend): they tell its waiting without the others.

    Args:
        ranks: The ranks side by side.
        groups: What they share.
        rows: (ranks, steps) row of each common step in the rank's own steps.
        missing: Ranks that were not recorded.
    """
    if rows.shape[1] == 0:
        return NotMeasured("no_common_steps")
    known = [one for one in groups if one.synchronising.any()]
    bound = bool(missing) or not all(one.complete for one in known)
    if bound or not known:
        own = [_by_tasks(rank, mine) for rank, mine in zip(ranks, rows, strict=True)]
        told = [one for one in own if one is not None]
        if len(told) == len(ranks):
            return ExposedWaits(np.stack(told), bound=True)
    if not known:
        return NotMeasured("no_matched_collectives")
    return ExposedWaits(by_durations(known, rows), bound=bound)


def by_durations(groups: Sequence[MatchedGroup], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """(ranks, steps) ns over groups that have collectives for which waiting is defined."""
    found = np.zeros(rows.shape, np.int64)
    for one in groups:
        found[list(one.members)] += of_group(one, rows.shape[1]).T
    return found


def of_group(one: MatchedGroup, steps: int) -> NDArray[np.int64]:
    """(steps, members) ns of a group's collectives that synchronise."""
    rows = np.flatnonzero(one.synchronising)
    bare = np.clip(one.exposed - one.transfer[:, None], 0, one.wait)
    sums = np.zeros((3, steps, len(one.members)), np.int64)
    for total, values in zip(sums, (one.wait, one.exposed, bare), strict=True):
        np.add.at(total, one.step[rows], values[rows])
    wait, shown, least = sums
    if not one.complete:
        return np.asarray(least)
    last = wait.argmin(axis=1)[:, None]
    transfer = np.take_along_axis(shown - least, last, 1)
    return np.asarray(np.clip(shown - transfer, least, wait))


def _by_tasks(rank: RankSummary, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """(steps,) exposed ns in which no plane moved data, at least; None where the tasks are not all recorded."""
    own = rank.collectives
    common = np.full(len(rank.steps) + 1, -1, np.int64)
    common[rows] = np.arange(len(rows))
    step = common[own.step]
    inside = step >= 0
    if not inside.any() or (own.moved[inside] < 0).any():
        return None
    found = np.zeros(len(rows), np.int64)
    np.add.at(found, step[inside], np.clip(own.exposed - own.moved, 0, None)[inside])
    return found
