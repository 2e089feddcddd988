"""User annotations on the host: how long each took, and the device work that was launched inside (definitions §§8, 9).

Launches count on the annotation's own thread only, so a backward pass run by another thread is not in its range.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import COUNT, EXTREMES, MEAN, group
from traceanalyze.analyses.host.computes import launched_before
from traceanalyze.analyses.kernels.events import numbers_of_devices
from traceanalyze.analyses.kernels.work import DEVICES, device_work, on_devices
from traceanalyze.model import calltree, intervals
from traceanalyze.model.classify import marks_step
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, declare, where
from traceanalyze.model.vocabulary import EventKind

_NAME = Column("name", Kind.NAME, "name of the annotation")
_ON_HOST = declare(
    "annotations",
    "Annotations on the host (sum over the analysed steps)",
    _NAME,
    Column("calls", Kind.COUNT, "ranges of this name that begin in the analysed steps"),
    Column(
        "device_time_ns", Kind.DURATION, "device time of all that its thread launches inside; nested ones count each"
    ),
    Column("kernels", Kind.COUNT, "kernels that its thread launches inside"),
    Column("host_time_ns", Kind.DURATION, "from beginning to end, summed; one inside another of its name counts once"),
    Column("mean_event_ns", Kind.DURATION, "mean time on the host", heading="mean"),
    Column("min_ns", Kind.DURATION, "shortest time on the host", heading="shortest", minor=True),
    Column("max_ns", Kind.DURATION, "longest time on the host", heading="longest", minor=True),
    ranked=True,
    detail=True,
)
_ON_DEVICE = declare(
    "device_annotations",
    "Annotations on the device",
    _NAME,
    DEVICES,
    COUNT,
    Column("device_time_ns", Kind.DURATION, "from the first to the last kernel inside, summed; nested ones count each"),
    MEAN,
    *EXTREMES,
    ranked=True,
    detail=True,
)


def host_annotations(context: Context) -> Table:
    """Annotations by name, most device time first, then host time; nested ones of different names count each."""
    events, strings = context.trace.events, context.trace.strings
    rows = np.flatnonzero(context.kind == EventKind.ANNOTATION)
    rows = rows[~strings.matches(events.name[rows], marks_step(context.options.classify))]
    if len(rows) == 0:
        return _ON_HOST.missing("no_annotations")
    names = group(events.name[rows])
    start = events.ts[rows]
    # Each name on each thread is a tree of its own: its roots are the outermost runs, which do not overlap.
    lane = group(events.track[rows], names.of).of.astype(np.int32)
    rank = np.zeros(len(rows), np.uint8)
    tree = calltree.build(calltree.Spans(start, events.dur[rows], lane, rank, context.trace.resolution_ns))
    root = np.flatnonzero(tree.parent < 0)
    begin, end, outer = tree.start[root], tree.end[root], tree.row[root]
    time, kernels = _launched(context, events.track[rows[outer]], begin, end)
    calls = np.bincount(names.of, intervals.contains(context.host_windows, start), len(names)).astype(np.int64)
    device, launched = np.zeros((2, len(names)), np.int64)
    np.add.at(device, names.of[outer], time)
    np.add.at(launched, names.of[outer], kernels)
    counted = intervals.contains(context.host_windows, begin)
    host = replace(names, of=names.of[outer[counted]]).spread((end - begin)[counted])
    measured = len(context.device) > 0
    table = _ON_HOST.fill(
        name=list(strings.texts(events.name[rows[names.first]])),
        calls=calls,
        device_time_ns=device if measured else NotMeasured("no_device_events"),
        kernels=launched if measured else NotMeasured("no_device_events"),
        host_time_ns=host.total,
        # None for annotations that began before the analysed steps: they have work in them, but no host time.
        mean_event_ns=where(host.number > 0, host.mean, None),
        min_ns=where(host.number > 0, host.shortest, None),
        max_ns=where(host.number > 0, host.longest, None),
    ).take((calls > 0) | (device > 0) | (launched > 0))
    return launched_before(table.sort("-device_time_ns", "-host_time_ns", "name"))


def _launched(
    context: Context, track: NDArray[np.int32], start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Device time inside the windows, and number of kernels, launched in each range of a thread."""
    time, kernels = np.zeros((2, len(start)), np.int64)
    if len(context.device) == 0:
        return time, kernels
    linked = context.link[context.once(device_work).event] >= 0
    event, spent = context.once(device_work).event[linked], context.once(device_work).time[linked]
    call = context.issued_by[event]
    thread, at = context.calls.track[call], context.calls.start[call]
    order = np.lexsort((at, thread))
    thread, at = thread[order], at[order]
    is_kernel = context.device.kind[event[order]] == EventKind.KERNEL
    time_before = np.concatenate(([0], np.cumsum(spent[order])))
    kernels_before = np.concatenate(([0], np.cumsum(is_kernel)))
    for each in np.flatnonzero(np.bincount(track)).tolist():
        own = np.flatnonzero(track == each)
        low, high = np.searchsorted(thread, (each, each + 1)).tolist()
        first = low + np.searchsorted(at[low:high], start[own])
        last = low + np.searchsorted(at[low:high], end[own])
        time[own] = time_before[last] - time_before[first]
        kernels[own] = kernels_before[last] - kernels_before[first]
    return time, kernels


def device_annotations(context: Context) -> Table:
    """Annotations on the device inside the analysed windows by name, most time first; nested ones count each."""
    events, steps = context.trace.events, context.counted
    rows = np.flatnonzero(context.kind == EventKind.DEVICE_ANNOTATION)
    start = events.ts[rows]
    time = intervals.coverage(intervals.merge(steps.start, steps.end), start, start + events.dur[rows])
    rows, time = rows[time > 0], time[time > 0]
    if len(rows) == 0:
        return _ON_DEVICE.missing("no_device_annotations")
    groups = group(events.name[rows])
    names = list(context.trace.strings.texts(events.name[rows[groups.first]]))
    devices = on_devices(context, groups, numbers_of_devices(context.trace, rows))
    return _ON_DEVICE.fill(name=names, devices=devices, **groups.spread(time).values).sort("-device_time_ns", "name")
