"""Tracks of what the analyses found: steps, phases, idle time, sync points, critical path, collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.analyses import idle
from traceanalyze.analyses.gap_table import gap_places
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.analyses.syncs import idle_caused
from traceanalyze.model.columns import distinct
from traceanalyze.model.vocabulary import Cause, DeviceClass, Phase
from traceanalyze.report.build.critical_path import PATH_TERMS
from traceanalyze.report.perfetto.lanes import lanes
from traceanalyze.report.perfetto.model import Slices, milliseconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context
    from traceanalyze.analyses.results import Steps
    from traceanalyze.analyses.results_path import CriticalPath

    Terms = Mapping[str, str]

_PHASE_TERMS = {Phase.RECOMPUTE: "overlay_recompute", Phase.ZERO_GRAD: "overlay_zero_grad"}
"""Phases that the tables show as a part of another one; on a thread each instant has one phase."""


def steps_track(steps: Steps, terms: Terms) -> Slices:
    """The analysed windows; those without length are on no picture."""
    kept = np.flatnonzero(steps.end > steps.start)
    rows = kept.tolist()
    complete = [str(bool(steps.complete[row])).lower() for row in rows]
    names = [steps.name[row] for row in rows]
    return Slices(
        terms["overlay_steps"],
        steps.start[kept],
        steps.end[kept],
        names,
        {terms["overlay_arg_complete"]: complete},
    )


def phase_tracks(context: Context, terms: Terms) -> tuple[Slices, ...] | NotMeasured:
    """Phases of every thread of the program that is in any, the thread of the steps first."""
    ranges = context.phase_ranges
    if not ranges.known or context.step_track < 0:
        return NotMeasured("no_host_ops")
    tracks = context.trace.tracks
    busy = np.flatnonzero(np.diff(context.op_nest.bounds)).tolist()
    same = [track for track in busy if tracks[track, 0] == tracks[context.step_track, 0]]
    found = []
    for track in dict.fromkeys([context.step_track, *same]):
        states = ranges.states(track)
        if len(states.start) == 0:
            continue
        names = [terms[_PHASE_TERMS.get(phase, f"phase_{phase.name.lower()}")] for phase in Phase]
        title = f"{terms['overlay_phases']} · {thread_title(context, track, terms)}"
        found.append(Slices(title, states.start, states.end, [names[code] for code in states.cause.tolist()]))
    return tuple(found)


def gap_track(context: Context, terms: Terms) -> Slices:
    """Every piece of idle time of the headline device, by cause, from the first step to the last."""
    gaps, pieces, strings = context.gaps, context.pieces, context.trace.strings
    some = np.flatnonzero(pieces.end > pieces.start)
    gap = pieces.gap[some]
    op, frame = gap_places(context, np.arange(len(gaps)))
    length = [milliseconds(ns) for ns in (gaps.end - gaps.start).tolist()]
    code = np.where(gaps.event >= 0, context.device.name[np.maximum(gaps.event, 0)], -1).tolist()
    texts = {each: strings.text(each) if each >= 0 else None for each in set(code)}
    owner = gap.tolist()
    names = [terms[cause.name.lower()] for cause in Cause]
    return Slices(
        f"{terms['overlay_gaps']} · {terms['overlay_device']} {context.devices[0]}",
        pieces.start[some],
        pieces.end[some],
        [names[cause] for cause in pieces.cause[some].tolist()],
        {
            terms["overlay_arg_idle"]: [length[one] for one in owner],
            terms["overlay_arg_next"]: [texts[code[one]] for one in owner],
            terms["overlay_arg_op"]: [op[one] for one in owner],
            terms["overlay_arg_frame"]: [frame[one] for one in owner],
        },
    )


def sync_tracks(context: Context, terms: Terms) -> tuple[Slices, ...] | NotMeasured:
    """Calls that wait for the device, with the idle time that each caused (definitions §7); one track a thread."""
    calls, steps, strings = context.calls, context.steps, context.trace.strings
    if len(calls) == 0:
        return NotMeasured("no_api")
    inside = (calls.start < steps.end.max()) & (calls.end > steps.start.min())
    sync = np.flatnonzero(context.is_sync & inside)
    analysed, _ = idle.clipped(context.pieces, *context.stretches)
    cost, _ = idle_caused(sync, calls, context.gaps, analysed)
    linked = context.link >= 0
    # After the last launch nothing is left that the host could have been late for: no cost, as in the table.
    last = int(context.launch_start[linked].max()) if linked.any() else np.iinfo(np.int64).min
    found = []
    for track in distinct(calls.track[sync]).tolist():
        here = np.flatnonzero((calls.track[sync] == track) & (calls.end[sync] > calls.start[sync]))
        mine = sync[here]
        call = [strings.text(code) for code in calls.name[mine].tolist()]
        _, op, frame = context.locate(track, calls.start[mine])
        terminal = (calls.start[mine] >= last).tolist()
        caused = [
            None if no_cost else milliseconds(ns) for ns, no_cost in zip(cost[here].tolist(), terminal, strict=True)
        ]
        found.append(
            Slices(
                f"{terms['overlay_syncs']} · {thread_title(context, track, terms)}",
                calls.start[mine],
                calls.end[mine],
                [by_op or by_call for by_op, by_call in zip(op, call, strict=True)],
                {
                    terms["overlay_arg_call"]: call,
                    terms["overlay_arg_frame"]: frame,
                    terms["overlay_arg_idle_caused"]: caused,
                },
            )
        )
    return tuple(found)


def path_track(context: Context, path: CriticalPath, terms: Terms) -> Slices:
    """Segments of the critical path; those of a step tile it."""
    segments, strings = path.segments, context.trace.strings
    some = np.flatnonzero(segments.end > segments.start)
    code = segments.name[some].tolist()
    texts = {each: strings.text(each) if each >= 0 else None for each in set(code)}
    kind = {number: terms[key] for number, key in PATH_TERMS.items()}
    kinds = [kind[one] for one in segments.kind[some].tolist()]
    names = [texts[one] for one in code]
    return Slices(
        terms["overlay_path"],
        segments.start[some],
        segments.end[some],
        kinds,
        {terms["overlay_arg_name"]: names},
    )


def collective_tracks(context: Context, terms: Terms) -> tuple[Slices, ...] | NotMeasured:
    """Transfer and wait inside the collectives, where the profile records their tasks; one track a stream."""
    parts = context.collective_parts
    device = context.device
    collective = (device.klass == DeviceClass.COMM) & (device.end > device.start)
    if not collective.any():
        return ()
    if parts is None:
        return NotMeasured("no_collective_tasks")
    known = np.flatnonzero(parts.recorded & collective)
    found = []
    for number, stream in sorted(set(zip(device.device[known].tolist(), device.stream[known].tolist(), strict=True))):
        mine = known[(device.device[known] == number) & (device.stream[known] == stream)]
        title = f"{terms['overlay_collectives']} · {terms['overlay_device']} {number}"
        # Collectives that the profile puts on no stream have a negative one.
        title += f" {terms['overlay_stream']} {stream}" if stream >= 0 else ""
        # Collectives of one stream follow each other; where the profile says otherwise, each gets room of its own.
        rows = (mine[members] for members in lanes(device.start[mine], device.end[mine]))
        found += [_parts_of(context, event, title, terms) for event in rows]
    return tuple(found)


def _parts_of(context: Context, event: NDArray[np.int64], title: str, terms: Terms) -> Slices:
    """Pieces of transfer of collectives that do not overlap, and the rest of each as waiting."""
    parts, device, strings = context.collective_parts, context.device, context.trace.strings
    whole = intervals.Intervals(device.start[event], device.end[event])
    piece = np.isin(parts.event, event) if parts is not None else np.zeros(0, np.bool_)
    moves = intervals.EMPTY if parts is None else intervals.merge(parts.start[piece], parts.end[piece])
    transfer = intervals.overlaps(moves, whole)
    free = intervals.gaps(moves, int(whole.start[0]), int(whole.end[-1]))
    wait = intervals.overlaps(free, whole)
    start = np.concatenate((transfer.start, wait.start))
    order = np.argsort(start, kind="stable")
    owner = np.concatenate((transfer.second, wait.second))[order]
    moving = (np.arange(len(start)) < len(transfer.start))[order].tolist()
    names = [strings.text(code) for code in device.name[event].tolist()]
    return Slices(
        title,
        start[order],
        np.concatenate((transfer.end, wait.end))[order],
        [terms["overlay_transfer" if one else "overlay_wait"] for one in moving],
        {terms["overlay_arg_name"]: [names[one] for one in owner.tolist()]},
    )


def thread_title(context: Context, track: int, terms: Terms) -> str:
    """A thread by its name, else by its number."""
    pid, tid = context.trace.track_text(track)
    return context.trace.thread_names.get((pid, tid)) or f"{terms['overlay_thread']} {tid}"
