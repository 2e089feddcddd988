"""Whether the history of a snapshot lacks its beginning (CAP111)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.allocator.results_patterns import Truncation

if TYPE_CHECKING:
    from traceanalyze.analyses.allocator.curves import Curve

ROUND = 10_000
"""Rings are asked for in such numbers; a history of just so many events has most likely forgotten older ones (own)."""


def truncation(overflowed: bool | None, events: int, active: Curve) -> Truncation:
    """What the file says, else what its number of events and its peak suggest.

    Args:
        overflowed: The flag of torch ≥ 2.12; None where there is none.
        events: Of the history.
        active: Requested bytes.
    """
    kind = ""
    if overflowed:
        kind = "full"
    elif overflowed is None and active.base > 0 and events >= ROUND and events % ROUND == 0:
        kind = "round"
    elif events > 1 and active.peak[1] < 0:
        kind = "late"
    return Truncation(kind, active.base)
