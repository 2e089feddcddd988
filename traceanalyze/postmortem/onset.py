"""Since when: the steps in which something costs enough to be told."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from traceanalyze.postmortem.results import Onset
from traceanalyze.rules.ranking import LEAST_SHARE, PRESENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

BEFORE = 2
"""Steps without it that make its first step a beginning, and its last step an end."""


class Spell(NamedTuple):
    """The steps of one recording, in the order of time, and what one thing takes in each of them, ns."""

    recording: int
    steps: tuple[str, ...]
    times: NDArray[np.int64]
    """Of the steps."""
    cost: NDArray[np.int64] | None
    """None: it is there, but is not tied to points in time."""


def onset(spells: Sequence[Spell]) -> Onset:
    """In which steps it is there: it takes 1 % of the step, and a quarter of its mean where it is there at all.

    Of a single step, or a trace without steps, nothing can be said.
    """
    told = [one for one in spells if len(one.steps)]
    if sum(len(one.steps) for one in told) < 2 or all(one.cost is None for one in told):
        return Onset("untold")
    known = np.concatenate([one.cost for one in told if one.cost is not None])
    usual = float(known[known > 0].mean()) if (known > 0).any() else 0.0
    hit = np.concatenate([_hits(one, usual) for one in told])
    places = [(one.recording, step) for one in told for step in one.steps]
    return _shape(hit, places)


def _hits(one: Spell, usual: float) -> NDArray[np.bool_]:
    if one.cost is None:
        return np.ones(len(one.steps), np.bool_)
    hits: NDArray[np.bool_] = one.cost >= np.maximum(LEAST_SHARE * one.times, max(PRESENT * usual, 1.0))
    return hits


def _shape(hit: NDArray[np.bool_], places: Sequence[tuple[int, str]]) -> Onset:
    count, steps = int(hit.sum()), len(hit)
    if count == 0:
        return Onset("untold")
    if count == steps:
        return Onset("every", affected=count, steps=steps)
    first, last = int(hit.argmax()), steps - 1 - int(hit[::-1].argmax())
    if first >= BEFORE and count == steps - first:
        return Onset("from", places[first][1], places[first][0], count, steps)
    if steps - 1 - last >= BEFORE and count == last + 1:
        return Onset("until", places[last][1], places[last][0], count, steps)
    return Onset("some", affected=count, steps=steps)
