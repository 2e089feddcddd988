"""Device time of one side by row of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.compare.results import Measured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context


def measured(context: Context, work: NDArray[np.int64], key: NDArray[np.int64]) -> dict[int, Measured]:
    """Sums by key; a row is called by its name with most time.

    Args:
        context: one side.
        work: positions in `context.work`.
        key: of each, which row it belongs to.
    """
    time, name = context.work.time[work], context.device.name[context.work.event[work]]
    rows = group(key)
    named = group(rows.of, name)
    most = np.lexsort((name[named.first], -named.sum(time), rows.of[named.first]))
    _, at = np.unique(rows.of[named.first[most]], return_index=True)
    usual = name[named.first[most[at]]]
    return {
        int(key[first]): Measured(context.trace.strings.text(code), each.count, each.total, each.longest, each.shortest)
        for first, code, each in zip(rows.first.tolist(), usual.tolist(), rows.spreads(time), strict=True)
    }


def change(base: Measured | None, candidate: Measured | None, steps: Sequence[int]) -> int:
    """Absolute change per step, times the steps of both sides; rows are put in order by it."""
    old, new = (0 if side is None else side.total for side in (base, candidate))
    return abs(new * steps[0] - old * steps[1])
