"""Copies between host and device with their bytes, the memory they use and what faster ones save, for the rules."""

from math import prod

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.kernels.copies import DIRECTIONS, MEMORY, directions, memories
from traceanalyze.model import intervals
from traceanalyze.model.collectives import element_bytes
from traceanalyze.model.columns import MISSING
from traceanalyze.model.vocabulary import DeviceClass, EventKind
from traceanalyze.rules.common.computing import dispatched, dtypes_of, op_text, shapes_of
from traceanalyze.rules.rule import Facts

PINNED_GBS = 12.0
"""Reached by pinned copies over PCIe 3.0 x16, newer links are faster; where none of the recording tells."""
NEWER_GBS, NEWER = 24.0, 8
"""Over PCIe 4.0 x16, which devices of this compute capability or a later one have."""
LARGE = 0.05
"""Own: part of the step from which copies matter that hold no host up."""
LONG_NS = 100_000
"""Copies shorter than this say nothing about the rate of the link."""


def host_copies(facts: Facts, way: str) -> NDArray[np.int64]:
    """Copies between host and headline device in the windows, `h2d` or `d2h` (positions in `Context.device`)."""
    context, device = facts.context, facts.context.device
    rows = np.flatnonzero((device.kind == EventKind.MEMCPY) & (device.device == context.devices[0]))
    rows = rows[intervals.contains(facts.windows, device.start[rows])]
    return rows[directions(context, rows) == DIRECTIONS.index(way)] if len(rows) else rows


def pageable(facts: Facts, rows: NDArray[np.int64], way: str, rate: float) -> NDArray[np.bool_]:
    """Which copies use pageable host memory.

    Where the kind of memory is not recorded (Ascend), those of `LONG_NS` and more that move fewer bytes/ns than `rate`.
    """
    memory = memories(facts.context, rows)
    size, time = copied_bytes(facts, rows), (facts.context.device.end - facts.context.device.start)[rows]
    slow = (size != MISSING) & (time >= LONG_NS) & (size < rate * time)
    found: NDArray[np.bool_] = (memory == MEMORY.index("pageable")) | ((memory == MEMORY.index(None)) & slow)
    return found


def pinned_rate(facts: Facts, way: str, otherwise: float) -> float:
    """Bytes/ns of the long copies of pinned memory in the windows."""
    rows, device = host_copies(facts, way), facts.context.device
    size, time = copied_bytes(facts, rows), (device.end - device.start)[rows]
    known = (memories(facts.context, rows) == MEMORY.index("pinned")) & (size != MISSING) & (time >= LONG_NS)
    return float(size[known].sum() / time[known].sum()) if known.any() else otherwise


def fastest_rate(facts: Facts, way: str, otherwise: float) -> float:
    """The same over the fastest link that the device is known to have."""
    stated = [float(one.capability) for one in facts.context.trace.devices if one.capability]
    newer = bool(stated) and min(stated) >= NEWER
    return pinned_rate(facts, way, max(otherwise, NEWER_GBS) if newer else otherwise)


def share_saved(facts: Facts, event: NDArray[np.int64], rate: float) -> float:
    """Part of the copies' time that pinned memory would save; 0 where sizes were not recorded."""
    device = facts.context.device
    size = copied_bytes(facts, event)
    time = int((device.end - device.start)[event].sum())
    if not time or (size == MISSING).any():
        return 0.0
    return max(0.0, 1 - float(size.sum()) / rate / time)


def hidden(facts: Facts, length: NDArray[np.int64]) -> NDArray[np.int64]:
    """So much of the copies' exposed time as other work of the device has room to hide."""
    work = intervals.union(facts.busy(DeviceClass.COMPUTE), facts.busy(DeviceClass.COMM))
    free = intervals.subtract(intervals.intersect(work, facts.windows), facts.busy(DeviceClass.MEM))
    part = min(1.0, intervals.total(free) / max(int(length.sum()), 1))
    return np.round(length * part).astype(np.int64)


def copied_bytes(facts: Facts, event: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bytes of each copy (position in `Context.device`), `MISSING` where unknown.

    As recorded; on Ascend, which does not, of the first tensor of the operator that copies.
    """
    context = facts.context
    size = context.trace.events.numbers("bytes", context.device.row[event]).astype(np.int64)
    size[size < 0] = MISSING
    if context.trace.origin.format != "ascend":
        return size
    row = context.op_nest.rows(dispatched(facts, context.event_op[event]))
    elements, each = op_text(facts, "shapes", row, _first, 0), op_text(facts, "dtypes", row, _bytes, 0)
    return np.where((size == MISSING) & (elements * each > 0), elements * each, size)


def _first(text: str) -> int:
    """Elements of the first tensor, at most 2³¹ - 1."""
    return min(max(prod(next(iter(shapes_of(text)), (0,))), 0), 2**31 - 1)


def _bytes(text: str) -> int:
    """Bytes of an element of the first tensor."""
    return element_bytes(next(iter(dtypes_of(text)), "")) or 0
