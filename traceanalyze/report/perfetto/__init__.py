"""Analyses as tracks over a trace, in the JSON that Perfetto (and chrome://tracing) loads.

`overlay` makes the tracks of one rank from its analyses, `events` writes them as Chrome trace events, `splice` puts
them into the text of the trace, `merge` puts the texts of several ranks together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.parts import collective_parts
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.frames import locate
from traceanalyze.analyses.idle.gap_table import gap_places
from traceanalyze.analyses.idle.idle import idle_gaps, idle_pieces
from traceanalyze.analyses.idle.syncs import last_launch, sync_costs
from traceanalyze.analyses.kernels.use import utilisation
from traceanalyze.analyses.memory.lifetimes import active_curve, reserved_curve
from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.analyses.steps.critical_path import PathKind, critical_path
from traceanalyze.analyses.steps.phases import PhaseRanges, program_threads
from traceanalyze.analyses.steps.window import Steps, window_of
from traceanalyze.locales import Texts
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct
from traceanalyze.model.snapshot import Snapshot, SnapshotDevice
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Cause, DeviceClass, Mode, Phase
from traceanalyze.report.contents.words import said, setting_of
from traceanalyze.report.finding import Finding as FindingOfReport
from traceanalyze.report.perfetto.events import MIB, Counter, Overlay, Slices, lanes, milliseconds
from traceanalyze.rules.finding import Finding

Track = Slices | Counter
Made = tuple[str, Track | tuple[Track, ...] | NotMeasured]


def overlay(context: Context, analysis: RankAnalysis, findings: tuple[Finding, ...], texts: Texts) -> Overlay:
    """Tracks of one rank, from its analyses and ranked findings; what the profile cannot give is listed as missing."""
    made = _made(context, analysis, texts)
    every: list[Track] = []
    missing = []
    for title, tracks in made:
        if isinstance(tracks, NotMeasured):
            missing.append((texts.terms[title], tracks))
        else:
            every += tracks if isinstance(tracks, tuple) else (tracks,)
    slices = tuple(track for track in every if isinstance(track, Slices) and len(track.start))
    counters = tuple(track for track in every if isinstance(track, Counter) and len(track.t))
    return with_findings(Overlay(slices, counters, tuple(missing)), analysis, findings, texts)


def with_findings(tracks: Overlay, analysis: RankAnalysis, findings: tuple[Finding, ...], texts: Texts) -> Overlay:
    """The tracks with those of findings, right below the steps: they are what somebody opens the picture for."""
    told = said(findings, setting_of(analysis, window_of(analysis.steps)))
    found, unplaced = finding_tracks([one.in_words(texts) for one in told], texts.terms)
    slices = (*tracks.slices[:1], *found, *tracks.slices[1:])
    return replace(tracks, slices=slices, unplaced=tracks.unplaced + unplaced)


def _made(context: Context, analysis: RankAnalysis, texts: Texts) -> list[Made]:
    terms = texts.terms
    made: list[Made] = [
        ("overlay_steps", steps_track(analysis.steps, terms)),
        ("overlay_phases", phase_tracks(context, terms)),
    ]
    if context.mode in {Mode.HOST_ONLY, Mode.EMPTY}:
        missing = NotMeasured("no_device_events")
        names = ("gaps", "syncs", "path", "collectives", "queue", "utilisation")
        made += [(f"overlay_{name}", missing) for name in names]
    else:
        made += [
            ("overlay_gaps", gap_track(context, terms)),
            ("overlay_syncs", sync_tracks(context, terms)),
            ("overlay_path", path_track(context, terms)),
            ("overlay_collectives", collective_tracks(context, terms)),
            ("overlay_queue", queue_counter(context, terms)),
            ("overlay_utilisation", utilisation_counter(context, terms)),
        ]
    return [*made, ("overlay_memory", memory_counters(analysis, terms))]


def snapshot_overlay(snapshot: Snapshot, terms: Mapping[str, str]) -> tuple[Overlay, int]:
    """Requested and reserved memory of every device after each event, and the time of the first event, ns since 1970.

    Times of the overlay count from that one.
    """
    dated = [device for device in snapshot.devices if device.history.time is not None and len(device.history)]
    if not dated:
        return Overlay((), (), ((terms["overlay_memory"], NotMeasured("no_event_times")),)), 0
    zero = min(int(device.history.time.min()) for device in dated if device.history.time is not None)
    return Overlay((), tuple(_counter(device, zero, terms) for device in dated)), zero


def _counter(device: SnapshotDevice, zero: int, terms: Mapping[str, str]) -> Counter:
    """Where several events have one time, the value after the last of them; threads may write them out of order."""
    history = device.history
    t = (np.zeros(len(history), np.int64) if history.time is None else history.time) - zero
    t = np.maximum.accumulate(t)
    last = np.flatnonzero(np.concatenate((t[1:] > t[:-1], [True])))
    values = {
        terms["overlay_requested"]: active_curve(device).after[last] / MIB,
        terms["overlay_reserved"]: reserved_curve(device).after[last] / MIB,
    }
    return Counter(f"{terms['overlay_memory']} · {terms['overlay_device']} {device.id}", t[last], values)


Terms = Mapping[str, str]

_PHASE_TERMS = {Phase.RECOMPUTE: "overlay_recompute", Phase.ZERO_GRAD: "overlay_zero_grad"}
"""Phases that the tables show as a part of another one; on a thread each instant has one phase."""


def steps_track(steps: Steps, terms: Terms) -> Slices:
    """The analysed windows; those without length are on no picture."""
    kept = np.flatnonzero(steps.end > steps.start)
    rows = kept.tolist()
    names = [steps.name[row] for row in rows]
    marks = {
        terms[f"overlay_arg_{key}"]: [str(bool(mark[row])).lower() for row in rows]
        for key, mark in (("complete", steps.complete), ("counted", steps.counted))
    }
    return Slices(terms["overlay_steps"], steps.start[kept], steps.end[kept], names, marks)


def phase_tracks(context: Context, terms: Terms) -> tuple[Slices, ...] | NotMeasured:
    """Phases of every thread of the program that is in any, the thread of the steps first."""
    ranges = context.once(PhaseRanges)
    if not ranges.known or context.step_track < 0:
        return NotMeasured("no_host_ops")
    found = []
    for track in dict.fromkeys([context.step_track, *program_threads(context)]):
        states = ranges.states(track)
        if len(states.start) == 0:
            continue
        names = [terms[_PHASE_TERMS.get(phase, f"phase_{phase.name.lower()}")] for phase in Phase]
        title = f"{terms['overlay_phases']} · {thread_title(context, track, terms)}"
        found.append(Slices(title, states.start, states.end, [names[code] for code in states.cause.tolist()]))
    return tuple(found)


def gap_track(context: Context, terms: Terms) -> Slices:
    """Every piece of idle time of the headline device, by cause, from the first step to the last."""
    gaps, pieces, strings = context.once(idle_gaps), context.once(idle_pieces), context.trace.strings
    some = np.flatnonzero(pieces.end > pieces.start)
    gap = pieces.gap[some]
    op, frame = gap_places(context, np.arange(len(gaps)))
    length = [milliseconds(ns) for ns in (gaps.end - gaps.start).tolist()]
    code = np.where(gaps.event >= 0, context.device.name[np.maximum(gaps.event, 0)], -1).tolist()
    texts = {each: strings.text(each) if each >= 0 else None for each in set(code)}
    owner = gap.tolist()
    names = [terms[cause.key] for cause in Cause]
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
    calls, strings = context.calls, context.trace.strings
    if len(calls) == 0:
        return NotMeasured("no_api")
    if context.doubt_of_idle is not None:
        return NotMeasured(context.doubt_of_idle)
    costs = context.once(sync_costs)
    sync, cost = costs.call, costs.idle
    # Nothing after the last launch has a cost, as in the table.
    last = context.once(last_launch)
    found = []
    for track in distinct(calls.track[sync]).tolist():
        here = np.flatnonzero((calls.track[sync] == track) & (calls.end[sync] > calls.start[sync]))
        own = sync[here]
        call = [strings.text(code) for code in calls.name[own].tolist()]
        _, op, frame = locate(context, track, calls.start[own])
        terminal = (calls.start[own] >= last).tolist()
        caused = [
            None if no_cost else milliseconds(ns) for ns, no_cost in zip(cost[here].tolist(), terminal, strict=True)
        ]
        found.append(
            Slices(
                f"{terms['overlay_syncs']} · {thread_title(context, track, terms)}",
                calls.start[own],
                calls.end[own],
                [by_op or by_call for by_op, by_call in zip(op, call, strict=True)],
                {
                    terms["overlay_arg_call"]: call,
                    terms["overlay_arg_frame"]: frame,
                    terms["overlay_arg_idle_caused"]: caused,
                },
            )
        )
    return tuple(found)


def path_track(context: Context, terms: Terms) -> Slices | NotMeasured:
    """Segments of the critical path; those of a step tile it."""
    segments, strings = context.once(critical_path), context.trace.strings
    if isinstance(segments, NotMeasured):
        return segments
    some = np.flatnonzero(segments.end > segments.start)
    code = segments.name[some].tolist()
    texts = {each: strings.text(each) if each >= 0 else None for each in set(code)}
    kind = {each: terms[each.term] for each in PathKind}
    kinds = [kind[one] for one in segments.kind[some].tolist()]
    names = [texts[one] for one in code]
    return Slices(
        terms["overlay_path"], segments.start[some], segments.end[some], kinds, {terms["overlay_arg_name"]: names}
    )


def collective_tracks(context: Context, terms: Terms) -> tuple[Slices, ...] | NotMeasured:
    """Transfer and wait inside the collectives, where the profile records their tasks; one track a stream."""
    parts = context.once(collective_parts)
    device = context.device
    collective = (device.klass == DeviceClass.COMM) & (device.end > device.start)
    if not collective.any():
        return ()
    if parts is None:
        return NotMeasured("no_collective_tasks")
    known = np.flatnonzero(parts.recorded & collective)
    found = []
    for number, stream in sorted(set(zip(device.device[known].tolist(), device.stream[known].tolist(), strict=True))):
        events = known[(device.device[known] == number) & (device.stream[known] == stream)]
        title = f"{terms['overlay_collectives']} · {terms['overlay_device']} {number}"
        # Collectives that the profile puts on no stream have a negative one.
        title += f" {terms['overlay_stream']} {stream}" if stream >= 0 else ""
        # Collectives of one stream follow each other; where the profile says otherwise, each gets room of its own.
        rows = (events[members] for members in lanes(device.start[events], device.end[events]))
        found += [_parts_of(context, event, title, terms) for event in rows]
    return tuple(found)


def _parts_of(context: Context, event: NDArray[np.int64], title: str, terms: Terms) -> Slices:
    """Pieces of transfer of collectives that do not overlap, and the rest of each as waiting."""
    parts, device, strings = context.once(collective_parts), context.device, context.trace.strings
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


def queue_counter(context: Context, terms: Mapping[str, str]) -> Counter | NotMeasured:
    """Events launched and not begun on the headline device, over all its streams (definitions §6).

    Events of one launch (a graph) on one stream wait as one, until the first of them starts.
    """
    device, link = context.device, context.link
    if len(context.calls) == 0:
        return NotMeasured("no_api")
    if context.doubt is not None:
        return NotMeasured(context.doubt)
    sound = (link >= 0) & (device.start >= context.launch_start)
    queued = np.flatnonzero(sound & (device.device == context.devices[0]))
    # Device events are sorted by start, so the first of equal keys is the one that starts first.
    _, first = np.unique(link[queued].astype(np.int64) * (1 << 32) + device.stream[queued], return_index=True)
    queued = queued[first]
    t, change = _joined(context.launch_start[queued], device.start[queued])
    title = f"{terms['overlay_queue']} · {terms['overlay_device']} {context.devices[0]}"
    return Counter(title, t, {terms["overlay_events"]: np.cumsum(change)})


def _joined(up: NDArray[np.int64], down: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct instants, and how much the count changes at each."""
    t, place = np.unique(np.concatenate((up, down)), return_inverse=True)
    change = np.zeros(len(t), np.int64)
    np.add.at(change, place.reshape(-1), np.concatenate((np.ones(len(up), np.int64), np.full(len(down), -1))))
    return t, change


