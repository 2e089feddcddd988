"""Which runtime call launched which device event (definitions §8)."""

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.host.events import ApiCalls
from traceanalyze.analyses.host.nesting import Nest, innermost
from traceanalyze.analyses.kernels.events import DeviceEvents
from traceanalyze.model.columns import MISSING, Rows, distinct, find, occurs, short
from traceanalyze.model.trace import Trace
from traceanalyze.model.vocabulary import ApiClass

_LAUNCH_FLOWS = frozenset({"ac2g", "async_cpu_to_gpu", "async_gpu", "async"})
_TASK_FLOWS = frozenset({"HostToDevice"})
_OP_FLOWS = frozenset({"async_npu"})
FLOWS_TO_DEVICE = _LAUNCH_FLOWS | _TASK_FLOWS | _OP_FLOWS
"""Arrows that end at device events."""


def launch_links(trace: Trace, device: DeviceEvents, calls: ApiCalls) -> NDArray[np.int32]:
    """Position in `calls` of the launch of each device event, -1 where the trace has none.

    By correlation in any runtime or driver category; else by the flow arrow that ends at the event.
    """
    link = _by_correlation(trace, device, calls)
    if (link < 0).any() and len(trace.flows.ts):
        link = np.where(link < 0, _by_flow(trace, device, calls, device.start[link < 0]), link)
    if (link < 0).any() and len(trace.flows.ts):
        link = np.where(link < 0, _by_task_flow(trace, device, calls), link)
    return short(link)


def _by_correlation(trace: Trace, device: DeviceEvents, calls: ApiCalls) -> NDArray[np.int64]:
    sparse = trace.events.fields.get("correlation")
    if sparse is None or len(calls) == 0:
        return np.full(len(device), -1, np.int64)
    wanted = sparse.take(device.row, -1)
    # An id may be shared by nested calls: the one that launches or copies is meant, the earliest of several.
    order = np.lexsort((calls.start, ~occurs(calls.klass, (ApiClass.LAUNCH, ApiClass.COPY))))
    at = find(wanted, sparse.take(calls.row[order], -1))
    return np.where((at >= 0) & (wanted != 0) & (wanted != -1), order[at], -1)


def _by_flow(trace: Trace, device: DeviceEvents, calls: ApiCalls, start: NDArray[np.int64]) -> NDArray[np.int64]:
    """Arrow start → call and arrow end → device event, both found by exact track and start time."""
    source, event = arrows(trace, device, _LAUNCH_FLOWS, start)
    call = _at_place(calls.track, calls.start, trace.flows.track[source], trace.flows.ts[source])
    return _linked(device, event, call)


def _by_task_flow(trace: Trace, device: DeviceEvents, calls: ApiCalls) -> NDArray[np.int64]:
    """Arrow start inside a call: where CANN's calls were not recorded (level 0), the `Dequeue` around them."""
    source, event = arrows(trace, device, _TASK_FLOWS)
    track, t = trace.flows.track[source], trace.flows.ts[source]
    call = np.full(len(source), -1, np.int64)
    outer = np.flatnonzero(calls.outermost)
    for one in distinct(track).tolist():
        own, here = outer[calls.track[outer] == one], np.flatnonzero(track == one)
        if len(own) == 0:
            continue
        at = np.searchsorted(calls.start[own], t[here], "right") - 1
        inside = (at >= 0) & (t[here] <= calls.end[own[at]])
        call[here[inside]] = own[at[inside]]
    return _linked(device, event, call)


def _linked(device: DeviceEvents, event: NDArray[np.int64], call: NDArray[np.int64]) -> NDArray[np.int64]:
    link = np.full(len(device), -1, np.int64)
    link[event[call >= 0]] = call[call >= 0]
    return link


