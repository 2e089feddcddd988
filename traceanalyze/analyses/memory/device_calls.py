"""Calls of the allocator to the device: memory taken and given back, back and forth, and failures.

The state at that moment says why a request failed; the dump comes later and shows something else.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.memory import EVENT, LINE
from traceanalyze.analyses.memory.caching import SMALL
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.holes import GROWTH, RELEASE, is_any
from traceanalyze.analyses.memory.sites import Site
from traceanalyze.model.patterns import dataclass
from traceanalyze.model.snapshot import Action, History
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, declare

RETRIES = frozenset({"release_retry", "release_failed_retry"})
"""Releases for a request that found the device full."""
_RUNS = declare(
    "release_runs",
    "Memory given back to the device",
    EVENT,
    Column(
        "release_kind", Kind.TERM, "retry: the device was full; empty_cache: the program asked for it", heading="why"
    ),
    Column("released_bytes", Kind.MEMORY, "bytes given back to the device in one go"),
    Column(
        "reacquired_bytes",
        Kind.MEMORY,
        "bytes taken from the device again before the next release",
        heading="taken again",
    ),
    Column(
        "cost_ns",
        Kind.DURATION,
        "time from the event before to the allocation that needed it; includes Python's own time",
        heading="cost at most",
    ),
    LINE,
    detail=True,
)


def release_runs(device: Device) -> Table:
    """Segments given back to the device in one go, under one call, in order."""
    history = device.history
    events = np.flatnonzero(is_any(history.action, RELEASE))
    _, begin, last = _runs(events, np.diff(history.call[events]) != 0)
    grown = np.append(0, np.cumsum(np.where(is_any(history.action, GROWTH), history.size, 0)))
    again = grown[np.append(begin[1:], len(history))[: len(begin)]] - grown[last + 1]
    released = np.append(0, np.cumsum(history.size))
    amount = released[last + 1] - released[begin]
    threshold = device.snapshot.settings.get("garbage_collection_threshold")
    collects = isinstance(threshold, int | float) and threshold > 0
    site = [device.sites[stack] for stack in history.stack[begin].tolist()]
    runs = list(zip(begin.tolist(), last.tolist(), strict=True))
    kinds = [
        _release_kind(history, own, *run, collects=collects and taken > 0)
        for own, run, taken in zip(site, runs, again.tolist(), strict=True)
    ]
    return _RUNS.fill(
        event=begin,
        release_kind=kinds,
        released_bytes=amount,
        reacquired_bytes=np.minimum(amount, again),
        cost_ns=[_cost(history, *run) if kind in RETRIES else None for kind, run in zip(kinds, runs, strict=True)],
        source_line=[own.line for own in site],
    )


def _runs(
    events: NDArray[np.int64], apart: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Successive events as runs: position of the first of each, its event, and the last one.

    `apart` says of each event but the first whether it begins a run although it follows at once.
    """
    first = np.flatnonzero(np.append(True, (np.diff(events) != 1) | apart)[: len(events)])
    return first, events[first], events[np.append(first[1:], len(events))[: len(first)] - 1]


def _release_kind(history: History, site: Site, first: int, last: int, *, collects: bool) -> str:
    call, following = int(history.call[first]), last + 1
    if call >= 0 and following < len(history) and int(history.call[following]) == call:
        if history.action[following] in GROWTH:
            return "release_retry"
        if history.action[following] == Action.OOM:
            return "release_failed_retry"
    if site.empties_cache:
        return "release_empty_cache"
    return "release_gc" if collects else "release_unknown"


def _cost(history: History, first: int, last: int) -> int | None:
    """Time from the event before the run to the end of the call that made it; None where the clock went back."""
    if history.time is None or first == 0:
        return None
    same = np.flatnonzero(history.call[last + 1 : last + 64] == history.call[first])
    end = last + 1 + int(same[-1]) if len(same) else last
    cost = int(history.time[end] - history.time[first - 1])
    return cost if cost >= 0 else None


@dataclass(frozen=True, eq=False)
class DeviceCalls:
    """Calls of the allocator that took memory from the device or gave it back, in order; a row a call."""

    first: NDArray[np.int64]
    """Its first event of growth or release."""
    last: NDArray[np.int64]
    kind: tuple[str, ...]
    """release_growth, or what a release was for."""
    request: NDArray[np.int64]
    """Bytes that the program asked for in this call; 0 where it asked for none."""
    grown: NDArray[np.int64]
    released: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.first)