def utilisation_counter(context: Context, terms: Mapping[str, str]) -> Counter:
    """Share of time with anything running on the headline device: chunks of the steps, and the time around steps."""
    device = context.device
    here = device.device == context.devices[0]
    busy = intervals.merge(device.start[here], device.end[here])
    chunks, _ = utilisation(context)
    start = chunks.array("start_ns")
    edges = [start, start + chunks.array("length_ns"), busy.start[:1], busy.end[-1:]]
    t = np.unique(np.concatenate(edges))
    share = 100 * intervals.coverage(busy, t[:-1], t[1:]) / (t[1:] - t[:-1])
    title = f"{terms['overlay_utilisation']} · {terms['overlay_device']} {context.devices[0]}"
    return Counter(title, t, {"%": np.concatenate((share, [0.0]))})


def memory_counters(analysis: RankAnalysis, terms: Mapping[str, str]) -> tuple[Counter, ...] | NotMeasured:
    """Memory in use of every device that has records; every peak of the records is in it."""
    curve = analysis.tables["memory_curve"]
    if curve.absent is not None:
        return curve.absent
    found = []
    places = list(zip(curve.column("memory_of"), curve.column("device"), strict=True))
    for kind, number in dict.fromkeys(places):
        own = curve.take(np.array([place == (kind, number) for place in places]))
        values = {terms["overlay_allocated"]: own.array("in_use_bytes") / MIB}
        if not isinstance(own.column("reserved_bytes")[0], NotMeasured):
            values[terms["overlay_reserved"]] = own.array("reserved_bytes") / MIB
        # Records that name no device have the number -1, as in the trace.
        place = "host" if kind == "memory_of_host" else f"{terms['overlay_device']} {-1 if number is None else number}"
        found.append(Counter(f"{terms['overlay_memory']} · {place}", own.array("record_ns"), values))
    return tuple(found)