def arrows(
    trace: Trace, device: DeviceEvents, categories: frozenset[str], start: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Arrows of some categories that end at a device event: the flow they start with, and the event's position.

    One start may have several ends. The event is found by its exact track and start; of interest may be only those with
    some of the starts.
    """
    flows = trace.flows
    wanted = trace.strings.matches(flows.cat, lambda text: text in categories)
    source = np.flatnonzero(wanted & (flows.phase == ord("s")))
    target = np.flatnonzero(wanted & (flows.phase == ord("f")))
    if start is not None:
        target = target[occurs(flows.ts[target], start)]
    at = find(flows.id[target], flows.id[source])
    source, target = source[at[at >= 0]], target[at >= 0]
    event = _at_place(trace.events.track[device.row], device.start, flows.track[target], flows.ts[target])
    return source[event >= 0], event[event >= 0]


def _at_place(
    track: NDArray[np.int32], start: NDArray[np.int64], want_track: NDArray[np.int32], want_start: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Position of the row with exactly this track and start, -1 where there is none."""
    if not len(want_start):
        return np.zeros(0, np.int64)
    # Of rows and of what is wanted the first row with the start stands for it, so that both columns are one number.
    tracks = 1 + max(int(each.max(initial=0)) for each in (track, want_track))
    return find(find(want_start, start) * tracks + want_track, find(start, start) * tracks + track)


def launching_ops(trace: Trace, device: DeviceEvents, nest: Nest, around: Rows, linked: NDArray[np.bool_]) -> Rows:
    """Place in `nest` of the operator of each device event, -1 for none.

    `around` is the place of the operator around the call by which the program asked for the event, -1 for none, and
    `linked` tells whether its launch was recorded.
    """
    op = around
    if (op < 0).any() and len(trace.flows.ts):
        op = np.where(op < 0, _by_arrow(trace, device, nest), op)
    alone = np.flatnonzero(~linked & (op < 0))
    op[alone] = _by_external_id(trace, device.row[alone], nest)
    return op


def _by_arrow(trace: Trace, device: DeviceEvents, nest: Nest) -> NDArray[np.int64]:
    """By the arrows from operators to device events of torch_npu: they start where the innermost operator does."""
    found = np.full(len(device), -1, np.int64)
    source, event = arrows(trace, device, _OP_FLOWS)
    if len(source):
        found[event] = innermost(nest, trace.flows.track[source], trace.flows.ts[source])
    return found


def _by_external_id(trace: Trace, row: Rows, nest: Nest) -> NDArray[np.int64]:
    """By the id of the operator. In many traces the field only repeats the correlation: such values mean nothing."""
    column = trace.events.fields.get("external_id")
    if column is None or len(row) == 0:
        return np.full(len(row), -1, np.int64)
    wanted = column.take(row, 0)
    correlation = trace.events.fields.get("correlation")
    if correlation is not None:
        wanted[wanted == correlation.take(row, -1)] = 0
    return np.where(wanted > 0, find(wanted, column.take(nest.row, 0)), -1)


_IN, _OUT = 1, 2


def enqueuing_calls(trace: Trace, calls: ApiCalls) -> NDArray[np.int32]:
    """Position in `calls` of the `Enqueue` behind each call that runs inside a `Dequeue@…`; -1 for the others."""
    found = np.full(len(calls), -1, np.int32)
    column = trace.events.fields.get("queue_id")
    if column is None or len(calls) == 0:
        return found
    number = column.take(calls.row, MISSING)
    side = trace.strings.lookup(calls.name, _side)
    side[number == MISSING] = 0
    entry = np.flatnonzero(side == _IN)
    taken_out = _around(np.flatnonzero(side == _OUT), calls)
    inside = np.flatnonzero(taken_out >= 0)
    entry = entry[np.argsort(calls.start[entry], kind="stable")]
    at = find(number[taken_out[inside]], number[entry])
    found[inside[at >= 0]] = entry[at[at >= 0]]
    return found


_GRAPHS = frozenset({"GE@Infer"})


def only_queue(trace: Trace, calls: ApiCalls) -> bool:
    """Whether the queue, or the run of a whole graph, is all that was recorded of the runtime (Ascend)."""
    return len(calls) > 0 and bool(trace.strings.matches(calls.name, lambda name: _side(name) or name in _GRAPHS).all())


def _side(name: str) -> int:
    return _OUT if name.startswith("Dequeue") else _IN if name.startswith("Enqueue") else 0


def _around(some: NDArray[np.int64], calls: ApiCalls) -> NDArray[np.int64]:
    """Which of some calls, that do not overlap on a thread, each call starts in; -1 for none."""
    found = np.full(len(calls), -1, np.int64)
    for track in distinct(calls.track[some]).tolist():
        own, every = some[calls.track[some] == track], np.flatnonzero(calls.track == track)
        at = np.searchsorted(calls.start[own], calls.start[every], "right") - 1
        inside = (at >= 0) & (calls.start[every] < calls.end[own[at]])
        found[every[inside]] = own[at[inside]]
    return found
