"""Which runtime call launched which device event (definitions §8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.model.vocabulary import ApiClass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.device_events import DeviceEvents
    from traceanalyze.analyses.host_events import ApiCalls
    from traceanalyze.model.trace import Trace

_LAUNCH_FLOWS = frozenset({"ac2g", "async_cpu_to_gpu", "async_gpu", "async"})


def launch_links(trace: Trace, device: DeviceEvents, calls: ApiCalls) -> NDArray[np.int64]:
    """Position in `calls` of the launch of each device event, -1 where the trace has none.

    By correlation in any runtime or driver category; else by the flow arrow that ends at the event.
    """
    link = _by_correlation(trace, device, calls)
    if (link < 0).any() and len(trace.flows.ts):
        link = np.where(link < 0, _by_flow(trace, device, calls), link)
    return link


def _by_correlation(trace: Trace, device: DeviceEvents, calls: ApiCalls) -> NDArray[np.int64]:
    link = np.full(len(device), -1, np.int64)
    sparse = trace.events.fields.get("correlation")
    if sparse is None or len(calls) == 0:
        return link
    wanted = sparse.take(device.row, -1)
    offered = sparse.take(calls.row, -1)
    # An id may be shared by nested calls: the one that launches or copies is meant, the earliest of several.
    helper = (calls.klass != ApiClass.LAUNCH) & (calls.klass != ApiClass.COPY)
    order = np.lexsort((calls.start, helper, offered))
    keys = offered[order]
    at = np.searchsorted(keys, wanted)
    at[at == len(keys)] = 0
    valid = (wanted != 0) & (wanted != -1) & (keys[at] == wanted)
    link[valid] = order[at[valid]]
    return link


def _by_flow(trace: Trace, device: DeviceEvents, calls: ApiCalls) -> NDArray[np.int64]:
    """Arrow start → call and arrow end → device event, both found by exact track and start time."""
    flows = trace.flows
    link = np.full(len(device), -1, np.int64)
    is_launch = trace.strings.lookup(flows.cat, lambda text: text in _LAUNCH_FLOWS).astype(np.bool_)
    source = np.flatnonzero(is_launch & (flows.phase == ord("s")))
    target = np.flatnonzero(is_launch & (flows.phase == ord("f")))
    if len(source) == 0 or len(target) == 0 or len(calls) == 0:
        return link
    source = source[np.argsort(flows.id[source], kind="stable")]
    at = np.searchsorted(flows.id[source], flows.id[target])
    at[at == len(source)] = 0
    matched = flows.id[source[at]] == flows.id[target]
    source, target = source[at[matched]], target[matched]
    call = _at_place(calls.track, calls.start, flows.track[source], flows.ts[source])
    event = _at_place(trace.events.track[device.row], device.start, flows.track[target], flows.ts[target])
    both = (call >= 0) & (event >= 0)
    link[event[both]] = call[both]
    return link


def _at_place(
    track: NDArray[np.int32], start: NDArray[np.int64], want_track: NDArray[np.int32], want_start: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Position of the row with exactly this track and start, -1 where there is none."""
    order = np.lexsort((track, start))
    low = np.searchsorted(start[order], want_start, "left")
    found = np.full(len(want_start), -1, np.int64)
    pending = np.arange(len(want_start))
    offset = 0
    while len(pending):
        at = low[pending] + offset
        pending, at = pending[at < len(order)], at[at < len(order)]
        same_time = start[order[at]] == want_start[pending]
        pending, at = pending[same_time], at[same_time]
        hit = track[order[at]] == want_track[pending]
        found[pending[hit]] = order[at[hit]]
        pending = pending[~hit]
        offset += 1
    return found
