"""Host and device time by call path: calls of modules, where recorded, and operators, by all that is around them.

The threads of the step thread's process are nested each by itself; equal paths of all threads are one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.nesting import DEEPER, MOST_LEVELS, Nest, innermost, levels, nest_rows
from traceanalyze.analyses.host.operators import added, counted_events
from traceanalyze.analyses.results_host import OUTSIDE_OPS, UNLINKED
from traceanalyze.analyses.results_host_more import OTHER_PROCESSES, CallPath
from traceanalyze.analyses.steps.phases import launch_places
from traceanalyze.frozen import frozen
from traceanalyze.model.columns import distinct
from traceanalyze.model.phases import module_name
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import EventKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context

_SEPARATOR = ";"


@frozen
class _Paths:
    """Distinct paths, outer ones before inner ones, and the path of each event of a nest."""

    name: NDArray[np.int32]
    """Innermost name of each path; -1 for all that is below level `MOST_LEVELS`."""
    parent: NDArray[np.int64]
    level: tuple[slice, ...]
    of: NDArray[np.int64]


def call_paths(context: Context) -> tuple[CallPath, ...] | NotMeasured:
    """Call paths, most device time first, then host time; device time of no path has rows as well."""
    nested = _nest(context) if context.step_track >= 0 else None
    if nested is None or len(nested) == 0:
        return NotMeasured("no_host_ops")
    paths = _paths(nested, context.trace.events.name[nested.row])
    size = len(paths.name)
    counted = nested.begun_in(context.host_windows)
    event, time = counted_events(context)
    place = _places(context, nested)[event]
    inside = place >= 0
    launcher = paths.of[place[inside]]
    calls = added(paths.of, counted, size)
    host, device = added(paths.of, nested.own * counted, size), added(launcher, time[inside], size)
    launched = np.bincount(launcher, minlength=size)
    host_total, device_total, alive = (_with_inner(paths, each) for each in (host, device, calls + launched))
    columns = (calls, host, host_total, device, device_total, launched)
    rows = [
        CallPath(text, *numbers)
        for text, kept, *numbers in zip(
            _texts(context, paths), alive.tolist(), *(column.tolist() for column in columns), strict=True
        )
        if kept
    ]
    rows += _elsewhere(context, event[~inside], time[~inside])
    return tuple(sorted(rows, key=lambda row: (-row.device_self, -row.host_self, row.path)))


def _nest(context: Context) -> Nest:
    """Call trees of the modules and operators of the process."""
    trace, kind, names = context.trace, context.kind, context.trace.events.name
    python = np.flatnonzero(kind == EventKind.PYTHON)
    modules = python[trace.strings.lookup(names[python], lambda text: module_name(text) is not None).astype(np.bool_)]
    track = _identified(context, modules)
    rows = np.sort(np.concatenate((modules, np.flatnonzero(kind == EventKind.HOST_OP))))
    rows = rows[_in_process(context, track[rows])]
    return nest_rows(replace(trace, events=replace(trace.events, track=track)), rows, kind)


def _identified(context: Context, modules: NDArray[np.int64]) -> NDArray[np.int32]:
    """Thread of each event; modules of an unidentified thread can only belong to the step thread."""
    track = context.trace.events.track
    found = distinct(track[modules])
    if len(found) == 1 and context.step_track >= 0 and context.trace.track_text(int(found[0])) == ("0", "0"):
        track = track.copy()
        track[modules] = context.step_track
    return track


def _in_process(context: Context, track: NDArray[np.int32]) -> NDArray[np.bool_]:
    process = context.trace.tracks[:, 0]
    inside: NDArray[np.bool_] = process[track] == process[context.step_track]
    return inside


def _paths(nested: Nest, name: NDArray[np.int32]) -> _Paths:
    """Paths level by level: what has equal names below equal paths is one path."""
    found = levels(nested)
    of = np.full(len(nested), -1, np.int64)
    names, parents, slices, size = [], [], [], 0
    for level, mine in enumerate(found.places):
        own = name[mine] if level < MOST_LEVELS else np.full(len(mine), -1, np.int32)
        above = np.where(nested.parent[mine] < 0, -1, of[nested.parent[mine]])
        groups = group(above, own)
        of[mine] = size + groups.of
        names.append(own[groups.first])
        parents.append(above[groups.first])
        slices.append(slice(size, size + len(groups)))
        size += len(groups)
    of[found.deeper] = of[found.around]
    return _Paths(np.concatenate(names), np.concatenate(parents), tuple(slices), of)


def _with_inner(paths: _Paths, own: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums over each path and all paths inside."""
    total = own.copy()
    for level in reversed(paths.level[1:]):
        np.add.at(total, paths.parent[level], total[level])
    return total


def _texts(context: Context, paths: _Paths) -> list[str]:
    text = context.trace.strings.text
    short = {code: DEEPER if code < 0 else _short(text(code)) for code in distinct(paths.name).tolist()}
    found: list[str] = []
    for code, parent in zip(paths.name.tolist(), paths.parent.tolist(), strict=True):
        found.append(short[code] if parent < 0 else found[parent] + _SEPARATOR + short[code])
    return found


def _short(name: str) -> str:
    return (module_name(name) or name).replace(_SEPARATOR, ",")


def _places(context: Context, nested: Nest) -> NDArray[np.int64]:
    """Place in the nest of what launched each device event, -1 for none.

    That is its operator (definitions §8), or what else is around the launch if no operator is, or inside it.
    """
    if len(context.device) == 0:
        return np.empty(0, np.int64)
    of_row = np.full(len(context.trace.events), -1, np.int64)
    of_row[nested.row] = np.arange(len(nested))
    place, around = np.full((2, len(context.device)), -1, np.int64)
    named, linked = context.event_op >= 0, context.link >= 0
    place[named] = of_row[context.op_nest.row[context.event_op[named]]]
    track, t = launch_places(context)
    around[linked] = innermost(nested, track[linked], t[linked])
    deeper = (around > place) & ((place < 0) | (around < nested.stop[place]))
    return np.where(deeper, around, place)


def _elsewhere(context: Context, event: NDArray[np.int64], time: NDArray[np.int64]) -> list[CallPath]:
    """Device time that no path launched, by what is known of it."""
    if len(event) == 0:
        return []
    link = context.link[event]
    linked, named = link >= 0, context.event_op[event] >= 0
    mine = np.zeros(len(event), np.bool_)
    mine[linked] = _in_process(context, context.calls.track[context.asked[event[linked]]])
    parts = ((OUTSIDE_OPS, mine), (OTHER_PROCESSES, ~mine & (linked | named)), (UNLINKED, ~linked & ~named))
    sums = ((name, int(time[member].sum()), int(member.sum())) for name, member in parts)
    return [CallPath(name, 0, 0, 0, spent, spent, count) for name, spent, count in sums if count]
