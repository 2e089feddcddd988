"""Which rank of a run to look at first: the others wait for the one that takes longest by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

EVEN = 1.02
"""Ratio of two times of ranks up to which they count as equal."""


def longest(step_times: Sequence[int]) -> int:
    """Position of the rank with the longest mean step; the first of equals."""
    return max(range(len(step_times)), key=step_times.__getitem__)


def leading(step_times: Sequence[int], own: Sequence[int | None]) -> int:
    """Position of the rank with the longest step, or of one that takes longer without waiting for others.

    Args:
        step_times: Mean step of each rank, ns.
        own: The same without the time in which it only waits for others; None where that is not known.
    """
    slowest = longest(step_times)
    known = [time for time in own if time is not None]
    if len(known) < len(step_times) or max(known) <= EVEN * known[slowest]:
        return slowest
    return known.index(max(known))
