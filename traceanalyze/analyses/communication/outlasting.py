"""Collectives that take far longer than others of their kind and size: the rest is waiting, even with one rank."""

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.grouping import group
from traceanalyze.model.collectives import TYPES
from traceanalyze.model.columns import distinct

TIMES = 10
"""So many times the median of its siblings (own: network and algorithm make collectives of one size differ by less)."""
TIMES_SCALED = 5
"""The same of what another size needs, scaled up to its bytes (own): large messages are no slower a byte than small
ones, so that this is more than they need."""
TIMES_LARGER = 3
"""The same of what one that sent more took (own: another algorithm, or compute beside it, costs less)."""
SIBLINGS = 4
"""Fewer collectives of one kind and size have no usual time."""
_EVEN = [TYPES.index(kind) for kind in ("all_reduce", "all_gather", "reduce_scatter")]
"""Those of which every rank sends and receives as many bytes as the others."""
_BETWEEN_TWO = [TYPES.index(kind) for kind in ("send", "recv", "send_recv")]


def outlasting(
    kind: NDArray[np.int64], size: NDArray[np.int64], of: NDArray[np.int64], time: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Time of each collective beyond the median of those of its kind, size and process group, 0 where it is usual.

    Of two middle ones the shorter counts, so that one long collective beside one short one in each step is told. Where
    all of one size wait, others of their kind and group tell what they need, by the byte; and none needs three times as
    long as one that sent more. Those whose size (bytes) is not recorded, -1, are not judged; nor are sends and
    receives, whose waiting is the schedule of a pipeline.
    """
    rows = group(kind, size, of)
    order = np.lexsort((time, rows.of))
    count = rows.count()
    first = np.cumsum(count) - count
    middle = time[order][first + (count - 1) // 2][rows.of] if len(rows) else time
    judged = (size >= 0) & (count[rows.of] >= SIBLINGS) & (middle > 0) & ~np.isin(kind, _BETWEEN_TWO)
    found = np.where(judged & (time >= TIMES * middle), time - middle, 0)
    even = np.flatnonzero(judged & (size > 0) & (of >= 0) & np.isin(kind, _EVEN))
    for place in rows.first[distinct(rows.of[even])]:
        alike = even[(kind[even] == kind[place]) & (of[even] == of[place])]
        needed = (middle[place] * np.maximum(size[alike] / size[place], 1)).astype(np.int64)
        longer = np.where(time[alike] >= TIMES_SCALED * needed, time[alike] - needed, 0)
        longer[size[alike] == size[place]] = 0
        found[alike] = np.maximum(found[alike], longer)
    return np.maximum(found, beyond_larger(kind, size, of, time))


def beyond_larger(
    kind: NDArray[np.int64],
    size: NDArray[np.int64],
    of: NDArray[np.int64],
    time: NDArray[np.int64],
    least: int | None = None,
) -> NDArray[np.int64]:
    """What each takes beyond the shortest of its kind and group that sent more, or as much where these are few.

    Where it takes `least` times as long; by default as much as proves that it waits.
    """
    found, never = np.zeros(len(time), np.int64), np.iinfo(np.int64).max
    rows = np.flatnonzero((size > 0) & (time > 0) & ~np.isin(kind, _BETWEEN_TWO))
    sized = group(kind[rows], of[rows], size[rows])
    shortest = np.full(len(sized), never)
    np.minimum.at(shortest, sized.of, time[rows])
    few, larger = np.where(sized.count() < SIBLINGS, shortest, never), np.full(len(sized), never)
    first = rows[sized.first]
    order = np.lexsort((-size[first], of[first], kind[first]))
    other = np.flatnonzero((np.diff(kind[first[order]]) != 0) | (np.diff(of[first[order]]) != 0)) + 1
    for alike in np.split(order, other):
        larger[alike[1:]] = np.minimum.accumulate(shortest[alike])[:-1]
    # What the others send to a rank in an exchange is not in its size.
    times = np.where(np.isin(kind[rows], _EVEN), TIMES_LARGER, TIMES)
    for needed, proof in ((few[sized.of], TIMES), (larger[sized.of], times)):
        longer = time[rows] // (proof if least is None else least) >= needed
        found[rows[longer]] = np.maximum(found[rows[longer]], (time[rows] - needed)[longer])
    return found
