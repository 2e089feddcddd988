"""Nesting of the events of one thread: who contains whom, and who is innermost at an instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Nest:
    """Events of one thread sorted by (start, longer first); `parent` is the innermost container's position or -1."""

    row: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    parent: NDArray[np.int64]


def nest(row: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]) -> Nest:
    """Sort events and find each one's innermost container."""
    order = np.lexsort((-end, start))
    start, end = start[order], end[order]
    return Nest(row[order], start, end, _parents(end))


def _parents(end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Position of the nearest earlier event that ends no earlier, for events sorted by (start, longer first).

    Candidate jumping: everything between an event and its candidate ends before the event does, so a candidate that
    ends too early can be replaced by its own candidate. All events jump at once; a run of siblings halves each round.
    """
    parent = np.arange(-1, len(end) - 1, dtype=np.int64)
    active = np.flatnonzero(parent >= 0)
    while True:
        active = active[end[parent[active]] < end[active]]
        if len(active) == 0:
            return parent
        parent[active] = parent[parent[active]]
        active = active[parent[active] >= 0]


def innermost_at(nested: Nest, t: NDArray[np.int64]) -> NDArray[np.int64]:
    """Position in the nest of the innermost event with start <= t < end, -1 where there is none."""
    found = np.searchsorted(nested.start, t, "right") - 1
    active = np.flatnonzero(found >= 0)
    while True:
        active = active[nested.end[found[active]] <= t[active]]
        if len(active) == 0:
            return found
        found[active] = nested.parent[found[active]]
        active = active[found[active] >= 0]
