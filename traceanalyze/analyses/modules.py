"""Host and device time of every module of the model, forward and backward (definitions §11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.forward_ops import ForwardOps
from traceanalyze.analyses.module_places import module_places
from traceanalyze.analyses.operators import added
from traceanalyze.analyses.phases import launch_places
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.analyses.results_host import BACKWARD_UNKNOWN, Module
from traceanalyze.model.vocabulary import Phase

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context
    from traceanalyze.analyses.module_places import Places

_BACKWARD = (Phase.BACKWARD, Phase.RECOMPUTE)


def modules(context: Context, phase: NDArray[np.uint8]) -> tuple[Module, ...] | NotMeasured:
    """Modules, most device time of their own first; `phase` is that of each device event."""
    found = module_places(context)
    if found is None:
        return NotMeasured("no_modules")
    forward, backward, unknown = _device_time(context, found, phase)
    calls, total, own = _host_time(context, found)
    below = [_with_descendants(found, column) for column in (forward, backward)]
    columns = (calls, total, own, forward, below[0], backward, below[1])
    rows = [
        Module(place.path, place.name, *(values if found.calls else (None, None, None, *values[3:])))
        for place, values in zip(found.places, zip(*(column.tolist() for column in columns), strict=True), strict=True)
        if any(values)
    ]
    rows.sort(key=lambda row: (-row.forward_self - row.backward_self, -(row.host_self or 0), row.path))
    if unknown:
        rows.append(Module(BACKWARD_UNKNOWN, "", None, None, None, 0, 0, unknown, unknown))
    return tuple(rows)


def _device_time(
    context: Context, found: Places, phase: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Forward and backward time of what each module launched itself, and backward time of no known module."""
    size = len(found.places)
    if len(context.device) == 0:
        return np.zeros(size, np.int64), np.zeros(size, np.int64), 0
    time, of = context.work.time, event_modules(context, found, phase)
    back, known = np.isin(phase[context.work.event], _BACKWARD), of >= 0
    forward = added(of[~back & known], time[~back & known], size)
    backward = added(of[back & known], time[back & known], size)
    return forward, backward, int(time[back & ~known].sum())


def event_modules(context: Context, found: Places, phase: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Module that launched each event of `context.work`, -1 for none; `phase` is that of each device event."""
    event = context.work.event
    track, t = launch_places(context)
    track, t = track[event], t[event]
    of = np.full(len(event), -1, np.int64)
    back = np.isin(phase[event], _BACKWARD)
    ahead = (track >= 0) & np.isin(phase[event], (Phase.FORWARD, Phase.OTHER))
    of[ahead] = found.at(track[ahead], t[ahead])
    of[back] = _of_backward(context, found, track[back], t[back])
    return of


def _of_backward(context: Context, found: Places, track: NDArray[np.int32], t: NDArray[np.int64]) -> NDArray[np.int64]:
    """Module of the forward operator; else the module that runs on the backward thread itself, as in recomputation."""
    events = context.trace.events
    row = ForwardOps(context).at(track, t)
    of = np.full(len(t), -1, np.int64)
    known = row >= 0
    of[known] = found.at(events.track[row[known]], events.ts[row[known]])
    rest = of < 0
    if found.only is None:
        of[rest] = found.at(track[rest], t[rest])
    return of


def _host_time(context: Context, found: Places) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Calls, their time, and their time outside of modules inside."""
    mine = np.flatnonzero(found.nest.begun_in(context.host_windows))
    of, size = found.of[mine], len(found.places)
    duration = context.trace.events.dur[found.nest.row[mine]]
    return np.bincount(of, minlength=size), added(of, duration, size), added(of, found.nest.own[mine], size)


def _with_descendants(found: Places, own: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums over each module and all modules inside."""
    total = own.tolist()
    for index in range(len(total) - 1, -1, -1):
        parent = found.places[index].parent
        if parent >= 0:
            total[parent] += total[index]
    return np.array(total, np.int64)
