"""Clocks of devices: work that begins before its launch, or ends after a wait for it, shows by how much they are off.

Definitions §§6, 18.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.host.events import ApiCalls
from traceanalyze.analyses.host.links import FLOWS_TO_DEVICE
from traceanalyze.analyses.kernels.events import DeviceEvents, numbers_of_devices
from traceanalyze.model.columns import Rows, distinct, taken
from traceanalyze.model.patterns import regex
from traceanalyze.model.trace import DeviceClock, Trace
from traceanalyze.model.vocabulary import EventKind, SyncKind

EARLY_SHARE = 0.001
"""Clocks agree while no more of the linked events start before their launch (definitions §14, Q04)."""
APART_SHARE = 0.05
"""With more than this, clocks that cannot be moved have nothing to do with each other; with less, single launches are
not those of their events (definitions §14, Q04)."""
MOST_NS = 10_000_000
"""A clock that is off by so much or more cannot be told from launches that are not those of their events."""
DRIFT_NS = 10_000
"""Offsets at both ends of a recording that are further apart make a drift. As much is the time a launched kernel may
take to start (definitions, notation): an end where all launches take longer tells nothing of the clock there."""
_DRIFT_SHARE = 0.002
"""Own: no clock gains more on another; a queue that fills within milliseconds does."""
_ENDS = 10
"""The first and the last of so many equal parts of the linked events are the ends."""
_LEAST = 20
"""Fewer linked events have no ends."""
_SINGLE = 5
"""Own: so few events may have damaged times, and then ask for a shift that no clock needs."""
_WAITS = 5
"""Own: fewer calls that wait tell nothing of a clock."""
_FOR_DEVICE, _FOR_STREAM = regex(r"DeviceSynchronize|SynchronizeDevice"), regex(r"StreamSynchronize|SynchronizeStream")
_HOST_TIMED = frozenset({"cuda_sync"})
"""Categories on the device's rows that have times of the host: the waits of its threads."""


class Placed(NamedTuple):
    """A recording on one clock."""

    trace: Trace
    device: DeviceEvents
    link: NDArray[np.int32]
    """Of each device event, as `launch_links` has it."""


def on_host_clock(
    trace: Trace, kind: NDArray[np.uint8], device: DeviceEvents, calls: ApiCalls, link: NDArray[np.int32]
) -> Placed:
    """A recording with the work of its devices on the clock of the host; it itself where the clocks agree.

    What cannot be moved stays; `Trace.clocks` tells of both. What is cut from the result is not looked at again.
    """
    if trace.clocks is None:
        clocks = tuple(_clocks(trace, device, calls, link))
        trace, moved = replace(trace, clocks=clocks), {clock.device: clock for clock in clocks if clock.moved}
        if moved:
            return _moved(trace, kind, device, link, moved)
    return Placed(trace, device, link)


def _clocks(trace: Trace, device: DeviceEvents, calls: ApiCalls, link: Rows) -> Iterator[DeviceClock]:
    """Of each device of which too many events start before their launch, how far its clock is off.

    Of an only one also where calls that wait for it return by one time too early.
    """
    tick, devices = trace.resolution_ns, distinct(device.device[link >= 0]).tolist()
    for one in devices:
        event = np.flatnonzero((link >= 0) & (device.device == one))
        start = device.start[event]
        early = taken(calls.start, link[event]) - start
        count = int((early > 0).sum())
        if count > EARLY_SHARE * len(early):
            first, last = offsets(start, early, tick)
            moved = max(first, last) < MOST_NS and supported(start, early, first, last)
            span = int(start[0]), int(start[-1])
            yield DeviceClock(one, count, len(early), first, last, span, moved)
        elif len(devices) == 1 and int((early >= -DRIFT_NS).sum()) <= EARLY_SHARE * len(early):
            # Else launches allow none that waits would have to ask for.
            over = _overruns(trace, device, calls, link)
            ahead = ahead_by(over, early, tick)
            if ahead:
                ends = int(start[0]), int(start[-1])
                yield DeviceClock(one, int((over > 0).sum()), len(over), -ahead, -ahead, ends, True)


def _overruns(trace: Trace, device: DeviceEvents, calls: ApiCalls, link: Rows) -> NDArray[np.int64]:
    """By how much the work that calls wait for ends after them, ns; negative: before.

    A wait for the device is for all that was launched before, one for a stream for the copy that the same thread asked
    for right before; for what other waits are, is not recorded.
    """
    wait = np.flatnonzero((calls.sync == int(SyncKind.EXPLICIT)) & calls.outermost)
    if len(wait) < _WAITS:
        return wait[:0]
    event, outer = np.flatnonzero(link >= 0), np.flatnonzero(calls.outermost)
    returned = taken(calls.end, link[event])
    order = np.argsort(returned, kind="stable")
    event = event[order]
    done = np.maximum.accumulate(device.end[event])
    place = np.searchsorted(returned[order], calls.start[wait], "right") - 1
    name = calls.name[wait]
    whole = trace.strings.matches(name, _FOR_DEVICE.search) & (place >= 0)
    copy, copied = event[device.kind[event] == int(EventKind.MEMCPY)], np.zeros(len(calls), np.int64)
    copies = np.zeros(len(calls), np.bool_)
    copied[link[copy]], copies[link[copy]] = device.end[copy], True
    before = outer[np.maximum(np.searchsorted(outer, wait) - 1, 0)]
    own = copies[before] & (calls.track[before] == calls.track[wait])
    own &= trace.strings.matches(name, _FOR_STREAM.search)
    over = done[place[whole]] - calls.end[wait[whole]], copied[before[own]] - calls.end[wait[own]]
    found: NDArray[np.int64] = np.concatenate(over)
    return found