def finding_tracks(found: Sequence[FindingOfReport], terms: Mapping[str, str]) -> tuple[tuple[Slices, ...], int]:
    """A track for each finding, in their order; and how many findings name no place in time."""
    tracks: list[Slices] = []
    unplaced = 0
    for one in found:
        windows = _windows(one)
        unplaced += not windows
        tracks += [_track(one, start, end, terms) for start, end in windows]
    return tuple(tracks), unplaced


def _windows(one: FindingOfReport) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The time behind a finding; without any, the places that its evidence names."""
    if len(one.intervals):
        return [(one.intervals[:, 0], one.intervals[:, 1])]
    places = [
        (each.start_ns, each.end_ns) for each in one.evidence if each.start_ns is not None and each.end_ns is not None
    ]
    some = np.array([place for place in places if place[1] > place[0]], np.int64).reshape(-1, 2)
    return [(some[lane, 0], some[lane, 1]) for lane in lanes(some[:, 0], some[:, 1])]


def _track(one: FindingOfReport, start: NDArray[np.int64], end: NDArray[np.int64], terms: Mapping[str, str]) -> Slices:
    count, saving = len(start), one.saving
    args = {
        "severity": one.grade,
        "sentence": one.sentence,
        "price": one.price or None,
        "saving": None if saving is None else milliseconds(saving.ns),
        "bound": None if saving is None else milliseconds(saving.high_ns),
        "advice": " ".join(f"→ {each}" for each in one.advice) or None,
    }
    return Slices(
        f"{terms['overlay_finding']} {one.rule}: {one.title}",
        start,
        end,
        [one.title] * count,
        {terms[f"overlay_arg_{key}"]: [value] * count for key, value in args.items()},
    )
