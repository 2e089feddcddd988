"""The longest run of values that stay near their own median."""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

TOLERANCE_PERCENT = 20


def longest_steady(values: Sequence[int]) -> tuple[int, int]:
    """Bounds `[first, stop)` of the longest run of positive values all within ±20 % of the run's median.

    Of several the first. Where no value of a run is more than 1.5 times another it may still not be steady, but where
    one is it never is, so few runs are looked at.
    """
    low, high = 100 - TOLERANCE_PERCENT, 100 + TOLERANCE_PERCENT
    best = (0, 0)
    for first in range(len(values)):
        if len(values) - first <= best[1] - best[0]:
            break
        ordered: list[int] = []
        for stop in range(first + 1, len(values) + 1):
            insort(ordered, values[stop - 1])
            if low * ordered[-1] > high * ordered[0]:
                break
            twice = ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]
            steady = 200 * ordered[0] >= low * twice and 200 * ordered[-1] <= high * twice
            if steady and stop - first > best[1] - best[0]:
                best = (first, stop)
    return best
