"""User annotations as the device saw them: the time from the first to the last kernel launched inside each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.analyses.results_device import DeviceAnnotation
from traceanalyze.model.vocabulary import EventKind

if TYPE_CHECKING:
    from traceanalyze.analyses.context import Context


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
