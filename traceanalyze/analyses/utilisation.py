"""How busy the device was over time: every step in equal chunks, and the stretches with little use.

Nsight Systems' rule (`gpu_time_util`): 30 chunks, below 50 % counts as little, neighbours are joined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.analyses.results_use import Chunks, Stretch, Utilisation
from traceanalyze.model.vocabulary import DeviceClass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context

CHUNKS = 30
_MOST = 300_000
"""Chunks of all steps together: of more than 10,000 steps each has fewer."""
_LOW = 0.5


def utilisation(context: Context) -> Utilisation:
    """Busy time of the headline device chunk by chunk, over all its streams."""
    chunks = _chunks(context)
    return Utilisation(chunks, _low(chunks))


def _chunks(context: Context) -> Chunks:
    """Chunks of a step differ by 1 ns at most and leave nothing out; those without length are dropped."""
    start, length = context.steps.start, context.steps.time
    each = max(1, min(CHUNKS, _MOST // max(1, len(start))))
    edge = start[:, None] + length[:, None] * np.arange(each + 1) // each
    begin, end = edge[:, :-1].ravel(), edge[:, 1:].ravel()
    kept = np.flatnonzero(end > begin)
    begin, end = begin[kept], end[kept]
    sets = context.class_sets(context.devices[0])
    kernels = intervals.union(sets[DeviceClass.COMPUTE], sets[DeviceClass.COMM])
    compute = intervals.coverage(sets[DeviceClass.COMPUTE], begin, end)
    return Chunks(
        step=kept // each,
        number=kept % each,
        start=begin,
        end=end,
        compute=compute,
        comm=intervals.coverage(kernels, begin, end) - compute,
        busy=intervals.coverage(intervals.union(kernels, sets[DeviceClass.MEM]), begin, end),
    )


def _low(chunks: Chunks) -> tuple[Stretch, ...]:
    """Chunks below the threshold, joined where one ends as the next begins, also across steps; longest first."""
    low = np.flatnonzero(chunks.busy < _LOW * (chunks.end - chunks.start))
    if len(low) == 0:
        return ()
    first = np.flatnonzero(np.concatenate(([True], chunks.start[low[1:]] != chunks.end[low[:-1]])))
    last = np.concatenate((first[1:], [len(low)])) - 1
    columns: tuple[NDArray[np.int64], ...] = (
        chunks.step[low[first]],
        chunks.start[low[first]],
        chunks.end[low[last]],
        np.add.reduceat(chunks.busy[low], first),
    )
    found = [Stretch(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    return tuple(sorted(found, key=lambda item: (-item.length, item.start)))