def ahead_by(over: NDArray[np.int64], early: NDArray[np.int64], tick: int = 1) -> int:
    """By how much a clock is ahead, ns.

    Waits end after what they wait for (`over`: by how much that ends after them), and work begins after its launch
    (`early`: by how much before it): the middle between the two, but no more than half of `DRIFT_NS` from the smallest
    shift that the waits ask for. 0 unless half of them ask for the same within `DRIFT_NS`, more than that, and the
    launches allow it.
    """
    if len(over) < _WAITS:
        return 0
    least, most = _shift(over, tick), -_shift(early, tick)
    constant = 2 * int((over > least - DRIFT_NS).sum()) >= len(over)
    if not constant or not DRIFT_NS < least < MOST_NS or most < least:
        return 0
    return least + min(most - least, DRIFT_NS) // 2 // tick * tick


def offsets(start: NDArray[np.int64], early: NDArray[np.int64], tick: int = 1) -> tuple[int, int]:
    """By how much a clock is behind when the first and when the last of some events start, ns, a multiple of `tick`.

    The smallest shift that leaves no more than `EARLY_SHARE` of them before their launch. Where the shifts that both
    ends ask for are further apart than `DRIFT_NS`, a line through them, if its mean is much smaller than the constant.
    """
    constant = _shift(early, tick)
    part = len(early) // _ENDS
    ends = [_shift(each, tick) for each in (early[:part], early[-part:])] if len(early) >= _LEAST else [0, 0]
    drift = max(ends[1], 0) - max(ends[0], 0)
    if abs(drift) > DRIFT_NS and min(ends) > -DRIFT_NS:
        # What the middle of an end is from the middle of the other, the outermost events are from each other.
        span = max(int(start[-1] - start[0]), 1)
        drift = drift * span // max(int(np.mean(start[-part:]) - np.mean(start[:part])), 1)
        if abs(drift) > _DRIFT_SHARE * span:
            return constant, constant
        first = _shift(early - drift * ((start - start[0]) / span), tick)
        last = first + -(-drift // tick) * tick
        if min(first, last) >= 0 and (first + last) // 2 <= constant - abs(drift) // 4:
            return first, last
    return constant, constant


def supported(start: NDArray[np.int64], early: NDArray[np.int64], first: int, last: int) -> bool:
    """Whether more than single events ask for a shift, or more start within `DRIFT_NS` of their launch than without it.

    A device that has nothing to do starts what is launched at once, by a clock that is right: a few damaged times ask
    for a shift by which nothing else does.
    """
    if max(first, last) <= DRIFT_NS or (early > 0).sum() > _SINGLE:
        return True
    after = early - (first + (last - first) * ((start - start[0]) / max(int(start[-1] - start[0]), 1)))
    without, beside = (int(((each <= 0) & (each > -DRIFT_NS)).sum()) for each in (early, after))
    return beside >= without


def _shift(early: NDArray[np.int64] | NDArray[np.float64], tick: int) -> int:
    """The smallest shift that leaves `EARLY_SHARE` early."""
    place = len(early) - 1 - int(EARLY_SHARE * len(early))
    return int(-(-np.partition(early, place)[place] // tick)) * tick


def _moved(
    trace: Trace, kind: NDArray[np.uint8], device: DeviceEvents, link: Rows, clocks: dict[int, DeviceClock]
) -> Placed:
    """Everything that has times of these devices, on the clock of the host; device events are in time order again."""
    timed = (kind >= EventKind.KERNEL) & (kind <= EventKind.DEVICE_ANNOTATION)
    row = np.flatnonzero(timed)
    row = row[~trace.strings.matches(trace.events.cat[row], lambda text: text.lower() in _HOST_TIMED)]
    # One device leaves no doubt whose a row is; of several some rows may not tell.
    alone = len(distinct(device.device)) == 1
    of = np.full(len(row), device.device[0]) if alone else numbers_of_devices(trace, row)
    flow = np.flatnonzero(trace.flows.phase == ord("f"))
    flow = flow[trace.strings.matches(trace.flows.cat[flow], lambda text: text in FLOWS_TO_DEVICE)]
    lane = np.full(len(trace.tracks), -1, np.int64)
    lane[trace.events.track[device.row]] = device.device
    arrives = lane[trace.flows.track[flow]]
    ts, dur, ends_at = trace.events.ts.copy(), trace.events.dur, trace.flows.ts.copy()
    start, until = device.start.copy(), device.end.copy()
    for clock in clocks.values():
        mine, arrow, event = row[of == clock.device], flow[arrives == clock.device], device.device == clock.device
        ends = ts[mine] + dur[mine]
        for times, some in ((ts, mine), (ends_at, arrow), (start, event), (until, event)):
            times[some] = clock.on_host(times[some], trace.resolution_ns)
        if clock.first != clock.last:
            # Only a clock that drifts changes how long things take.
            dur = dur.copy()
            dur[mine] = clock.on_host(ends, trace.resolution_ns) - ts[mine]
    order = np.lexsort((device.row, start))
    events = replace(trace.events, ts=ts, dur=dur)
    others = ("row", "device", "stream", "name", "klass", "kind", "rule")
    by_row = {name: getattr(device, name)[order] for name in others}
    return Placed(
        replace(trace, events=events, flows=trace.flows._replace(ts=ends_at)),
        replace(device, start=start[order], end=until[order], **by_row),
        link[order],
    )
