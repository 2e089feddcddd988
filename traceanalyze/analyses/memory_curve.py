"""Memory in use over time, thinned out so that it can be drawn and no peak is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.results_use import MemoryCurve
from traceanalyze.model.columns import distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

POINTS = 500


def memory_curve(
    t: NDArray[np.int64], allocated: NDArray[np.int64], reserved: NDArray[np.int64], *, relative: bool
) -> MemoryCurve:
    """At most `POINTS` of the records of one device.

    Args:
        t: When, ascending.
        allocated: Total after each record, below 0 where it is unknown; with `relative` the sum of changes so far.
        reserved: The same of reserved memory.
        relative: `allocated` is a sum of changes.
    """
    if not relative:
        known = allocated >= 0
        t, allocated, reserved = t[known], allocated[known], reserved[known]
    whole = bool((reserved > 0).any() and (reserved >= 0).all())
    kept = _thinned(t, (allocated, reserved) if whole else (allocated,))
    return MemoryCurve(t[kept], allocated[kept], reserved[kept] if whole else None, relative)


def _thinned(t: NDArray[np.int64], curves: tuple[NDArray[np.int64], ...]) -> NDArray[np.int64]:
    """Positions of the lowest and the highest value of every curve in each of some equal pieces of time."""
    if len(t) <= POINTS:
        return np.arange(len(t))
    pieces = POINTS // (2 * len(curves))
    piece = (t - t[0]) * pieces // (int(t[-1] - t[0]) + 1)
    first = np.flatnonzero(np.concatenate(([True], piece[1:] != piece[:-1])))
    length = np.diff(np.concatenate((first, [len(t)])))
    chosen = []
    for curve in curves:
        for extreme in (np.minimum, np.maximum):
            at = np.flatnonzero(curve == np.repeat(extreme.reduceat(curve, first), length))
            chosen.append(at[np.concatenate(([True], piece[at[1:]] != piece[at[:-1]]))])
    return distinct(np.concatenate(chosen))
