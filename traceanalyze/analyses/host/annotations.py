"""User annotations on the host: how long each took, and the device work that was launched inside (definitions §§8, 9).

Launches count on the annotation's own thread only, so a backward pass run by another thread is not in its range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.results_device import DeviceAnnotation, Spread
from traceanalyze.analyses.results_host import Annotation
from traceanalyze.model import calltree, intervals
from traceanalyze.model.classify import is_step_marker
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import EventKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context


def host_annotations(context: Context) -> tuple[Annotation, ...] | NotMeasured:
    """Annotations by name, most device time first, then host time; nested ones of different names count each."""
    events, strings = context.trace.events, context.trace.strings
    rows = np.flatnonzero(context.kind == EventKind.ANNOTATION)
    marker = strings.lookup(events.name[rows], lambda text: is_step_marker(text, context.options.classify))
    rows = rows[~marker.astype(np.bool_)]
    if len(rows) == 0:
        return NotMeasured("no_annotations")
    names = group(events.name[rows])
    start = events.ts[rows]
    # Each name on each thread is a tree of its own: its roots are the outermost runs, which do not overlap.
    lane = group(events.track[rows], names.of).of.astype(np.int32)
    rank = np.zeros(len(rows), np.uint8)
    tree = calltree.build(calltree.Spans(start, start + events.dur[rows], lane, rank, context.trace.resolution_ns))
    root = np.flatnonzero(tree.parent < 0)
    begin, end, outer = tree.start[root], tree.end[root], tree.order[root]
    time, kernels = _launched(context, events.track[rows[outer]], begin, end)
    calls = np.bincount(names.of, intervals.contains(context.host_windows, start), len(names)).astype(np.int64)
    device, launched = np.zeros((2, len(names)), np.int64)
    np.add.at(device, names.of[outer], time)
    np.add.at(launched, names.of[outer], kernels)
    counted = intervals.contains(context.host_windows, begin)
    host = _spreads(names.of[outer[counted]], (end - begin)[counted], len(names))
    table = [
        Annotation(strings.text(code), *numbers)
        for code, *numbers in zip(
            events.name[rows[names.first]].tolist(),
            calls.tolist(),
            host,
            device.tolist(),
            launched.tolist(),
            strict=True,
        )
    ]
    shown = (row for row in table if row.calls or row.device_time or row.kernels)
    return tuple(sorted(shown, key=lambda row: (-row.device_time, -row.host.total, row.name)))


def _launched(
    context: Context, track: NDArray[np.int32], start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Device time inside the windows, and number of kernels, launched in each range of a thread."""
    time, kernels = np.zeros((2, len(start)), np.int64)
    if len(context.device) == 0:
        return time, kernels
    linked = context.link[context.once(device_work).event] >= 0
    event, spent = context.once(device_work).event[linked], context.once(device_work).time[linked]
    call = context.asked[event]
    thread, at = context.calls.track[call], context.calls.start[call]
    order = np.lexsort((at, thread))
    thread, at = thread[order], at[order]
    is_kernel = context.device.kind[event[order]] == EventKind.KERNEL
    time_before = np.concatenate(([0], np.cumsum(spent[order])))
    kernels_before = np.concatenate(([0], np.cumsum(is_kernel)))
    for each in np.flatnonzero(np.bincount(track)).tolist():
        mine = np.flatnonzero(track == each)
        low, high = np.searchsorted(thread, (each, each + 1)).tolist()
        first = low + np.searchsorted(at[low:high], start[mine])
        last = low + np.searchsorted(at[low:high], end[mine])
        time[mine] = time_before[last] - time_before[first]
        kernels[mine] = kernels_before[last] - kernels_before[first]
    return time, kernels


def _spreads(of: NDArray[np.int64], time: NDArray[np.int64], size: int) -> list[Spread]:
    """Times of each group; all zero for a group without any."""
    count, total, longest = np.zeros((3, size), np.int64)
    shortest = np.full(size, np.iinfo(np.int64).max)
    np.add.at(count, of, 1)
    np.add.at(total, of, time)
    np.minimum.at(shortest, of, time)
    np.maximum.at(longest, of, time)
    shortest[count == 0] = 0
    columns = (count, total, shortest, longest)
    return [Spread(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def device_annotations(context: Context) -> tuple[DeviceAnnotation, ...] | NotMeasured:
    """Annotations on the device inside the analysed windows by name, most time first; nested ones count each."""
    events, steps = context.trace.events, context.steps
    rows = np.flatnonzero(context.kind == EventKind.DEVICE_ANNOTATION)
    start = events.ts[rows]
    time = intervals.coverage(intervals.merge(steps.start, steps.end), start, start + events.dur[rows])
    rows, time = rows[time > 0], time[time > 0]
    if len(rows) == 0:
        return NotMeasured("no_device_annotations")
    groups = group(events.name[rows])
    names = [context.trace.strings.text(int(events.name[rows[first]])) for first in groups.first.tolist()]
    table = [DeviceAnnotation(*row) for row in zip(names, groups.spreads(time), strict=True)]
    return tuple(sorted(table, key=lambda row: (-row.time.total, row.name)))
