"""What device events wait for: their launch, the events before them, and what streams wait for each other for."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.idle.host_state import is_sync_call
from traceanalyze.analyses.idle.idle import LAUNCH_LATENCY_NS
from traceanalyze.analyses.steps.critical_waits import Lanes, lanes, last_launched, stream_waits, sync_records
from traceanalyze.model.columns import distinct, median, occurs, short
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import DeviceClass
from traceanalyze.replay.longest import NEVER

BETWEEN_KERNELS_NS = 1_500
"""What stays of a gap when the next kernel is there in time; typical of current devices."""
_WAIT_CALL = regex(r"StreamWaitEvent")


class Launches(NamedTuple):
    """The first event of each launch; events that begin before their launch (clocks) have none."""

    call: NDArray[np.int32]
    event: NDArray[np.int32]
    lag: NDArray[np.int64]
    """From the start of the call to that of the event, as far as the launch holds it."""
    until: NDArray[np.int64]
    """So long the host itself works for it after the start of the call."""
    least: NDArray[np.int64]
    """Lag that stays without this work."""


class Follows(NamedTuple):
    """Events that wait for the end of another one."""

    source: NDArray[np.int32]
    event: NDArray[np.int32]
    lag: NDArray[np.int64]
    """From the end of the source; negative where the two overlap."""


class DeviceOrder(NamedTuple):
    """Everything that device events wait for; the lags give every recorded start back."""

    launches: Launches
    follows: Follows
    free: NDArray[np.bool_]
    """Events that wait for nothing recorded."""


def device_order(context: Context) -> DeviceOrder:
    """What the events of all devices and streams wait for.

    Time that nothing explains stays: after the launch where the device was idle, else after the event waited for. What
    was ready long before an event began leaves it no more than the usual latency, and what nothing explains.
    """
    device, link = context.device, context.link
    start, end, launch = device.start, device.end, context.launch_start
    first = _first_events(context)
    launched = np.zeros(len(device), np.bool_)
    launched[first[first >= 0]] = True
    source, event = _predecessors(context, first, launched)
    ready = np.full(len(device), NEVER)
    np.maximum.at(ready, event, end[source])
    blocking = launched & (context.once(is_sync_call)[link] if len(context.calls) else False)
    submitted = np.where(launched, np.where(blocking, launch, np.minimum(context.launch_end, start)), NEVER)
    other = _inferred(context, launched, np.maximum(submitted, ready))
    source, event = np.concatenate((source, other[0])), np.concatenate((event, other[1]))
    ended = end[source]
    ready[other[1]] = end[other[0]]

    directly = (launch < ready) & (start - ready <= BETWEEN_KERNELS_NS)
    by_launch = launched & (submitted > ready) & ~directly
    unexplained = np.where(launched & ~blocking, start - np.maximum(submitted, ready) - LAUNCH_LATENCY_NS, 0)
    unexplained = np.maximum(unexplained, 0)
    gap = start[event] - ended
    binds = ~by_launch[event] & (ended == ready[event])
    lag = np.where(binds, gap, np.minimum(gap, BETWEEN_KERNELS_NS + unexplained[event]))
    after, free = Follows(short(source), short(event), lag), ~launched & (ready == NEVER)
    # What each event would have of its launch, of which that is so for the first of each.
    lag = start - launch
    found = lag[by_launch & ~blocking]
    usual = min(int(median(found)), LAUNCH_LATENCY_NS) if len(found) else LAUNCH_LATENCY_NS
    least = np.minimum(lag, usual + unexplained)
    # A copy from pageable memory begins when the host has moved the first part of it to where the device can read it.
    until = np.where(blocking, start, submitted)
    call = np.flatnonzero(first >= 0)
    begins = first[call]
    columns = (each[begins] for each in (np.where(by_launch, lag, least), until, least))
    return DeviceOrder(Launches(short(call), short(begins), *columns), after, free)


def followers(context: Context) -> Follows:
    """Which events wait for which; use with `Context.once`."""
    return context.once(device_order).follows


def _first_events(context: Context) -> NDArray[np.int64]:
    """First device event of each runtime call, -1 for none."""
    first = np.full(len(context.calls), len(context.device))
    linked = np.flatnonzero((context.link >= 0) & (context.launch_start <= context.device.start))
    np.minimum.at(first, context.link[linked], linked)
    first[first == len(context.device)] = -1
    return first


def _predecessors(
    context: Context, first: NDArray[np.int64], launched: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Events that must have ended before another one begins: sources and events, sources first in `Context.device`."""
    streams, records = context.once(lanes), context.once(sync_records)
    same = streams.key[1:] == streams.key[:-1]
    pairs = [(streams.event[:-1][same], streams.event[1:][same]), _of_graphs(context, launched)]
    if len(records.kind):
        event, source = stream_waits(context, streams, records)
        # An event that had not ended by then was not waited for, whatever the record says.
        possible = (source < event) & (context.device.end[source] <= context.device.start[event])
        pairs.append((source[possible], event[possible]))
    else:
        pairs.extend(_asked_for(context, streams, first))
    source, event = (np.concatenate(column) for column in zip(*pairs, strict=True))
    return source, event


