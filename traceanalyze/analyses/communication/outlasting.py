"""Collectives that take far longer than others of their kind and size: the rest is waiting, even with one rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.grouping import group

TIMES = 10
"""So many times the median of its siblings (own: network and algorithm make collectives of one size differ by less)."""
SIBLINGS = 4
"""Fewer collectives of one kind and size have no usual time."""


def outlasting(
    kind: NDArray[np.int64], size: NDArray[np.int64], of: NDArray[np.int64], time: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Time of each collective beyond the median of those of its kind, size and process group, 0 where it is usual.

    Of two middle ones the shorter counts, so that one long collective beside one short one in each step is told. Those
    whose size (bytes) is not recorded, -1, are not judged.
    """
    rows = group(kind, size, of)
    order = np.lexsort((time, rows.of))
    count = rows.count()
    first = np.cumsum(count) - count
    middle = time[order][first + (count - 1) // 2][rows.of] if len(rows) else time
    unusual = (size >= 0) & (count[rows.of] >= SIBLINGS) & (time >= TIMES * middle) & (middle > 0)
    return np.where(unusual, time - middle, 0)