def device_calls(device: Device) -> DeviceCalls:
    """Successive growth and release events of one call are one row."""
    history, runs = device.history, device.once(release_runs)
    grows, frees = is_any(history.action, GROWTH), is_any(history.action, RELEASE)
    events = np.flatnonzero(grows | frees)
    call = history.call[events]
    # Without stacks nothing says that a growth belongs to the release before it.
    apart = (call[1:] != call[:-1]) | ((call[1:] < 0) & (grows[events[1:]] != grows[events[:-1]]))
    first, begin, last = _runs(events, apart)
    kind = dict(zip(runs.column("event"), runs.column("release_kind"), strict=True))
    kinds = tuple(str(kind.get(event, "release_growth")) for event in begin.tolist())
    size = history.size[events]
    grown, released = (np.add.reduceat(np.where(some[events], size, 0), first) for some in (grows, frees))
    return DeviceCalls(begin, last, kinds, _requests(history, last), grown, released)


def _requests(history: History, last: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bytes asked for by the allocation that follows each event at once, 0 where none does."""
    after = np.minimum(last + 1, len(history) - 1)
    asks = (after > last) & is_any(history.action[after], (Action.ALLOC, Action.OOM))
    asks &= history.call[after] == history.call[last]
    return np.where(asks, history.size[after], 0)


CYCLE_SHARE = 0.05
"""Re-acquisition that makes a cycle, of the reserved peak (own)."""
CHURN_RATIO = 1.0
CHURN_CYCLES = 3
"""Real offenders recycle more than six times their peak in tens of cycles, all other files less than 0.8."""


class Churn(NamedTuple):
    """Memory released and taken again, over and over."""

    released: int
    recycled: int
    cycles: int
    """Runs followed by re-acquisition of at least 5 % of the reserved peak."""
    ratio: float
    """Recycled bytes over the reserved peak."""
    kind: str
    """The kind of run that released most."""
    flagged: bool
    avoided: int | NotMeasured | None = 0
    """Requests that would not go to the device without empty_cache, by the replay; None: one of them would fail."""


def churn(device: Device) -> Churn | NotMeasured:
    """How much memory went back and forth."""
    history, runs, reserved_peak = device.history, device.once(release_runs), device.reserved.peak[0]
    if device.events <= 1:
        return NotMeasured("no_memory_history")
    grown = np.where(is_any(history.action, GROWTH), history.size, 0)
    begin, released, reacquired = (runs.array(key) for key in ("event", "released_bytes", "reacquired_bytes"))
    recycled = _recycled(grown, begin, released)
    cycles = int(((reacquired > 0) & (reacquired >= CYCLE_SHARE * reserved_peak)).sum())
    ratio = recycled / reserved_peak if reserved_peak else 0.0
    kinds: dict[str, int] = {}
    for run in runs.records():
        kinds[run.release_kind] = kinds.get(run.release_kind, 0) + run.released_bytes
    most, flagged = max(kinds, key=kinds.__getitem__, default=""), ratio >= CHURN_RATIO and cycles >= CHURN_CYCLES
    return Churn(int(released.sum()), recycled, cycles, ratio, most, flagged)


def _recycled(grown: NDArray[np.int64], begin: NDArray[np.int64], released: NDArray[np.int64]) -> int:
    """Released bytes that were taken again later, each byte once."""
    waiting = recycled = 0
    bounds = pairwise([*begin.tolist(), len(grown)])
    for amount, (first, until) in zip(released.tolist(), bounds, strict=True):
        waiting += amount
        again = min(waiting, int(grown[first:until].sum()))
        recycled += again
        waiting -= again
    return recycled


OTHERS_SHARE = 0.9
"""Reserved and free bytes of the device below this share of its capacity: something else holds the rest."""


class OutOfMemory(NamedTuple):
    """One failed request."""

    event: int
    request: int
    free: int | None
    """In the domain of the request; None where the layout is not exact."""
    largest_hole: int | None
    device_free: int | None
    kind: str
    """isolation, fragmentation, split, other_processes, capacity, unknown, or unlocated: the layout is not exact"""
    line: str
    expandable: bool | None = None
    """Whether it would succeed with expandable segments, where the replay was asked and tells."""


def out_of_memory(device: Device) -> tuple[OutOfMemory, ...]:
    """Every failed request with its cause."""
    history, found = device.history, []
    for event in device.failures:
        request, stream = int(history.size[event]), int(history.stream[event])
        left, line = history.device_free.get(event), device.line(event)
        free = device.layout.watched.get(event)
        if free is None:
            found.append(OutOfMemory(event, request, None, None, left, "unlocated", line))
            continue
        own = [one for one in free if (one.domain.stream, one.domain.large) == (stream, request > SMALL)]
        others = max((one.largest for one in free if one not in own), default=0)
        available, hole = sum(one.bytes for one in own), max((one.largest for one in own), default=0)
        if max(hole, others) >= request:
            kind = "isolation"
        elif available >= request:
            kind = "fragmentation"
        elif left is None:
            kind = "unknown"
        elif available + left >= request:
            kind = "split"
        elif device.capacity is not None and device.reserved.at(event) + left < OTHERS_SHARE * device.capacity:
            kind = "other_processes"
        else:
            kind = "capacity"
        found.append(OutOfMemory(event, request, available, hole, left, kind, line))
    return tuple(found)
