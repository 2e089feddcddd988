"""Counters over time: queue depth, device utilisation, memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.analyses.launches import clocks_agree
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.analyses.utilisation import utilisation
from traceanalyze.report.perfetto.model import MIB, Counter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context
    from traceanalyze.analyses.results import RankAnalysis


def queue_counter(context: Context, terms: Mapping[str, str]) -> Counter | NotMeasured:
    """Events launched and not begun on the headline device, over all its streams (definitions §6).

    Events of one launch (a graph) on one stream wait as one, until the first of them starts.
    """
    device, link = context.device, context.link
    if len(context.calls) == 0:
        return NotMeasured("no_api")
    linked = link >= 0
    wrong = linked & (device.start < context.launch_start)
    if not clocks_agree(wrong, linked):
        return NotMeasured("clocks_disagree")
    mine = np.flatnonzero(linked & ~wrong & (device.device == context.devices[0]))
    # Device events are sorted by start, so the first of equal keys is the one that starts first.
    _, first = np.unique(link[mine] * (1 << 32) + device.stream[mine], return_index=True)
    mine = mine[first]
    t, change = _joined(context.launch_start[mine], device.start[mine])
    title = f"{terms['overlay_queue']} · {terms['overlay_device']} {context.devices[0]}"
    return Counter(title, t, {terms["overlay_events"]: np.cumsum(change)})


def _joined(up: NDArray[np.int64], down: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct instants, and how much the count changes at each."""
    t, place = np.unique(np.concatenate((up, down)), return_inverse=True)
    change = np.zeros(len(t), np.int64)
    np.add.at(change, place.reshape(-1), np.concatenate((np.ones(len(up), np.int64), np.full(len(down), -1))))
    return t, change


def utilisation_counter(context: Context, terms: Mapping[str, str]) -> Counter:
    """Share of time with anything running on the headline device: chunks of the steps, and the time around steps."""
    device = context.device
    mine = device.device == context.devices[0]
    busy = intervals.merge(device.start[mine], device.end[mine])
    chunks = utilisation(context).chunks
    edges = [chunks.start, chunks.end, busy.start[:1], busy.end[-1:]]
    t = np.unique(np.concatenate(edges))
    share = 100 * intervals.coverage(busy, t[:-1], t[1:]) / (t[1:] - t[:-1])
    title = f"{terms['overlay_utilisation']} · {terms['overlay_device']} {context.devices[0]}"
    return Counter(title, t, {"%": np.concatenate((share, [0.0]))})


def memory_counters(analysis: RankAnalysis, terms: Mapping[str, str]) -> tuple[Counter, ...] | NotMeasured:
    """Memory in use of every device that has records; every peak of the records is in it."""
    if isinstance(analysis.memory, NotMeasured):
        return analysis.memory
    if isinstance(analysis.memory.devices, NotMeasured):
        return analysis.memory.devices
    found = []
    for one in analysis.memory.devices:
        values = {terms["overlay_allocated"]: one.curve.allocated / MIB}
        if one.curve.reserved is not None:
            values[terms["overlay_reserved"]] = one.curve.reserved / MIB
        place = one.kind if one.kind == "host" else f"{terms['overlay_device']} {one.device}"
        found.append(Counter(f"{terms['overlay_memory']} · {place}", one.curve.t, values))
    return tuple(found)
