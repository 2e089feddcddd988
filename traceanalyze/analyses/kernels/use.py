"""Ratios of the headline device (definitions §13), and which kinds of work ran at the same time."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.kernels.work import device_work, ratio_argument
from traceanalyze.analyses.results_device import DeviceSummary, Measure, Overlap
from traceanalyze.analyses.results_use import Chunks, Stretch, Utilisation
from traceanalyze.model import intervals
from traceanalyze.model.kernel_classes import TensorCore
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import DeviceClass, EventKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context

_Member = tuple[bool, bool, bool]
"""Of compute, communication, copies: which are running."""
SHORT_KERNEL_NS = 10_000
"""A kernel shorter than this is not worth its launch (definitions τ; TraceLens's "short kernels" use the same)."""


def device_summary(context: Context, combined: tuple[Overlap, ...]) -> DeviceSummary:
    """How well the kernels use the headline device; a ratio without its arguments is not measured.

    Args:
        context: the trace.
        combined: what `overlaps` returned.
    """
    work, device = context.once(device_work), context.device
    mine = (device.device[work.event] == context.devices[0]) & (device.kind[work.event] == EventKind.KERNEL)
    event, time = work.event[mine], work.time[mine]
    window = int(context.steps.time.sum())
    blocks = ratio_argument(context, "blocks_per_sm", device.row[event])
    occupancy = ratio_argument(context, "occupancy", device.row[event])
    compute = device.klass[event] == DeviceClass.COMPUTE
    yes, unknown = _tensor_core_shares(time[compute], work.tensor_core[mine][compute])
    short = device.end[event] - device.start[event] < SHORT_KERNEL_NS
    busy = sum(row.time for row in combined if row.compute or row.comm)
    return DeviceSummary(
        gpu_utilisation=busy / window if window else NotMeasured("empty_window"),
        sm_efficiency=_sm_efficiency(time, blocks, window),
        occupancy=_weighted(occupancy / 100, time, "no_occupancy"),
        tensor_core_share=yes,
        tensor_core_unknown=unknown,
        short_kernels=int(short.sum()),
        kernels=len(event),
        short_time=int(time[short].sum()),
        kernel_time=int(time.sum()),
    )


def _sm_efficiency(time: NDArray[np.int64], blocks: NDArray[np.float64], window: int) -> Measure:
    """Σ dur · min(blocks per SM, 1) / window, over the kernels that say how many blocks they have."""
    known = ~np.isnan(blocks)
    if not known.any() or window == 0:
        return NotMeasured("no_occupancy")
    return float((time[known] * np.minimum(blocks[known], 1.0)).sum() / window)


def _weighted(value: NDArray[np.float64], time: NDArray[np.int64], reason: str) -> Measure:
    known = ~np.isnan(value)
    weight = int(time[known].sum())
    return float((value[known] * time[known]).sum() / weight) if weight else NotMeasured(reason)


def _tensor_core_shares(time: NDArray[np.int64], use: NDArray[np.uint8]) -> tuple[Measure, Measure]:
    """Shares of compute time that use matrix units, and that may; no share where no name can be judged."""
    whole = int(time.sum())
    if whole == 0:
        missing = NotMeasured("no_kernels")
        return missing, missing
    yes, unknown = (int(time[use == verdict].sum()) for verdict in (TensorCore.YES, TensorCore.UNKNOWN))
    share = NotMeasured("tensor_core_unknown") if unknown == whole else yes / whole
    return share, unknown / whole


def overlaps(context: Context) -> tuple[Overlap, ...]:
    """Time of the headline device in each combination of compute, communication and copies, and in none.

    The eight times are disjoint and sum to the windows.
    """
    start, end = context.steps.start, context.steps.end
    sets = context.class_sets(context.devices[0])
    inside: dict[_Member, int] = {}
    for member in product((False, True), (False, True), (False, True)):
        chosen = [sets[klass] for klass in DeviceClass if member[klass]]
        any_of = intervals.union(*chosen) if chosen else intervals.EMPTY
        inside[member] = int(intervals.coverage(any_of, start, end).sum())
    window = int((end - start).sum())
    rows = [
        Overlap(compute, comm, mem, _exactly((compute, comm, mem), inside, window)) for compute, comm, mem in inside
    ]
    return tuple(sorted(rows, key=lambda row: (-row.time, row.compute, row.comm, row.mem)))


def _exactly(member: _Member, inside: dict[_Member, int], window: int) -> int:
    """Time in exactly these classes: inside each of them and outside all others.

    With U(x) the time inside any class of x and R the other classes, inclusion and exclusion over the subsets T of the
    chosen ones gives Σ (-1)^|T| · (window - U(R ∪ T)), since window - U(x) is the time outside all of x.
    """
    total = 0
    for subset in product(*((False, True) if chosen else (False,) for chosen in member)):
        a, b, c = (taken or not chosen for taken, chosen in zip(subset, member, strict=True))
        total += (-1) ** sum(subset) * (window - inside[a, b, c])
    return total


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
