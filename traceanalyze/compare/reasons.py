"""Time of one side summed by reason: the common ground of work and idle time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.phases import launch_places
from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.compare.side import Side


@frozen
class Reason:
    """One side of a contribution."""

    time: int
    count: int
    module: str | None
    frame: str | None


Key = tuple[str, str, str]
"""Part, what and name of a contribution."""
Reasons = dict[Key, Reason]


class Pieces(NamedTuple):
    """Stretches of time to be summed; one row each."""

    key: NDArray[np.int64]
    """Position in a list of keys."""
    time: NDArray[np.int64]
    event: NDArray[np.int64]
    """Device event (of idle time: the one that ended it), -1 for none."""
    unit: NDArray[np.int64]
    """What is counted: pieces of one unit count once."""


def summed_up(side: Side, keys: Sequence[Key], pieces: Pieces, module: NDArray[np.int64] | None = None) -> Reasons:
    """Sum by key. The source line is that of the longest piece; `module` (a place for each piece) must be the same."""
    rows = group(pieces.key)
    if len(rows) == 0:
        return {}
    units = group(rows.of, pieces.unit)
    count = np.bincount(rows.of[units.first], minlength=len(rows))
    order = np.lexsort((-np.arange(len(pieces.time)), pieces.time, rows.of))
    last = np.concatenate((np.flatnonzero(np.diff(rows.of[order])), [len(order) - 1]))
    frames = _frames(side, pieces.event[order[last]])
    modules = [-1] * len(rows) if module is None else _same(rows.of, module, rows.first)
    places = side.modules.places if side.modules is not None else ()
    return {
        keys[key]: Reason(time, number, places[place].path if place >= 0 else None, frame)
        for key, time, number, place, frame in zip(
            pieces.key[rows.first].tolist(),
            rows.sum(pieces.time).tolist(),
            count.tolist(),
            modules,
            frames,
            strict=True,
        )
    }


def _same(of: NDArray[np.int64], value: NDArray[np.int64], first: NDArray[np.int64]) -> list[int]:
    """The value that all members of each group have, -1 where they differ."""
    other = np.zeros(len(first), np.bool_)
    other[of[value != value[first[of]]]] = True
    same: list[int] = np.where(other, -1, value[first]).tolist()
    return same


def _frames(side: Side, event: NDArray[np.int64]) -> list[str | None]:
    """User source line that launched each device event."""
    found: list[str | None] = [None] * len(event)
    track, t = launch_places(side.context)
    known = np.flatnonzero(event >= 0)
    threads = track[event[known]]
    for thread in np.unique(threads[threads >= 0]).tolist():
        mine = known[threads == thread]
        _, _, frames = side.context.locate(thread, t[event[mine]])
        for place, frame in zip(mine.tolist(), frames, strict=True):
            found[place] = frame
    return found
