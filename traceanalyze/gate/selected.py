"""Numbers of the operators, kernels, modules or collectives that a budget names by a pattern, by usable step."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.analyses.collective_ranges import description_rows, types
from traceanalyze.analyses.collectives import collectives
from traceanalyze.analyses.exclusive import exclusive_time
from traceanalyze.analyses.modules import event_modules
from traceanalyze.analyses.phases import launch_places
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.gate.counts import collective_sizes
from traceanalyze.model.collectives import TYPES
from traceanalyze.model.vocabulary import DeviceClass, EventKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from traceanalyze.gate.definitions import Selector
    from traceanalyze.gate.rank_steps import RankSteps

NO_MATCH = NotMeasured("selector_matches_nothing")


def selected(rank: RankSteps, selector: Selector) -> NDArray[np.float64] | NotMeasured:
    """What the selector asks for; `NO_MATCH` where no name fits its pattern."""
    on_device = selector.of != "op" or selector.suffix == "device_time"
    if on_device and len(rank.side.context.device) == 0:
        return NotMeasured("no_device_events")
    return _SELECTED[selector.of](rank, selector)


def _names_like(rank: RankSteps, codes: NDArray[np.int32], pattern: str) -> NDArray[np.bool_]:
    lookup = rank.side.context.trace.strings.lookup
    return lookup(codes, lambda name: fnmatchcase(name, pattern)).astype(np.bool_)


def _device_time(rank: RankSteps, event: NDArray[np.int64]) -> NDArray[np.float64]:
    device = rank.side.context.device
    return rank.per_step(rank.of_device()[event], (device.end - device.start)[event])


def _kernels(rank: RankSteps, selector: Selector) -> NDArray[np.float64] | NotMeasured:
    device = rank.side.context.device
    event = np.flatnonzero((device.kind == EventKind.KERNEL) & _names_like(rank, device.name, selector.pattern))
    if len(event) == 0:
        return NO_MATCH
    return rank.counted(rank.of_device()[event]) if selector.suffix == "count" else _device_time(rank, event)


def _operators(rank: RankSteps, selector: Selector) -> NDArray[np.float64] | NotMeasured:
    """Runs that are not inside another matching run; device time of all that was launched inside, counted once."""
    context = rank.side.context
    rows = np.flatnonzero(context.kind == EventKind.HOST_OP)
    rows = rows[_names_like(rank, context.trace.events.name[rows], selector.pattern)]
    if len(rows) == 0:
        return NO_MATCH
    start = context.trace.events.ts[rows]
    end, track = start + context.trace.events.dur[rows], context.trace.events.track[rows]
    inside = np.zeros(len(context.device), np.bool_)
    launch_track, launch_time = launch_places(context)
    count, host = np.zeros(rank.count), np.zeros(rank.count)
    for thread in np.unique(track).tolist():
        mine = track == thread
        merged = intervals.merge(start[mine], end[mine])
        here = np.flatnonzero(launch_track == thread)
        inside[here] = intervals.contains(merged, launch_time[here])
        order = np.lexsort((-end[mine], start[mine]))
        first, last = start[mine][order], end[mine][order]
        reach = np.maximum.accumulate(last)
        outer = np.concatenate(([True], last[1:] > reach[:-1]))
        step = rank.of_host(first[outer])
        count += rank.counted(step)
        host += rank.per_step(step, (last - first)[outer])
    if selector.suffix == "device_time":
        return _device_time(rank, np.flatnonzero(inside))
    return count if selector.suffix == "count" else host


def _modules(rank: RankSteps, selector: Selector) -> NDArray[np.float64] | NotMeasured:
    """Device time, forward and backward, of modules whose path (or one around them) fits."""
    context, found = rank.side.context, rank.side.modules
    if found is None:
        return NotMeasured("no_modules")
    fits = np.zeros(len(found.places), np.bool_)
    for index, place in enumerate(found.places):
        names = {place.path, place.path.replace("/", "."), place.name}
        own = any(fnmatchcase(name, selector.pattern) for name in names)
        fits[index] = own or (place.parent >= 0 and fits[place.parent])
    if not fits.any():
        return NO_MATCH
    of = event_modules(context, found, rank.side.phase)
    return _device_time(rank, context.work.event[(of >= 0) & fits[np.maximum(of, 0)]])


def _collectives(rank: RankSteps, selector: Selector) -> NDArray[np.float64] | NotMeasured:
    context = rank.side.context
    if selector.suffix in {"busbw", "algbw"}:
        return _bandwidth(rank, selector)
    comm = np.flatnonzero(context.device.klass == DeviceClass.COMM)
    kind = types(context, comm, description_rows(context, comm)) if len(comm) else comm
    fits = np.array([fnmatchcase(name, selector.pattern) for name in TYPES], np.bool_)
    event = comm[fits[kind]]
    if len(event) == 0:
        return NO_MATCH
    step = rank.of_device()[event]
    if selector.suffix == "count":
        return rank.counted(step)
    if selector.suffix == "bytes":
        size = collective_sizes(rank, event)
        return NotMeasured("no_collective_metadata") if (size < 0).any() else rank.per_step(step, size)
    if selector.suffix == "exposed_time":
        windows = intervals.merge(context.steps.start, context.steps.end)
        return rank.per_step(step, exclusive_time(context.device, context.devices[0], windows)[event])
    return _device_time(rank, event)


def _bandwidth(rank: RankSteps, selector: Selector) -> NDArray[np.float64] | NotMeasured:
    """Mean over the run, weighted by time."""
    table = collectives(rank.side.context)
    rows = [] if isinstance(table, NotMeasured) else [row for row in table if fnmatchcase(row.kind, selector.pattern)]
    if not rows:
        return NO_MATCH
    known = [(getattr(row, selector.suffix), row.time.total) for row in rows]
    values = [(float(value), time) for value, time in known if not isinstance(value, NotMeasured) and time]
    if not values:
        return NotMeasured("no_collective_metadata")
    return np.array([sum(value * time for value, time in values) / sum(time for _, time in values)])


_SELECTED: dict[str, Callable[[RankSteps, Selector], NDArray[np.float64] | NotMeasured]] = {
    "kernel": _kernels,
    "op": _operators,
    "module": _modules,
    "collective": _collectives,
}