def _of_graphs(context: Context, launched: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of the events of one launch (a graph) each after the first waits for the one that ended last before it."""
    device, link = context.device, context.link
    later = np.flatnonzero((link >= 0) & (context.launch_start <= device.start) & ~launched)
    if len(later) == 0:
        return later, later
    graphs = occurs(link, link[later])
    members = np.flatnonzero(graphs)
    by_end = members[np.lexsort((device.end[members], link[members]))]
    # Ends and starts of each graph in one order: before a start stand the ends that it may wait for.
    times = np.concatenate((device.end[by_end], device.start[later]))
    graph = np.concatenate((link[by_end], link[later]))
    order = np.lexsort((np.arange(len(times)) >= len(by_end), times, graph))
    is_end = order < len(by_end)
    last = np.maximum.accumulate(np.where(is_end, np.arange(len(order)), -1))
    place = np.flatnonzero(~is_end & (last >= 0))
    event, source = later[order[place] - len(by_end)], by_end[order[last[place]]]
    known = (link[source] == link[event]) & (source < event)
    return source[known], event[known]


def _asked_for(
    context: Context, streams: Lanes, first: NDArray[np.int64]
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Where only the calls for stream waits were recorded: what each holds, and what it may have waited for.

    A call holds what its thread launches next, until all is done that had been launched on other streams of the device
    and had ended when it began: the order that was recorded stays. Inside of a collective's own operator it is for all
    of the stream that this was called on, and so for no stream with work from before that had not ended.
    """
    calls, device = context.calls, context.device
    wait = np.flatnonzero(context.trace.strings.matches(calls.name, _WAIT_CALL.search))
    launching = np.flatnonzero(first >= 0)
    at = np.searchsorted(launching, wait)
    wait, at = wait[at < len(launching)], at[at < len(launching)]
    held = first[launching[at]]
    same = calls.track[launching[at]] == calls.track[wait]
    wait, held, op = wait[same], held[same], context.call_op[launching[at[same]]]
    library = (device.klass[held] == DeviceClass.COMM) & (op >= 0)
    library[library] = context.op_nest.start[op[library]] <= calls.start[wait[library]]
    pairs = []
    for key in distinct(streams.key).tolist():
        low, high = streams.bounds(key)
        row = last_launched(streams, np.full(len(wait), key), calls.start[wait])
        ended = low + np.searchsorted(streams.done[low:high], device.start[held], "right") - 1
        other = library & (row > ended)
        row = np.minimum(row, ended)
        source = streams.event[np.maximum(row, 0)]
        valid = (row >= low) & (source < held) & (device.device[held] == key >> 32)
        valid &= (device.stream[held] & 0xFFFFFFFF != key & 0xFFFFFFFF) & ~other
        pairs.append((source[valid], held[valid]))
    return pairs


def _inferred(
    context: Context, launched: NDArray[np.bool_], held: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Events that nothing recorded held, and that began right after one of another stream of their device had ended."""
    device = context.device
    late = np.flatnonzero((device.start - held > LAUNCH_LATENCY_NS) & (launched | (held > NEVER)))
    pairs = [(late[:0], late[:0])]
    for one in distinct(device.device[late]).tolist():
        event = late[device.device[late] == one]
        own = np.flatnonzero(device.device == one)
        by_end = own[np.argsort(device.end[own], kind="stable")]
        at = np.searchsorted(device.end[by_end], device.start[event], "right") - 1
        source = by_end[np.maximum(at, 0)]
        near = (at >= 0) & (device.start[event] - device.end[source] <= LAUNCH_LATENCY_NS) & (source < event)
        known = (context.link[source] >= 0) & (context.link[event] >= 0)
        near &= ~known | (context.launch_start[source] < context.launch_start[event])
        pairs.append((source[near], event[near]))
    source, event = (np.concatenate(column) for column in zip(*pairs, strict=True))
    return source, event
