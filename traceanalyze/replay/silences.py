"""Waits that no call tells: a thread that does nothing until the device has run dry waits for it.

Some calls that wait are not recorded (`cudaEventSynchronize` by CUPTI, synchronisation of extensions); what is left of
them is a thread on which nothing happens and that goes on right when the device, or one long event, is done. One that
goes on by reading the time between two device events (`cudaEventElapsedTime`, which needs both to be done, as in DDP's
own timing) has waited for the later one, whatever else the device does.
Where another thread was active between the device's end and its going on, that one handed over to it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.idle.host_state import host_states
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.patterns import regex

LONG_NS = 1_000_000
"""Shorter stretches in which a thread does nothing that is recorded are Python."""
AFTER_NS = 50_000
"""So soon after the device a thread that waited for it goes on: own, twice the usual return of a synchronisation."""
EARLY_NS = 10_000
"""Clocks of host and device may differ by so much."""
BUSY = 0.8
"""Part of the stretch in which the device works, or the one event runs that it waits for."""
ALIKE = 0.01
"""Stretches whose lengths differ by less are of one kind."""
_READS_TIME = regex(r"EventElapsedTime")
"""Calls that fail until the events before them are done: a program has waited for these."""


class Silences(NamedTuple):
    """Stretches in which a thread waits; ns."""

    track: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    event: NDArray[np.int64]
    """Position in `Context.device` of what it waits for."""


def active_time(context: Context, track: int) -> Intervals:
    """When anything is recorded of a thread; use with `Context.once`."""
    return intervals.merge(*context.once(host_states, track, track == context.step_track).spans)


def silences(context: Context) -> Silences:
    """What threads that launch wait for without a recorded call; use with `Context.once`."""
    device = context.device
    none = np.zeros(0, np.int64)
    parts = [Silences(none, none, none, none)]
    if len(device) == 0 or len(context.calls) == 0:
        return parts[0]
    by_end = np.argsort(device.end, kind="stable")
    ends = device.end[by_end]
    busy = intervals.merge(device.start, device.end)
    last = int(device.end.max())
    reads = context.trace.strings.matches(context.calls.name, _READS_TIME.search)
    tracks = distinct(context.calls.track).tolist()
    for track in tracks:
        active = context.once(active_time, track)
        begin, end = active.end[:-1], active.start[1:]
        if track == context.step_track and len(active.end) and context.all_steps.host_end[-1] > active.end[-1]:
            # The last thing it does is to end the last step.
            begin, end = np.append(begin, active.end[-1]), np.append(end, context.all_steps.host_end[-1])
        long = (end - begin >= LONG_NS) & (end <= last + AFTER_NS)
        if not long.any():
            continue
        every = end - begin
        every = np.sort(every[every >= (1 - ALIKE) * LONG_NS])
        begin, end = begin[long], end[long]
        at = np.searchsorted(ends, end + EARLY_NS, "right") - 1
        begin, end, event = begin[at >= 0], end[at >= 0], by_end[at[at >= 0]]
        soon = (
            (device.start[event] < end) & (end - device.end[event] <= AFTER_NS) & (device.end[event] - begin >= LONG_NS)
        )
        begin, end, event = begin[soon], end[soon], event[soon]
        done = device.end[event]
        length = np.maximum(done - begin, 1)
        # Nothing runs from that event's end until the thread goes on: the device has run dry.
        dry = intervals.coverage(busy, done, np.maximum(done, end)) == 0
        full = intervals.coverage(busy, begin, done) >= BUSY * length
        alone = done - np.maximum(device.start[event], begin) >= BUSY * length
        waits = (dry & full) | alone
        for other in tracks:
            if other != track:
                own = context.once(active_time, other)
                waits &= intervals.coverage(own, np.minimum(done, end - EARLY_NS), np.maximum(done, end)) == 0
        first, stop = np.searchsorted(context.calls.track, np.array((track, track + 1), context.calls.track.dtype))
        call = first + np.searchsorted(context.calls.start[first:stop], end)
        told = (call < stop) & reads[np.minimum(call, stop - 1)]
        told &= context.calls.start[np.minimum(call, stop - 1)] <= end + EARLY_NS
        waits = told | (waits & _mostly(end - begin, waits, every))
        parts.append(Silences(np.full(int(waits.sum()), track), begin[waits], end[waits], event[waits]))
    return Silences(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _mostly(length: NDArray[np.int64], waits: NDArray[np.bool_], every: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Of which stretches those of the same kind mostly end with the device, too; a pause of the program does by chance.

    `every`: lengths of all of which some may be, in order.
    """
    ends = (1 - ALIKE) * length, (1 + ALIKE) * length
    alike, waiting = (
        np.searchsorted(each, ends[1]) - np.searchsorted(each, ends[0]) for each in (every, np.sort(length[waits]))
    )
    found: NDArray[np.bool_] = 2 * waiting >= alike
    return found
